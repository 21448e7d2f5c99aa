"""Cells of kind "theorem1": the longer computations of the page, each found again by its configuration.

Tasks: "ascent" (ends of ascents), "times" (how long neurons take), "tracking" (network against single neurons, for one
ε), "theorem" (the network until all neurons have specialised), "sgd" (SGD on samples against the flow).
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from monolib.cells import Cell, CellRecord, CellStore
from monolib.links import FloatArray
from monolib.provenance import provenance
from monolib.random_streams import generator
from monolib.theorem1.ascent import ascend, classify
from monolib.theorem1.correlation import random_directions
from monolib.theorem1.network_flow import FlowPath, network_flow, tracking_error
from monolib.theorem1.sgd import train_by_sgd
from monolib.theorem1.teacher_flow import specialisation_time

Outcome = tuple[dict[str, Any], dict[str, np.ndarray]]
Share = Callable[[float], None]
N_TIMES = 101  # at which two flows are compared


def theorem1_cell(task: str, n_clusters: int, separation: float, seed: int, **settings: Any) -> Cell:
    """Cell of one task; `settings` are what its function reads. Raises ValueError for an unknown task."""
    if task not in _TASKS:
        raise ValueError(f"task={task!r}: must be one of {', '.join(_TASKS)}")
    shared = {"task": task, "n_clusters": n_clusters, "separation": separation, "seed": seed}
    return Cell("theorem1", shared | settings)


def starts(config: Mapping[str, Any], count: int, index: int = 0) -> FloatArray:
    """The first `count` random directions ω⁰ of the cell's K and seed, (count, 2K)."""
    return random_directions(count, config["n_clusters"], generator(config["seed"], "initialisation", index))


def stack_key(cell: Cell) -> str:
    """The computations do not share a call: every cell has its own key."""
    return json.dumps(cell.config, sort_keys=True)


def theorem1_work(cell: Cell) -> float:
    """Rough seconds of the cell."""
    c = cell.config
    costs: dict[str, Callable[[], float]] = {
        "ascent": lambda: 1e-3 * c["count"] * c["n_clusters"] * max(c["separation"], 4.0) / 4.0,
        "times": lambda: 0.02 * c["count"],
        "tracking": lambda: 2e-3 * c["width"] ** 2 * c["n_clusters"],
        "theorem": lambda: 0.1 * c["width"] ** 2,
        "sgd": lambda: 1e-7 * c["batch"] * c["n_steps"] * c["width"],
    }
    return costs[c["task"]]()


def compute_theorem1_cells(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Compute and write the cells, one after the other (on a CPU: the integrators are scipy's)."""
    for cell in cells:
        started = time.perf_counter()
        result, arrays = _TASKS[cell.config["task"]](cell.config, store.share_reporter(cell))
        store.write(cell, CellRecord(result, arrays, provenance("cpu", time.perf_counter() - started)))


def _ascent(config: Mapping[str, Any], on_share: Share) -> Outcome:
    start = starts(config, config["count"], config["index"])
    ends = ascend(start, config["separation"])
    rho = ends.omega[np.arange(len(start)), config["n_clusters"] + ends.cluster]
    off = np.sqrt(np.maximum(np.square(ends.omega).sum(1) - np.square(rho), 0.0))
    names = ("cluster", "orientation", "sign", "distance")
    return {}, {name: getattr(ends, name) for name in names} | {"start": start, "off": off}


def _times(config: Mapping[str, Any], on_share: Share) -> Outcome:
    found = []
    for j, omega in enumerate(starts(config, config["count"])):
        found.append(specialisation_time(omega, config["separation"], config["delta"]))
        on_share((j + 1) / config["count"])
    return {}, {"time": np.array(found)}


def _tracking(config: Mapping[str, Any], on_share: Share) -> Outcome:
    start = starts(config, 1 if config["copies"] else config["width"])
    start = np.repeat(start, config["width"], axis=0) if config["copies"] else start
    times = np.linspace(0.0, config["time"], N_TIMES)
    alone = network_flow(start, config["separation"], 0.0, times)
    network = network_flow(start, config["separation"], config["epsilon"], times, on_share=on_share)
    result = {"error": tracking_error(network, alone), "invariant": network.invariant_error()}
    return result | {"largest_amplitude": float(np.abs(network.amplitude).max())}, {}


def _theorem(config: Mapping[str, Any], on_share: Share) -> Outcome:
    start, separation = starts(config, config["width"]), config["separation"]
    needed = max(specialisation_time(omega, separation, config["delta"] / 2) for omega in start)
    times = np.linspace(0.0, needed, N_TIMES)
    alone = network_flow(start, separation, 0.0, times)
    network = network_flow(start, separation, config["epsilon"], times, on_share=on_share)
    chosen = classify(alone.directions[-1], np.sign(alone.readout[-1]), separation)
    target = np.zeros_like(start)
    target[np.arange(len(start)), config["n_clusters"] + chosen.cluster] = chosen.orientation
    distances = np.linalg.norm(network.directions[-1] - target, axis=1)
    result = {"time": needed, "error": tracking_error(network, alone), "invariant": network.invariant_error()}
    result["largest_amplitude"] = float(np.abs(alone.amplitude).max())
    return result, {"distance": distances, "cluster": chosen.cluster}


def _sgd(config: Mapping[str, Any], on_share: Share) -> Outcome:
    start = starts(config, config["width"])
    arguments = (start, config["separation"], config["epsilon"])
    rng = generator(config["seed"], "batches")
    kept = min(config["n_steps"], N_TIMES - 1)
    sgd = train_by_sgd(*arguments, config["step"], config["batch"], config["n_steps"], kept, rng, on_share)
    flow = network_flow(*arguments, sgd.times)
    drift = np.linalg.norm(sgd.directions - flow.directions, axis=-1)
    return {}, {"times": sgd.times, "drift": drift, "sgd": _alignment(sgd), "flow": _alignment(flow)}


def _alignment(path: FlowPath) -> FloatArray:
    """Largest |ρ_c| of each neuron at each time, (T, m)."""
    return np.abs(path.directions[..., path.directions.shape[-1] // 2 :]).max(-1)


_TASKS: dict[str, Callable[[Mapping[str, Any], Share], Outcome]] = {
    "ascent": _ascent,
    "times": _times,
    "tracking": _tracking,
    "theorem": _theorem,
    "sgd": _sgd,
}
