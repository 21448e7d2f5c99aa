"""EigenPro 2: exact limit, step sizes with their negative controls, guard, stop rules, kept Gram matrix."""

import numpy as np
import pytest
import torch
from kernel_data import mixed_data, points

from monolib.bandwidth import median_bandwidth
from monolib.eigenpro import (
    EigenProConfig,
    EigenProFit,
    default_subsample,
    eigenpro_memory,
    preconditioner,
    solve_eigenpro,
)
from monolib.errors import UserError
from monolib.exact_solver import solve_exact
from monolib.kernels import gram, mapped


def problem(n, dtype=torch.float64, n_clusters=10):
    train, _, _ = mixed_data(n_clusters, n)
    h = median_bandwidth(points(train.x), train.cluster, np.random.default_rng(0)).value
    root = torch.eye(train.x.shape[1], dtype=torch.float64)
    return mapped(points(train.x), root, points(train.x.mean(0)), h, dtype), points(train.y)


def rng():
    return np.random.default_rng(5)


def test_preconditioner_flattens_the_spectrum():
    u, _ = problem(600)
    p = preconditioner(u)
    k = gram(u) / len(u)
    values = torch.linalg.eigvalsh(k).flip(0)
    q = len(p.eigenvalues)
    np.testing.assert_allclose(p.eigenvalues, values[:q], rtol=1e-8)
    assert q == max(int((values**-0.95 < 600).sum()) - 1, 5)
    step = torch.eye(600, dtype=torch.float64) - p.directions @ p.directions.T @ k * 600
    largest = torch.linalg.eigvals(step @ k).real.max()
    assert float(largest) == pytest.approx(p.damped_eigenvalue, rel=1e-6)
    assert p.critical_batch == int(1 / p.damped_eigenvalue) + 1


def test_step_follows_the_actual_batch():
    u, _ = problem(500)
    p = preconditioner(u)
    m = p.critical_batch
    assert p.step(1) == p.step(m) == 1.0
    assert p.step(2 * m) == pytest.approx(0.99 * 2 / (1 + (2 * m - 1) * p.damped_eigenvalue))


@pytest.mark.parametrize("keep_gram", [True, False])
def test_converges_to_interpolation_in_float64(keep_gram):
    u, y = problem(2000)
    result = solve_eigenpro(u, y, EigenProConfig(target_mse=None, max_epochs=40), rng(), keep_gram)
    assert result.train_mse <= 1e-8
    assert (result.stop_reason, result.epochs, result.restarts) == ("epoch limit", 40, 0)
    residual = gram(u) @ result.coefficients - y
    assert float(residual.square().mean()) == pytest.approx(result.train_mse, rel=1e-3, abs=1e-12)


def test_stays_at_the_exact_solution():
    u, y = problem(800)
    exact = solve_exact(gram(u), y, ridge=0.0).coefficients
    result = solve_eigenpro(u, y, EigenProConfig(target_mse=None, max_epochs=3), rng(), True, start=exact)
    assert (result.coefficients - exact).norm() <= 1e-8 * exact.norm()
    assert result.train_mse <= 1e-8


def test_kept_gram_matrix_and_seed_change_nothing_and_everything():
    u, y = problem(1500, torch.float32)
    config = EigenProConfig(max_epochs=4, target_mse=None)
    streamed, again, kept = (solve_eigenpro(u, y, config, rng(), keep) for keep in (False, False, True))
    assert torch.equal(streamed.coefficients, again.coefficients)
    assert streamed.history == again.history
    assert (streamed.coefficients - kept.coefficients).norm() <= 1e-3 * kept.coefficients.norm()
    other = solve_eigenpro(u, y, config, np.random.default_rng(6))
    assert not torch.equal(other.coefficients, streamed.coefficients)


def oversized(n=6000):
    """A subsample so small that twice its critical batch is far below n."""
    u, y = problem(n)
    critical = preconditioner(u[:1000]).critical_batch
    return u, y, dict(subsample=1000, batch_size=2 * critical, target_mse=None, max_epochs=12)


def test_twice_the_critical_batch_converges_with_its_own_step_and_diverges_with_a_fixed_one():
    u, y, settings = oversized()
    good = solve_eigenpro(u, y, EigenProConfig(**settings), rng(), True)
    assert good.restarts == 0
    assert good.train_mse < 0.1 * float(y.square().mean())
    bad = EigenProFit(u, y, EigenProConfig(**settings, fixed_step=True), rng(), True)
    errors = [bad.epoch(1.0) for _ in range(12)]
    assert not errors[-1] < 10 * float(y.square().mean())  # the negative control


def test_step_too_large_triggers_the_guard_which_recovers():
    u, y, settings = oversized()
    result = solve_eigenpro(u, y, EigenProConfig(**settings, step_factor=2.2), rng(), True)
    assert result.restarts >= 1
    assert result.train_mse < 0.1 * float(y.square().mean())
    hopeless = solve_eigenpro(u, y, EigenProConfig(**settings, step_factor=1e9), rng(), True)
    assert hopeless.stop_reason == "diverged"
    assert not hopeless.coefficients.any()
    assert hopeless.train_mse == pytest.approx(float(y.square().mean()))


def test_stops_at_the_full_training_error_and_reports_it():
    u, y = problem(2000, torch.float32)
    result = solve_eigenpro(u, y, EigenProConfig(target_mse=4e-4, max_epochs=40), rng(), True)
    assert result.stop_reason == "target"
    true = float((gram(u.double()) @ result.coefficients.double() - y).square().mean())
    assert true == pytest.approx(result.train_mse, rel=0.02)
    assert true <= 4.1e-4
    running = [r for _, r, _ in result.history]
    assert running[-1] >= true  # the running error overstates
    before = [full for _, r, full in result.history if r >= 3 * 4e-4]
    assert before
    assert np.isnan(before).all()


def test_plain_gradient_descent_is_far_behind():
    u, y = problem(1200)
    plain = EigenProConfig(target_mse=None, max_epochs=20, eigenvectors=0, batch_size=1200)
    slow = solve_eigenpro(u, y, plain, rng(), True)
    fast = solve_eigenpro(u, y, EigenProConfig(target_mse=None, max_epochs=20), rng(), True)
    assert slow.restarts == 0
    assert fast.train_mse < 0.01 * slow.train_mse


def test_fewer_points_than_the_subsample_and_tiny_problems():
    for n in (1, 2, 7, 50):
        u, y = problem(n, n_clusters=1)
        result = solve_eigenpro(u, y, EigenProConfig(target_mse=None, max_epochs=60), rng())
        assert result.train_mse <= 1e-3 * float(y.square().mean())


def test_defaults_memory_and_refusals():
    assert [default_subsample(n) for n in (10, 20_000, 100_000)] == [10, 2000, 4000]
    streamed, kept = eigenpro_memory(200_000, 20, 4, EigenProConfig())
    assert streamed < 6 * 2**30 < kept
    for change, message in (
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"subsample": 0}, "subsample=0"),
        ({"batch_size": -1}, "batch_size=-1"),
        ({"step_factor": 0.0}, "step_factor=0.0"),
    ):
        with pytest.raises(UserError, match=message):
            EigenProConfig(**change)
