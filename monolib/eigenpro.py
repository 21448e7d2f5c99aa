"""EigenPro 2: preconditioned stochastic gradient descent for kernel least squares (A.2: 11,000 points or more).

The centers are all training points, so that the projection step of EigenPro 3 and 4 has nothing to do. With a
subsample S of s points and K_S/s = V Λ Vᵀ, a batch b of residuals g = K(b, X)α − y_b changes the coefficients by

    α_b −= η g,      α_S += η Ṽ D Ṽᵀ K(S, b) g,      Ṽ = V/√s,   D_i = (1 − (λ_q/λ_i)^0.95)/λ_i,  i < q

which makes the q largest eigenvalues of the operator alike. η = 1/β up to the critical batch ⌊β/λ̂⌋ + 1, and
0.99 · 2/(β + (m − 1)λ̂) for a batch of m beyond it, with β = max k(x, x) = 1 and λ̂ = λ_1^0.05 λ_q^0.95.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from monolib.errors import UserError
from monolib.kernels import KernelTiles, full_precision, gram, kernel_product, rows_product

EXPONENT = 0.95  # how far the leading eigenvalues are damped, as the authors' own code has it
FEWEST_EIGENVECTORS = 5
RUNNING_MARGIN = 3.0  # the running MSE overstates the full one, at most by about 2: from 3 times the target on, look
MAX_RESTARTS = 8


@dataclass(frozen=True)
class EigenProConfig:
    """Settings of an EigenPro fit; a None is chosen by the size of the problem.

    target_mse: stop at a full training MSE ≤ this (None: only at the limit).  max_epochs: the limit.
    subsample: s; None is 2,000 below 100,000 points and 4,000 from there on.
    batch_size: None is the critical batch.  eigenvectors: q; 0 is plain stochastic gradient descent.
    step_factor: a factor on the step η; 2.2 diverges, and the guard then halves it.
    fixed_step: take η = 1/β whatever the batch (what goes wrong in other codes; for comparison only).
    evaluate_every_epoch: a full pass after every epoch, for convergence curves.
    """

    target_mse: float | None = 4e-4
    max_epochs: int = 50
    subsample: int | None = None
    batch_size: int | None = None
    eigenvectors: int | None = None
    step_factor: float = 1.0
    fixed_step: bool = False
    evaluate_every_epoch: bool = False

    def __post_init__(self) -> None:
        if self.max_epochs < 1:
            raise UserError(f"max_epochs={self.max_epochs}: must be an integer ≥ 1")
        for name in ("subsample", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name}={value}: must be an integer ≥ 1, or None")
        if not self.step_factor > 0:
            raise UserError(f"step_factor={self.step_factor}: must be a number > 0")


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Eigenpairs of K_S/s: `eigenvalues` λ_1..λ_q (λ_q last) and `directions` Ṽ D^{1/2}, (s, q − 1); critical batch."""

    eigenvalues: Tensor
    directions: Tensor

    @property
    def damped_eigenvalue(self) -> float:
        """λ̂ = λ_1^0.05 λ_q^0.95, the largest eigenvalue after preconditioning."""
        first, last = float(self.eigenvalues[0]), float(self.eigenvalues[-1])
        return first ** (1 - EXPONENT) * last**EXPONENT

    @property
    def critical_batch(self) -> int:
        """m* = ⌊β/λ̂⌋ + 1."""
        return int(1.0 / self.damped_eigenvalue) + 1

    def step(self, batch: int) -> float:
        """η for a batch of `batch` points."""
        if batch <= self.critical_batch:
            return 1.0
        return 0.99 * 2.0 / (1.0 + (batch - 1) * self.damped_eigenvalue)


def preconditioner(u: Tensor, eigenvectors: int | None = None) -> Preconditioner:
    """Preconditioner from the mapped subsample u (s, d), in the dtype of u; eigenpairs in float64.

    eigenvectors: q; None is q = max(#{i : λ_i^(−0.95) < s} − 1, 5), for which the critical batch is about s.
    With q = 0 nothing is preconditioned (λ̂ = λ_1).
    """
    values, vectors = torch.linalg.eigh(gram(u).double())
    values, vectors = values.flip(0).clamp_min_(1e-12 * len(u)) / len(u), vectors.flip(1)
    q = eigenvectors
    if q is None:
        q = max(int((values**-EXPONENT < len(u)).sum()) - 1, FEWEST_EIGENVECTORS)
    q = min(q, len(u))
    if q == 0:
        return Preconditioner(values[:1], u.new_empty(len(u), 0))
    damping = (1.0 - (values[q - 1] / values[: q - 1]) ** EXPONENT) / values[: q - 1]
    directions = vectors[:, : q - 1] * (damping / len(u)).sqrt()
    return Preconditioner(values[:q], directions.to(u.dtype))


