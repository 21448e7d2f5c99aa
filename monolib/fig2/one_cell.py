"""One cell of Figure 2 from inside: which neurons work for which cluster, and how well each cluster is predicted."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from monolib.bayes import bayes_prediction
from monolib.laws import ClusteredLaw, Sample
from monolib.networks import Network
from monolib.plot_style import METHOD_COLORS, METHOD_MARKERS, METHOD_NAMES, STYLE
from monolib.specialization import active_neurons

ROWS = 2048  # points at a time: the hidden layer of a block stays small


def cluster_contributions(network: Network, sample: Sample, n_clusters: int) -> np.ndarray:
    """B_cj = mean over the points x of cluster c of |a_j h_j(x)|, shape (K, m) float64; 0 where c has no points."""
    sums, counts = np.zeros((n_clusters, len(network.readout))), np.bincount(sample.cluster, minlength=n_clusters)
    for i in range(0, len(sample.x), ROWS):
        block = np.abs(network.neuron_outputs(sample.x[i : i + ROWS]) * network.readout.astype(float))
        np.add.at(sums, sample.cluster[i : i + ROWS], block)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def neuron_clusters(contributions: np.ndarray) -> pd.DataFrame:
    """The active neurons (99.9 % of Σ_j max_c B_cj), by cluster: `neuron`, `cluster` = argmax_c B_cj, `selectivity`.

    selectivity: B_cj of that cluster over Σ_c B_cj; 1 for a neuron that works for one cluster alone, 1/K for none.
    """
    active = active_neurons(contributions.max(0))
    chosen = contributions[:, active]
    table = pd.DataFrame({"neuron": active, "cluster": chosen.argmax(0), "selectivity": chosen.max(0) / chosen.sum(0)})
    return table.sort_values(["cluster", "selectivity"], ascending=[True, False], ignore_index=True)


def clusters_table(law: ClusteredLaw, networks: Mapping[str, Network], test: Sample, source: str) -> pd.DataFrame:
    """One row per cluster: link, test points, neurons of the network `source` that prefer it, their |cosine| with v_c,
    and the test MSE of each network and of the Bayes predictor within the cluster.

    cosine: of the first-layer weight (the gate of a gated network) in the coordinates in which directions live, mean
    over the cluster's neurons weighted by their contribution.
    """
    contributions = cluster_contributions(networks[source], test, law.n_clusters)
    neurons = neuron_clusters(contributions)
    first = next(iter(networks[source].first_layer.values())).astype(float) * law.directions.any(0)
    unit = first / np.maximum(np.linalg.norm(first, axis=1, keepdims=True), np.finfo(float).tiny)
    outputs = {name: network.predict(test.x) for name, network in networks.items()}
    errors = {name: np.square(f - test.y) for name, f in {**outputs, "bayes": bayes_prediction(law, test.x)}.items()}
    rows = []
    for c in range(law.n_clusters):
        own, members = neurons.loc[neurons["cluster"] == c, "neuron"].to_numpy(), test.cluster == c
        cosines = np.abs(unit[own] @ law.directions[c])
        cosine = np.average(cosines, weights=contributions[c, own]) if len(own) else np.nan
        facts = {"cluster": c, "link": law.links[c], "test_points": int(members.sum()), "neurons": len(own)}
        within = {f"mse_{name}": float(e[members].mean()) if members.any() else np.nan for name, e in errors.items()}
        rows.append({**facts, "cosine": cosine, **within})
    return pd.DataFrame(rows)


def draw_one_cell(contributions: np.ndarray, clusters: pd.DataFrame, title: str) -> Figure:
    """Left: contributions of the active neurons by true cluster, neurons sorted by the cluster they work for, each
    column over its largest entry. Right: test MSE within each cluster (`clusters_table`)."""
    neurons = neuron_clusters(contributions)["neuron"].to_numpy()
    shares = contributions[:, neurons] / contributions[:, neurons].max(0)
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), width_ratios=[1.7, 1], layout="constrained")
        k = len(contributions)
        image = left.imshow(
            shares,
            aspect="auto",
            interpolation="nearest",
            cmap="magma_r",
            vmin=0,
            vmax=1,
            extent=(0, len(neurons), k, 0),
        )
        left.set_yticks(np.arange(k) + 0.5, [str(c) for c in range(k)]) if k <= 20 else None
        left.set_xlabel("active neurons, sorted by the cluster they contribute most to")
        left.set_ylabel("true cluster")
        left.set_title(title)
        figure.colorbar(image, ax=left, label="mean contribution / the neuron's largest")
        _draw_errors(right, clusters)
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=5, fontsize=8)
    return figure


def _draw_errors(axis: Axes, clusters: pd.DataFrame) -> None:
    for column in (name for name in clusters.columns if name.startswith("mse_")):
        method = column.removeprefix("mse_")
        marker = METHOD_MARKERS[method] or "_"
        color, label = METHOD_COLORS[method], METHOD_NAMES[method]
        axis.plot(clusters["cluster"], clusters[column], marker, color=color, label=label)
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("true cluster")
    axis.set_ylabel("test MSE within the cluster")
