"""Gradients and AGOP of a kernel predictor against finite differences, across precisions, and sampled."""

import numpy as np
import pytest
import torch
from kernel_data import RANK_ONE, points, random_metric, reference_gram

from monolib.agop import agop, gradients, sample_indices, updated_metric
from monolib.errors import UserError
from monolib.kernels import mapped, metric_root


def predictor(metric, n=250, d=4, h=1.3, seed=0):
    """(points, coefficients, f on arrays, map to the kernel's points, root) of a random kernel predictor."""
    rng = np.random.default_rng(seed)
    x, alpha = rng.standard_normal((n, d)) + 5, rng.standard_normal(n)
    root = metric_root(points(metric))

    def to_kernel(at, dtype=torch.float64):
        return mapped(points(at), root, points(x.mean(0)), h, dtype)

    return x, alpha, lambda at: reference_gram(at, x, metric, h) @ alpha, to_kernel, root


@pytest.mark.parametrize("metric", [np.eye(4), random_metric(np.random.default_rng(9), 4)])
@pytest.mark.parametrize("at_centers", [True, False])
def test_gradient_equals_central_differences(metric, at_centers):
    x, alpha, f, to_kernel, root = predictor(metric)
    at = x[:20] if at_centers else np.random.default_rng(3).standard_normal((20, 4)) + 5
    ours = gradients(to_kernel(at), to_kernel(x), points(alpha), root, 1.3).numpy()
    step = 1e-5
    differences = np.stack([(f(at + step * e) - f(at - step * e)) / (2 * step) for e in np.eye(4)], 1)
    assert np.linalg.norm(ours - differences) <= 1e-6 * np.linalg.norm(differences)


def test_gradients_at_centers_and_duplicates_are_finite():
    x, alpha, _, to_kernel, root = predictor(RANK_ONE)
    x[50:100] = x[:50]
    for dtype in (torch.float32, torch.float64):
        u = to_kernel(x, dtype)
        assert torch.isfinite(gradients(u, u, points(alpha), root, 1.3)).all()


def test_a_single_point_has_no_gradient():
    u = torch.zeros(1, 3)
    assert not gradients(u, u, torch.ones(1), torch.eye(3, dtype=torch.float64), 1.0).any()


@pytest.mark.parametrize("metric", [np.eye(4), RANK_ONE + 1e-3 * np.eye(4)])
def test_agop_in_float32_agrees_with_float64(metric):
    x, alpha, _, to_kernel, root = predictor(metric, n=1500)
    double, single = (
        agop(to_kernel(x, t), to_kernel(x, t), points(alpha), root, 1.3) for t in (torch.float64, torch.float32)
    )
    assert single.dtype == torch.float64
    assert (double - single).norm() <= 1e-4 * double.norm()


def test_agop_is_the_mean_outer_product_without_centring():
    x, alpha, _, to_kernel, root = predictor(np.eye(4))
    g = gradients(to_kernel(x[:30]), to_kernel(x), points(alpha), root, 1.3).numpy()
    ours = agop(to_kernel(x[:30]), to_kernel(x), points(alpha), root, 1.3)
    np.testing.assert_allclose(ours, np.mean([np.outer(row, row) for row in g], 0), rtol=1e-10)


def test_sample_is_uniform_seeded_and_without_repetition():
    assert sample_indices(5, 9, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    chosen = sample_indices(1000, 100, np.random.default_rng(0))
    assert len(set(chosen.tolist())) == 100
    assert np.array_equal(chosen, sample_indices(1000, 100, np.random.default_rng(0)))
    assert abs(chosen.mean() - 500) < 150
    with pytest.raises(UserError, match="agop_points=0"):
        sample_indices(5, 0, np.random.default_rng(0))


def test_normalisations_and_kept_metrics():
    g = torch.diag(torch.tensor([1.0, 3.0, 4.0], dtype=torch.float64))
    assert float(updated_metric(g).trace()) == pytest.approx(3.0)
    assert float(updated_metric(g, "max_entry").max()) == 1.0
    assert torch.equal(updated_metric(g, "none"), g)
    assert updated_metric(torch.zeros(3, 3, dtype=torch.float64)) is None
    assert updated_metric(g * float("nan")) is None
    assert updated_metric(g * float("inf")) is None
    with pytest.raises(UserError, match="normalization='l2'"):
        updated_metric(g, "l2")
