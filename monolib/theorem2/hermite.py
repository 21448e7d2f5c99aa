"""The clipped ramp g(t) = t₊ − (t − 1)₊ in normalised Hermite polynomials h_r = He_r/√(r!) (Lemma 13), float64."""

import numpy as np
from scipy.special import ndtr

from monolib.links import FloatArray, clipped_ramp

DENSITY_0, DENSITY_1 = float(1 / np.sqrt(2 * np.pi)), float(np.exp(-0.5) / np.sqrt(2 * np.pi))  # φ(0), φ(1)
BEYOND = float(ndtr(-1.0))  # P(G > 1)
ALPHA = 0.5 - BEYOND  # α = P(0 < G < 1), Lemma 12
MEAN = DENSITY_0 - DENSITY_1 + BEYOND  # E g(G)
VARIANCE = ALPHA - DENSITY_1 + BEYOND - MEAN**2  # Var g(G)


def normalised_hermite(t: FloatArray, orders: int) -> FloatArray:
    """h_0(t), ..., h_{orders−1}(t), shape (orders, ...): √r h_r = t h_{r−1} − √(r−1) h_{r−2}, without overflow."""
    values = np.empty((orders, *np.shape(t)))
    values[0] = 1.0
    if orders > 1:
        values[1] = t
    for r in range(2, orders):
        values[r] = (t * values[r - 1] - np.sqrt(r - 1.0) * values[r - 2]) / np.sqrt(float(r))
    return values


def hermite_coefficients(orders: int) -> FloatArray:
    """ĝ_r = E[g(G) h_r(G)], r = 0..orders−1. Source: Lemma 13 (r ≥ 2); partial integration (r = 0, 1).

    ĝ_r = (φ(0) He_{r−2}(0) − φ(1) He_{r−2}(1))/√(r!) = (φ(0) h_{r−2}(0) − φ(1) h_{r−2}(1))/√(r(r−1)),  ĝ_1 = α
    """
    h = normalised_hermite(np.array([0.0, 1.0]), max(orders - 2, 1))
    r = np.arange(2, max(orders, 2))
    tail = (DENSITY_0 * h[: len(r), 0] - DENSITY_1 * h[: len(r), 1]) / np.sqrt(r * (r - 1.0))
    return np.concatenate([[MEAN, ALPHA], tail])[:orders]


def coefficients_by_quadrature(orders: int, nodes: int = 400, reach: float = 40.0) -> FloatArray:
    """ĝ_r by Gauss–Legendre quadrature on [0, 1] and [1, reach], between the kinks of g; shape (orders,)."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    total = np.zeros(orders)
    for low, high in ((0.0, 1.0), (1.0, 8.0), (8.0, reach)):
        t = 0.5 * (high - low) * points + 0.5 * (high + low)
        weight = 0.5 * (high - low) * weights * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)
        total += normalised_hermite(t, orders) @ (weight * clipped_ramp(t))
    return total
