"""Cells of kind "theorem2": risks of the kernel methods ("kernel") and of the network ("mlp") for one training set."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from monolib.cells import Cell, CellRecord, CellStore
from monolib.laws import Sample, theorem2_law
from monolib.provenance import provenance
from monolib.random_streams import generator
from monolib.theorem2.hermite import ALPHA
from monolib.theorem2.kernel_risk import kernel_risks
from monolib.theorem2.true_metric import regularised_metric
from monolib.theorem2.weight_decay import WeightDecayConfig, clipped_risk, train_with_decay

Share = Callable[[float], None]
STANDARD = "standard"  # the metric I_d


def theorem2_cell(task: str, n_clusters: int, n_train: int, n_test: int, seed: int, draw: int, **settings: Any) -> Cell:
    """Cell of one training set; `settings` are what its task reads. Raises ValueError for an unknown task."""
    if task not in _TASKS:
        raise ValueError(f"task={task!r}: must be one of {', '.join(_TASKS)}")
    size = {"n_clusters": n_clusters, "n_train": n_train, "n_test": n_test, "seed": seed, "draw": draw}
    return Cell("theorem2", {"task": task} | size | settings)


def stack_key(cell: Cell) -> str:
    """The computations do not share a call: every cell has its own key."""
    return json.dumps(cell.config, sort_keys=True)


def theorem2_work(cell: Cell) -> float:
    """Rough seconds of the cell."""
    c = cell.config
    if c["task"] == "kernel":
        n = c["n_train"]
        return (len(c["ratios"]) + 1) * (2e-11 * n**3 * len(c["ridges"]) + 5e-8 * n * (n + c["n_test"]))
    return c["n_steps"] * (4e-4 + 4e-11 * 6 * c["width"] * 2 * c["n_clusters"] * min(c["batch_size"], c["n_train"]))


def compute_theorem2_cells(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Compute and write the cells, one after the other; kernels on the CPU, networks on `device`."""
    for cell in cells:
        started = time.perf_counter()
        law = theorem2_law(cell.config["n_clusters"])
        index = cell.config["draw"]
        train = law.sample(cell.config["n_train"], generator(cell.config["seed"], "train", index))
        test = law.sample(cell.config["n_test"], generator(cell.config["seed"], "test", index))
        used = "cpu" if cell.config["task"] == "kernel" else device
        result = _TASKS[cell.config["task"]](cell.config, train, test, used, store.share_reporter(cell))
        store.write(cell, CellRecord(result, {}, provenance(used, time.perf_counter() - started)))


def _kernel(c: Mapping[str, Any], train: Sample, test: Sample, device: str, on_share: Share) -> dict[str, Any]:
    k = c["n_clusters"]
    metrics = {STANDARD: np.eye(2 * k)}
    metrics |= {f"{ratio:g}": regularised_metric(k, ratio * ALPHA / k) for ratio in c["ratios"]}
    risks: dict[str, Any] = {}
    for name, metric in metrics.items():
        rng = generator(c["seed"], "bandwidth", c["draw"])
        risks[name] = kernel_risks(metric, c["ridges"], train, test, rng)
        on_share(len(risks) / len(metrics))
    return {"risks": risks}


def _mlp(c: Mapping[str, Any], train: Sample, test: Sample, device: str, on_share: Share) -> dict[str, Any]:
    names = ("width", "decay", "learning_rate", "n_steps", "batch_size")
    config = WeightDecayConfig(**{name: c[name] for name in names}, seed=1000 * c["seed"] + c["draw"])
    network = train_with_decay(train.x, train.y, config, device, on_share)
    return {
        "risk": clipped_risk(network, test.x, test.y),
        "train_mse": float(np.mean(np.square(network(train.x) - train.y))),
        "path_norm": network.path_norm(),
        "frobenius": network.frobenius(),
    }


_TASKS: dict[str, Callable[[Mapping[str, Any], Sample, Sample, str, Share], dict[str, Any]]] = {
    "kernel": _kernel,
    "mlp": _mlp,
}
