"""Spherical gradient ascent on Ψ_ζ from many starts at once, and where it ends (Lemmas 6, 7, 8).

The orbit is followed in a time of its own,

    dω/ds = ∇_S Ψ_ζ(ω) / (1/(K√6)) √(Σ_c (b_c φ(b_c) ρ_c³)²),

a positive reparameterization (Lemma 7), because Ψ itself is of size e^{−b²/2}: at R = 32 a random start has a gradient
near e^{−100}. The common factor e^{−min b²/2} cancels before anything underflows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from monolib.errors import UserError
from monolib.links import FloatArray
from monolib.theorem1.correlation import coordinates, tangent
from monolib.theorem1.critical_points import specialised_maximum

ARRIVED = 1e-7  # distance to a specialised maximum at which an orbit has ended


@dataclass(frozen=True, eq=False)
class Endpoints:
    """Ends of m orbits: `omega` (m, 2K), the chosen `cluster` (m,) from 0, `orientation` τ, `sign` ζ, and `distance`
    (m,) to the specialised maximum of that cluster and these signs."""

    omega: FloatArray
    cluster: np.ndarray
    orientation: np.ndarray
    sign: np.ndarray
    distance: FloatArray


def _scaled_terms(omega: FloatArray, separation: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """b, ρ and e^{−(b² − min b²)/2}, each (m, K)."""
    b, rho = coordinates(omega, separation)
    half = 0.5 * np.square(b)
    return b, rho, np.exp(half.min(-1, keepdims=True) - half)


def initial_sign(omega: FloatArray, separation: float) -> np.ndarray:
    """ζ = sign Φ(ω⁰) (m,), without underflow at large R. Source: Lemma 7."""
    b, rho, weight = _scaled_terms(omega, separation)
    return -np.sign((b * weight * rho**3).sum(-1))


def ascent_field(omega: FloatArray, separation: float, sign: np.ndarray) -> FloatArray:
    """dω/ds (m, 2K) for unit vectors ω (m, 2K) and ζ (m,); see the module."""
    b, rho, weight = _scaled_terms(omega, separation)
    routing = separation * (1.0 - np.square(b)) * weight * rho**3
    predictive = 3.0 * b * weight * np.square(rho)
    size = np.sqrt(np.square(b * weight * rho**3).sum(-1, keepdims=True))
    gradient = np.concatenate([routing, predictive], -1) / np.maximum(size, np.finfo(float).tiny)
    return tangent(omega, -sign[:, None] * gradient)


def classify(omega: FloatArray, sign: np.ndarray, separation: float) -> Endpoints:
    """Chosen cluster argmax_c |ρ_c|, orientation and distance to that maximum, for unit vectors ω (m, 2K)."""
    _, rho = coordinates(omega, separation)
    cluster = np.abs(rho).argmax(1)
    orientation = np.sign(rho[np.arange(len(rho)), cluster])
    target = specialised_maximum(cluster, orientation, sign, rho.shape[1], separation)
    return Endpoints(omega, cluster, orientation, sign, np.linalg.norm(omega - target, axis=1))


def ascend(
    start: FloatArray, separation: float, length: float = 40.0, tolerance: float = 1e-9, sign: np.ndarray | None = None
) -> Endpoints:
    """Ends of the ascent from unit vectors `start` (m, 2K): 1e-7 from maxima, or after `length` units of s.

    sign: ζ (m,); None is sign Φ(start), the sign that the flow selects (Lemma 7).  Raises UserError when the integrator
    gives up.  Source: Lemma 6.
    """
    zeta = initial_sign(start, separation) if sign is None else sign
    shape = start.shape

    def field(_: float, state: FloatArray) -> FloatArray:
        omega = state.reshape(shape)
        unit = omega / np.linalg.norm(omega, axis=1, keepdims=True)
        return ascent_field(unit, separation, zeta).ravel()

    def remaining(_: float, state: FloatArray) -> float:
        omega = state.reshape(shape)
        unit = omega / np.linalg.norm(omega, axis=1, keepdims=True)
        return float(classify(unit, zeta, separation).distance.max()) - ARRIVED

    remaining.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(field, (0.0, length), start.ravel(), "DOP853", events=remaining, rtol=tolerance, atol=tolerance)
    if not found.success:
        raise UserError(f"separation={separation}: the ascent could not be followed ({found.message})")
    omega = found.y[:, -1].reshape(shape)
    return classify(omega / np.linalg.norm(omega, axis=1, keepdims=True), zeta, separation)
