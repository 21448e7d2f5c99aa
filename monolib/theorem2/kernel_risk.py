"""Risk of kernel ridge regression with a given metric on Theorem 2's law (Lemma 16), float64.

The Laplace kernel of Eq. 7 with metric M = I (the standard kernel) or M_ρ (RFM with the true AGOP); the bandwidth is
the within-cluster median, so that only the ratio of the metric's two eigenvalues matters.
"""

from collections.abc import Sequence

import numpy as np
import torch

from monolib.bandwidth import median_bandwidth
from monolib.exact_solver import exact_memory, solve_exact
from monolib.kernels import gram, kernel_product, mapped, metric_root
from monolib.laws import Sample
from monolib.links import FloatArray
from monolib.memory import memory_budget, require_memory


def kernel_risks(
    metric: FloatArray, ridges: Sequence[float], train: Sample, test: Sample, rng: np.random.Generator
) -> list[float]:
    """Mean (f̂(x) − f*(x))² over `test`, whose labels are noiseless, for each ridge of (K + ridge I)α = y.

    metric: M (d, d); scaling it changes nothing.  rng: draws the points for the bandwidth.  Raises UserError
    when the Gram matrix would not fit into memory.  Source: §4.2, Lemma 16.
    """
    n = len(train.x)
    require_memory(exact_memory(n), memory_budget("cpu", None), f"a kernel fit of n={n} points")
    x, y, at = (torch.from_numpy(values) for values in (train.x, train.y, test.x))
    root = metric_root(torch.from_numpy(metric) / float(np.abs(metric).max()))
    h = median_bandwidth(x @ root, train.cluster, rng).value
    u, z = (mapped(points, root, x.mean(0), h, torch.float64) for points in (x, at))
    matrix = gram(u)
    alphas = [solve_exact(matrix, y, ridge).coefficients for ridge in ridges]
    outputs = kernel_product(z, u, torch.stack(alphas, 1)).numpy()
    return [float(error) for error in np.mean(np.square(outputs - test.y[:, None]), axis=0)]
