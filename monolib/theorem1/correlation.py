"""The population correlation Φ(ω) = E[y φ(ωᵀx)] of a ReLU neuron with the label (§4.1, Lemma 3), in float64.

    x = μ_c + z,  z ~ N(0, I_2K),  c ~ Unif{1..K},  y = h₃(v_cᵀz)

Directions ω (..., 2K) are written in the orthonormal basis μ_1/R, ..., μ_K/R, v_1, ..., v_K: the first K entries are
b_c/R with b_c = ⟨ω, μ_c⟩ (routing), the last K are ρ_c = ⟨ω, v_c⟩ (predictive). R is `separation`.
"""

from itertools import pairwise

import numpy as np
from scipy.special import roots_hermitenorm

from monolib.links import FloatArray, hermite3

SQRT6 = 6.0**0.5
REACH = 14.0  # standard deviations beyond which the Gaussian weight, times a cubic, is below 1e-38


def normal_density(t: FloatArray) -> FloatArray:
    """Standard normal density φ(t) = e^{−t²/2}/√(2π)."""
    return np.exp(-0.5 * np.square(t)) / np.sqrt(2.0 * np.pi)


def coordinates(omega: FloatArray, separation: float) -> tuple[FloatArray, FloatArray]:
    """b_c = ⟨ω, μ_c⟩ and ρ_c = ⟨ω, v_c⟩, both (..., K), of ω (..., 2K). Source: B.1."""
    n_clusters = omega.shape[-1] // 2
    return separation * omega[..., :n_clusters], omega[..., n_clusters:]


def population_correlation(omega: FloatArray, separation: float) -> FloatArray:
    """Φ(ω) = −(1/(K√6)) Σ_c b_c φ(b_c) ρ_c³ for unit vectors ω (..., 2K); shape (...). Source: Lemma 3.

    The formula is for the unit sphere. For other w use Φ(w) = ‖w‖ Φ(w/‖w‖).
    """
    b, rho = coordinates(omega, separation)
    return -(b * normal_density(b) * rho**3).sum(-1) / (b.shape[-1] * SQRT6)


def tangent(omega: FloatArray, vector: FloatArray) -> FloatArray:
    """(I − ωωᵀ) vector, row by row: the part that is tangent to the sphere at unit vectors ω."""
    return vector - (omega * vector).sum(-1, keepdims=True) * omega


def correlation_gradient(omega: FloatArray, separation: float) -> FloatArray:
    """Spherical gradient ∇_S Φ(ω) = (I − ωωᵀ) ∇Φ (..., 2K). Source: Lemma 3, Eq. 16.

    ∂Φ/∂(b_c/R) = −(R/(K√6)) (1 − b_c²) φ(b_c) ρ_c³,   ∂Φ/∂ρ_c = −(3/(K√6)) b_c φ(b_c) ρ_c²
    """
    b, rho = coordinates(omega, separation)
    density = normal_density(b)
    routing = separation * (1.0 - np.square(b)) * density * rho**3
    predictive = 3.0 * b * density * np.square(rho)
    return tangent(omega, np.concatenate([routing, predictive], -1) / (-b.shape[-1] * SQRT6))


def correlation_by_quadrature(omega: FloatArray, separation: float, nodes: int = 80) -> float:
    """Φ(ω) of one unit vector ω (2K,) by two-dimensional quadrature, without the steps of Lemma 3's proof.

    v_cᵀz = ρV + √(1−ρ²) Z with independent V = ωᵀz and Z: Gauss–Hermite in Z (exact for the cubic), Gauss–Legendre in V
    on the two sides of 0 from the kink −b_c of the ReLU on (plain Gauss–Hermite in V stalls at the kink).
    """
    z, z_weight = roots_hermitenorm(4)
    z_weight = z_weight / z_weight.sum()
    legendre, legendre_weight = np.polynomial.legendre.leggauss(nodes)
    total = 0.0
    for b, rho in zip(*coordinates(omega, separation), strict=True):
        start = float(np.clip(-b, -REACH, REACH))
        edges = sorted({start, min(max(0.0, start), REACH), REACH})
        for low, high in pairwise(edges):
            v = 0.5 * (high - low) * legendre + 0.5 * (high + low)
            weight = 0.5 * (high - low) * legendre_weight * normal_density(v) * np.maximum(b + v, 0.0)
            label = hermite3(rho * v[:, None] + np.sqrt(max(1.0 - rho**2, 0.0)) * z)
            total += float(weight @ label @ z_weight)
    return total / (len(omega) // 2)


def random_directions(count: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """`count` independent uniform unit vectors ω⁰ (count, 2K). Source: §4.1 (initialisation)."""
    omega = rng.standard_normal((count, 2 * n_clusters))
    return omega / np.linalg.norm(omega, axis=1, keepdims=True)
