"""The Bayes predictor of a clustered law: the best that can be done when the law is known (A.2)."""

import numpy as np
from scipy.special import softmax

from monolib.laws import ClusteredLaw
from monolib.links import FloatArray


def cluster_posterior(law: ClusteredLaw, x: FloatArray) -> FloatArray:
    """P(c | x), (n, K) float64, for points x (n, d); clusters are equally likely and share one covariance.

        log P(c | x) = −½ ‖(x − μ_c) / input_std‖² + constant

    Coordinates in which all centers agree cancel, so that only the routing coordinates matter.
    Raises ValueError when a coordinate that tells clusters apart has no noise: the posterior has no density there.
    """
    routing = np.ptp(law.centers, axis=0) > 0
    std = law.input_std[routing]
    if not (std > 0).all():
        raise ValueError("input_std: must be > 0 in every coordinate in which centers differ")
    scaled, centers = x[:, routing] / std, law.centers[:, routing] / std
    return np.asarray(softmax(scaled @ centers.T - 0.5 * np.square(centers).sum(1), axis=1))


def bayes_prediction(law: ClusteredLaw, x: FloatArray) -> FloatArray:
    """E[y | x] = Σ_c P(c | x) g_c(link_scale ⟨x, v_c⟩), (n,) float64, for points x (n, d) (A.2, "Bayes reference")."""
    labels = [law.noiseless(x, np.full(len(x), c)) for c in range(law.n_clusters)]
    return np.asarray((cluster_posterior(law, x) * np.stack(labels, axis=1)).sum(1))
