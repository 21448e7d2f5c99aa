"""The same network trained by plain small-step SGD on samples (§4.1), beside the population gradient flow."""

from collections.abc import Callable

import numpy as np

from monolib.laws import theorem1_law
from monolib.links import FloatArray
from monolib.theorem1.network_flow import FlowPath


def train_by_sgd(
    start: FloatArray,
    separation: float,
    epsilon: float,
    step: float,
    batch: int,
    n_steps: int,
    n_kept: int,
    rng: np.random.Generator,
    on_share: Callable[[float], None] | None = None,
) -> FlowPath:
    """SGD on ½(f_θ(x) − y)² with fresh batches, from a = 0 and w = ε `start` (m, 2K); kept at `n_kept` + 1 times.

        a_j += η mean[(y − f) φ(w_jᵀx)],   w_j += η a_j mean[(y − f) 1{w_jᵀx > 0} x]

    step: η; the time is η times the number of steps.  batch: fresh samples per step.  n_steps: a multiple of n_kept.
    In units of ε (see `network_flow`), float64.  Source: §4.1, B.1.3.
    """
    n_clusters = start.shape[1] // 2
    law = theorem1_law(n_clusters, separation)
    readout, weight = np.zeros(len(start)), start.copy()
    kept = [(readout.copy(), weight.copy())]
    every = n_steps // n_kept
    for t in range(1, every * n_kept + 1):
        x, y, _ = law.sample(batch, rng)
        before = x @ weight.T
        hidden = np.maximum(before, 0.0)
        residual = (y - epsilon**2 * (hidden @ readout)) / batch
        slope = (x.T @ (residual[:, None] * (before > 0))).T
        readout, weight = readout + step * (residual @ hidden), weight + step * readout[:, None] * slope
        if t % every == 0:
            kept.append((readout.copy(), weight.copy()))
            if on_share is not None:
                on_share(t / n_steps)
    times = step * every * np.arange(n_kept + 1, dtype=np.float64)
    return FlowPath(times, np.stack([a for a, _ in kept]), np.stack([w for _, w in kept]))
