"""The pictures of Figures 1 and 5, drawn from the tables alone."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from monolib.plot_style import BLOCK_COLORS, METHOD_COLORS, METHOD_NAMES, STYLE

MEASURE_NAMES = {
    "cos_071": "cos ≥ .71",
    "cos_090": "cos ≥ .90",
    "dominant": "max is\ntarget-aligned",
    "dominant_2x": "target-aligned max\n> 2 × second max",
}


def draw_neurons(neurons: pd.DataFrame, figure: str, n_clusters: int, title: str) -> Figure:
    """|w_j| by coordinate, one panel per neuron; routing, predictive and nuisance coordinates marked (Figs. 1, 5).

    neurons: rows of `tables.neurons_table`.  figure: "fig1" or "fig5".
    """
    chosen = neurons[neurons["figure"] == figure]
    panels = list(chosen.groupby("importance_rank", sort=True))
    columns = min(3, max(len(panels), 1))
    rows = max(1, -(-len(panels) // columns))
    with plt.rc_context(STYLE):
        drawing, axes = plt.subplots(
            rows, columns, figsize=(3.3 * columns, 1.9 * rows + 0.7), squeeze=False, sharex=True, layout="constrained"
        )
        for axis, (_, neuron) in zip(axes.flat, panels, strict=False):
            _draw_neuron(axis, neuron, n_clusters)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        if not panels:
            axes[0, 0].text(0.5, 0.5, "no neuron of this network qualifies", ha="center", va="center")
        networks = ", ".join(METHOD_NAMES[name] for name in dict.fromkeys(chosen["architecture"]))
        drawing.suptitle(f"{networks}: {title}" if networks else title)
        handles = [Patch(color=color, label=f"{block} coordinates") for block, color in BLOCK_COLORS.items()]
        drawing.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawing


def _draw_neuron(axis: Axes, neuron: pd.DataFrame, n_clusters: int) -> None:
    coordinate = neuron["coordinate"].to_numpy()
    block = np.select([coordinate <= n_clusters, coordinate <= 2 * n_clusters], ["routing", "predictive"], "nuisance")
    axis.bar(coordinate, neuron["magnitude"], width=0.85, color=[BLOCK_COLORS[name] for name in block])
    axis.axvspan(n_clusters + 0.5, 2 * n_clusters + 0.5, color=BLOCK_COLORS["predictive"], alpha=0.08, lw=0)
    first = neuron.iloc[0]
    axis.set_title(
        f"neuron {first['neuron']} (importance rank {first['importance_rank']})\n"
        f"cos = {first['alignment']:.2f}, max/second = {first['dominance']:.1f}",
        fontsize=8,
    )
    axis.set_xlabel("input coordinate")
    axis.set_ylabel("|weight|")


def draw_table(comparison: pd.DataFrame, width: int, paper_width: int) -> Figure:
    """Fig. 1's table as a picture: paper (open), here (filled, bar = one standard deviation over seeds).

    comparison: rows of `claims.comparison`. Active neurons are shown in percent of the width.
    """
    labels = list(dict.fromkeys(zip(comparison["architecture"], comparison["weights"], strict=True)))
    active = comparison["measure"] == "active"
    scaled = comparison.astype({"paper": float, "here": float})
    scaled.loc[active, "paper"] *= 100 / paper_width
    scaled.loc[active, ["here", "seed_std"]] *= 100 / width
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(MEASURE_NAMES) + 1, figsize=(11, 2.9), sharey=True, layout="constrained")
        for axis, measure in zip(axes, ["active", *MEASURE_NAMES], strict=True):
            rows = scaled[scaled["measure"] == measure].set_index(["architecture", "weights"])
            for y, label in enumerate(labels):
                row, color = rows.loc[label], METHOD_COLORS[label[0]]
                axis.plot([row["paper"], row["here"]], [y, y], color=color, lw=1, alpha=0.5)
                axis.errorbar(row["here"], y, xerr=np.nan_to_num(row["seed_std"]), fmt="o", color=color, ms=5)
                axis.plot(row["paper"], y, "o", color=color, mfc="white", ms=6)
            axis.set_title(MEASURE_NAMES.get(measure, "active neurons"), fontsize=9)
            axis.set_xlabel("% of active neurons" if measure != "active" else "% of the width")
            axis.set_xlim(0, 100)
            axis.grid(axis="x", alpha=0.3)
        axes[0].set_yticks(range(len(labels)), [f"{METHOD_NAMES[a]} {w}" for a, w in labels])
        axes[0].invert_yaxis()
        marks = [
            plt.Line2D([], [], marker="o", ls="", color="0.3", mfc="white", label="paper"),
            plt.Line2D([], [], marker="o", ls="", color="0.3", label="here"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
    return figure


def draw_curves(curves: pd.DataFrame, noise_std: float) -> Figure:
    """Validation MSE against the training step for every selected network, with the label noise as a dotted line."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
        for architecture in dict.fromkeys(curves["architecture"]):
            for i, (_, run) in enumerate(curves[curves["architecture"] == architecture].groupby("seed")):
                label = METHOD_NAMES[architecture] if i == 0 else None
                axis.plot(run["step"], run["validation_mse"], color=METHOD_COLORS[architecture], lw=1, label=label)
        axis.axhline(noise_std**2, color="0.4", ls=":", label="label noise σ²")
        axis.set_yscale("log")
        axis.set_xlabel("training step")
        axis.set_ylabel("validation MSE")
        axis.legend()
    return figure
