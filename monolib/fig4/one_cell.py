"""One cell of Figure 4 step by step: active neurons, profiles, gates against clusters, G_c, local predictions."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from monolib.gates import NEVER_ON, Gates, profiles
from monolib.laws import ClusteredLaw, Sample
from monolib.links import LINKS
from monolib.plot_style import METHOD_COLORS, STYLE

PER_CLUSTER = 30  # points of each cluster whose profiles are drawn
SHOWN_GATES = 6  # whose predictions are drawn


def confusion(gate: np.ndarray, cluster: np.ndarray, n_gates: int, n_clusters: int) -> np.ndarray:
    """Number of points by gate and true cluster, (M, K)."""
    return np.histogram2d(gate, cluster, bins=[np.arange(n_gates + 1), np.arange(n_clusters + 1)])[0].astype(int)


def gate_clusters(counts: np.ndarray) -> np.ndarray:
    """The true cluster that most of each gate's points belong to, (M,); for reading only, never used in a fit."""
    return np.asarray(counts.argmax(1))


def gates_facts(gates: Gates, learned_metrics: np.ndarray, law: ClusteredLaw, counts: np.ndarray) -> pd.DataFrame:
    """One row per gate: its cluster, points, purity, and how much of each metric lies along that cluster's v_c.

    along_v: v_cᵀ A v_c / tr A for A = G_c, and for G_c^{1/2} M G_c^{1/2} after the local RFM's updates; 1/d for A = I.
    top_cosine: |cos| of the top eigenvector of G_c, within the predictive coordinates, with v_c.
    """
    cluster, rows = gate_clusters(counts), []
    predictive = law.directions.any(0)
    for c, (metric, learned) in enumerate(zip(gates.metrics, learned_metrics, strict=True)):
        v = law.directions[cluster[c]]
        _, vectors = np.linalg.eigh(metric[np.ix_(predictive, predictive)])
        rows.append(
            {
                "gate": c,
                "cluster": int(cluster[c]),
                "link": law.links[cluster[c]],
                "points": int(counts[c].sum()),
                "purity": counts[c].max() / max(counts[c].sum(), 1),
                "along_v G_c": v @ metric @ v / np.trace(metric),
                "along_v after RFM": v @ learned @ v / max(np.trace(learned), np.finfo(float).tiny),
                "top_cosine": abs(float(vectors[:, -1] @ v[predictive])),
            }
        )
    return pd.DataFrame(rows)


def draw_contributions(mean_contribution: np.ndarray, active: np.ndarray) -> Figure:
    """Histogram of log₁₀ m_j, and the two groups of two-means (A.3)."""
    logs = np.log10(np.maximum(mean_contribution, NEVER_ON * mean_contribution.max()))
    is_active = np.isin(np.arange(len(logs)), active)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5.2, 2.7), layout="constrained")
        edges = np.histogram_bin_edges(logs, 60).tolist()
        labels = (f"active, {is_active.sum()}", f"dropped, {(~is_active).sum()}")
        axis.hist(logs[is_active], edges, color=METHOD_COLORS["relu"], label=labels[0])
        axis.hist(logs[~is_active], edges, color="0.75", label=labels[1])
        axis.set_xlabel(r"$\log_{10} m_j$, mean output-weighted activation")
        axis.set_ylabel("neurons")
        axis.legend()
    return figure


def draw_profiles(gates: Gates, train: Sample, n_clusters: int) -> Figure:
    """Profiles of some training points of every true cluster (rows), by active neuron (columns), sorted by gate."""
    rows = np.concatenate([np.flatnonzero(train.cluster == c)[:PER_CLUSTER] for c in range(n_clusters)])
    p = profiles(gates.network, gates.active, train.x[rows])
    order = np.lexsort((-gates.centroids.max(0), gates.centroids.argmax(0)))
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
        top = float(np.quantile(p[p > 0], 0.99)) if p.any() else 1.0
        extent = (0, len(order), n_clusters, 0)
        image = axis.imshow(
            p[:, order], aspect="auto", interpolation="nearest", cmap="magma_r", vmin=0, vmax=top, extent=extent
        )
        axis.set_xlabel("active neurons, sorted by the gate whose centroid gives them most")
        axis.set_ylabel(f"training points by true cluster, {PER_CLUSTER} each")
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(image, ax=axis, label=r"profile $p_j(x)$", extend="max")
    return figure


def draw_gates(counts: np.ndarray, gates: Gates, facts: pd.DataFrame, ari: float) -> Figure:
    """Left: test points by gate and true cluster. Middle: spectra of G_c. Right: weight of the metrics along v_c."""
    order = np.argsort(gate_clusters(counts), kind="stable")
    with plt.rc_context(STYLE):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.0, 3.2), layout="constrained")
        shares = counts[order] / np.maximum(counts[order].sum(1, keepdims=True), 1)
        image = left.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        left.set_xlabel("true cluster")
        left.set_ylabel("gate, sorted")
        left.set_title(f"test points, adjusted Rand index {ari:.3f}")
        figure.colorbar(image, ax=left, label="share of the gate's points")
        for metric in gates.metrics:
            values = np.linalg.eigvalsh(metric)[::-1]
            middle.plot(
                np.arange(1, len(values) + 1), values / values.sum(), "-", color=METHOD_COLORS["gated_rfm"], lw=0.8
            )
        middle.set_yscale("log")
        middle.set_xlabel("eigenvalue of $G_c$, by size")
        middle.set_ylabel("share of the trace")
        for name, marker, label in (("along_v G_c", "o", "$G_c$"), ("along_v after RFM", "^", "after the local RFM")):
            right.plot(facts["gate"], facts[name], marker, color=METHOD_COLORS["gated_rfm"], label=label, ms=5)
        right.axhline(1 / gates.metrics.shape[1], color="0.4", ls=":", label="identity")
        right.set_ylim(0, 1)
        right.set_xlabel("gate")
        right.set_ylabel(r"$v_c^\top A\,v_c\,/\,\mathrm{tr}\,A$")
        right.legend(fontsize=7)
    return figure


def draw_predictions(
    prediction: np.ndarray, gate: np.ndarray, test: Sample, law: ClusteredLaw, counts: np.ndarray
) -> Figure:
    """Local predictions of the test points of some gates against ⟨x, v_c⟩ of the gate's cluster, with the true link."""
    cluster = gate_clusters(counts)
    shown = np.flatnonzero(counts.sum(1) > 0)[:SHOWN_GATES]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(2.9 * columns + 0.3, 2.1 * rows + 0.5), squeeze=False, layout="constrained"
        )
        for axis, c in zip(axes.flat, shown, strict=False):
            own = gate == c
            t = law.link_scale * test.x[own] @ law.directions[cluster[c]]
            grid = np.linspace(t.min(), t.max(), 200)
            axis.plot(t, prediction[own], ".", ms=2, color=METHOD_COLORS["gated_rfm"], label="MLP-gated RFM")
            axis.plot(grid, LINKS[law.links[cluster[c]]](grid), color="0.2", lw=1, label="true link")
            axis.set_title(f"gate {c}: cluster {cluster[c]}, {law.links[cluster[c]]}", fontsize=8)
            axis.set_xlabel(r"$\langle x, v_c\rangle$")
        for axis in axes.flat[len(shown) :]:
            axis.set_axis_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("prediction")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
