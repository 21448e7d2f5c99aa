"""Well-separated cluster centers on a sphere by farthest-point selection (A.2)."""

import numpy as np

from monolib.links import FloatArray


def farthest_point_directions(n_clusters: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """K unit vectors s_1..s_K, (K, dim), out of L_K = max(20,000, 500 K) random ones (A.2).

    The first is drawn uniformly; each next one minimises its largest inner product with those chosen.
    """
    candidates = rng.standard_normal((max(20_000, 500 * n_clusters), dim))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    chosen = [int(rng.integers(len(candidates)))]
    closest = candidates @ candidates[chosen[0]]  # largest inner product with the chosen ones so far
    while len(chosen) < n_clusters:
        chosen.append(int(closest.argmin()))
        np.maximum(closest, candidates @ candidates[chosen[-1]], out=closest)
    return candidates[chosen]


def largest_similarity(directions: FloatArray) -> float:
    """ρ_K, the largest inner product of two of the unit vectors (K, dim); 0 for K = 1 (A.2)."""
    if len(directions) == 1:
        return 0.0
    products = directions @ directions.T
    return float(products[~np.eye(len(directions), dtype=bool)].max())
