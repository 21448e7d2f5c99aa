"""Tables of Figure 4: test errors over n with the gates' agreement with the clusters, and the variants."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from monolib.cells import CellRecord
from monolib.fig4.runs import VariantRun
from monolib.gated_cells import cell_data
from monolib.mixed_link_data import MixedLinkData
from monolib.sample_size.runs import SampleSizeRun
from monolib.sample_size.tables import COLUMNS as SHARED_COLUMNS
from monolib.sample_size.tables import fitted_rows, sorted_table

GATE_COLUMNS = ("gate_ari", "gate_ari_train", "active", "gates")
COLUMNS = (*SHARED_COLUMNS[:5], *GATE_COLUMNS, *SHARED_COLUMNS[5:])
DRAWN = ("relu", "laplace", "rfm_envelope", "gated_laplace", "gated_rfm", "oracle_laplace", "oracle_rfm", "noise")
VARIANT_COLUMNS = ("variant", "n_gates", "assignment", "metric", "network_steps", "seed", "network_test_mse")


def curves_table(runs: Sequence[SampleSizeRun], records: Sequence[CellRecord]) -> pd.DataFrame:
    """`curves.csv`: one row per method, K, n and seed.

    gate_ari, gate_ari_train: adjusted Rand index of gates and true clusters, test and training points.  active: |J|.
    gates: how many are in use.  All four only for gated methods.  noise: the label noise σ², the expected MSE of the
    true function.  Global RFM: `rfm` is the last iteration, `rfm_envelope` the smallest test MSE, which is drawn.
    """
    gates = {
        (run.n_clusters, run.n_train, run.seed): {name: record.result[name] for name in GATE_COLUMNS}
        for run, record in zip(runs, records, strict=True)
        if run.method == "gated"
    }
    rows = [
        row | gates[row["n_clusters"], row["n_train"], row["seed"]] if row["method"].startswith("gated_") else row
        for row in fitted_rows(runs, records)
    ]
    table = sorted_table([*rows, *_noise_rows(runs)], COLUMNS)
    return table.astype({"active": "Int64", "gates": "Int64"})


def _noise_rows(runs: Sequence[SampleSizeRun]) -> Iterator[dict[str, Any]]:
    noise: dict[int, float] = {}
    for k, n, seed in sorted({(run.n_clusters, run.n_train, run.seed) for run in runs}):
        if k not in noise:
            noise[k] = MixedLinkData(k, n, 1, seed).law().noise_std ** 2
        place = {"n_clusters": k, "n_train": n, "seed": seed, "method": "noise", "test_mse": noise[k]}
        yield place | {"train_mse": noise[k], "steps": 0, "stop_reason": "law known"}


def gates_table(curves: pd.DataFrame) -> pd.DataFrame:
    """What was extracted, by K and n: mean and smallest agreement over seeds, active neurons, fewest gates in use."""
    rows = curves[curves["method"] == "gated_rfm"].groupby(["n_clusters", "n_train"])
    return rows.agg(
        gate_ari=("gate_ari", "mean"),
        smallest_ari=("gate_ari", "min"),
        active=("active", "mean"),
        gates=("gates", "min"),
        seeds=("seed", "count"),
    ).reset_index()


def variants_table(runs: Sequence[VariantRun], records: Sequence[CellRecord], curves: pd.DataFrame) -> pd.DataFrame:
    """`variants.csv`: one row per variant and seed, with the global and the oracle fit of the same data for comparison.

    gated_laplace, gated_rfm: test MSE of the first and last iteration (of the global and oracle fits in their rows).
    """
    rows = []
    for run, record in zip(runs, records, strict=True):
        result = record.result
        facts = {name: getattr(run, name) for name in VARIANT_COLUMNS[:-1]} | {"network_test_mse": None}
        facts |= {name: result[name] for name in ("network_test_mse", *GATE_COLUMNS)}
        rows.append(facts | {"gated_laplace": result["test_mse"][0], "gated_rfm": result["test_mse"][-1]})
    if rows:
        rows += _references(runs, curves)
    return pd.DataFrame(rows, columns=[*VARIANT_COLUMNS, *GATE_COLUMNS, "gated_laplace", "gated_rfm"])


def _references(runs: Sequence[VariantRun], curves: pd.DataFrame) -> list[dict[str, Any]]:
    """The global and the oracle fit at the page's K and n, for every seed of the variants that has them."""
    data = runs[0].cell.config["network"]["data"]
    at = curves[(curves["n_clusters"] == data["n_clusters"]) & (curves["n_train"] == data["n_train"])]
    errors = at.pivot(index="seed", columns="method", values="test_mse")
    rows = []
    for variant, assignment, n_gates, prefix in (
        ("global", "none", 1, ""),
        ("oracle", "true", int(data["n_clusters"]), "oracle_"),
    ):
        for seed in sorted({run.seed for run in runs} & set(errors.index)):
            methods = {f"gated_{name}": errors[f"{prefix}{name}"][seed] for name in ("laplace", "rfm")}
            place = {"variant": variant, "assignment": assignment, "metric": "identity", "seed": seed}
            rows.append(place | {"n_gates": n_gates} | methods)
    return rows


def variant_means(variants: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of `variants_table`, in its order."""
    names = ["network_test_mse", "gate_ari", "active", "gates", "gated_laplace", "gated_rfm"]
    return variants.groupby("variant", sort=False)[names].mean().reset_index()


def misrouted_table(runs: Sequence[SampleSizeRun], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Where the gated RFM's error comes from, one row per gated cell: test points in a gate that belongs to another
    cluster (of most of its training points), their share of the squared error, and the MSE of all others."""
    rows = []
    for run, record in zip(runs, records, strict=True):
        if run.method != "gated":
            continue
        _, train, test = cell_data(run.cell).draw()
        counts = np.zeros((int(record.arrays["assignment"].max()) + 1, run.n_clusters))
        np.add.at(counts, (record.arrays["assignment"], train.cluster), 1)
        wrong = counts.argmax(1)[record.arrays["test_gate"]] != test.cluster
        errors = np.square(record.arrays["predictions"][-1] - test.y)
        place = {"n_clusters": run.n_clusters, "n_train": run.n_train, "seed": run.seed, "misrouted": int(wrong.sum())}
        rest = float(errors[~wrong].mean()) if not wrong.all() else float("nan")
        rows.append(place | {"share_of_error": float(errors[wrong].sum() / errors.sum()), "mse_of_others": rest})
    return pd.DataFrame(rows, columns=["n_clusters", "n_train", "seed", "misrouted", "share_of_error", "mse_of_others"])
