"""The exact kernel fit against scikit-learn, and where the float32 factorisation gives up."""

import numpy as np
import pytest
import torch
from kernel_data import RANK_ONE, points, reference_gram
from sklearn.kernel_ridge import KernelRidge

from monolib.errors import UserError
from monolib.exact_solver import solve_exact


def problem(n=600, d=4, metric=None, seed=0, duplicates=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    if duplicates:
        x[-duplicates:] = x[:duplicates]
    k = reference_gram(x, x, np.eye(d) if metric is None else metric, 1.0)
    return points(k), points(np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(n))


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_solution_equals_scikit_learns_kernel_ridge(mixed, ridge):
    k, y = problem()
    before = k.clone()
    solution = solve_exact(k, y, ridge, mixed)
    reference = KernelRidge(kernel="precomputed", alpha=ridge).fit(k, y).dual_coef_
    assert np.linalg.norm(solution.coefficients.numpy() - reference) <= 1e-10 * np.linalg.norm(reference)
    assert solution.residual < 1e-12
    assert solution.method == ("float32 Cholesky, refined" if mixed else "float64 Cholesky")
    assert torch.equal(k, before)


@pytest.mark.parametrize(("metric", "duplicates"), [(None, 200), (RANK_ONE, 0), (RANK_ONE, 200)])
def test_singular_gram_matrices_are_solved_and_float32_alone_would_not_do(metric, duplicates):
    k, y = problem(metric=metric, duplicates=duplicates, n=1500)
    solution = solve_exact(k, y)
    shifted = k + 1e-6 * torch.eye(len(y), dtype=torch.float64)
    residual = float((shifted @ solution.coefficients - y).norm() / y.norm())
    assert residual <= 1e-8
    assert residual == pytest.approx(solution.residual, abs=1e-9)
    assert solution.jitter == 0.0
    single = torch.linalg.cholesky_ex(shifted.float())
    if int(single.info) == 0:  # a factor may come out; what it solves is far off
        alone = torch.cholesky_solve(y.float()[:, None], single.L)[:, 0].double()
        assert float((shifted @ alone - y).norm() / y.norm()) > 1e-6


def test_float64_takes_over_where_float32_fails():
    k, y = problem(n=500, duplicates=250)
    solution = solve_exact(k, y, ridge=1e-9)
    assert solution.method == "float64 Cholesky"
    assert solution.residual <= 1e-6


def test_a_matrix_that_is_not_positive_gets_a_recorded_jitter_or_an_error():
    k = torch.ones(3, 3, dtype=torch.float64)
    y = torch.ones(3, dtype=torch.float64)
    solution = solve_exact(k, y, ridge=0.0)
    assert solution.jitter > 0
    np.testing.assert_allclose(k @ solution.coefficients, y, rtol=1e-6)
    with pytest.raises(UserError, match="not positive definite even with jitter"):
        solve_exact(-torch.eye(3, dtype=torch.float64), y)


def test_zero_labels_and_bad_input():
    k, y = problem(n=20)
    assert not solve_exact(k, torch.zeros_like(y)).coefficients.any()
    with pytest.raises(UserError, match="float64"):
        solve_exact(k.float(), y)
    with pytest.raises(UserError, match=r"gram\.shape"):
        solve_exact(k[:5], y)
    with pytest.raises(UserError, match=r"ridge=-1"):
        solve_exact(k, y, -1)
    k[3, 4] = float("inf")
    with pytest.raises(UserError, match="finite"):
        solve_exact(k, y)
