"""Gates read off a trained ReLU network, and one local predictor per gate (A.3).

    m_j = mean_i |a_j| ReLU(⟨w_j, x_i⟩ + b_j)                    contribution of neuron j (Eq. 11)
    p_j(x) = |a_j| ReLU(⟨w_j, x⟩ + b_j) / Σ_{ℓ ∈ J} (the same)    profile over the active neurons J (Eq. 12)
    G_c = Σ_j q_cj w_j w_jᵀ / Σ_j q_cj                            metric of gate c with centroid q_c (Eq. 13)

Active are the neurons of the larger cluster of two-means on log₁₀ m_j. The gates are K-means++ clusters of the training
profiles. An input that no active neuron responds to has no profile: it gets the zero vector, in training as at test
time, and so belongs to the gate whose centroid has the smallest norm.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from monolib.errors import UserError
from monolib.networks import Network

N_STARTS, MAX_LLOYD = 8, 30
NEVER_ON = 1e-12  # share of the largest contribution that a neuron without any counts with
ROWS = 8192  # inputs per block: the hidden layer of a block stays small


def contributions(network: Network, x: np.ndarray) -> np.ndarray:
    """|a_j| ReLU(⟨w_j, x_i⟩ + b_j), (n, m) float32, of a ReLU network for inputs x (n, d).

    Raises UserError for a network of another architecture.
    """
    if network.architecture != "relu":
        raise UserError(f"architecture={network.architecture!r}: gates are read off a ReLU network (A.3)")
    weight, bias = network.weight.astype(np.float32), network.bias.astype(np.float32)
    hidden = np.asarray(x, dtype=np.float32) @ weight.T
    hidden += bias
    np.maximum(hidden, 0.0, out=hidden)
    hidden *= np.abs(network.readout).astype(np.float32)
    return hidden


def mean_contributions(network: Network, x: np.ndarray) -> np.ndarray:
    """m_j (m,) float64 over the inputs x (n, d) (Eq. 11)."""
    blocks = range(0, len(x), ROWS)
    total = sum(contributions(network, x[i : i + ROWS]).sum(0, dtype=float) for i in blocks)
    return np.asarray(total) / len(x)


def active_by_two_means(mean_contribution: np.ndarray, at_least: int) -> np.ndarray:
    """Ascending indices of the active neurons: the cluster with the larger mean of exact two-means on log₁₀ m_j (A.3).

    In one dimension the best split is a threshold; all are tried. A neuron that is never on (m_j = 0) counts with
    1e-12 of the largest m_j, so that its logarithm exists. With fewer than `at_least` neurons in the cluster, the
    `at_least` largest m_j are taken (all, if there are not as many).
    """
    order = np.argsort(-mean_contribution, kind="stable")
    largest = mean_contribution[order[0]]
    count = 0 if largest == 0 else _upper_group(np.log10(np.maximum(mean_contribution[order] / largest, NEVER_ON)))
    return np.sort(order[: max(count, min(at_least, len(order)))])


def _upper_group(descending: np.ndarray) -> int:
    """Size of the upper group of the split with the smallest sum of squares within the groups.

    Equal values (up to rounding) cannot be split: they are one group.
    """
    if descending[0] - descending[-1] <= 1e-9:
        return len(descending)
    values = descending - descending.mean()
    sizes = np.arange(1, len(values))
    upper = np.cumsum(values)[:-1]  # the lower sum is its negative
    between = upper**2 * (1.0 / sizes + 1.0 / (len(values) - sizes))
    return int(sizes[between.argmax()])


def profiles(network: Network, active: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Profiles p(x) (n, |J|) float32 over the `active` neurons; rows sum to 1, or are 0 without any contribution."""
    out = np.empty((len(x), len(active)), dtype=np.float32)
    for i in range(0, len(x), ROWS):
        block = contributions(network, x[i : i + ROWS])[:, active]
        total = block.sum(1, keepdims=True)
        out[i : i + ROWS] = np.divide(block, total, out=np.zeros_like(block), where=total > 0)
    return out


def gate_metrics(network: Network, active: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """G_c (K, d, d) float64 (Eq. 13); the identity for a centroid that is zero (a gate of inputs without profile)."""
    weight, q = network.weight[active].astype(float), centroids.astype(float)
    total = q.sum(1)
    metrics = np.einsum("cj,ja,jb->cab", q / np.where(total > 0, total, 1.0)[:, None], weight, weight, optimize=True)
    metrics[total <= 0] = np.eye(weight.shape[1])
    return metrics


@dataclass(frozen=True, eq=False)
class Gates:
    """Fixed gates: the `network`, its `active` neurons (indices), `centroids` (K, |J|), `metrics` G_c (K, d, d), and
    `assignment` of the training points, (n,). Gates that no training point belongs to stay out of use."""

    network: Network
    active: np.ndarray
    centroids: np.ndarray
    metrics: np.ndarray
    assignment: np.ndarray

    @property
    def occupied(self) -> np.ndarray:
        """Ascending numbers of the gates with training points."""
        return np.unique(self.assignment)

    def assign(self, x: np.ndarray) -> np.ndarray:
        """Gate of each input x (n, d): the nearest centroid of its profile, among the occupied gates."""
        return nearest_centroid(profiles(self.network, self.active, x), self.centroids, self.occupied)


def nearest_centroid(p: np.ndarray, centroids: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Number of the nearest of the `allowed` centroids for each row of p; the first of equally near ones."""
    q = centroids[allowed].astype(float)
    scores = 0.5 * np.square(q).sum(1) - p.astype(float) @ q.T
    return allowed[scores.argmin(1)]


def find_gates(network: Network, x: np.ndarray, n_gates: int, seed: int) -> Gates:
    """Gates of a trained ReLU network from training inputs x (n, d) (A.3).

    K-means++ with 8 starts of at most 30 Lloyd steps (scikit-learn, float32 profiles); the smallest inertia is kept,
    and every training point is assigned to its nearest centroid. With fewer distinct profiles than gates, or fewer
    points, some gates are empty.
    Raises UserError for n_gates < 1 or a network that is not ReLU.
    """
    if n_gates < 1:
        raise UserError(f"n_gates={n_gates}: must be an integer ≥ 1")
    active = active_by_two_means(mean_contributions(network, x), at_least=n_gates)
    p = profiles(network, active, x)
    means = KMeans(min(n_gates, len(x)), init="k-means++", n_init=N_STARTS, max_iter=MAX_LLOYD, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct profiles than gates: dealt with here
        centroids = means.fit(p).cluster_centers_
    centroids = np.maximum(centroids, 0.0)  # K-means works on shifted profiles: rounding, not a contribution
    centroids[centroids.sum(1) < 1e-6] = 0.0  # a centroid of inputs without profile, up to rounding
    assignment = nearest_centroid(p, centroids, np.arange(len(centroids)))
    return Gates(network, active, centroids, gate_metrics(network, active, centroids), assignment)
