"""The tables of Theorem 2's page: measured risks beside the bounds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from monolib.cells import Cell, CellRecord
from monolib.theorem2.lower_bound import limit_lower_bound, mlp_upper_bound, risk_lower_bound
from monolib.theorem2.runs import training_size
from monolib.theorem2.true_metric import risk_floor


def kernel_table(cells: Sequence[Cell], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Per K, n, metric and ridge: mean risk over the draws, its standard error, the lower bound, the floor of ρ = 0.

    metric: "standard" (I_d), or the ρ of M_ρ in units of α/K.
    """
    rows = [
        (cell.config["n_clusters"], cell.config["n_train"], metric, ridge, risk)
        for cell, record in zip(cells, records, strict=True)
        for metric, risks in record.result["risks"].items()
        for ridge, risk in zip(cell.config["ridges"], risks, strict=True)
    ]
    return _with_bounds(pd.DataFrame(rows, columns=["n_clusters", "n_train", "metric", "ridge", "risk"]))


def _with_bounds(frame: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in frame.columns if name not in ("risk", "path_norm", "train_mse")]
    grouped = frame.groupby(keys, sort=False)
    table = grouped["risk"].agg(risk="mean", standard_error=lambda v: v.std(ddof=1) / len(v) ** 0.5).reset_index()
    for name in ("path_norm", "train_mse"):
        if name in frame:
            table[name] = grouped[name].mean().to_numpy()
    pairs = list(zip(table["n_train"], table["n_clusters"], strict=True))
    bounds = {(n, k): risk_lower_bound(n, k) for n, k in set(pairs)}
    return table.assign(lower_bound=[bounds[pair] for pair in pairs], floor=[risk_floor(k) for _, k in pairs])


def mlp_table(cells: Sequence[Cell], records: Sequence[CellRecord]) -> pd.DataFrame:
    """Per K and n: the network's mean risk and standard error, path norm over 3K, and the bounds."""
    rows = [
        (
            cell.config["n_clusters"],
            cell.config["n_train"],
            record.result["risk"],
            record.result["path_norm"] / (3.0 * cell.config["n_clusters"]),
            record.result["train_mse"],
        )
        for cell, record in zip(cells, records, strict=True)
    ]
    table = _with_bounds(pd.DataFrame(rows, columns=["n_clusters", "n_train", "risk", "path_norm", "train_mse"]))
    upper = mlp_upper_bound(table["n_train"].to_numpy(), table["n_clusters"].to_numpy())
    return table.rename(columns={"path_norm": "path_norm_over_3k"}).assign(upper_bound=upper)


def best_kernels(kernel: pd.DataFrame) -> pd.DataFrame:
    """The metric and ridge of smallest mean risk at every K and n."""
    return kernel.loc[kernel.groupby(["n_clusters", "n_train"])["risk"].idxmin()].reset_index(drop=True)


def bound_table(clusters: Sequence[int], exponents: Sequence[float]) -> pd.DataFrame:
    """The lower bound over K and A (n = K^A), and its limit for large K."""
    rows = [
        (k, a, training_size(k, a), risk_lower_bound(training_size(k, a), k), limit_lower_bound(a))
        for k in clusters
        for a in exponents
    ]
    return pd.DataFrame(rows, columns=["n_clusters", "exponent", "n_train", "lower_bound", "limit"])


def comparison_table(kernel: pd.DataFrame, mlp: pd.DataFrame) -> pd.DataFrame:
    """The network beside the best kernel where both were run: K, n, risks, standard errors, ratio, bound."""
    best = best_kernels(kernel)[["n_clusters", "n_train", "metric", "ridge", "risk", "standard_error"]]
    both = mlp.merge(best, on=["n_clusters", "n_train"], suffixes=("_mlp", "_kernel"))
    names = ["n_clusters", "n_train", "risk_mlp", "standard_error_mlp", "risk_kernel", "standard_error_kernel"]
    table = both[[*names, "metric", "ridge", "lower_bound"]]
    return table.assign(kernel_over_mlp=np.asarray(table["risk_kernel"]) / np.asarray(table["risk_mlp"]))
