"""The pictures of Theorem 1's page, drawn from the tables alone."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import FixedLocator, NullLocator

from monolib.lemma_checks import slope
from monolib.links import FloatArray
from monolib.plot_style import STYLE

CLUSTER_COLORS = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
NODES = {  # Fig. 7: position and caption of each node
    "3": (0.0, 2.0, "cubic correlation\nidentity"),
    "4": (1.0, 2.0, "maxima use\none cluster"),
    "5": (2.0, 2.0, "specialised\nmaxima"),
    "6": (2.0, 1.0, "flows of fixed\nsign specialise"),
    "7": (1.0, 1.0, "self-selected\nsign"),
    "8": (1.0, 0.0, "uniform labels,\ncoverage"),
    "9": (0.0, 1.0, "tracking by the\nfull network"),
    "T1": (0.0, 0.0, "random neurons\nspecialise"),
}
EDGES = [("3", "4"), ("4", "5"), ("5", "6"), ("6", "7"), ("7", "8"), ("7", "9"), ("8", "T1"), ("9", "T1")]
DASHED = ("3", "9")


def _color(cluster: int) -> tuple[float, ...]:
    return tuple(CLUSTER_COLORS[(int(cluster) - 1) % 10])


def draw_flows(flows: pd.DataFrame, ends: FloatArray) -> Figure:
    """Flows in the plane of ρ_1, ρ_2, and in that of the chosen cluster; flows: `tables.flows_table`.

    ends: (b*/R, ρ*) of the specialised maxima, magnitudes.
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained")
        pairs = (("rho_1", "rho_2"), ("routing", "predictive"))
        labels = ((r"$\rho_1$", r"$\rho_2$"), (r"$b_J/R$ of the chosen cluster $J$", r"$\rho_J$"))
        for axis, (x, y), names in zip(axes, pairs, labels, strict=True):
            for _, own in flows.groupby("neuron"):
                color = _color(own["cluster"].iloc[0])
                axis.plot(own[x], own[y], color=color, lw=0.9, alpha=0.8)
                axis.plot(own[x].iloc[0], own[y].iloc[0], "o", color=color, ms=3.5, mfc="white")
            angle = np.linspace(0, 2 * np.pi, 200)
            axis.plot(np.cos(angle), np.sin(angle), color="0.8", lw=0.8, zorder=0)
            axis.set(xlabel=names[0], ylabel=names[1], aspect="equal")
        rho = ends[1]
        axes[0].plot([rho, -rho, 0, 0], [0, 0, rho, -rho], "k*", ms=9, label="specialised maxima", zorder=5)
        axes[1].plot(*np.array([[s * ends[0], t * rho] for s in (1, -1) for t in (1, -1)]).T, "k*", ms=9, zorder=5)
        axes[0].set_title("predictive coordinates")
        axes[1].set_title("the chosen cluster's plane")
        for cluster in sorted(flows["cluster"].unique()):
            axes[0].plot([], [], color=_color(cluster), label=f"chooses cluster {cluster}")
        axes[0].plot([], [], "o", color="0.4", mfc="white", ms=3.5, label=r"start $\omega^0$")
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def draw_alignment(flows: pd.DataFrame, limit: float) -> Figure:
    """|ρ_J| and |u| of every neuron against time, coloured by the cluster it chooses; limit: |ρ*|."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), layout="constrained")
        for _, own in flows.groupby("neuron"):
            color = _color(own["cluster"].iloc[0])
            axes[0].plot(own["time"], own["predictive"].abs(), color=color, lw=1, alpha=0.8)
            axes[1].plot(own["time"], own["amplitude"], color=color, lw=1, alpha=0.8)
        axes[0].axhline(limit, color="k", ls=":", lw=1, label=r"$\rho^\star$ of Lemma 5")
        for cluster in sorted(flows["cluster"].unique()):
            axes[0].plot([], [], color=_color(cluster), label=f"chooses cluster {cluster}")
        axes[0].set(xlabel="time t", ylabel=r"alignment $|\rho_J|$ with the chosen $v_J$", ylim=(0, 1.03))
        axes[1].set(xlabel="time t", ylabel=r"$u = \mathrm{arsinh}(a/\varepsilon)$")
        axes[0].legend(loc="lower right")
    return figure


def draw_coverage(coverage: pd.DataFrame, n_clusters: int) -> Figure:
    """Probability that all clusters are covered against m: measured, exact, bounds; `tables.coverage_table`."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        axis.plot(coverage["width"], coverage["exact"], "-", color="#1f77b4", label="exact (coupon collector)")
        axis.errorbar(
            coverage["width"],
            coverage["measured"],
            2 * coverage["standard_error"],
            fmt="o",
            ms=4,
            color="#d62728",
            capsize=2,
            label="neurons of the flow (± 2 s.e.)",
        )
        axis.plot(coverage["width"], coverage["union_bound"], "--", color="0.3", label=r"$1-K(1-1/K)^m$")
        axis.plot(coverage["width"], coverage["exponential_bound"], ":", color="0.3", label=r"$1-Ke^{-m/K}$")
        axis.axhline(0, color="0.8", lw=0.8)
        axis.set(xlabel="neurons m", ylabel=f"P(all K = {n_clusters} clusters covered)", ylim=(-0.55, 1.05))
        axis.legend(loc="lower right")
    return figure


