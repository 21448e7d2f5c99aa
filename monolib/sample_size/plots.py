"""Log-log panels of test MSE against the number of training points, one panel per K, drawn from tables alone."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from monolib.plot_style import METHOD_COLORS, METHOD_LINES, METHOD_MARKERS, METHOD_NAMES, STYLE

OVERLAY_SIZE = 10.0  # points; the markers of the figure itself have 4


def draw_sample_size_curves(
    statistics: pd.DataFrame, methods: Sequence[str], overlay: pd.DataFrame | None = None, overlay_label: str = ""
) -> Figure:
    """Mean test MSE and one standard deviation over seeds against n, both axes logarithmic (Figs. 2, 4, 6).

    statistics: `tables.seed_statistics`.  methods: which to draw, in the order of the legend.
    overlay: the same statistics of another size of network, drawn as larger open markers and named `overlay_label`.
    """
    extra = statistics.iloc[:0] if overlay is None else overlay[overlay["method"].isin(methods)]
    clusters = sorted(statistics["n_clusters"].unique())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(clusters), figsize=(2.6 * len(clusters) + 0.6, 4.0), sharey=True, squeeze=False, layout="constrained"
        )
        for axis, k in zip(axes[0], clusters, strict=True):
            for method in methods:
                _draw_method(axis, statistics[(statistics["n_clusters"] == k) & (statistics["method"] == method)])
                _draw_overlay(axis, extra[(extra["n_clusters"] == k) & (extra["method"] == method)])
            _finish(axis, f"K = {k}", {*statistics["n_train"], *extra.loc[extra["n_clusters"] == k, "n_train"]})
        axes[0, 0].set_ylabel("test MSE")
        figure.legend(
            handles=_handles(methods, extra, overlay_label), loc="outside lower center", ncols=min(4, 1 + len(clusters))
        )
    return figure


def _draw_method(axis: Axes, rows: pd.DataFrame) -> None:
    if rows.empty:
        return
    rows, method = rows.sort_values("n_train"), rows["method"].iloc[0]
    color = METHOD_COLORS[method]
    line, marker = METHOD_LINES.get(method, "-"), METHOD_MARKERS[method] or ("_" if len(rows) == 1 else "")
    face = _face(method)
    axis.plot(rows["n_train"], rows["mean"], color=color, ls=line, marker=marker, mfc=face, ms=4, lw=1.2)
    spread = rows["std"].fillna(0.0)
    # on a logarithmic axis a lower edge at or below zero would run off the panel: it ends at a tenth of the mean
    low = np.maximum(rows["mean"] - spread, rows["mean"] / 10)
    axis.fill_between(rows["n_train"], low, rows["mean"] + spread, color=color, alpha=0.12, lw=0)


def _face(method: str) -> str:
    """Colour inside a method's markers: oracles are open, so that they differ from the global methods at a single n."""
    return "white" if method.startswith("oracle") else METHOD_COLORS[method]


def _draw_overlay(axis: Axes, rows: pd.DataFrame) -> None:
    if not rows.empty:
        method = rows["method"].iloc[0]
        marker = METHOD_MARKERS[method] or "_"
        color = METHOD_COLORS[method]
        axis.plot(rows["n_train"], rows["mean"], marker, color=color, ms=OVERLAY_SIZE, mew=1.4, mfc="none")


def _finish(axis: Axes, title: str, sizes: set[int]) -> None:
    axis.set_title(title)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(FixedLocator(sorted(sizes)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n / 1000:g}k" if n >= 1000 else f"{n:g}"))
    axis.set_xlabel("training points n")
    axis.grid(axis="y", which="major", color="0.92", lw=0.6)
    axis.set_axisbelow(True)


def _handles(methods: Sequence[str], overlay: pd.DataFrame, overlay_label: str) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            color=METHOD_COLORS[name],
            ls=METHOD_LINES.get(name, "-"),
            marker=METHOD_MARKERS[name],
            mfc=_face(name),
            ms=4,
            lw=1.2,
            label=METHOD_NAMES[name],
        )
        for name in methods
    ]
    if not overlay.empty:
        handles.append(Line2D([], [], color="0.4", ls="", marker="o", mfc="none", ms=OVERLAY_SIZE, label=overlay_label))
    return handles
