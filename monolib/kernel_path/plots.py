"""The pictures of the page, drawn from the tables alone."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from monolib.plot_style import METHOD_COLORS, STYLE

CURVE_COLORS = {"EigenPro": "#8c564b", "gradient descent": "#bcbd22", "exact": "0.3"}


def draw_metrics(entries: pd.DataFrame, clusters: list[int], directions: dict[int, np.ndarray]) -> Figure:
    """Heat maps of |M| for each iteration, one row of panels per K; entries: rows of `tables.entries_table`.

    directions: v_c (K, d) of each K. Where there is one direction, its outer product v vᵀ closes the row.
    """
    iterations = sorted(entries["iteration"].unique())
    with plt.rc_context(STYLE):
        columns = len(iterations) + 1
        figure, axes = plt.subplots(
            len(clusters),
            columns,
            figsize=(2.1 * columns, 2.2 * len(clusters) + 0.4),
            squeeze=False,
            layout="constrained",
        )
        for row, k in zip(axes, clusters, strict=True):
            for axis, t in zip(row, iterations, strict=False):
                own = entries[(entries["n_clusters"] == k) & (entries["iteration"] == t)]
                _heat_map(axis, own.pivot(index="row", columns="column", values="value").to_numpy())
                axis.set_title(f"K = {k}, M after {t} update{'s' if t != 1 else ''}", fontsize=8)
            target = np.einsum("ca,cb->ab", directions[k], directions[k])
            image = _heat_map(row[-1], target)
            row[-1].set_title(f"K = {k}, Σ v vᵀ of the law", fontsize=8)
            row[0].set_ylabel("coordinate")
        for axis in axes[-1]:
            axis.set_xlabel("coordinate")
        figure.colorbar(image, ax=axes, shrink=0.8, label="|entry| / largest |entry| of the panel")
    return figure


def _heat_map(axis: plt.Axes, matrix: np.ndarray) -> plt.cm.ScalarMappable:
    size = np.abs(matrix)
    d = len(matrix)
    image = axis.imshow(size / size.max(), cmap="magma_r", vmin=0, vmax=1, extent=(0.5, d + 0.5, d + 0.5, 0.5))
    axis.xaxis.set_major_locator(FixedLocator([1, d // 2, d]))
    axis.yaxis.set_major_locator(FixedLocator([1, d // 2, d]))
    return image


def draw_errors(errors: pd.DataFrame, noise_std: float) -> Figure:
    """Test MSE against the iteration, one panel per K: global and oracle RFM, mean and range over seeds."""
    clusters = sorted(errors["n_clusters"].unique())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(clusters), figsize=(2.5 * len(clusters) + 0.6, 2.9), sharey=True, squeeze=False, layout="constrained"
        )
        for axis, k in zip(axes[0], clusters, strict=True):
            for method, key, style in (("global", "rfm", "o-"), ("oracle", "oracle_rfm", "s--")):
                own = errors[(errors["n_clusters"] == k) & (errors["method"] == method)]
                spread = own.groupby("iteration")["test_mse"].agg(["mean", "min", "max"])
                color = METHOD_COLORS[key]
                axis.plot(spread.index, spread["mean"], style, color=color, label=f"{method} RFM", ms=4)
                axis.fill_between(spread.index, spread["min"], spread["max"], color=color, alpha=0.15, lw=0)
            axis.axhline(noise_std**2, color="0.4", ls=":", label="label noise σ²")
            axis.set_title(f"K = {k}")
            axis.set_xlabel("metric updates")
            axis.set_xticks(sorted(errors["iteration"].unique()))
        axes[0, 0].set_yscale("log")
        axes[0, 0].set_ylabel("test MSE")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def draw_learned(metrics: pd.DataFrame) -> Figure:
    """What the last metric has learned, against K: top cosine, effective dimension; one dot per seed."""
    last = metrics[metrics["iteration"] == metrics["iteration"].max()]
    clusters = sorted(last["n_clusters"].unique())
    panels = {
        "top_cosine": "|cos| of top eigenvector\nwith the nearest $v_c$",
        "effective_dimension": "effective dimension\n(tr M)² / tr M²",
        "direction_weight": "mean $v_c^T M v_c$ / tr M",
    }
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.7), layout="constrained")
        for axis, (name, label) in zip(axes, panels.items(), strict=True):
            axis.plot(last["n_clusters"], last[name], "o", color=METHOD_COLORS["rfm"], ms=4, alpha=0.7)
            axis.plot(last.groupby("n_clusters")[name].mean(), "-", color=METHOD_COLORS["rfm"], lw=1)
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(FixedLocator(clusters))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_xticklabels(map(str, clusters))
            axis.set_xlabel("clusters K")
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
    return figure


def draw_curves(curves: pd.DataFrame, target_mse: float) -> Figure:
    """Training and test MSE against epochs: EigenPro, gradient descent, and the exact fit as a line."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.1), layout="constrained")
        for axis, column, label in zip(axes, ("train_mse", "test_mse"), ("training MSE", "test MSE"), strict=True):
            for name in ("EigenPro", "gradient descent"):
                own = curves[curves["method"] == name]
                axis.plot(own["epoch"], own[column], "o-", ms=3, lw=1, color=CURVE_COLORS[name], label=name)
            if column == "train_mse":
                axis.axhline(target_mse, color="0.4", ls=":", label="stop at this training MSE")
            else:
                exact = float(curves.loc[curves["method"] == "exact", column].iloc[0])
                axis.axhline(exact, color=CURVE_COLORS["exact"], ls="--", label="exact fit")
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("epochs (passes over the kernel matrix)")
            axis.set_ylabel(label)
            axis.legend()
    return figure
