"""What a group of cells costs on this machine: real training steps and small real kernel computations, timed.

Times are upper limits: networks are taken to train for `max_steps`, EigenPro for `max_epochs`. Probes are kept for the
life of the process, one per shape.
"""

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from monolib import kernel_cells, network_cells
from monolib.agop import agop
from monolib.cells import Cell
from monolib.eigenpro import default_subsample, eigenpro_memory
from monolib.errors import UserError
from monolib.exact_solver import exact_memory, solve_exact
from monolib.gradients import block_rows, predict
from monolib.kernels import KernelTiles, full_precision, gram, rows_product
from monolib.mixed_link_data import POOL_POINTS
from monolib.networks import NetworkShape
from monolib.random_streams import generator
from monolib.rfm import RFMConfig, require_fit
from monolib.training import NetworkStack, flushed_denormals
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData, TrainingRun

PROBE_SECONDS = 0.6  # how long a probe repeats what it times
PROBE_POINTS = {"cpu": 2048, "cuda": 16384}  # of the kernel probes, at most
NEVER = 10**9
COPIES = 3  # of drawn points in float64: the law's terms and their sum


@dataclass(frozen=True)
class Cost:
    """Of one group: `label` of what it is, `seconds` at most, `memory` in bytes, `problem` if it cannot run here."""

    label: str
    seconds: float
    memory: float
    problem: str = ""


def _seconds(run: Callable[[], object], device: str) -> float:
    """Seconds of one call, the mean over at least 3 and PROBE_SECONDS, after one to warm up."""

    def timed() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    run()
    count, start = 0, timed()
    while (now := timed()) - start < PROBE_SECONDS or count < 3:
        run()
        count += 1
    return (now - start) / count


# networks


def network_cost(cells: Sequence[Cell], device: str) -> Cost:
    """Cost of training one stack of networks: its steps, and the passes over the points that are evaluated."""
    config, n = network_cells.training_config(cells[0]), network_cells.n_train(cells[0])
    shape = NetworkShape(config.architecture, network_cells.cell_law(cells[0]).dim, config.width)
    batch = min(config.batch_size, n)
    step, point = _training_step(shape, batch, 1 if device == "cpu" else len(cells), device)
    seconds = 0.0
    for cell in cells:
        own = network_cells.training_config(cell)
        seconds += own.max_steps * step + math.ceil(own.max_steps / own.evaluate_every) * _evaluated(cell) * point
    label = f"{shape.architecture}, width {shape.width}, batch {batch}, d = {shape.dim}, {config.max_steps} steps"
    return Cost(f"{label} of {_duration(step)}", seconds, _network_memory(cells, shape, batch, device))


def _evaluated(cell: Cell) -> int:
    """Points that one evaluation passes through the network."""
    training = network_cells.n_train(cell) if network_cells.training_config(cell).select == "training" else 0
    return training + int(cell.config.get("sizes", {}).get("validation", 0))


@functools.cache
def _training_step(shape: NetworkShape, batch: int, stack: int, device: str) -> tuple[float, float]:
    """Seconds of a step per network of a stack, and seconds of an output per point."""
    rng = generator(0, "train")
    config = TrainingConfig(
        shape.architecture, shape.width, batch, 1e-3, NEVER, 0, evaluate_every=NEVER, select="training"
    )
    data = TrainingData(rng.standard_normal((8 * batch, shape.dim)), rng.standard_normal(8 * batch))
    with flushed_denormals():
        runs = [TrainingRun(replace(config, seed=seed), data, torch.device(device)) for seed in range(stack)]
        networks = NetworkStack(runs)
        schedule = networks.schedule(1)
        step = _seconds(lambda: networks.step(schedule[0]), device) / stack
        x = runs[0].x[None, :batch]
        return step, _seconds(lambda: predict(shape, networks.flat[:1], x), device) / batch


def _network_memory(cells: Sequence[Cell], shape: NetworkShape, batch: int, device: str) -> float:
    """Bytes: drawn points and their float32 copies, parameters with moments and buffers, one block of rows."""
    stack = len(cells)
    drawn = sum(cells[0].config["sizes"].values()) if "sizes" in cells[0].config else POOL_POINTS
    kept = network_cells.n_train(cells[0]) + _evaluated(cells[0])
    rows = block_rows(shape.width, 1 if device == "cpu" else stack, torch.device(device))
    workspace = 3 * 4 * min(rows, max(batch, kept)) * shape.width * (1 if device == "cpu" else stack)
    points = 8 * COPIES * drawn * shape.dim + stack * kept * (8 * shape.dim + 4 * (shape.dim + 2))
    return points + 9 * 4 * stack * shape.n_parameters + workspace


# kernels


