"""The exact kernel fit (A.2: fewer than 11,000 points): (K + ridge I)α = y to float64 accuracy.

K is factored in float32, and the solution refined with float64 residuals until it is as good as a float64 Cholesky
solution (the criterion of LAPACK's dsposv); where float32 is not enough (duplicates, nearly singular metrics), the
float64 factorisation takes over, and the result says so.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from monolib.errors import UserError

RIDGE = 1e-6
JITTERS = (0.0, 1e-10, 1e-8, 1e-6)  # added to the diagonal, which is 1, when a factorisation fails
MAX_REFINEMENTS = 30  # as dsposv


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """`coefficients` α (n,) float64; `residual` ‖(K + (ridge + jitter)I)α − y‖/‖y‖; how it was found."""

    coefficients: Tensor
    residual: float
    method: str
    refinements: int
    jitter: float


def exact_memory(n: int) -> int:
    """Bytes of an exact fit of n points: K in float64, and its factor (float64, or float32 with its source)."""
    return 16 * n * n


def solve_exact(gram: Tensor, y: Tensor, ridge: float = RIDGE, mixed: bool = True) -> ExactSolution:
    """Solve (K + ridge I)α = y for K = `gram` (n, n) float64 and y (n,) float64; K is left as it was.

    mixed: try the float32 factorisation first.
    A float64 factorisation that fails is tried again with jitter 1e-10, 1e-8, 1e-6 on the diagonal, recorded in the
    solution. Raises UserError when K, y are not float64 or not finite, for ridge < 0, and when all attempts fail.
    """
    _check(gram, y, ridge)
    if not y.any():
        return ExactSolution(torch.zeros_like(y), 0.0, "zero labels", 0, 0.0)
    diagonal = gram.diagonal().clone()
    try:
        gram.diagonal().add_(ridge)
        solution = _solve_mixed(gram, y) if mixed else None
        for jitter in JITTERS if solution is None else ():
            gram.diagonal().copy_(diagonal + (ridge + jitter))
            solution = _solve_float64(gram, y, jitter)
            if solution is not None:
                break
    finally:
        gram.diagonal().copy_(diagonal)
    if solution is None:
        raise UserError(f"ridge={ridge}: K + ridge I is not positive definite even with jitter {JITTERS[-1]}; raise it")
    return solution


def _check(gram: Tensor, y: Tensor, ridge: float) -> None:
    if gram.dtype != torch.float64 or y.dtype != torch.float64:
        raise UserError(f"gram and y: are {gram.dtype} and {y.dtype}, must be float64")
    if gram.shape != (len(y), len(y)):
        raise UserError(f"gram.shape={tuple(gram.shape)}: must be (n, n) for the n={len(y)} labels")
    if not ridge >= 0:
        raise UserError(f"ridge={ridge}: must be a number ≥ 0")
    if not torch.isfinite(gram.sum() + y.sum()):  # a sum is finite only if all entries are; isfinite() is slow
        raise UserError("gram and y: must be finite")


def _solve_mixed(gram: Tensor, y: Tensor) -> ExactSolution | None:
    """Float32 factor and float64 refinement; None when the factor fails or the criterion is not met.

    Criterion of dsposv: max|y − Kα| ≤ √n ε max|α| ‖K‖_∞, ε the float64 spacing at 1. Refinement goes on to a hundredth
    of that as long as it still halves the residual.
    """
    factor, info = torch.linalg.cholesky_ex(gram.float())
    if int(info) != 0 or not torch.isfinite(factor.diagonal()).all():
        return None
    norm = float(gram.sum(1).max())  # the entries of K are not negative
    bound = len(y) ** 0.5 * torch.finfo(torch.float64).eps * norm
    alpha, residual, best = torch.zeros_like(y), y.clone(), float(y.abs().max())
    count = 0
    while count < MAX_REFINEMENTS:
        count += 1
        scale = residual.abs().max()
        half = torch.linalg.solve_triangular(factor, (residual / scale).float().unsqueeze(1), upper=False)
        step = torch.linalg.solve_triangular(factor.mT, half, upper=True).squeeze(1).double()
        trial = alpha + scale * step
        trial_residual = torch.addmv(y, gram, trial, alpha=-1.0)
        size = float(trial_residual.abs().max())
        if not size < best:
            break
        halved, best = size < 0.5 * best, size
        alpha, residual = trial, trial_residual
        if not halved or size <= 1e-2 * bound * float(alpha.abs().max()):
            break
    if not best <= bound * float(alpha.abs().max()):
        return None
    return ExactSolution(alpha, float(residual.norm() / y.norm()), "float32 Cholesky, refined", count, 0.0)


def _solve_float64(gram: Tensor, y: Tensor, jitter: float) -> ExactSolution | None:
    factor, info = torch.linalg.cholesky_ex(gram)
    if int(info) != 0:
        return None
    half = torch.linalg.solve_triangular(factor, y.unsqueeze(1), upper=False)
    alpha = torch.linalg.solve_triangular(factor.mT, half, upper=True).squeeze(1)
    if not torch.isfinite(alpha).all():
        return None
    residual = torch.addmv(y, gram, alpha, alpha=-1.0)
    return ExactSolution(alpha, float(residual.norm() / y.norm()), "float64 Cholesky", 0, jitter)
