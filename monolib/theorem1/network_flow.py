"""Gradient flow of the full network with population expectations, and of each neuron alone (Eqs. 16, 17; Lemma 9).

The network f = Σ_j a_j φ(w_jᵀx) starts at a = 0, w = εω⁰. In units of ε, a = εã and w = εw̃, the flow reads

    dã_j/dt = ‖w̃_j‖ (Φ(ω_j) − ε² Σ_k ã_k ‖w̃_k‖ Q_jk)
    dw̃_j/dt = ã_j (Φ(ω_j) ω_j + ∇_S Φ(ω_j) − ε² Σ_k ã_k ‖w̃_k‖ ∇Q_jk),     ω = w̃/‖w̃‖

with Q and ∇Q in closed form (`relu_moments`). ε = 0 is the teacher-only flow, u = arsinh ã, of Eqs. 16 and 17.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from monolib.errors import UserError
from monolib.links import FloatArray
from monolib.theorem1.correlation import correlation_gradient, population_correlation
from monolib.theorem1.relu_moments import relu_moments

RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-10, 1e-12


@dataclass(frozen=True, eq=False)
class FlowPath:
    """A flow at `times` (T,): `readout` ã (T, m) and `weight` w̃ (T, m, 2K), both in units of ε."""

    times: FloatArray
    readout: FloatArray
    weight: FloatArray

    @property
    def amplitude(self) -> FloatArray:
        """u = arsinh(a/ε), (T, m). Source: B.1.2."""
        return np.arcsinh(self.readout)

    @property
    def directions(self) -> FloatArray:
        """ω = w/‖w‖, (T, m, 2K)."""
        return self.weight / np.linalg.norm(self.weight, axis=-1, keepdims=True)

    def invariant_error(self) -> float:
        """Largest relative error of ‖w‖² − a² = ε² (B.1.2) over times and neurons."""
        square = np.square(self.weight).sum(-1)
        return float((np.abs(square - np.square(self.readout) - 1.0) / square).max())


def flow_field(
    readout: FloatArray, weight: FloatArray, separation: float, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """(dã/dt (m,), dw̃/dt (m, 2K)); see the module. Source: Lemma 9 (gradient flow of L(θ) = ½E[(f_θ − y)²])."""
    norm = np.linalg.norm(weight, axis=1)
    omega = weight / norm[:, None]
    pull = population_correlation(omega, separation)
    turn = pull[:, None] * omega + correlation_gradient(omega, separation)
    if epsilon > 0:
        moment, gradient = relu_moments(omega, omega, separation)
        mass = epsilon**2 * readout * norm
        pull = pull - moment @ mass
        turn = turn - np.einsum("jkd,k->jd", gradient, mass)
    return norm * pull, readout[:, None] * turn


def network_flow(
    start: FloatArray,
    separation: float,
    epsilon: float,
    times: FloatArray,
    rtol: float = RELATIVE_TOLERANCE,
    on_share: Callable[[float], None] | None = None,
) -> FlowPath:
    """Flow from a = 0 and unit directions `start` (m, 2K), evaluated at ascending `times` (T,) from the dense output.

    epsilon: ε ≥ 0; 0 leaves the interaction of the neurons out (the teacher-only flow of Lemma 7).
    on_share: told the share of the time that has passed.
    Raises UserError when the integrator gives up.  Source: Lemma 9.
    """
    m, d = start.shape

    def field(t: float, state: FloatArray) -> FloatArray:
        if on_share is not None:
            on_share(t / float(times[-1]))
        slopes = flow_field(state[:m], state[m:].reshape(m, d), separation, epsilon)
        return np.concatenate([slopes[0], slopes[1].ravel()])

    state = np.concatenate([np.zeros(m), start.ravel()])
    span = (0.0, float(times[-1]))
    found = solve_ivp(field, span, state, "DOP853", dense_output=True, rtol=rtol, atol=ABSOLUTE_TOLERANCE)
    if not found.success:
        raise UserError(f"separation={separation}, epsilon={epsilon}: the flow stopped early ({found.message})")
    path = found.sol(times)
    return FlowPath(times, path[:m].T, path[m:].T.reshape(len(times), m, d))


def tracking_error(network: FlowPath, alone: FlowPath) -> float:
    """max_j sup_t (|u_j − ū_j| + ‖ω_j − ω̄_j‖) over the common times. Source: Lemma 9."""
    amplitude = np.abs(network.amplitude - alone.amplitude)
    return float((amplitude + np.linalg.norm(network.directions - alone.directions, axis=-1)).max())
