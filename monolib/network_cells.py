"""Cells of kind "network": one trained network on data of one law, its errors, its weights."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from monolib.cells import Cell, CellRecord, CellStore
from monolib.laws import ClusteredLaw, Sample, axis_aligned_law
from monolib.mixed_link_data import MixedLinkData
from monolib.networks import ARCHITECTURES, Network, NetworkShape
from monolib.provenance import provenance
from monolib.random_streams import generator
from monolib.stopping import StopRule
from monolib.training import train_networks
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData, TrainingResult, TrainingRun

LAWS: dict[str, Callable[..., ClusteredLaw]] = {"axis_aligned": axis_aligned_law}


def network_cell(
    law: str, law_parameters: Mapping[str, Any], sizes: Mapping[str, int], data_seed: int, training: TrainingConfig
) -> Cell:
    """Cell that trains one network.

    law: name in LAWS, called with `law_parameters`.  sizes: points of "train", "validation" and "test", each drawn from
    its own stream of `data_seed`.
    """
    return Cell(
        "network",
        {
            "law": law,
            "law_parameters": dict(law_parameters),
            "sizes": dict(sizes),
            "data_seed": data_seed,
            "training": asdict(training),
        },
    )


def pool_network_cell(data: MixedLinkData, training: TrainingConfig) -> Cell:
    """Cell that trains one network on a prefix of the mixed-link pool, without a validation set (A.2)."""
    return Cell("network", {"data": data.as_dict(), "training": asdict(training)})


def training_config(cell: Cell) -> TrainingConfig:
    """The training configuration of a network cell."""
    values = dict(cell.config["training"])
    return TrainingConfig(**(values | {"stop": StopRule(**values["stop"])}))


def cell_law(cell: Cell) -> ClusteredLaw:
    """The data law of a network cell."""
    if "data" in cell.config:
        return MixedLinkData(**cell.config["data"]).law()
    return LAWS[cell.config["law"]](**cell.config["law_parameters"])


def n_train(cell: Cell) -> int:
    """Training points of a network cell."""
    return int(cell.config["data"]["n_train"] if "data" in cell.config else cell.config["sizes"]["train"])


def trained_network(cell: Cell, record: CellRecord) -> Network:
    """The kept checkpoint of a finished network cell."""
    config = training_config(cell)
    shape = NetworkShape(config.architecture, cell_law(cell).dim, config.width)
    return Network.from_flat(shape, record.arrays["parameters"])


def stack_key(cell: Cell) -> str:
    """Cells with equal keys can train in one call of `train_networks`."""
    config = training_config(cell)
    batch = min(config.batch_size, n_train(cell))
    return json.dumps([config.architecture, config.width, batch, cell_law(cell).dim])


def training_work(cell: Cell) -> float:
    """Multiplications of one cell's training, up to a factor."""
    config = training_config(cell)
    branches = 2 if ARCHITECTURES[config.architecture].gated else 1
    return float(config.max_steps * config.width * min(config.batch_size, n_train(cell)) * branches)


def compute_network_cells(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Train the networks of `cells` in one call and write each finished cell; resumes from their checkpoints."""
    started, drawn = time.perf_counter(), {}
    for cell in cells:
        data_key = _data_key(cell)
        if data_key not in drawn:
            drawn[data_key] = _draw(cell)
    data = [drawn[_data_key(cell)][0] for cell in cells]

    def report(position: int, run: TrainingRun) -> None:
        store.report_share(cells[position], run.step / run.config.max_steps)

    checkpoints = [store.file(cell, "checkpoint") for cell in cells]
    results = train_networks([training_config(cell) for cell in cells], data, device, checkpoints, report)
    origin = provenance(device, (time.perf_counter() - started) / len(cells))
    for cell, result in zip(cells, results, strict=True):
        record = CellRecord(_errors(cell, result, drawn[_data_key(cell)][1]), {"parameters": result.best}, origin)
        store.write(cell, record)


def _data_key(cell: Cell) -> str:
    return json.dumps({name: value for name, value in cell.config.items() if name != "training"}, sort_keys=True)


def _draw(cell: Cell) -> tuple[TrainingData, Sample]:
    """Training (and validation) data, and the test set, of a cell."""
    if "data" in cell.config:
        _, train, test = MixedLinkData(**cell.config["data"]).draw()
        return TrainingData(train.x, train.y), test
    law, sizes, seed = cell_law(cell), cell.config["sizes"], cell.config["data_seed"]
    train, validation, test = (law.sample(sizes[s], generator(seed, s)) for s in ("train", "validation", "test"))
    return TrainingData(train.x, train.y, validation.x, validation.y), test


def _errors(cell: Cell, result: TrainingResult, test: Sample) -> dict[str, Any]:
    """Result of a cell as JSON values; errors that are not finite are null."""
    config = training_config(cell)
    network = Network.from_flat(NetworkShape(config.architecture, test.x.shape[1], config.width), result.best)
    kept = [e for e in result.history if e.step == result.best_step]
    numbers = {  # without a finite evaluation the kept weights are the start, which is no result
        "test_mse": float(np.mean(np.square(network.predict(test.x) - test.y))) if kept else math.nan,
        "validation_mse": kept[0].validation_mse if kept else math.nan,
        "train_mse": kept[0].train_mse if kept else math.nan,
    }
    return {
        **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
        "best_step": result.best_step,
        "steps": result.steps,
        "stop_reason": result.stop_reason,
        "history": [
            [e.step, *(v if math.isfinite(v) else None for v in (e.train_mse, e.validation_mse))]
            for e in result.history
        ],
    }
