"""Tables of Figures 2 and 6 besides `curves.csv`: the variations, and how the runs ended."""

from collections.abc import Sequence

import pandas as pd

from monolib.cells import CellRecord
from monolib.fig2.runs import VariationRun

NETWORKS = ("relu", "gelu", "reglu", "swiglu")
FIG2_METHODS = ("relu", "reglu", "laplace", "rfm_envelope", "rfm", "oracle_laplace", "oracle_rfm", "bayes")
FIG6_METHODS = (*NETWORKS, "rfm_envelope", "oracle_rfm", "bayes")
RESULTS = ("test_mse", "train_mse", "best_step", "steps", "stop_reason")


def variations_table(runs: Sequence[VariationRun], records: Sequence[CellRecord]) -> pd.DataFrame:
    """One row per network and variation, with its errors at the kept checkpoint and how it ended."""
    rows = [
        {"architecture": run.architecture, **run.variation.model_dump()}
        | {name: record.result[name] for name in RESULTS}
        for run, record in zip(runs, records, strict=True)
    ]
    settings = ["architecture", "start_scale", "readout_ratio", "rate_unit", "max_steps"]
    return pd.DataFrame(rows, columns=[*settings, *RESULTS])


def endings_table(curves: pd.DataFrame) -> pd.DataFrame:
    """How the networks' runs ended, by method and K: count of each stop reason, and the median of their steps."""
    networks = curves[curves["method"].isin(NETWORKS)]
    groups = networks.groupby(["method", "n_clusters"], sort=False)
    counts = groups["stop_reason"].value_counts().unstack(fill_value=0)
    return counts.assign(median_steps=groups["steps"].median()).reset_index()


def envelope_table(curves: pd.DataFrame) -> pd.DataFrame:
    """Global RFM by K and n, mean over seeds: Laplace (iteration 0), last iteration, smallest test MSE."""
    chosen = curves[curves["method"].isin(["laplace", "rfm", "rfm_envelope"])]
    table = chosen.pivot_table(index=["n_clusters", "n_train"], columns="method", values="test_mse")
    return table.reindex(columns=["laplace", "rfm", "rfm_envelope"]).reset_index()
