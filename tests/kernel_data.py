"""Data and references for the tests of the kernel path."""

import numpy as np
import torch
from scipy.spatial.distance import cdist

from monolib.laws import mixed_link_law
from monolib.random_streams import generator

RANK_ONE = np.outer([3.0, 4.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]) / 25.0


def mixed_data(n_clusters, n, n_test=1000, seed=0):
    """(training sample, test sample, law) of the mixed-link law."""
    law = mixed_link_law(n_clusters, link_seed=1000 + seed)
    return law.sample(n, generator(12345 + seed, "train")), law.sample(n_test, generator(54321 + seed, "test")), law


def random_metric(rng, d):
    """A positive definite metric."""
    a = rng.standard_normal((d, d))
    return a @ a.T / d


def reference_gram(x, z, metric, bandwidth):
    """Eq. 7 by scipy, float64."""
    values, vectors = np.linalg.eigh(metric)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    x, z = np.asarray(x), np.asarray(z)
    return np.exp(-cdist(x @ root, z @ root) / bandwidth)


def points(array, dtype=torch.float64):
    return torch.tensor(np.asarray(array), dtype=dtype)
