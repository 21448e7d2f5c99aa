"""The pictures of Theorem 2's page, drawn from the tables alone."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from monolib.links import FloatArray
from monolib.plot_style import STYLE
from monolib.theorem2.hermite import VARIANCE
from monolib.theorem2.lower_bound import risk_lower_bound

MLP_COLOR, KERNEL_COLOR, BOUND_COLOR = "#1f77b4", "#d62728", "0.25"
FLOOR = 5e-6  # smallest risk that is drawn


def _metric_colors(kernel: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """One colour per metric: the standard kernel's, then shades for RFM's ρ in ascending order."""
    ratios = [metric for metric in kernel["metric"].unique() if metric != "standard"]
    shades = plt.get_cmap("autumn")(np.linspace(0.0, 0.7, max(len(ratios), 1)))
    return {"standard": (0.48, 0.2, 0.58)} | {m: tuple(shade) for m, shade in zip(ratios, shades, strict=False)}


def draw_risks(kernel: pd.DataFrame, mlp: pd.DataFrame) -> Figure:
    """Risk against n, one panel per K: standard kernel, RFM's M_ρ, trained network, and the kernels' lower bound.

    The smallest mean over the ridges for each metric; bars are ± 2 standard errors over the draws.
    """
    clusters = sorted(kernel["n_clusters"].unique())
    metrics = list(kernel["metric"].unique())
    colors = _metric_colors(kernel)
    with plt.rc_context(STYLE):
        columns = min(len(clusters), 3)
        rows = -(-len(clusters) // columns)
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(3.2 * columns + 0.4, 2.8 * rows + 0.7),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for axis, k in zip(axes.flat, clusters, strict=False):
            for metric in metrics:
                own = kernel[(kernel["n_clusters"] == k) & (kernel["metric"] == metric)]
                best = own.loc[own.groupby("n_train")["risk"].idxmin()].sort_values("n_train")
                name = "standard kernel, M = I" if metric == "standard" else f"RFM, ρ = {metric} α/K"
                axis.errorbar(
                    best["n_train"],
                    best["risk"],
                    2 * best["standard_error"],
                    fmt="o-",
                    ms=3.5,
                    lw=1,
                    color=colors[metric],
                    label=name,
                )
            own = mlp[mlp["n_clusters"] == k].sort_values("n_train")
            error = np.minimum(2 * own["standard_error"], 0.9 * own["risk"])
            if len(own):
                axis.errorbar(
                    own["n_train"],
                    own["risk"].clip(lower=FLOOR),
                    error,
                    fmt="s-",
                    ms=4,
                    lw=1.2,
                    color=MLP_COLOR,
                    label="network with weight decay",
                )
            last = max([*own["n_train"], *kernel.loc[kernel["n_clusters"] == k, "n_train"]])
            grid = np.geomspace(min(kernel.loc[kernel["n_clusters"] == k, "n_train"]), last, 80)
            axis.plot(
                grid,
                [risk_lower_bound(n, k) for n in grid],
                "--",
                color=BOUND_COLOR,
                label="lower bound for kernels (Lemma 16)",
            )
            axis.axhline(VARIANCE, color="0.6", ls=":", lw=1, label="constant predictor, Var g(G)")
            axis.set(xscale="log", yscale="log", title=f"K = {k}", xlabel="training points n", ylim=(FLOOR, 0.5))
        for axis in list(axes.flat)[len(clusters) :]:
            axis.axis("off")
        for row in axes:
            row[0].set_ylabel("risk")
        handles, labels = next(a for a in axes.flat if len(a.get_lines())).get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def draw_kernels(kernel: pd.DataFrame) -> Figure:
    """The kernel methods alone, on a linear scale: risk against n for every metric, one panel per K, and the floors.

    The smallest mean over the ridges; bars are ± 2 standard errors over the draws.
    """
    clusters = sorted(kernel["n_clusters"].unique())
    colors = _metric_colors(kernel)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(clusters), figsize=(2.3 * len(clusters) + 0.8, 3.0), squeeze=False, sharey=True, layout="constrained"
        )
        for axis, k in zip(axes[0], clusters, strict=True):
            for i, metric in enumerate(kernel["metric"].unique()):
                own = kernel[(kernel["n_clusters"] == k) & (kernel["metric"] == metric)]
                best = own.loc[own.groupby("n_train")["risk"].idxmin()].sort_values("n_train")
                name = "standard, M = I" if metric == "standard" else f"RFM, ρ = {metric} α/K"
                shift = 1.06**i  # side by side, so that the bars can be told apart
                axis.errorbar(
                    best["n_train"] * shift,
                    best["risk"],
                    2 * best["standard_error"],
                    fmt="o-",
                    ms=3.5,
                    lw=1,
                    color=colors[metric],
                    label=name,
                )
            axis.axhline(VARIANCE, color="0.6", ls=":", lw=1, label="constant predictor")
            axis.axhline(own["floor"].iloc[0], color="0.3", ls="--", lw=1, label="floor of Lemma 12 (ρ = 0)")
            axis.set(xscale="log", title=f"K = {k}", xlabel="training points n")
            axis.xaxis.set_major_locator(FixedLocator(sorted(own["n_train"].unique())))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_locator(NullLocator())
        axes[0, 0].set_ylabel("risk")
        axes[0, 0].set_ylim(bottom=0.1)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def draw_bound(bounds: pd.DataFrame) -> Figure:
    """The lower bound against K for n = K^A, with its limit Σ_{r>A} ĝ_r²; bounds: `tables.bound_table`."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.4, 3.5), layout="constrained")
        for i, (a, own) in enumerate(bounds.groupby("exponent")):
            color = plt.get_cmap("viridis")(i / 4.5)
            axis.plot(own["n_clusters"], own["lower_bound"], "-", color=color, label=f"n = K^{a:g}")
            axis.axhline(own["limit"].iloc[0], color=color, ls=":", lw=1)
        axis.axhline(VARIANCE, color="0.5", ls="--", lw=1, label="constant predictor, Var g(G)")
        axis.set(
            xscale="log", yscale="log", xlabel="clusters K", ylabel="lower bound (dotted: limit)", ylim=(1e-4, 0.3)
        )
        axis.legend(loc="lower right")
    return figure


