"""The ground-truth AGOP of Theorem 2's law, the metrics M_ρ, and the risk floor without routing (Lemma 12)."""

import numpy as np

from monolib.links import FloatArray
from monolib.theorem2.hermite import ALPHA, BEYOND, VARIANCE


def true_agop(n_clusters: int) -> FloatArray:
    """M = (α/K) P_V, (2K, 2K), α = P(0 < G < 1): f* taken as constant along the routing axes. Source: Lemma 12."""
    return np.diag(np.repeat([0.0, ALPHA / n_clusters], n_clusters))


def regularised_metric(n_clusters: int, rho: float) -> FloatArray:
    """M_ρ = ρ P_R + (ρ + α/K) P_V, (2K, 2K). Source: B.2.3."""
    return true_agop(n_clusters) + rho * np.eye(2 * n_clusters)


def exact_network_agop(n_clusters: int, separation: float = 1.0) -> FloatArray:
    """AGOP (2K, 2K) of the network F of Lemma 10, which is f* on the support but varies along the routing axes.

    With the routing axes first, p = P(G > 1), δ Kronecker's:

        routing     R⁻² (1/4 + (p − 1/2)/K) off the diagonal, R⁻² (1/2 + (p − 1/2)/K) on it
        predictive  (α/K) δ_cc';      cross  (1 − δ_cc') α/(2KR)

    by integrating ∂F/∂(routing c) = R⁻¹ 1{z_c > δ_cr} and ∂F/∂z_c = δ_cr 1{0 < z_c < 1} over cluster r and z.
    K = 1: routing p/R².  Source: Lemma 10; what Lemma 12 leaves open.
    """
    k, identity = n_clusters, np.eye(n_clusters)
    off = 0.25 * (1 - 2 / k) + BEYOND / k if k > 1 else 0.0
    diagonal = 0.5 * (1 - 1 / k) + BEYOND / k
    routing = np.full((k, k), off) + (diagonal - off) * identity
    cross = (np.ones((k, k)) - identity) * (0.5 * ALPHA / k)
    top = np.hstack([routing / separation**2, cross / separation])
    return np.vstack([top, np.hstack([cross.T / separation, identity * ALPHA / k])])


def risk_floor(n_clusters: int) -> float:
    """(1 − 1/K) Var g(G): least risk of any function of √M x, which cannot see the cluster. Source: Lemma 12."""
    return (1.0 - 1.0 / n_clusters) * VARIANCE