def draw_off_component(ascents: pd.DataFrame) -> Figure:
    """Component off v_c of the ends, and 1 − |b*|, against R in log-log with fitted slopes (R ≥ 8)."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
        mean = ascents.groupby("separation").agg({"off_component": "mean", "offset": "mean"})
        series = {"off_component": (mean["off_component"], r"$\|\omega-\langle\omega,v_J\rangle v_J\|$, measured")}
        series["offset"] = (1 - mean["offset"], r"$1-|b^\star|$, closed form")
        for (values, label), color, marker in zip(series.values(), ("#d62728", "#1f77b4"), "os", strict=True):
            large = values[values.index >= 8]
            fitted = slope(list(large.index), list(large))
            axis.plot(values.index, values, marker, color=color, ms=5, label=f"{label}; slope {fitted:.3f}")
            line = large.iloc[-1] * (np.array(values.index) / large.index[-1]) ** fitted
            axis.plot(values.index, line, "-", color=color, lw=0.8)
        axis.plot(mean.index, 1 / np.array(mean.index), ":", color="0.3", label="1/R")
        axis.set(xscale="log", yscale="log", xlabel="cluster separation R", ylabel="size")
        axis.legend(loc="lower left")
    return figure


def draw_tracking(tracking: pd.DataFrame, theorem: pd.DataFrame, delta: float, separation: float) -> Figure:
    """Tracking error against ε and against m, and the end state of Theorem 1 against ε."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.3), layout="constrained")
        for axis, part, column, power in ((axes[0], "epsilons", "epsilon", 2), (axes[1], "widths", "width", 1)):
            own = tracking[tracking["part"] == part].sort_values(column)
            anchor = own.iloc[0]
            axis.plot(own[column], own["error"], "o", color="#d62728", ms=5, label="measured")
            reference = anchor["error"] * (own[column] / anchor[column]) ** power
            axis.plot(own[column], reference, "-", color="0.5", lw=0.9, label=f"slope {power}")
            axis.set(xscale="log", yscale="log", ylabel=r"$\sup_t(|u-\bar u|+\|\omega-\bar\omega\|)$")
            axis.legend(loc="upper left")
        axes[0].set(xlabel=r"initial size $\varepsilon$", title="random neurons")
        axes[1].set(xlabel="neurons m", title="copies of one neuron")
        axes[1].xaxis.set_major_locator(FixedLocator(sorted(tracking.loc[tracking["part"] == "widths", "width"])))
        axes[1].xaxis.set_major_formatter("{x:g}")
        axes[1].xaxis.set_minor_locator(NullLocator())
        axes[2].plot(
            theorem["epsilon"], theorem["largest_distance"], "o-", color="#1f77b4", ms=5, label="largest of the neurons"
        )
        axes[2].axhline(delta + 1 / separation, color="k", ls=":", label=r"$\delta + 1/R$")
        axes[2].set(
            xscale="log",
            xlabel=r"initial size $\varepsilon$",
            title=r"full network at $T_\delta$",
            ylim=(0, None),
            ylabel=r"$\|\omega_j(T_\delta)-\tau_jv_{J_j}\|$",
        )
        axes[2].legend(loc="upper left")
    return figure


