"""Link functions g_c: the scalar rule that turns ⟨x, v_c⟩ into a noiseless label."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def hermite2(t: FloatArray) -> FloatArray:
    """Normalised second Hermite polynomial, He₂(t)/√2 = (t² − 1)/√2 (A.1; Eq. 5)."""
    return (np.square(t) - 1.0) / np.sqrt(2.0)


def hermite3(t: FloatArray) -> FloatArray:
    """Normalised third Hermite polynomial, h₃(t) = (t³ − 3t)/√6 (§4.1)."""
    return (t**3 - 3.0 * t) / np.sqrt(6.0)


def clipped_ramp(t: FloatArray) -> FloatArray:
    """Clipped ramp g(t) = t₊ − (t − 1)₊, that is t clipped to [0, 1] (§4.2)."""
    return np.clip(t, 0.0, 1.0)


LINKS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "hermite2": hermite2,
    "hermite3": hermite3,
    "clipped_ramp": clipped_ramp,
    "sin": np.sin,
    "tanh": np.tanh,
}
