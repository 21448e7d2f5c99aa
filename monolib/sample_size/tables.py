"""Tables of test error against n: one row per method, K, n and seed, and statistics over seeds paired by seed."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from monolib.bayes import bayes_prediction
from monolib.cells import CellRecord
from monolib.mixed_link_data import MixedLinkData
from monolib.rfm import smallest_test_mse_envelope
from monolib.sample_size.runs import SampleSizeRun

COLUMNS = ("n_clusters", "n_train", "seed", "method", "test_mse", "train_mse", "steps", "stop_reason")
PREFIXES = {"global": "", "oracle": "oracle_", "gated": "gated_"}  # of the methods that a cell of RFMs gives


def method_rows(run: SampleSizeRun, record: CellRecord) -> Iterator[dict[str, Any]]:
    """Rows of one cell: one for a network; laplace, rfm, rfm_envelope of a global RFM; two of local RFMs.

    steps: updates of a network; of kernel fits the epochs or refinements of the slowest.
    """
    result = record.result
    if run.method not in PREFIXES:
        yield {"method": run.method} | {name: result[name] for name in COLUMNS[4:]}
        return
    errors = result["test_mse"]
    prefix, last = PREFIXES[run.method], len(errors) - 1
    iterations = {f"{prefix}laplace": 0, f"{prefix}rfm": last}
    if run.method == "global":
        iterations["rfm_envelope"] = errors.index(smallest_test_mse_envelope(errors))
    for method, t in iterations.items():
        report = {name: result["reports"][t][name] for name in ("train_mse", "steps", "stop_reason")}
        yield {"method": method, "test_mse": errors[t], **report}


def bayes_rows(runs: Sequence[SampleSizeRun], n_test: int) -> Iterator[dict[str, Any]]:
    """The Bayes predictor's row at every (K, n, seed) of `runs`: nothing is fitted, so 0 steps."""
    drawn: dict[tuple[int, int], tuple[np.ndarray, float]] = {}
    for k, n, seed in sorted({(run.n_clusters, run.n_train, run.seed) for run in runs}):
        if (k, seed) not in drawn:
            largest = max(run.n_train for run in runs if (run.n_clusters, run.seed) == (k, seed))
            law, train, test = MixedLinkData(k, largest, n_test, seed).draw()
            errors = np.square(bayes_prediction(law, train.x) - train.y)
            drawn[k, seed] = errors, float(np.mean(np.square(bayes_prediction(law, test.x) - test.y)))
        train_errors, test_mse = drawn[k, seed]
        where = {"n_clusters": k, "n_train": n, "seed": seed, "method": "bayes", "test_mse": test_mse}
        yield where | {"train_mse": float(train_errors[:n].mean()), "steps": 0, "stop_reason": "law known"}


def curves_table(runs: Sequence[SampleSizeRun], records: Sequence[CellRecord], n_test: int) -> pd.DataFrame:
    """`curves.csv`: n_clusters, n_train, seed, method, test_mse, train_mse, steps, stop_reason, in that order."""
    return sorted_table([*fitted_rows(runs, records), *bayes_rows(runs, n_test)], COLUMNS)


def fitted_rows(runs: Sequence[SampleSizeRun], records: Sequence[CellRecord]) -> Iterator[dict[str, Any]]:
    """Rows of all cells, each with its place in the grid."""
    for run, record in zip(runs, records, strict=True):
        for row in method_rows(run, record):
            yield {"n_clusters": run.n_clusters, "n_train": run.n_train, "seed": run.seed, **row}


def sorted_table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows by K, n and seed; at one place in the order given."""
    table = pd.DataFrame(rows, columns=list(columns))
    return table.sort_values(["n_clusters", "n_train", "seed"], kind="stable", ignore_index=True)


def seed_statistics(curves: pd.DataFrame) -> pd.DataFrame:
    """Mean and one empirical standard deviation of the test MSE over seeds (nan for one seed), by method, K and n."""
    groups = curves.groupby(["method", "n_clusters", "n_train"], sort=False)["test_mse"]
    return groups.agg(mean="mean", std="std", seeds="count").reset_index()


def paired_log_ratio(curves: pd.DataFrame, method: str, against: str, n_clusters: int, n_train: int) -> pd.Series:
    """ln(test MSE of `method` / test MSE of `against`) by seed, over the seeds that have both at (K, n)."""
    at = curves[(curves["n_clusters"] == n_clusters) & (curves["n_train"] == n_train)]
    errors = at.pivot(index="seed", columns="method", values="test_mse")
    if not {method, against} <= set(errors.columns):
        return pd.Series(dtype=float)
    return (errors[method] / errors[against]).map(np.log).dropna()