def kernel_cost(cells: Sequence[Cell], device: str) -> Cost:
    """Cost of one kernel cell: Gram matrices or products over pairs (n²), factorisations (n³), AGOPs, test errors."""
    (cell,) = cells
    data, config = kernel_cells.cell_data(cell), kernel_cells.fit_config(cell, device)
    method, dim = cell.config["method"], data.law().dim
    if method == "curve":
        config = replace(config, n_updates=0, solver="eigenpro")
    parts = data.n_clusters if method == "oracle" else 1
    n = max(data.n_train // parts, 1)
    solver = "exact" if config.uses_exact(n) else f"EigenPro, {config.eigenpro.max_epochs} epochs"
    label = f"{method} kernel, n = {data.n_train}, {config.n_updates + 1} × {parts} fits of {n} points ({solver})"
    problem = ""
    try:
        keep = require_fit(n, dim, config)
    except UserError as error:
        keep, problem = False, str(error)
    tests = config.eigenpro.max_epochs if method == "curve" else config.n_updates + 1
    rates = _kernel_rates(_probe_points(n, device), dim, config.uses_exact(n) or config.dtype == "float64", device)
    seconds = parts * _fit_seconds(n, config, keep, rates) + tests * data.n_test * n * rates.product
    fit = exact_memory(n) if config.uses_exact(n) else eigenpro_memory(n, dim, _itemsize(config), config.eigenpro)[keep]
    return Cost(label, seconds, 8 * COPIES * POOL_POINTS * dim + 8 * data.n_train * 6 * dim + fit, problem)


def _itemsize(config: RFMConfig) -> int:
    return 4 if config.dtype == "float32" else 8


def _probe_points(n: int, device: str) -> int:
    """Points of the probe for a fit of n: a power of two, so that few probes serve many n."""
    return min(PROBE_POINTS[device], 2 ** max(int(math.log2(n)), 1))


@dataclass(frozen=True)
class _Rates:
    """Seconds of a pair of points in a Gram matrix, a product, a kept product and an AGOP; of a third power's unit in
    an exact solution and in an eigenproblem."""

    gram: float
    product: float
    kept: float
    gradient: float
    solve: float
    eigen: float


@functools.cache
def _kernel_rates(n: int, dim: int, double: bool, device: str) -> _Rates:
    dtype = torch.float64 if double else torch.float32
    rng = generator(0, "train")
    u = torch.from_numpy(rng.standard_normal((n, dim)) / dim**0.5).to(device)
    y, root = torch.from_numpy(rng.standard_normal(n)).to(device), torch.eye(dim, dtype=torch.float64, device=device)
    v, alpha = u.to(dtype), y.to(dtype)
    k = gram(u)
    kept = k.to(dtype)
    third = k[: max(n // 3, 1), : max(n // 3, 1)].clone()
    tiles = KernelTiles(v)
    products = {
        "gram": (lambda: gram(u, out=k), n**2),
        "kept": (lambda: kept @ alpha, n**2),
        "gradient": (lambda: agop(v, v.clone(), alpha, root, 1.0), n**2),
        "solve": (lambda: solve_exact(k, y), n**3),
        "eigen": (lambda: torch.linalg.eigh(third), len(third) ** 3),
        "product": (lambda: rows_product(tiles, (0, n), (0, n), alpha), n**2),
    }
    with full_precision():
        return _Rates(**{name: _seconds(run, device) / units for name, (run, units) in products.items()})


def _fit_seconds(n: int, config: RFMConfig, keep: bool, rates: _Rates) -> float:
    """All rounds of one RFM over n points."""
    rounds, pairs = config.n_updates + 1, float(n) ** 2
    if config.uses_exact(n):
        fit = pairs * rates.gram + pairs * n * rates.solve
    else:
        subsample = min(n, config.eigenpro.subsample or default_subsample(n))
        epochs = config.eigenpro.max_epochs * (2 if config.eigenpro.evaluate_every_epoch else 1) + 1  # with full errors
        passes = pairs * (rates.product + epochs * rates.kept if keep else epochs * rates.product)
        fit = passes + float(subsample) ** 2 * rates.gram + float(subsample) ** 3 * rates.eigen
    bandwidth = float(min(n, config.bandwidth_points)) ** 2 * rates.gram
    return rounds * (fit + bandwidth) + config.n_updates * min(n, config.agop_points) * n * rates.gradient


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def gated_cost(cells: Sequence[Cell], device: str) -> Cost:
    """Cost of gated local fits (one cell a group): that of as many oracle fits, for gates of equal size.

    The network is a cell of its own.
    """
    data, gates = cells[0].config["network"]["data"], cells[0].config["gates"]["n_gates"]
    likewise = Cell(
        "kernel", {"method": "oracle", "data": {**data, "n_clusters": gates}, "fit": cells[0].config["fit"]}
    )
    cost = kernel_cost([likewise], device)
    return replace(cost, label=f"gated, {cost.label}")
