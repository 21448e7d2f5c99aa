"""Positive critical points of Ψ_ζ = ζΦ on the sphere, and the specialised maxima among them (Lemmas 4, 5, 6)."""

import numpy as np

from monolib.links import FloatArray
from monolib.theorem1.correlation import SQRT6, coordinates, normal_density


def critical_offset(active: int, separation: float) -> float:
    """|b| of a positive critical point with s = `active` clusters. Source: Lemma 6.

        s b²(4 − b²)/(R²(1 − b²)) = 1,   b² = (s·4 + R² − √((4s + R²)² − 4sR²))/(2s) in (0, 1)

    written as 2R²/(4s + R² + √...), which loses no digits. Raises ValueError for active < 1 or R ≤ 0.
    """
    if active < 1 or not separation > 0:
        raise ValueError(f"active={active}, separation={separation}: must be ≥ 1 and > 0")
    square = separation**2
    middle = 4.0 * active + square
    return float(np.sqrt(2.0 * square / (middle + np.sqrt(middle**2 - 4.0 * active * square))))


def critical_point(orientations: FloatArray, separation: float, sign: int) -> FloatArray:
    """The critical point (2K,) with the active clusters' τ_c = ±1 in `orientations` (K,), 0 for the inactive ones.

        b_c = −τ_c ζ |b|,   ρ_c = τ_c √3 |b|/(R √(1 − b²)) for the active c;  0 for the others

    sign: ζ.  Source: Lemmas 4 and 6. Raises ValueError when no cluster is active.
    """
    active = int(np.count_nonzero(orientations))
    offset = critical_offset(active, separation)
    rho = np.sqrt(3.0) * offset / (separation * np.sqrt(1.0 - offset**2))
    return np.concatenate([-sign * orientations * offset / separation, orientations * rho])


def critical_value(active: int, n_clusters: int, separation: float) -> float:
    """Ψ_ζ at a critical point with s active clusters: (s/(K√6)) |b| φ(b) |ρ|³. Source: Lemmas 3 and 6."""
    b = critical_offset(active, separation)
    rho = np.sqrt(3.0) * b / (separation * np.sqrt(1.0 - b**2))
    return float(active * b * normal_density(np.array(b)) * rho**3 / (n_clusters * SQRT6))


def specialised_offset(separation: FloatArray) -> FloatArray:
    """|b*| of the specialised maxima: b*² = (R² + 4 − √(R⁴ + 4R² + 16))/2, element by element. Source: Lemma 5.

    Evaluated as 2R²/(R² + 4 + √(R⁴ + 4R² + 16)), which is the same and loses no digits at large R.
    """
    square = np.square(np.asarray(separation, dtype=float))
    return np.sqrt(2.0 * square / (square + 4.0 + np.sqrt(square**2 + 4.0 * square + 16.0)))


def specialised_maximum(
    cluster: np.ndarray, orientation: np.ndarray, sign: np.ndarray, n_clusters: int, separation: float
) -> FloatArray:
    """ω* = τ √(1 − b*²/R²) v_c + (b*/R²) μ_c, b* = −τζ|b*|; rows for arrays c, τ, ζ (m,); (m, 2K). Source: Lemma 5."""
    offset = float(specialised_offset(np.array(separation)))
    omega = np.zeros((len(cluster), 2 * n_clusters))
    rows = np.arange(len(cluster))
    omega[rows, cluster] = -orientation * sign * offset / separation
    omega[rows, n_clusters + cluster] = orientation * np.sqrt(1.0 - (offset / separation) ** 2)
    return omega


def sphere_hessian(omega: FloatArray, separation: float, sign: int) -> FloatArray:
    """Hessian (2K, 2K) of Ψ_ζ on the sphere at one unit vector ω (2K,): P (D²Ψ − ⟨∇Ψ, ω⟩ I) P, P = I − ωωᵀ.

    ω itself is an eigenvector with eigenvalue 0. Source: Lemma 3 (D²Ψ by differentiating it twice).
    """
    b, rho = coordinates(omega, separation)
    k, scale = len(b), -sign / (len(b) * SQRT6)
    density = normal_density(b)
    gradient = scale * np.concatenate([separation * (1 - b**2) * density * rho**3, 3 * b * density * rho**2])
    full = np.zeros((2 * k, 2 * k))
    own = np.arange(k)
    full[own, own] = scale * separation**2 * (b**3 - 3 * b) * density * rho**3
    full[k + own, k + own] = scale * 6 * b * density * rho
    full[own, k + own] = full[k + own, own] = scale * separation * 3 * (1 - b**2) * density * rho**2
    projector = np.eye(2 * k) - np.outer(omega, omega)
    return projector @ (full - float(gradient @ omega) * np.eye(2 * k)) @ projector


def signature(omega: FloatArray, separation: float, sign: int) -> tuple[int, int, int]:
    """Numbers of positive, negative and zero directions of the Hessian in the tangent space. Source: Lemmas 4 and 5."""
    values = np.linalg.eigvalsh(sphere_hessian(omega, separation, sign))
    small = 1e-9 * np.abs(values).max()
    positive, negative = int((values > small).sum()), int((values < -small).sum())
    return positive, negative, len(values) - positive - negative - 1  # ω itself is no tangent direction
