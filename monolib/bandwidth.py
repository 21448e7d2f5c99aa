"""The within-cluster median bandwidth (A.2): the scale h of the Laplace kernel from the transformed points."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from monolib.errors import UserError
from monolib.kernels import accurate_squares, point_diameter


class Bandwidth(NamedTuple):
    """`value` h; `clusters`: how many clusters it is a median of (0: there was no positive distance, and h = 1)."""

    value: float
    clusters: int


def median_distance(z: Tensor) -> float:
    """Median of the pairwise distances of points z (n, d), self-pairs left out, as numpy defines it; n ≥ 2."""
    centred = z.double() - z.double().mean(0)
    squares = accurate_squares(centred, centred, point_diameter(centred))
    i, j = torch.triu_indices(len(z), len(z), 1, device=z.device)
    return float(np.median(squares[i, j].sqrt().cpu().numpy()))


def median_bandwidth(
    z: Tensor, cluster: np.ndarray | None, rng: np.random.Generator, max_points: int = 1000
) -> Bandwidth:
    """h = median over clusters c of median{‖z_i − z_j‖ : i < j in c}, float64 (A.2).

    z: transformed points M^{1/2}x, (n, d).  cluster: cluster numbers (n,), or None for a single cluster.
    max_points: from a larger cluster this many points are drawn uniformly with `rng`.
    Clusters of one point have no pair and do not count, nor do those whose median is 0 (duplicates); where none
    counts, h = 1.
    Raises UserError when `cluster` has another length than z, or for max_points < 2.
    """
    if max_points < 2:
        raise UserError(f"max_points={max_points}: must be an integer ≥ 2")
    if cluster is None:
        cluster = np.zeros(len(z), dtype=int)
    if len(cluster) != len(z):
        raise UserError(f"cluster: has {len(cluster)} entries, must have one for each of the {len(z)} points")
    medians = []
    for name in np.unique(cluster):
        members = np.flatnonzero(cluster == name)
        if len(members) > max_points:
            members = np.sort(rng.choice(members, max_points, replace=False))
        if len(members) > 1:
            medians.append(median_distance(z[torch.from_numpy(members).to(z.device)]))
    counted = [m for m in medians if m > 0]
    return Bandwidth(float(np.median(counted)), len(counted)) if counted else Bandwidth(1.0, 0)
