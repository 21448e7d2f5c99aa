"""The Bayes predictor against brute-force integration, and its error against the law's."""

import numpy as np
import pytest
from scipy import integrate, stats

from monolib.bayes import bayes_prediction, cluster_posterior
from monolib.laws import ClusteredLaw, axis_aligned_law, mixed_link_law


def overlapping_law():
    """Three clusters that overlap strongly, one routing and two predictive coordinates."""
    return ClusteredLaw(
        centers=np.array([[-1.0, 0.0, 0.0], [0.2, 0.0, 0.0], [1.0, 0.0, 0.0]]),
        directions=np.array([[0.0, 1.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, -1.0]]),
        links=("hermite2", "sin", "tanh"),
        input_std=np.array([0.7, 1.0, 1.0]),
        noise_std=0.3,
    )


def test_prediction_is_the_mean_of_y_given_x_by_integration_over_y():
    law = overlapping_law()
    x = np.random.default_rng(0).standard_normal((6, 3))

    def density(y, point):  # joint density of (x, y), by scipy's normal densities
        total = 0.0
        for c in range(3):
            t = point @ law.directions[c]
            clean = {"hermite2": (t**2 - 1) / np.sqrt(2), "sin": np.sin(t), "tanh": np.tanh(t)}[law.links[c]]
            own = stats.multivariate_normal(law.centers[c], np.diag(law.input_std**2)).pdf(point)
            total += own / 3 * stats.norm(clean, law.noise_std).pdf(y)
        return total

    for point, predicted in zip(x, bayes_prediction(law, x), strict=True):
        grid = np.linspace(-12, 12, 40_001)
        joint = density(grid, point)
        mean = integrate.simpson(grid * joint, x=grid) / integrate.simpson(joint, x=grid)
        assert predicted == pytest.approx(mean, abs=1e-9)


def test_posterior_is_bayes_formula_and_sums_to_one():
    law = mixed_link_law(10)
    x = law.sample(200, np.random.default_rng(0)).x + 0.2
    densities = [stats.multivariate_normal(m, np.diag(law.input_std**2)).logpdf(x) for m in law.centers]
    weights = np.exp(np.array(densities) - np.max(densities, axis=0)).T
    np.testing.assert_allclose(cluster_posterior(law, x), weights / weights.sum(1, keepdims=True), atol=1e-10)
    np.testing.assert_allclose(cluster_posterior(law, x).sum(1), 1.0)


@pytest.mark.parametrize("n_clusters", [1, 2, 10, 50])
def test_expected_error_of_the_paper_law(n_clusters):
    """About 4.06e-4; the label noise alone gives 4e-4 (1 ± .006) for this many points, rare overlaps the rest."""
    law = mixed_link_law(n_clusters)
    x, y, _ = law.sample(60_000, np.random.default_rng(1))
    assert np.mean(np.square(bayes_prediction(law, x) - y)) == pytest.approx(4.06e-4, rel=0.04)


def test_error_is_the_noise_plus_the_posterior_variance():
    """MSE = σ² + E Var(g_c | x)."""
    law = overlapping_law()
    x, y, _ = law.sample(100_000, np.random.default_rng(1))
    posterior = cluster_posterior(law, x)
    labels = np.stack([law.noiseless(x, np.full(len(x), c)) for c in range(3)], axis=1)
    variance = (posterior * labels**2).sum(1) - (posterior * labels).sum(1) ** 2
    error = np.mean(np.square(bayes_prediction(law, x) - y))
    assert error == pytest.approx(0.3**2 + variance.mean(), rel=0.02)


def test_no_predictor_of_the_same_form_is_better():
    """The predictor that takes the nearest center instead of the posterior mean is worse where clusters overlap."""
    law = overlapping_law()
    x, y, _ = law.sample(40_000, np.random.default_rng(2))
    nearest = law.noiseless(x, cluster_posterior(law, x).argmax(1))
    better, worse = (np.mean(np.square(f - y)) for f in (bayes_prediction(law, x), nearest))
    assert better < 0.9 * worse


def test_without_routing_noise_there_is_no_posterior_density():
    law = ClusteredLaw(np.eye(2), np.eye(2), ("sin", "tanh"), np.array([0.0, 1.0]), 0.1)
    with pytest.raises(ValueError, match="input_std"):
        cluster_posterior(law, np.zeros((1, 2)))


def test_one_cluster_and_the_axis_aligned_law():
    law = mixed_link_law(1)
    x, _, cluster = law.sample(50, np.random.default_rng(0))
    np.testing.assert_array_equal(bayes_prediction(law, x), law.noiseless(x, cluster))
    apart = axis_aligned_law(3, dim=6)
    x, _, cluster = apart.sample(50, np.random.default_rng(0))
    np.testing.assert_allclose(bayes_prediction(apart, x), apart.noiseless(x, cluster), atol=1e-12)
