"""Clustered single-index laws (§2): a Gaussian mixture whose label depends on one direction per cluster.

    c ~ Unif{1..K},   x | c ~ N(μ_c, diag(input_std²)),   y = g_c(link_scale · ⟨x, v_c⟩) + N(0, noise_std²)

Each data law of the paper is one function that returns a `ClusteredLaw`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monolib.center_placement import farthest_point_directions, largest_similarity
from monolib.links import LINKS, FloatArray
from monolib.random_streams import generator


class Sample(NamedTuple):
    """Points drawn from a law: `x` (n, d), labels `y` (n,), true cluster numbers `cluster` (n,), counted from 0."""

    x: FloatArray
    y: FloatArray
    cluster: np.ndarray


@dataclass(frozen=True, eq=False)
class ClusteredLaw:
    """A Gaussian mixture with a single-index label in each cluster (§2), float64 throughout.

    centers: μ_c, shape (K, d).  directions: unit vectors v_c, shape (K, d).  links: K names from `LINKS`.
    input_std: standard deviation of each coordinate about its center, shape (d,); zeros are allowed.
    noise_std: label noise σ.  link_scale: factor on ⟨x, v_c⟩ inside the link.
    balanced: False draws c independently and uniformly; True assigns clusters round-robin (point i belongs to cluster
    i mod K), so that every prefix has counts that differ by at most one (A.2).
    Raises ValueError when shapes disagree, a direction is not a unit vector, or a link is unknown.
    """

    centers: FloatArray
    directions: FloatArray
    links: tuple[str, ...]
    input_std: FloatArray
    noise_std: float
    link_scale: float = 1.0
    balanced: bool = False

    def __post_init__(self) -> None:
        n_clusters, dim = self.centers.shape
        if self.directions.shape != (n_clusters, dim):
            raise ValueError(f"directions.shape={self.directions.shape}: must equal centers.shape={(n_clusters, dim)}")
        if self.input_std.shape != (dim,) or not (self.input_std >= 0).all():
            raise ValueError(f"input_std: must hold {dim} numbers ≥ 0")
        if len(self.links) != n_clusters or not set(self.links) <= set(LINKS):
            raise ValueError(f"links={self.links}: must be {n_clusters} names out of {', '.join(LINKS)}")
        if not np.allclose(np.linalg.norm(self.directions, axis=1), 1.0, atol=1e-12):
            raise ValueError("directions: every row must have norm 1")
        if self.noise_std < 0:
            raise ValueError(f"noise_std={self.noise_std}: must be ≥ 0")

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return self.centers.shape[0]

    @property
    def dim(self) -> int:
        """Input dimension d."""
        return self.centers.shape[1]

    def noiseless(self, x: FloatArray, cluster: np.ndarray) -> FloatArray:
        """Noiseless label g_c(link_scale · ⟨x, v_c⟩) for points `x` (n, d) of clusters `cluster` (n,); shape (n,)."""
        projection = self.link_scale * np.einsum("nd,nd->n", x, self.directions[cluster])
        label = np.empty(len(x))
        for name in set(self.links):
            members = np.array([link == name for link in self.links])[cluster]
            label[members] = LINKS[name](projection[members])
        return label

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """Draw `n` points (x, y, cluster) with the generator `rng`; see the class for the law.

        Points are drawn one after the other in the generator's stream of each quantity, not nested: to obtain nested
        prefixes draw the largest set once and slice it.
        Raises ValueError for n < 1.
        """
        if n < 1:
            raise ValueError(f"n={n}: must be an integer ≥ 1")
        cluster = np.arange(n) % self.n_clusters if self.balanced else rng.integers(self.n_clusters, size=n)
        x = self.centers[cluster] + self.input_std * rng.standard_normal((n, self.dim))
        y = self.noiseless(x, cluster) + self.noise_std * rng.standard_normal(n)
        return Sample(x, y, cluster)


def axis_aligned_law(
    n_clusters: int = 10, dim: int = 40, center_scale: float = 20.0, noise_std: float = 0.005
) -> ClusteredLaw:
    """Axis-aligned law of Figs. 1 and 5 (§3.1, A.1).

        μ_c = center_scale · e_c,   v_c = e_{K+c},   x = μ_c + N(0, I_d/d),   y = He₂(√d ⟨v_c, x⟩)/√2 + N(0, noise_std²)

    Coordinates 1..K route, K+1..2K predict, the rest are nuisance.
    Raises ValueError when `dim` < 2K or K < 1.
    """
    if n_clusters < 1:
        raise ValueError(f"n_clusters={n_clusters}: must be an integer ≥ 1")
    if dim < 2 * n_clusters:
        raise ValueError(f"dim={dim}: must be at least 2 · n_clusters = {2 * n_clusters}")
    identity = np.eye(dim)
    return ClusteredLaw(
        centers=center_scale * identity[:n_clusters],
        directions=identity[n_clusters : 2 * n_clusters],
        links=("hermite2",) * n_clusters,
        input_std=np.full(dim, dim**-0.5),
        noise_std=noise_std,
        link_scale=dim**0.5,
    )


MIXED_LINKS = ("hermite2", "sin", "tanh")
SEPARATION = 4.0  # γ of Eq. 3


def mixed_link_law(
    n_clusters: int, link_seed: int = 1000, geometry_seed: int = 0, block: int = 10, noise_std: float = 0.02
) -> ClusteredLaw:
    """Mixed-link law of Figs. 2, 4 and 6 (A.2, A.3; Eqs. 3 to 6), `block` routing and `block` predictive axes.

        μ_c = (s_c, 0), and 0 for K = 1;   σ_K = (1 − ρ_K)/(2γ), γ = 4;   v_c = (0, ṽ_c), ṽ_c uniform on the sphere
        x = μ_c + (σ_K z_cluster, z_pred),   y = g_c(⟨x, v_c⟩) + N(0, noise_std²),   clusters round-robin

    link_seed: draws the links uniformly with replacement from `MIXED_LINKS`; the paper's is 1000 + r for seed r.
    geometry_seed: draws centers and directions, anew for every K; the paper shares them among its seeds.
    Raises ValueError for n_clusters < 1 or block < 1.
    """
    if n_clusters < 1 or block < 1:
        raise ValueError(f"n_clusters={n_clusters}, block={block}: both must be integers ≥ 1")
    rng = generator(geometry_seed, "geometry", n_clusters)
    routing = farthest_point_directions(n_clusters, block, rng)
    predictive = rng.standard_normal((n_clusters, block))
    predictive /= np.linalg.norm(predictive, axis=1, keepdims=True)
    links = generator(link_seed, "links").integers(len(MIXED_LINKS), size=n_clusters)
    zeros = np.zeros((n_clusters, block))
    routing_std = (1.0 - largest_similarity(routing)) / (2.0 * SEPARATION)
    return ClusteredLaw(
        centers=np.hstack([routing, zeros]) if n_clusters > 1 else np.zeros((1, 2 * block)),
        directions=np.hstack([zeros, predictive]),
        links=tuple(MIXED_LINKS[i] for i in links),
        input_std=np.repeat([routing_std, 1.0], block),
        noise_std=noise_std,
        balanced=True,
    )


def theorem1_law(n_clusters: int, separation: float) -> ClusteredLaw:
    """Law of Theorem 1 (§4.1, B.1), d = 2K: the first K axes are μ_c/R, the last K are v_c; no label noise.

        x = μ_c + z,   z ~ N(0, I_2K),   y = h₃(v_cᵀz) = h₃(v_cᵀx),   h₃(t) = (t³ − 3t)/√6

    separation: R.  Raises ValueError for n_clusters < 1.
    """
    return _block_law(n_clusters, separation, "hermite3", routing_std=1.0)


def theorem2_law(n_clusters: int, separation: float = 1.0) -> ClusteredLaw:
    """Law of Theorem 2 (§4.2, B.2), d = 2K: the routing block is exactly R e_c; no label noise.

        x = [R e_c; z],   z ~ N(0, I_K),   y = f*(x) = g(z_c),   g(t) = t₊ − (t − 1)₊

    separation: R.  Raises ValueError for n_clusters < 1.
    """
    return _block_law(n_clusters, separation, "clipped_ramp", routing_std=0.0)


def _block_law(n_clusters: int, separation: float, link: str, routing_std: float) -> ClusteredLaw:
    if n_clusters < 1:
        raise ValueError(f"n_clusters={n_clusters}: must be an integer ≥ 1")
    identity = np.eye(2 * n_clusters)
    return ClusteredLaw(
        centers=separation * identity[:n_clusters],
        directions=identity[n_clusters:],
        links=(link,) * n_clusters,
        input_std=np.repeat([routing_std, 1.0], n_clusters),
        noise_std=0.0,
    )