def draw_times(times: pd.DataFrame, n_clusters: int) -> Figure:
    """Time to specialise against R², beside e^{R²/4K}, the growth of 1/φ(b) at a start with all b_c² = R²/2K."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        square = times["separation"] ** 2
        for name, label, color in (
            ("median", "median neuron", "#1f77b4"),
            ("quantile_90", "90 % quantile", "#e08214"),
            ("largest", "slowest neuron", "#d62728"),
        ):
            axis.plot(square, times[name], "o-", ms=4, lw=1, color=color, label=label)
        axis.plot(
            square,
            times["largest"].min() * np.exp(square / (4 * n_clusters)),
            ":",
            color="0.3",
            label=r"$\propto e^{R^2/4K}$",
        )
        axis.set(yscale="log", xlabel="squared separation R²", ylabel="time to specialise")
        axis.legend(loc="upper left")
    return figure


def draw_sgd(times: FloatArray, sgd: FloatArray, flow: FloatArray, sgd_table: pd.DataFrame) -> Figure:
    """Alignment of every neuron under SGD (solid) and under the flow (dashed), and the drift against the batch size."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), layout="constrained")
        for j in range(sgd.shape[1]):
            axes[0].plot(times, sgd[:, j], color=_color(j + 1), lw=1)
            axes[0].plot(times, flow[:, j], color=_color(j + 1), lw=1, ls="--", alpha=0.6)
        axes[0].plot([], [], "k-", label="SGD on samples")
        axes[0].plot([], [], "k--", label="population flow")
        axes[0].set(xlabel="time t = step size × steps", ylabel=r"$\max_c|\rho_c|$", ylim=(0, 1.03))
        axes[0].legend(loc="lower right")
        for name, label, marker in (("median_drift", "median neuron", "o"), ("largest_drift", "worst neuron", "s")):
            axes[1].plot(sgd_table["batch"], sgd_table[name], marker + "-", ms=4, label=label)
        axes[1].set(
            xscale="log", yscale="log", xlabel="batch size", ylabel=r"$\|\omega_{SGD}-\omega_{flow}\|$ at the end"
        )
        axes[1].legend()
    return figure


def draw_dependencies(verdicts: Mapping[str, bool], checks: pd.DataFrame) -> Figure:
    """Fig. 7 with the verdict of each lemma on its node. Raises KeyError for a lemma without a verdict."""
    holds = (checks["verdict"] == "holds").groupby(checks["lemma"])
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(8.2, 4.6), layout="constrained")
        for first, last in [*EDGES, DASHED]:
            shrink = 46 if NODES[first][1] == NODES[last][1] else 32
            arrow = FancyArrowPatch(
                NODES[first][:2],
                NODES[last][:2],
                arrowstyle="-|>",
                mutation_scale=13,
                color="0.35",
                shrinkA=shrink,
                shrinkB=shrink,
                ls="--" if (first, last) == DASHED else "-",
            )
            axis.add_patch(arrow)
        for name, (x, y, caption) in NODES.items():
            good, total = holds.sum()[name], holds.size()[name]
            title = "Theorem 1" if name == "T1" else f"Lemma {name}"
            word = "holds" if verdicts[name] else "fails"
            color = "#d9f0d3" if verdicts[name] else "#f4c7c3"
            text = f"{title}\n{caption}\n{word} ({good} of {total})"
            axis.text(
                x,
                y,
                text,
                ha="center",
                va="center",
                fontsize=9,
                bbox={"boxstyle": "round,pad=0.5", "fc": color, "ec": "0.4"},
            )
        axis.set(xlim=(-0.45, 2.45), ylim=(-0.45, 2.45))
        axis.axis("off")
    return figure
