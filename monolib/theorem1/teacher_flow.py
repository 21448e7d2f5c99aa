"""The teacher-only flow of single neurons (Eqs. 16, 17; Lemma 7), float64.

    du/dt = Φ(ω),   dω/dt = tanh(u) ∇_S Φ(ω),   u(0) = 0,  ω(0) = ω⁰

a = ε sinh u, ‖w‖ = ε cosh u. The neurons do not see each other, so that many are followed in one call.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from monolib.errors import UserError
from monolib.links import FloatArray
from monolib.theorem1.ascent import classify, initial_sign
from monolib.theorem1.correlation import correlation_gradient, population_correlation


@dataclass(frozen=True, eq=False)
class TeacherPath:
    """The flow of m neurons at `times` (T,): `amplitude` u (T, m), `directions` ω (T, m, 2K), their `separation` R."""

    times: FloatArray
    amplitude: FloatArray
    directions: FloatArray
    separation: float

    def norm_error(self) -> float:
        """Largest |‖ω‖ − 1| over times and neurons: the flow stays on the sphere."""
        return float(np.abs(np.linalg.norm(self.directions, axis=-1) - 1.0).max())

    def sign_error(self) -> float:
        """Largest violation of ζu(t) > 0 and of ζΦ(ω(t)) ≥ |Φ(ω⁰)| for t > 0 (0 when both hold). Source: Lemma 7."""
        sign = initial_sign(self.directions[0], self.separation)
        value = sign * population_correlation(self.directions, self.separation)
        amplitude = sign * self.amplitude[1:]
        return float(max(np.where(amplitude > 0, 0.0, 1.0 - amplitude).max(), (value[0] - value[1:]).max(), 0.0))

    def monotonicity_error(self) -> float:
        """Largest decrease of ζΦ(ω(t)) from one time to the next, over the largest |Φ|. Source: Lemma 7."""
        sign = initial_sign(self.directions[0], self.separation)
        value = sign * population_correlation(self.directions, self.separation)
        return float(max(-np.diff(value, axis=0).min() / np.abs(value).max(), 0.0))


def teacher_field(amplitude: FloatArray, omega: FloatArray, separation: float) -> tuple[FloatArray, FloatArray]:
    """(du/dt (m,), dω/dt (m, 2K)) at u (m,) and unit vectors ω (m, 2K). Source: Eq. 17."""
    turn = np.tanh(amplitude)[:, None] * correlation_gradient(omega, separation)
    return population_correlation(omega, separation), turn


def teacher_flow(start: FloatArray, separation: float, times: FloatArray, rtol: float = 1e-10) -> TeacherPath:
    """Flow from u = 0 and unit vectors `start` (m, 2K), read at ascending `times` (T,) off the dense output.

    Raises UserError when the integrator gives up.  Source: Eqs. 16 and 17.
    """
    m, d = start.shape

    def field(_: float, state: FloatArray) -> FloatArray:
        slopes = teacher_field(state[:m], state[m:].reshape(m, d), separation)
        return np.concatenate([slopes[0], slopes[1].ravel()])

    state = np.concatenate([np.zeros(m), start.ravel()])
    span = (0.0, float(times[-1]))
    found = solve_ivp(field, span, state, "DOP853", dense_output=True, rtol=rtol, atol=1e-2 * rtol)
    if not found.success:
        raise UserError(f"separation={separation}: the teacher-only flow stopped early ({found.message})")
    path = found.sol(times)
    return TeacherPath(times, path[:m].T, path[m:].T.reshape(len(times), m, d), separation)


def specialisation_time(start: FloatArray, separation: float, delta: float = 0.1, horizon: float = 1e40) -> float:
    """First t at which the neuron from `start` (2K,) is within `delta` of a specialised maximum of its sign.

    The time over which Theorem 1 has to follow the dynamics (its T_δ) for this neuron.  Raises UserError when it is not
    reached by `horizon`.  Source: Eq. 16.
    """
    sign = initial_sign(start[None], separation)

    def remaining(_: float, state: FloatArray) -> float:
        return float(classify(state[None, 1:], sign, separation).distance[0]) - delta

    def field(_: float, state: FloatArray) -> FloatArray:
        slopes = teacher_field(state[:1], state[None, 1:], separation)
        return np.concatenate([slopes[0], slopes[1][0]])

    state = np.concatenate([[0.0], start])
    if remaining(0.0, state) <= 0:
        return 0.0
    remaining.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(field, (0.0, horizon), state, "DOP853", events=remaining, rtol=1e-8, atol=1e-12)
    if not len(found.t_events[0]):
        raise UserError(f"separation={separation}: the neuron has not specialised by t={horizon:g}")
    return float(found.t_events[0][0])
