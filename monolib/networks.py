"""One-hidden-layer networks, several of one shape stacked in one tensor.

    ReLU, GELU:       f(x) = Σ_j a_j φ(⟨w_j, x⟩ + b_j) + c
    ReGLU, SwiGLU:    f(x) = Σ_j a_j φ(⟨g_j, x⟩ + b^g_j) (⟨w_j, x⟩ + b_j) + c

with `weight` w (the value branch of a gated network), `gate` g, `readout` a, `output_bias` c, and j = 1..m. The start
is width-aware: every factor of a neuron is of size m^(−p), p = 1/2 (gated 1/3), so that a neuron contributes 1/m.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from monolib import activations
from monolib.activations import Activation


class Architecture(NamedTuple):
    """A hidden layer: its activation φ, and whether a linear value branch multiplies it (ReGLU, SwiGLU)."""

    activation: Activation
    gated: bool

    @property
    def balance_exponent(self) -> float:
        """Exponent p at which factors of size m^(−p) let a neuron contribute 1/m: 1/2, or 1/3 if gated."""
        return 1 / 3 if self.gated else 1 / 2


ARCHITECTURES: dict[str, Architecture] = {
    "relu": Architecture(activations.relu, gated=False),
    "gelu": Architecture(activations.gelu, gated=False),
    "reglu": Architecture(activations.relu, gated=True),
    "swiglu": Architecture(activations.silu, gated=True),
}


@dataclass(frozen=True)
class NetworkShape:
    """Architecture name, input dimension d and width m; fixes where each parameter lies in a flat vector."""

    architecture: str
    dim: int
    width: int

    def __post_init__(self) -> None:
        if self.architecture not in ARCHITECTURES:
            raise ValueError(f"architecture={self.architecture!r}: must be one of {', '.join(ARCHITECTURES)}")
        if self.dim < 1 or self.width < 1:
            raise ValueError(f"dim={self.dim}, width={self.width}: both must be integers ≥ 1")

    @property
    def hidden_layers(self) -> tuple[str, ...]:
        """Names of the first-layer blocks: `weight`, and `gate` when gated."""
        return ("weight", "gate") if ARCHITECTURES[self.architecture].gated else ("weight",)

    @property
    def n_parameters(self) -> int:
        """Length of the flat parameter vector."""
        return len(self.hidden_layers) * (self.dim + 1) * self.width + self.width + 1

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Views into `flat` (R, n_parameters): `weight`, `gate` (R, d+1, m; last row the bias), `readout` (R, m),
        `output_bias` (R, 1)."""
        block = (self.dim + 1) * self.width
        parts = {
            name: flat[:, i * block : (i + 1) * block].unflatten(1, (self.dim + 1, self.width))
            for i, name in enumerate(self.hidden_layers)
        }
        start = len(self.hidden_layers) * block
        return parts | {"readout": flat[:, start : start + self.width], "output_bias": flat[:, start + self.width :]}


def initial_parameters(
    shape: NetworkShape, start_scale: float, readout_ratio: float, readout_start: str, rng: np.random.Generator
) -> Tensor:
    """Flat start of one network, float32, shape (n_parameters,); with s = start_scale · m^(−p), r = readout_ratio:

        w_j, g_j ~ N(0, s² I_d/d),   a_j = ±r s ("signs") or N(0, r² s²) ("gaussian"),   biases 0

    The start is balanced, |a_j| ≈ ‖w_j‖ ≈ s, at r = 1 (A.1 names a "balanced feature-learning initialization" and gives
    no formula).  Raises ValueError for a scale or ratio ≤ 0 or an unknown `readout_start`.
    """
    if start_scale <= 0 or readout_ratio <= 0:
        raise ValueError(f"start_scale={start_scale}, readout_ratio={readout_ratio}: both must be > 0")
    size = start_scale * shape.width ** -ARCHITECTURES[shape.architecture].balance_exponent
    flat = torch.zeros(1, shape.n_parameters)
    parts = shape.views(flat)
    for name in shape.hidden_layers:
        weight = rng.standard_normal((shape.width, shape.dim)) * (size / shape.dim**0.5)
        parts[name][0, :-1] = torch.from_numpy(weight.T.astype(np.float32))
    if readout_start == "signs":
        readout = 2.0 * rng.integers(2, size=shape.width) - 1.0
    elif readout_start == "gaussian":
        readout = rng.standard_normal(shape.width)
    else:
        raise ValueError(f"readout_start={readout_start!r}: must be signs or gaussian")
    parts["readout"][0] = torch.from_numpy((readout_ratio * size * readout).astype(np.float32))
    return flat[0]


@dataclass(frozen=True, eq=False)
class Network:
    """One network as NumPy arrays, for measuring and drawing; formulas in the module's head.

    weight, gate: (m, d) (gate is None unless gated); bias, gate_bias, readout: (m,); output_bias: a number.
    """

    architecture: str
    weight: np.ndarray
    bias: np.ndarray
    readout: np.ndarray
    output_bias: float
    gate: np.ndarray | None = None
    gate_bias: np.ndarray | None = None

    @classmethod
    def from_flat(cls, shape: NetworkShape, flat: np.ndarray) -> "Network":
        """Network from its flat parameter vector (n_parameters,)."""
        parts = {name: part[0].numpy() for name, part in shape.views(torch.from_numpy(flat)[None]).items()}
        gate = parts.get("gate")
        return cls(
            architecture=shape.architecture,
            weight=parts["weight"][:-1].T,
            bias=parts["weight"][-1],
            readout=parts["readout"],
            output_bias=float(parts["output_bias"][0]),
            gate=None if gate is None else gate[:-1].T,
            gate_bias=None if gate is None else gate[-1],
        )

    @property
    def first_layer(self) -> dict[str, np.ndarray]:
        """First-layer weights by the paper's name: {"hidden": W}, or {"gate": W_g, "value": W_v}; each (m, d)."""
        return {"hidden": self.weight} if self.gate is None else {"gate": self.gate, "value": self.weight}

    def predict(self, x: np.ndarray, rows: int = 1024) -> np.ndarray:
        """Output f(x) for inputs `x` (n, d), float64, shape (n,), `rows` points at a time."""
        return np.concatenate([self._predict(x[i : i + rows]) for i in range(0, len(x), rows)])

    def _predict(self, x: np.ndarray) -> np.ndarray:
        return self.neuron_outputs(x) @ self.readout.astype(float) + self.output_bias

    def neuron_outputs(self, x: np.ndarray) -> np.ndarray:
        """Hidden layer h_j(x), (n, m) float64: φ(w_j·x + b_j), gated φ(g_j·x + b_g,j) (w_j·x + b_j)."""
        hidden = np.asarray(x, float) @ self.weight.T + self.bias
        gate = hidden if self.gate is None else np.asarray(x, float) @ self.gate.T + self.gate_bias
        slope, scratch = torch.empty(2, *gate.shape, dtype=torch.float64)
        value = torch.from_numpy(gate.copy())
        ARCHITECTURES[self.architecture].activation(value, slope, scratch)
        return value.numpy() if self.gate is None else value.numpy() * hidden
