"""Recursive Feature Machines (A.2): kernel fit → AGOP → metric → bandwidth → kernel fit, all iterations kept.

    M_0 = I,   f_t = kernel fit with k_t(x, z) = exp(−‖M_t^{1/2}(x − z)‖/h_t),   M_{t+1} = normalised AGOP of f_t

Iteration 0 is the Laplace kernel. The points are centred once; that changes no distance and keeps the digits.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from monolib.agop import NORMALIZATIONS, agop, sample_indices, updated_metric
from monolib.bandwidth import Bandwidth, median_bandwidth
from monolib.eigenpro import EigenProConfig, eigenpro_memory, solve_eigenpro
from monolib.errors import UserError
from monolib.exact_solver import RIDGE, exact_memory, solve_exact
from monolib.kernels import gram, kernel_product, mapped, metric_root
from monolib.memory import memory_budget, require_memory
from monolib.random_streams import generator

EXACT_BELOW = 11_000


@dataclass(frozen=True)
class RFMConfig:
    """Settings of an RFM fit; the defaults are the paper's where it states them (A.2).

    n_updates: metric updates; 0 is the Laplace kernel.  ridge: of the exact solver.  solver: "auto" is "exact" below
    `exact_below` points and "eigenpro" from there on.  bandwidth: None is the within-cluster median.
    bandwidth_points: points per cluster for it.  agop_points: points that the AGOP averages over, at most.
    normalization: of the AGOP, see `agop.updated_metric`.  dtype: of the EigenPro fits; exact ones are float64.
    device: "cpu" or "cuda".  memory_gib: memory that the fit may use (None: 80 % of what is free).
    """

    n_updates: int = 3
    ridge: float = RIDGE
    solver: str = "auto"
    exact_below: int = EXACT_BELOW
    bandwidth: float | None = None
    bandwidth_points: int = 1000
    agop_points: int = 20_000
    normalization: str = "trace"
    eigenpro: EigenProConfig = field(default_factory=EigenProConfig)
    dtype: str = "float32"
    device: str = "cpu"
    memory_gib: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_updates < 0:
            raise UserError(f"n_updates={self.n_updates}: must be an integer ≥ 0")
        choices = {"solver": ("auto", "exact", "eigenpro"), "dtype": ("float32", "float64")}
        for name, allowed in (choices | {"normalization": NORMALIZATIONS, "device": ("cpu", "cuda")}).items():
            if getattr(self, name) not in allowed:
                raise UserError(f"{name}={getattr(self, name)!r}: must be one of {', '.join(allowed)}")
        if not self.ridge >= 0:
            raise UserError(f"ridge={self.ridge}: must be a number ≥ 0")
        if self.bandwidth is not None and not 0 < self.bandwidth < float("inf"):
            raise UserError(f"bandwidth={self.bandwidth}: must be a number > 0, or None for the median")

    def uses_exact(self, n: int) -> bool:
        """Whether n points are fitted exactly."""
        return self.solver == "exact" or (self.solver == "auto" and n < self.exact_below)


@dataclass(frozen=True)
class FitReport:
    """What one kernel fit did.

    solver: "exact" or "eigenpro".  stop_reason: "solved", "target", "epoch limit", "diverged".  steps: refinements or
    epochs.  train_mse: over all training points.  residual: ‖(K + ridge I)α − y‖/‖y‖ (EigenPro: √(MSE · n)/‖y‖).
    bandwidth: h; bandwidth_clusters: how many clusters it is a median of.  jitter: added to the diagonal, if any.
    metric: "identity", "updated", or "kept" when the AGOP was zero or not finite.  detail: the solver's own facts.
    """

    solver: str
    stop_reason: str
    steps: int
    train_mse: float
    residual: float
    bandwidth: float
    bandwidth_clusters: int
    jitter: float
    metric: str
    seconds: float
    detail: dict[str, Any]

    def as_dict(self, with_seconds: bool = True) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        values = asdict(self)
        if not with_seconds:
            del values["seconds"]
        return values


@dataclass(frozen=True, eq=False)
class RFMIteration:
    """One fit of the sequence: `metric` M (d, d) float64, its root, `bandwidth` h, `coefficients` α (n,), report."""

    metric: Tensor
    root: Tensor
    bandwidth: float
    coefficients: Tensor
    report: FitReport


@dataclass(frozen=True, eq=False)
class RFMFit:
    """All iterations of a fit over the training points `x` (n, d) float64, with their mean `center`."""

    x: Tensor
    center: Tensor
    iterations: list[RFMIteration]

    def predict(self, x: np.ndarray, iteration: int = -1) -> np.ndarray:
        """f_t(x) (m,) float64 for x (m, d), in the precision of the fit; iteration −1 is the last one."""
        fit = self.iterations[iteration]
        dtype = fit.coefficients.dtype
        at = torch.tensor(np.ascontiguousarray(x, dtype=float), device=self.x.device)
        u, z = (mapped(p, fit.root, self.center, fit.bandwidth, dtype) for p in (at, self.x))
        return kernel_product(u, z, fit.coefficients).double().cpu().numpy()

    def test_mse(self, x: np.ndarray, y: np.ndarray) -> list[float]:
        """Mean squared error of every iteration on (x, y)."""
        return [float(np.mean(np.square(self.predict(x, t) - y))) for t in range(len(self.iterations))]


def smallest_test_mse_envelope(test_mse: list[float]) -> float:
    """Smallest *test* error over the iterations: what the paper displays for the global RFM (A.2).

    It selects on the test set, so it is an optimistic diagnostic and no predictor's error.
    """
    return min(test_mse)


def fit_rfm(
    x: np.ndarray,
    y: np.ndarray,
    config: RFMConfig,
    cluster: np.ndarray | None = None,
    progress: bool = False,
    on_share: Callable[[float], None] | None = None,
) -> RFMFit:
    """Fit an RFM to x (n, d), y (n,) or (n, 1) (A.2, Eq. 7).

    cluster: cluster numbers (n,) for the bandwidth alone; None takes all points as one cluster.
    progress: bars on stderr.  on_share: called with the share of the fits done.
    Deterministic on a CPU for a given `config.seed` (and `memory_gib`, which decides whether EigenPro keeps K; without
    it the sums are only rounded otherwise).
    Raises UserError for bad shapes, NaN or infinite values, and, before it starts, for a fit that would not fit into
    memory.
    """
    points, labels = _checked(x, y, config.device)
    keep_gram = require_fit(len(points), points.shape[1], config)
    center = points.mean(0)
    metric, kind = torch.eye(points.shape[1], dtype=torch.float64, device=points.device), "identity"
    iterations: list[RFMIteration] = []
    rounds, exact = range(config.n_updates + 1), config.uses_exact(len(points))
    memory = points.new_empty(len(points), len(points)) if exact else None  # one Gram matrix for all rounds
    for t in tqdm(rounds, desc="RFM", unit="fit", file=sys.stderr, disable=not progress):
        started = time.perf_counter()
        root = metric_root(metric)
        h = bandwidth_of(points @ root, cluster, config, t)
        fitted = _fit_once(points, labels, center, root, h, config, t, memory, keep_gram, progress)
        report = replace(fitted[1], metric=kind, seconds=time.perf_counter() - started)
        iterations.append(RFMIteration(metric, root, h.value, fitted[0], report))
        if on_share is not None:
            on_share(len(iterations) / len(rounds))
        if t < config.n_updates:
            new = _next_metric(points, center, iterations[-1], config, t)
            metric, kind = (metric, "kept") if new is None else (new, "updated")
    return RFMFit(points, center, iterations)


def require_fit(n: int, dim: int, config: RFMConfig) -> bool:
    """Refuse a fit of n points that would not fit into memory; else whether EigenPro can keep its Gram matrix."""
    budget = memory_budget(config.device, config.memory_gib)
    data = 8.0 * n * 6 * dim
    if config.uses_exact(n):
        require_memory(data + exact_memory(n), budget, f"an exact kernel fit of n={n} points")
        return False
    streamed, kept = eigenpro_memory(n, dim, 4 if config.dtype == "float32" else 8, config.eigenpro)
    require_memory(data + streamed, budget, f"an EigenPro fit of n={n} points")
    return data + kept <= budget


def _checked(x: np.ndarray, y: np.ndarray, device: str) -> tuple[Tensor, Tensor]:
    """Points and labels as float64 tensors on the device."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 1:
        raise UserError(f"x.shape={x.shape}: must be (n, d) with n, d ≥ 1")
    if y.shape not in ((len(x),), (len(x), 1)):
        raise UserError(f"y.shape={y.shape}: must be (n,) or (n, 1) with n={len(x)}")
    for name, values in (("x", x), ("y", y)):
        if not np.isfinite(values).all():
            raise UserError(f"{name}: contains NaN or infinite values")
    return torch.tensor(np.ascontiguousarray(x), device=device), torch.tensor(y.ravel(), device=device)


