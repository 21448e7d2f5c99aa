"""A two-layer ReLU network trained with weight decay: the stand-in for Theorem 2's norm-constrained minimiser.

    mean (f_θ(x_i) − y_i)² + λ ‖θ‖_F²,   ‖θ‖_F² = ½ Σ_j (a_j² + ‖w_j‖²),   f_θ(x) = Σ_j a_j φ(w_jᵀx)

by Adam on batches with a cosine-decayed step. λ is the multiplier of the constraint ‖θ‖_F² ≤ B; the norm that comes out
is reported. Predictions are clipped to [0, 1], as the theorem's class is. float32.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from monolib.links import FloatArray
from monolib.theorem2.exact_network import ReluNetwork


@dataclass(frozen=True)
class WeightDecayConfig:
    """width: m.  decay: λ.  learning_rate: Adam's step at the start; it decays to 0 along a cosine."""

    width: int
    decay: float
    learning_rate: float
    n_steps: int
    batch_size: int
    seed: int


def train_with_decay(
    x: FloatArray,
    y: FloatArray,
    config: WeightDecayConfig,
    device: str = "cpu",
    on_share: Callable[[float], None] | None = None,
) -> ReluNetwork:
    """The trained network for x (n, d), y (n,), balanced at the start (|a_j| = ‖w_j‖). Source: §4.2 (ERM), ledger 8."""
    rng = np.random.default_rng(config.seed)
    dim = x.shape[1]
    weight = rng.standard_normal((config.width, dim)) / dim**0.5
    weight *= (dim / config.width) ** 0.5 / 2.0
    readout = rng.choice([-1.0, 1.0], config.width) * np.linalg.norm(weight, axis=1)
    w, a = (torch.tensor(v, dtype=torch.float32, device=device, requires_grad=True) for v in (weight, readout))
    points, labels = (torch.tensor(v, dtype=torch.float32, device=device) for v in (x, y))
    optimizer = torch.optim.Adam([w, a], lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.n_steps)
    whole = len(x) <= config.batch_size
    for t in range(config.n_steps):
        rows = slice(None) if whole else torch.from_numpy(rng.integers(len(x), size=config.batch_size)).to(device)
        optimizer.zero_grad(set_to_none=True)
        output = torch.relu(points[rows] @ w.T) @ a
        norm = 0.5 * (w.square().sum() + a.square().sum())
        loss = (output - labels[rows]).square().mean() + config.decay * norm
        loss.backward()
        optimizer.step()
        schedule.step()
        if on_share is not None:
            on_share((t + 1) / config.n_steps)
    return ReluNetwork(w.detach().double().cpu().numpy(), a.detach().double().cpu().numpy())


def clipped_risk(network: ReluNetwork, x: FloatArray, target: FloatArray) -> float:
    """Mean of (clip(f(x)) − f*(x))² over x (n, d). Source: §4.2 (the class clip ∘ F_B)."""
    return float(np.mean(np.square(np.clip(network(x), 0.0, 1.0) - target)))