@dataclass(frozen=True, eq=False)
class EigenProResult:
    """`coefficients` (n,) in the dtype of the points; the rest is for the report.

    history: (epoch, running MSE, full MSE or nan).  stop_reason: "target", "epoch limit" or "diverged".
    """

    coefficients: Tensor
    stop_reason: str
    epochs: int
    train_mse: float
    history: list[tuple[int, float, float]]
    batch: int
    critical_batch: int
    eigenvectors: int
    restarts: int
    kept_gram: bool


def default_subsample(n: int) -> int:
    """s for n training points."""
    return min(n, 2000 if n < 100_000 else 4000)


def eigenpro_memory(n: int, dim: int, itemsize: int, config: EigenProConfig) -> tuple[int, int]:
    """Bytes of a fit without and with the kept Gram matrix: factors, eigenproblem or batch block, and K."""
    s = min(n, config.subsample or default_subsample(n))
    batch = min(n, config.batch_size or s)
    without = 6 * n * (dim + 2) * itemsize + max(5 * 8 * s * s, 2 * batch * s * itemsize) + 2**26
    return without, without + n * n * itemsize


class EigenProFit:
    """State of one fit: the points in random order (the subsample first), batches as ranges, the coefficients."""

    def __init__(
        self, u: Tensor, y: Tensor, config: EigenProConfig, rng: np.random.Generator, keep_gram: bool = False
    ) -> None:
        self.config, self.rng, self.order = config, rng, torch.from_numpy(rng.permutation(len(u))).to(u.device)
        self.u, self.y = u[self.order].contiguous(), y[self.order].to(u.dtype)
        self.subsample = min(len(u), config.subsample or default_subsample(len(u)))
        self.preconditioner = preconditioner(self.u[: self.subsample], config.eigenvectors)
        self.batch = min(len(u), config.batch_size or self.preconditioner.critical_batch)
        self.tiles = KernelTiles(self.u)
        self.gram = self._kept_gram() if keep_gram else None
        self.alpha = torch.zeros_like(self.y)

    def _kept_gram(self) -> Tensor:
        """K from the same tiles that products would use, so that keeping it changes time and not results."""
        out = self.u.new_empty(len(self.u), len(self.u))
        with full_precision():
            for rows in self.tiles.ranges(0, len(self.u)):
                for columns in self.tiles.ranges(0, len(self.u)):
                    out[rows[0] : rows[1], columns[0] : columns[1]] = self.tiles.tile(rows, columns)
        return out

    def batches(self) -> list[tuple[int, int]]:
        """Ranges of nearly equal length, none longer than the batch size, in a new random order."""
        count = math.ceil(len(self.u) / self.batch)
        edges = np.linspace(0, len(self.u), count + 1).round().astype(int)
        return [(int(edges[i]), int(edges[i + 1])) for i in self.rng.permutation(count)]

    def epoch(self, step_factor: float) -> float:
        """Change α by one pass over all points; the mean of the squared residuals met on the way."""
        total = torch.zeros((), dtype=torch.float64, device=self.u.device)
        with full_precision():
            for rows in self.batches():
                total += self._batch(rows, step_factor)
        return float(total) / len(self.u)

    def _batch(self, rows: tuple[int, int], step_factor: float) -> Tensor:
        """One step; the sum of squared residuals of the batch before it."""
        s = self.subsample
        if self.gram is not None:
            block = self.gram[rows[0] : rows[1], :s]
            output = self.gram[rows[0] : rows[1]] @ self.alpha
        else:
            block = self.tiles.tile(rows, (0, s), out=self.u.new_empty(rows[1] - rows[0], s))
            output = block @ self.alpha[:s] + rows_product(self.tiles, rows, (s, len(self.u)), self.alpha)
        residual = output - self.y[rows[0] : rows[1]]
        own = 1.0 if self.config.fixed_step else self.preconditioner.step(rows[1] - rows[0])
        step = step_factor * own
        self.alpha[rows[0] : rows[1]].sub_(residual, alpha=step)
        directions = self.preconditioner.directions
        self.alpha[:s].add_(directions @ (directions.T @ (block.T @ residual)), alpha=step)
        return residual.double().square().sum()

    def full_mse(self) -> float:
        """Training MSE of the current coefficients over all points."""
        output = self.gram @ self.alpha if self.gram is not None else kernel_product(self.u, None, self.alpha)
        return float((output - self.y).double().square().mean())

    def coefficients(self) -> Tensor:
        """α in the caller's order of the points."""
        out = torch.empty_like(self.alpha)
        out[self.order] = self.alpha
        return out


