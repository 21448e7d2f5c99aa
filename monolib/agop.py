"""The average gradient outer product (AGOP) of a kernel predictor, and the metric that RFM makes of it (A.2).

    ∇f(x) = −(1/h) Σ_j α_j (k_j/r_j) M(x − x_j),   k_j = exp(−r_j),  r_j = ‖M^{1/2}(x − x_j)‖/h
    Ĝ = (1/m) Σ_i ∇f(x_i) ∇f(x_i)ᵀ

With W_ij = α_j k_ij/r_ij the sum is u_i (W 1)_i − (W u)_i: two products, one tile of W at a time.
"""

import math

import numpy as np
import torch
from torch import Tensor

from monolib.errors import UserError
from monolib.kernels import LARGEST_SQUARE, accurate_squares, full_precision, point_diameter, tile_side

SELF_PAIR = 1e-6  # a pair closer than this share of the diameter is taken for one point, where the gradient jumps
NORMALIZATIONS = ("trace", "max_entry", "none")


def gradients(at: Tensor, points: Tensor, alpha: Tensor, root: Tensor, bandwidth: float) -> Tensor:
    """∇f (m, d) float64, at mapped points `at` (m, d), of f = Σ_j α_j k(·, x_j) with mapped `points` (n, d).

    root: M^{1/2}.  One tensor as both `at` and `points` halves the work.  Distances are accurate; weights and sums are
    in the dtype of the points. A pair of a point with itself (or with a duplicate), where k has a cusp, contributes 0.
    Source: A.2.
    """
    diameter, side = point_diameter(at, points), tile_side(at.device.type, 8)
    weighted = torch.cat([points, torch.ones_like(points[:, :1])], 1) * alpha.to(points.dtype).unsqueeze(1)
    total = at.new_zeros(len(at), weighted.shape[1])
    same = at is points  # then every tile off the diagonal serves twice
    with full_precision():
        for i in range(0, len(at), side):
            rows = slice(i, i + side)
            for j in range(i if same else 0, len(points), side):
                columns = slice(j, j + side)
                squares = accurate_squares(at[rows], points[columns], diameter)
                slopes = _slopes(squares.to(at.dtype), diameter)
                total[rows].addmm_(slopes, weighted[columns])
                if same and j > i:
                    total[columns].addmm_(slopes.T, weighted[rows])
    return (total[:, :-1] - at * total[:, -1:]).double() @ (root / bandwidth)


def _slopes(squares: Tensor, diameter: float) -> Tensor:
    """exp(−r)/r from r² (overwritten), and 0 for self-pairs."""
    distances = squares.clamp_(0.0, LARGEST_SQUARE).sqrt_()
    self_pairs = distances <= SELF_PAIR * diameter
    return torch.exp(-distances).div_(distances).masked_fill_(self_pairs, 0.0)


def agop(at: Tensor, points: Tensor, alpha: Tensor, root: Tensor, bandwidth: float) -> Tensor:
    """Ĝ (d, d) float64 of the predictor over the mapped points `at`; arguments as in `gradients`."""
    g = gradients(at, points, alpha, root, bandwidth)
    return g.T @ g / len(g)


def sample_indices(n: int, at_most: int, rng: np.random.Generator) -> np.ndarray:
    """At most `at_most` of 0..n−1, uniform without repetition, ascending (all of them when they are few enough).

    Raises UserError for at_most < 1.
    """
    if at_most < 1:
        raise UserError(f"agop_points={at_most}: must be an integer ≥ 1")
    return np.arange(n) if n <= at_most else np.sort(rng.choice(n, at_most, replace=False))


def updated_metric(g: Tensor, normalization: str = "trace") -> Tensor | None:
    """The next metric M = Ĝ, normalised: trace d ("trace"), largest entry 1 ("max_entry"), or not at all ("none").

    None when Ĝ is zero or not finite (a constant predictor): the metric is then kept.
    Raises UserError for another normalisation.
    """
    if normalization not in NORMALIZATIONS:
        raise UserError(f"normalization={normalization!r}: must be one of {', '.join(NORMALIZATIONS)}")
    trace = float(g.trace())
    if not (math.isfinite(trace) and trace > torch.finfo(torch.float64).tiny and torch.isfinite(g).all()):
        return None
    symmetric = 0.5 * (g + g.T)
    if normalization == "none":
        return symmetric
    return symmetric * (len(g) / trace) if normalization == "trace" else symmetric / symmetric.max()
