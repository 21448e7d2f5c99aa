"""The tables of the page: errors by iteration, what the metric has learned, convergence, variations."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from monolib.cells import CellRecord
from monolib.kernel_cells import cell_law
from monolib.kernel_path.runs import PlannedFit
from monolib.rfm import smallest_test_mse_envelope


def errors_table(fits: Sequence[PlannedFit], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Test MSE of the comparison: method, n_clusters, seed, iteration, test_mse."""
    rows = [
        {"method": fit.method, "n_clusters": fit.n_clusters, "seed": fit.seed, "iteration": t, "test_mse": error}
        for fit, record in zip(fits, records, strict=True)
        if fit.part == "comparison"
        for t, error in enumerate(record.result["test_mse"])
    ]
    return pd.DataFrame(rows)


def summary_table(errors: pd.DataFrame) -> pd.DataFrame:
    """Per K (mean over seeds): Laplace (iteration 0), RFM (last iteration), its test-selected envelope, the oracles."""
    last = errors["iteration"].max()
    rows = []
    for k, own in errors.groupby("n_clusters"):
        glob, oracle = (own[own["method"] == method] for method in ("global", "oracle"))
        envelope = glob.groupby("seed")["test_mse"].agg(lambda column: smallest_test_mse_envelope(list(column)))
        rows.append(
            {
                "n_clusters": k,
                "laplace": glob.loc[glob["iteration"] == 0, "test_mse"].mean(),
                "rfm": glob.loc[glob["iteration"] == last, "test_mse"].mean(),
                "rfm_envelope": envelope.mean(),
                "oracle_laplace": oracle.loc[oracle["iteration"] == 0, "test_mse"].mean(),
                "oracle_rfm": oracle.loc[oracle["iteration"] == last, "test_mse"].mean(),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(laplace_over_rfm=table["laplace"] / table["rfm_envelope"])


def metric_measures(metric: np.ndarray, directions: np.ndarray) -> dict[str, float]:
    """What a metric M (d, d) has learned about the directions v_c (K, d).

    top_cosine: max_c |⟨top eigenvector, v_c⟩|.  effective_dimension: (tr M)²/tr M².
    direction_weight: mean_c v_cᵀMv_c over tr M; 1/d for M = I, 1 for M = v vᵀ.
    """
    _, vectors = np.linalg.eigh(metric)
    trace = float(np.trace(metric))
    return {
        "top_cosine": float(np.abs(directions @ vectors[:, -1]).max()),
        "effective_dimension": trace**2 / float(np.square(metric).sum()),
        "direction_weight": float(np.einsum("cd,de,ce->c", directions, metric, directions).mean()) / trace,
    }


def metrics_table(fits: Sequence[PlannedFit], records: Sequence[CellRecord]) -> pd.DataFrame:
    """`metric_measures` of the global RFM by n_clusters, seed and iteration."""
    rows = [
        {"n_clusters": fit.n_clusters, "seed": fit.seed, "iteration": t}
        | metric_measures(metric, cell_law(fit.cell).directions)
        for fit, record in zip(fits, records, strict=True)
        if fit.part == "comparison" and fit.method == "global"
        for t, metric in enumerate(record.arrays["metrics"])
    ]
    return pd.DataFrame(rows)


def entries_table(fits: Sequence[PlannedFit], records: Sequence[CellRecord], seed: int) -> pd.DataFrame:
    """Entries of the metrics of one seed's global RFM: n_clusters, iteration, row, column (from 1), value."""
    frames = []
    for fit, record in zip(fits, records, strict=True):
        if fit.part == "comparison" and fit.method == "global" and fit.seed == seed:
            stack = record.arrays["metrics"]
            t, i, j = (index.ravel() for index in np.indices(stack.shape))
            columns = {"iteration": t, "row": i + 1, "column": j + 1, "value": stack.ravel()}
            frames.append(pd.DataFrame(columns).assign(n_clusters=fit.n_clusters))
    return pd.concat(frames, ignore_index=True)[["n_clusters", "iteration", "row", "column", "value"]]


def curves_table(fits: Sequence[PlannedFit], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Convergence: method, epoch, train_mse, test_mse; the exact solution as epoch 0 of method "exact"."""
    rows = []
    for fit, record in zip(fits, records, strict=True):
        if fit.part != "curve":
            continue
        if fit.method == "curve":
            epochs = record.result["epochs"]
        else:
            epochs = [(0, record.result["reports"][0]["train_mse"], record.result["test_mse"][0])]
        rows += [{"method": fit.variation, "epoch": e, "train_mse": a, "test_mse": b} for e, a, b in epochs]
    return pd.DataFrame(rows)


def variations_table(fits: Sequence[PlannedFit], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Test MSE by iteration of every variation, and the solver, steps and training MSE of its last fit."""
    rows = []
    for fit, record in zip(fits, records, strict=True):
        if fit.part == "variation":
            errors = {f"test_mse_{t}": error for t, error in enumerate(record.result["test_mse"])}
            last = {name: record.result["reports"][-1][name] for name in ("solver", "steps", "train_mse")}
            rows.append({"variation": fit.variation, **errors, **last})
    return pd.DataFrame(rows)