def draw_energies(coefficients: FloatArray, energies: dict[int, FloatArray]) -> Figure:
    """ĝ_r² against r with the decay r^{−5/2}, and α_{r,K} against r for several K."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
        r = np.arange(1, len(coefficients))
        axes[0].plot(r, np.square(coefficients[1:]), "o", ms=3, color=MLP_COLOR, label=r"$\hat g_r^2$")
        axes[0].plot(r, 0.6 * r**-2.5, "-", color="0.5", lw=1, label=r"$\propto r^{-5/2}$")
        axes[0].set(xscale="log", yscale="log", xlabel="Hermite order r", ylabel="energy of g at order r")
        axes[0].set_ylim(bottom=1e-9)
        axes[0].legend()
        for i, (k, values) in enumerate(energies.items()):
            axes[1].plot(
                np.arange(2, 2 + len(values)),
                values,
                "o-",
                ms=3,
                color=plt.get_cmap("viridis")(i / 5),
                label=f"K = {k}",
            )
        axes[1].set(xlabel="Hermite order r", ylabel=r"$\alpha_{r,K}$, harmonic share", ylim=(0, 1.03))
        axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_metric(agop: FloatArray, extended: FloatArray) -> Figure:
    """The AGOP of f* as the paper reads it and that of the exact network F, on one colour scale."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), layout="constrained")
        top = float(np.abs(extended).max())
        k, d = len(agop) // 2, len(agop)
        for axis, matrix, title in zip(
            axes, (agop, extended), ("f*, constant in routing (Lemma 12)", "the network F of Lemma 10"), strict=True
        ):
            image = axis.imshow(matrix, cmap="magma_r", vmin=0, vmax=top, extent=(0.5, d + 0.5, d + 0.5, 0.5))
            axis.axhline(k + 0.5, color="0.5", lw=0.8)
            axis.axvline(k + 0.5, color="0.5", lw=0.8)
            axis.xaxis.set_major_locator(FixedLocator([1, k, k + 1, d]))
            axis.yaxis.set_major_locator(FixedLocator([1, k, k + 1, d]))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set(xlabel="coordinate (routing, then predictive)", title=title)
        axes[0].set_ylabel("coordinate")
        figure.colorbar(image, ax=axes, shrink=0.8, label="entry of the AGOP")
    return figure
