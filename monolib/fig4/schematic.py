"""Figure 3: how gates are read off a trained network and reused, as a drawing."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from monolib.plot_style import METHOD_COLORS, STYLE

GROUPS = ("#4477aa", "#cc6677", "#ccbb44")  # three gates
INK = "0.25"


def draw_procedure() -> Figure:
    """Fig. 3 in five steps, left to right: trained network, active neurons, profiles, gates, local predictors (A.3)."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(10.4, 3.5), layout="constrained")
        axis.set_xlim(0, 104)
        axis.set_ylim(0, 35)
        axis.set_axis_off()
        axis.set_aspect("equal")
        steps = (
            ("1. train a ReLU network", r"$f(x)=\sum_j a_j\,\mathrm{ReLU}(w_j\cdot x+b_j)+c$", _network),
            ("2. keep active neurons", r"$m_j=\overline{|a_j|\mathrm{ReLU}(\cdot)}$, two groups", _histogram),
            ("3. profile of an input", r"$p_j(x)\propto|a_j|\mathrm{ReLU}(w_j\cdot x+b_j)$", _profiles),
            ("4. K-means: gates", r"$G_c=\sum_j q_{cj}w_jw_j^\top\,/\,\sum_j q_{cj}$", _gates),
            ("5. one predictor a gate", r"Laplace or RFM on $G_c^{1/2}x$", _predictors),
        )
        for i, (title, formula, draw) in enumerate(steps):
            left = 1 + 21 * i
            axis.add_patch(FancyBboxPatch((left, 3), 17.5, 26, boxstyle="round,pad=0.4", fc="white", ec="0.6", lw=1))
            axis.text(left + 8.75, 31.2, title, ha="center", fontsize=9, weight="bold")
            axis.text(left + 8.75, 4.3, formula, ha="center", fontsize=6.2 if i == 0 else 7.2)
            draw(axis, left)
            if i:
                ends = ((left - 3.2, 17), (left - 0.6, 17))
                axis.add_patch(
                    FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=11, color=INK, shrinkA=0, shrinkB=0)
                )
        note = "training inputs only: neither labels nor true clusters enter steps 2 to 4; K is given"
        axis.text(52, 0.6, note, ha="center", fontsize=8, color=INK)
    return figure


def _network(axis: Axes, left: float) -> None:
    inputs = [(left + 3, float(y)) for y in (11, 16, 21)]
    hidden = [(left + 9, float(y)) for y in (9, 12, 15, 18, 21, 24)]
    for i, unit in enumerate(hidden):
        for point in inputs:
            axis.plot(*zip(point, unit, strict=True), color="0.8", lw=0.6, zorder=1)
        axis.plot(*zip(unit, (left + 15, 16.5), strict=True), color="0.6", lw=0.7, zorder=1)
        axis.add_patch(Circle(unit, 0.95, fc=(*GROUPS, *GROUPS)[i], ec=INK, lw=0.6, zorder=2))
    for point in (*inputs, (left + 15, 16.5)):
        axis.add_patch(Circle(point, 0.8, fc="white", ec=INK, lw=0.8, zorder=2))
    axis.text(left + 3, 24, "x", ha="center")
    axis.text(left + 15, 19, "f(x)", ha="center")


def _histogram(axis: Axes, left: float) -> None:
    for i, height in enumerate((2.5, 6.5, 4, 1, 0.4, 1.5, 6, 10, 7.5, 2.5)):
        color = "0.8" if i < 5 else METHOD_COLORS["relu"]
        axis.add_patch(Rectangle((left + 2.2 + 1.35 * i, 10), 1.2, height, fc=color, ec="white", lw=0.3))
    axis.plot([left + 1.8, left + 16], [10, 10], color=INK, lw=0.8)
    axis.plot([left + 8.9] * 2, [10, 24], color=INK, lw=0.8, ls="--")
    axis.text(left + 5, 22.5, "dropped", ha="center", fontsize=7, color="0.5")
    axis.text(left + 13, 22.5, "active", ha="center", fontsize=7, color=METHOD_COLORS["relu"])
    axis.text(left + 8.9, 7.6, r"$\log_{10}m_j$", ha="center", fontsize=7)


def _profiles(axis: Axes, left: float) -> None:
    shares = ((0.9, 0.8, 0.1, 0, 0.2, 0), (0, 0.15, 0.9, 0.75, 0, 0.1), (0.1, 0, 0, 0.2, 0.8, 0.95))
    for row, (color, profile) in enumerate(zip(GROUPS, shares, strict=True)):
        base = 20.5 - 6 * row
        axis.plot([left + 4, left + 16], [base, base], color=INK, lw=0.6)
        axis.text(left + 2.6, base + 0.8, f"$p(x_{row + 1})$", ha="center", fontsize=7)
        for j, share in enumerate(profile):
            axis.add_patch(Rectangle((left + 4.6 + 1.9 * j, base), 1.4, 4.2 * share, fc=color, ec="none"))
    axis.text(left + 10, 6.6, "active neurons j", ha="center", fontsize=7)


def _gates(axis: Axes, left: float) -> None:
    places = ((5, 21), (12.5, 19), (8, 12))
    offsets = ((-1.8, 0.6), (0.6, 1.7), (1.6, -0.8), (-0.6, -1.5), (-1.3, 1.9), (2.1, 0.9))
    for color, (x, y) in zip(GROUPS, places, strict=True):
        for dx, dy in offsets:
            axis.add_patch(Circle((left + x + dx, y + dy), 0.35, fc=color, ec="none"))
        axis.plot(left + x, y, "X", color=INK, ms=6)
    axis.text(left + 8.75, 7.2, "centroids $q_c$ of profiles", ha="center", fontsize=7)


def _predictors(axis: Axes, left: float) -> None:
    for row, color in enumerate(GROUPS):
        base = 21 - 6 * row
        axis.add_patch(Rectangle((left + 4.5, base - 1.6), 8.5, 4.2, fc=color, ec="none", alpha=0.35))
        axis.text(left + 8.75, base, rf"$\hat f_{row + 1}$", ha="center", fontsize=9)
        for x in (left + 1.4, left + 13.4):
            arrow = FancyArrowPatch(
                (x, base + 0.4), (x + 2.7, base + 0.4), arrowstyle="-|>", mutation_scale=7, color=INK
            )
            axis.add_patch(arrow)
    axis.text(left + 8.75, 6.3, "new input: nearest centroid", ha="center", fontsize=7)
