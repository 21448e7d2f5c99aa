"""The lower bound for kernel ridge regression and RFM at any metric ρ (Lemmas 16, 17), and the MLP's upper bound."""

import functools

import numpy as np

from monolib.links import FloatArray
from monolib.theorem2.harmonics import directional_energy, harmonic_dimension
from monolib.theorem2.hermite import VARIANCE, hermite_coefficients

ORDERS = 400  # more orders change the bound of K ≥ 4 by less than its sixth digit


def risk_lower_bound(n_train: float, n_clusters: int, orders: int = ORDERS) -> float:
    """Σ_{r=2}^{orders−1} ĝ_r² α_{r,K} (1 − n/H_{r,K})₊: no predictor in the span of n kernel sections has less risk.

    Every term is non-negative, so that stopping at `orders` keeps it a lower bound; 0 for K = 1, where H_{r,K} = 0.
    Source: Lemma 16.
    """
    total, missed = 0.0, 0.0
    energies = _energies(orders, n_clusters)
    for r, energy in enumerate(energies, start=2):
        if missed < 1.0:  # H grows with r (K ≥ 3): from some order on nothing is learned, to the last digit
            dimension = harmonic_dimension(r, n_clusters)
            missed = 1.0 - n_train / dimension if dimension > n_train else 0.0
        total += energy * missed
    return total


@functools.lru_cache(maxsize=1000)
def _energies(orders: int, n_clusters: int) -> tuple[float, ...]:
    """ĝ_r² α_{r,K} for r = 2..orders−1."""
    squares = np.square(hermite_coefficients(orders)).tolist()
    return tuple(squares[r] * directional_energy(r, n_clusters) for r in range(2, orders))


def limit_lower_bound(exponent: float) -> float:
    """Limit of the bound at n = K^A: Σ_{r ≥ 2, r > A} ĝ_r² = Var g − Σ_{1 ≤ r ≤ max(A, 1)} ĝ_r². Source: Lemma 17."""
    last = max(1, int(np.floor(exponent)))
    return VARIANCE - float(np.square(hermite_coefficients(last + 1)[1:]).sum())


def mlp_upper_bound(n_train: FloatArray, n_clusters: FloatArray) -> FloatArray:
    """48 K √((K + 1)/n), the bound of the norm-constrained network, B = 3K, R = 1. Source: proof of Theorem 2."""
    return 48.0 * n_clusters * np.sqrt((n_clusters + 1.0) / np.asarray(n_train, dtype=float))


def crossing_clusters(exponent: float) -> float:
    """Smallest K from which the two bounds separate at n = K^A: 48 √2 K^{(3−A)/2} below the limit of Lemma 17.

    inf for A ≤ 3, where the MLP's bound does not fall.  Source: Theorem 2, both parts.
    """
    if exponent <= 3:
        return float("inf")
    return float((48.0 * 2**0.5 / limit_lower_bound(exponent)) ** (2.0 / (exponent - 3.0)))
