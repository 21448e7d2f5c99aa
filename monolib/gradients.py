"""Mean squared error and its gradient by hand, over blocks of rows that stay in the processor's cache.

For a batch (x_i, y_i), i = 1..B, r_i = 2(f(x_i) − y_i)/B, and z the pre-activations:

    ReLU, GELU:     ∂L/∂w_j = a_j Σ_i r_i φ′(z_ij) x_i                  ∂L/∂a_j = Σ_i r_i φ(z_ij)
    gated, value:   ∂L/∂w_j = a_j Σ_i r_i φ(z^g_ij) x_i                 ∂L/∂a_j = Σ_i r_i φ(z^g_ij) z_ij
    gated, gate:    ∂L/∂g_j = a_j Σ_i r_i φ′(z^g_ij) z_ij x_i           ∂L/∂c   = Σ_i r_i

Inputs carry a last coordinate 1, so that a bias is the last row of its weight block. Since every row of a block sees
the whole layer, r is known before the block leaves the cache and its activations serve the gradient at once.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from monolib.networks import ARCHITECTURES, NetworkShape

CPU_BLOCK_BYTES = 512 * 1024  # one block of pre-activations; a few of them fit the second-level cache of a core
CUDA_BLOCK_BYTES = 512 * 1024**2


def block_rows(width: int, n_networks: int, device: torch.device, element_size: int = 4) -> int:
    """Rows of a batch handled at a time, so that one (rows, width) block keeps to the device's budget."""
    if device.type == "cpu":
        return max(16, CPU_BLOCK_BYTES // (width * element_size))
    return max(256, CUDA_BLOCK_BYTES // (width * element_size * n_networks))


def append_one(x: Tensor) -> Tensor:
    """Inputs (..., d) with a last coordinate 1 that multiplies the bias; shape (..., d+1)."""
    return torch.cat([x, x.new_ones(*x.shape[:-1], 1)], dim=-1)


class Workspace:
    """Buffers of one (networks, rows, width) block, made once and used for every block of every step."""

    def __init__(self, shape: NetworkShape, flat: Tensor) -> None:
        self.rows = block_rows(shape.width, len(flat), flat.device, flat.element_size())
        self._buffers = flat.new_empty(3, len(flat), self.rows, shape.width)

    def blocks(self, n: int) -> Iterator[tuple[slice, tuple[Tensor, ...]]]:
        """Consecutive slices that cover `n` rows, each with three buffers (R, rows of the slice, m)."""
        full = tuple(self._buffers)
        for start in range(0, n, self.rows):
            stop = min(start + self.rows, n)
            whole = stop - start == self.rows
            yield slice(start, stop), full if whole else tuple(buffer[:, : stop - start] for buffer in full)


def _hidden(
    architecture: str, parts: dict[str, Tensor], x: Tensor, buffers: tuple[Tensor, ...]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Neuron outputs h (R, b, m), and per first-layer block the factor ∂h/∂(its pre-activation) (R, b, m)."""
    activation, gated = ARCHITECTURES[architecture]
    z, slope, scratch = buffers
    torch.bmm(x, parts["gate" if gated else "weight"], out=z)
    activation(z, slope, scratch)
    if not gated:
        return z, {"weight": slope}
    linear = torch.bmm(x, parts["weight"], out=scratch)
    slope.mul_(linear)
    return linear.mul_(z), {"weight": z, "gate": slope}


def predict(shape: NetworkShape, flat: Tensor, x: Tensor) -> Tensor:
    """Outputs (R, n) of the stacked networks `flat` (R, n_parameters) on `x` (R, n, d+1) (see `append_one`)."""
    if flat.device.type == "cpu" and len(flat) > 1:
        return torch.cat([predict(shape, flat[r : r + 1], x[r : r + 1]) for r in range(len(flat))])
    parts = shape.views(flat)
    readout = parts["readout"].unsqueeze(2)
    output = flat.new_empty(x.shape[:2])
    for rows, buffers in Workspace(shape, flat).blocks(x.shape[1]):
        h, _ = _hidden(shape.architecture, parts, x[:, rows], buffers)
        output[:, rows] = torch.bmm(h, readout).squeeze(2)
    return output.add_(parts["output_bias"])


def loss_gradient(
    shape: NetworkShape, flat: Tensor, x: Tensor, y: Tensor, gradient: Tensor, workspace: Workspace | None = None
) -> Tensor:
    """Mean squared error (R,) of stacked networks; writes its gradient into `gradient` (R, n_parameters).

    flat: (R, n_parameters).  x: (R, B, d+1), last coordinate 1.  y: (R, B).  Any floating type, one for all.
    workspace: buffers to reuse from step to step (for one network on a CPU, for the whole stack elsewhere).
    On a CPU the networks are visited one after the other, so that a network's result does not depend on its stack.
    """
    if flat.device.type == "cpu" and len(flat) > 1:
        workspace = workspace or Workspace(shape, flat[:1])
        one = [slice(r, r + 1) for r in range(len(flat))]
        return torch.cat([loss_gradient(shape, flat[r], x[r], y[r], gradient[r], workspace) for r in one])
    workspace = workspace or Workspace(shape, flat)
    parts, slots = shape.views(flat), shape.views(gradient.zero_())
    readout, readout_slot = parts["readout"].unsqueeze(2), slots["readout"].unsqueeze(1)
    r = (parts["output_bias"] - y).unsqueeze(2)  # becomes the residual f(x) − y, block by block
    for rows, buffers in workspace.blocks(x.shape[1]):
        xb, rb = x[:, rows], r[:, rows]
        h, factors = _hidden(shape.architecture, parts, xb, buffers)
        rb.baddbmm_(h, readout)
        readout_slot.baddbmm_(rb.mT, h)
        weighted = (xb * rb).mT
        for name, factor in factors.items():
            slots[name].baddbmm_(weighted, factor)
    slots["output_bias"].copy_(r.sum(1))
    for name in shape.hidden_layers:
        slots[name].mul_(readout.mT)
    gradient.mul_(2.0 / x.shape[1])
    return r.square().mean((1, 2))