def solve_eigenpro(
    u: Tensor,
    y: Tensor,
    config: EigenProConfig,
    rng: np.random.Generator,
    keep_gram: bool = False,
    start: Tensor | None = None,
    progress: bool = False,
    on_epoch: Callable[[int, Tensor], None] | None = None,
) -> EigenProResult:
    """Fit K(u, u)α ≈ y by EigenPro 2, without a ridge, in the dtype of the mapped points u (n, d).

    rng: draws the subsample and the order of the batches.  keep_gram: hold K, so that epochs are matrix products.
    start: coefficients to start from (zero by default).  progress: a bar on stderr.
    on_epoch: called with the epoch (from 1) and the coefficients after each.
    Guard: an epoch whose running MSE is not finite, or more than twice the previous one's (the first: twice the mean
    square of the residuals at the start), halves the step and starts over, at most 8 times; then stop_reason is
    "diverged" and the coefficients are the start's.
    """
    fit = EigenProFit(u, y, config, rng, keep_gram)
    first = fit.alpha.clone() if start is None else start.to(u.dtype)[fit.order]
    fit.alpha.copy_(first)
    scale = fit.full_mse() if start is not None else float(fit.y.double().square().mean())
    factor, restarts = config.step_factor, 0
    history: list[tuple[int, float, float]] = []
    bar = tqdm(total=config.max_epochs, desc="EigenPro", unit="epoch", file=sys.stderr, disable=not progress)
    with bar:
        while not (history and _ended(history, config)):
            running = fit.epoch(factor)
            reference = history[-1][1] if history else max(scale, 1e-12)
            if not running <= 2.0 * max(reference, 1e-12):
                if restarts == MAX_RESTARTS:
                    fit.alpha.copy_(first)
                    return _result(fit, "diverged", history, restarts)
                restarts, factor, history = restarts + 1, 0.5 * factor, []
                fit.alpha.copy_(first)
                bar.reset()
                continue
            history.append((len(history) + 1, running, _full_mse_if_due(fit, running, len(history) + 1)))
            bar.set_postfix(mse=f"{running:.2e}", restarts=restarts, refresh=False)
            bar.update()
            if on_epoch is not None:
                on_epoch(len(history), fit.coefficients())
    reached = config.target_mse is not None and history[-1][2] <= config.target_mse
    return _result(fit, "target" if reached else "epoch limit", history, restarts)


def _full_mse_if_due(fit: EigenProFit, running: float, epoch: int) -> float:
    config = fit.config
    near = config.target_mse is not None and running < RUNNING_MARGIN * config.target_mse
    return fit.full_mse() if near or config.evaluate_every_epoch or epoch == config.max_epochs else math.nan


def _ended(history: list[tuple[int, float, float]], config: EigenProConfig) -> bool:
    epoch, _, full = history[-1]
    return epoch >= config.max_epochs or (config.target_mse is not None and full <= config.target_mse)


def _result(
    fit: EigenProFit, stop_reason: str, history: list[tuple[int, float, float]], restarts: int
) -> EigenProResult:
    train_mse = history[-1][2] if history and stop_reason != "diverged" else fit.full_mse()
    return EigenProResult(
        coefficients=fit.coefficients(),
        stop_reason=stop_reason,
        epochs=len(history),
        train_mse=train_mse,
        history=history,
        batch=fit.batch,
        critical_batch=fit.preconditioner.critical_batch,
        eigenvectors=len(fit.preconditioner.eigenvalues),
        restarts=restarts,
        kept_gram=fit.gram is not None,
    )
