"""Adam without weight decay for a stack of networks, each with its own rate, and its cosine decay."""

import math

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # the usual ones (the paper names none)


def cosine_rate(step: int, n_steps: int, initial: float, final: float) -> float:
    """Cosine decay: final + (initial − final)(1 + cos(π step/n_steps))/2 for step = 0..n_steps (A.1, A.2)."""
    return final + (initial - final) * 0.5 * (1.0 + math.cos(math.pi * min(step / n_steps, 1.0)))


def adam_step(
    flat: Tensor, gradient: Tensor, moments: Tensor, rates: Tensor, corrections: Tensor, scratch: Tensor
) -> None:
    """One Adam update in place.

        m ← β₁m + (1−β₁)g,   v ← β₂v + (1−β₂)g²,   θ ← θ − rate · (m/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)

    flat, gradient, scratch: (R, P).  moments: (2, R, P), m and v.  rates: (R, P) or (R, 1), in the units of `flat`.
    corrections: (2, R, 1), 1 − β₁ᵗ and 1 − β₂ᵗ with t = 1 at the first update.
    """
    first, second = moments
    first.lerp_(gradient, 1.0 - BETA1)
    second.mul_(BETA2).addcmul_(gradient, gradient, value=1.0 - BETA2)
    torch.div(second, corrections[1], out=scratch)
    scratch.sqrt_().add_(EPSILON).mul_(corrections[0])
    torch.div(first, scratch, out=scratch)
    flat.sub_(scratch.mul_(rates))


def bias_corrections(step: int) -> tuple[float, float]:
    """1 − β₁ᵗ and 1 − β₂ᵗ for t = step + 1, `step` counted from 0."""
    return 1.0 - BETA1 ** (step + 1), 1.0 - BETA2 ** (step + 1)