def bandwidth_of(z: Tensor, cluster: np.ndarray | None, config: RFMConfig, t: int = 0) -> Bandwidth:
    """h of iteration t for the transformed points z (n, d): the configured one, or the within-cluster median."""
    if config.bandwidth is not None:
        return Bandwidth(config.bandwidth, 0)
    return median_bandwidth(z, cluster, generator(config.seed, "bandwidth", t), config.bandwidth_points)


def _fit_once(
    points: Tensor,
    labels: Tensor,
    center: Tensor,
    root: Tensor,
    h: Bandwidth,
    config: RFMConfig,
    t: int,
    memory: Tensor | None,
    keep_gram: bool,
    progress: bool,
) -> tuple[Tensor, FitReport]:
    """Coefficients of one kernel fit, and its report without time and metric."""
    n, scale = len(labels), max(float(labels.norm()), torch.finfo(torch.float64).tiny)
    if config.uses_exact(n):
        k = gram(mapped(points, root, center, h.value, torch.float64), out=memory)
        exact = solve_exact(k, labels, config.ridge)
        mse = float((k @ exact.coefficients - labels).square().mean())
        facts = ("exact", "solved", exact.refinements, mse, exact.residual, h.value, h.clusters, exact.jitter)
        return exact.coefficients, FitReport(*facts, "", 0.0, {"method": exact.method})
    u = mapped(points, root, center, h.value, getattr(torch, config.dtype))
    rng = generator(config.seed, "eigenpro", t)
    result = solve_eigenpro(u, labels, config.eigenpro, rng, keep_gram, progress=progress)
    residual = (result.train_mse * n) ** 0.5 / scale
    names = ("batch", "critical_batch", "eigenvectors", "restarts")
    detail = {name: getattr(result, name) for name in names} | {"history": result.history}
    facts = ("eigenpro", result.stop_reason, result.epochs, result.train_mse, residual, h.value, h.clusters, 0.0)
    return result.coefficients, FitReport(*facts, "", 0.0, detail)


def _next_metric(points: Tensor, center: Tensor, fit: RFMIteration, config: RFMConfig, t: int) -> Tensor | None:
    chosen = sample_indices(len(points), config.agop_points, generator(config.seed, "agop", t))
    u = mapped(points, fit.root, center, fit.bandwidth, fit.coefficients.dtype)
    at = u if len(chosen) == len(u) else u[torch.from_numpy(chosen).to(u.device)]
    g = agop(at, u, fit.coefficients, fit.root, fit.bandwidth)
    return updated_metric(g, config.normalization)
