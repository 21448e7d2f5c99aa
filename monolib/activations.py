"""Activations φ with their slopes φ′, in place over given buffers so that a training step allocates nothing."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

# (z, slope, scratch), three tensors of one shape: z becomes φ(z), slope becomes φ′(z), scratch is free to use.
Activation = Callable[[Tensor, Tensor, Tensor], None]


def relu(z: Tensor, slope: Tensor, scratch: Tensor) -> None:
    """ReLU: φ(z) = max(z, 0), φ′(z) = 1 for z > 0 and 0 otherwise (as autograd defines it at 0)."""
    z.clamp_(min=0.0)
    torch.sign(z, out=slope)


def gelu(z: Tensor, slope: Tensor, scratch: Tensor) -> None:
    """Exact GELU: φ(z) = zF(z), φ′(z) = F(z) + zf(z), F and f the standard normal distribution and density."""
    torch.mul(z, z, out=slope)
    # exp underflows below −87 (float32), where vector libraries are a hundred times slower; the term is 0 there
    slope.mul_(-0.5).clamp_(min=-87.0).exp_().mul_(z)  # √(2π) z f(z)
    torch.mul(z, math.sqrt(0.5), out=scratch)
    scratch.erf_().add_(1.0)  # 2 F(z)
    z.mul_(scratch).mul_(0.5)
    slope.mul_(1.0 / math.sqrt(2.0 * math.pi)).add_(scratch, alpha=0.5)


def silu(z: Tensor, slope: Tensor, scratch: Tensor) -> None:
    """SiLU: φ(z) = zσ(z), φ′(z) = σ(z) + φ(z)(1 − σ(z)), σ the logistic function."""
    torch.sigmoid(z, out=scratch)
    z.mul_(scratch)
    torch.add(scratch, z, out=slope)
    slope.addcmul_(z, scratch, value=-1.0)
