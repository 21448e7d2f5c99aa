"""The training runs of Figures 1 and 5, and which of them the learning-rate search selects."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from monolib.cell_selection import Labels
from monolib.cells import Cell, CellRecord
from monolib.errors import UserError
from monolib.fig1.parameters import Fig1Parameters
from monolib.network_cells import network_cell
from monolib.training_config import TrainingConfig


@dataclass(frozen=True)
class PlannedRun:
    """One training run: its part ("main" or "variation"), what distinguishes it, and its cell."""

    part: str
    architecture: str
    seed: int
    learning_rate: float
    start_scale: float
    readout_ratio: float
    rate_unit: str
    cell: Cell

    @property
    def labels(self) -> Labels:
        """What `--only` selects by."""
        names = ("part", "architecture", "seed", "learning_rate", "start_scale", "readout_ratio", "rate_unit")
        return {name: getattr(self, name) for name in names}


def planned_runs(parameters: Fig1Parameters) -> list[PlannedRun]:
    """Every run of the figure: main runs (all seeds and rates), then variations (first seed, first rate)."""
    p = parameters
    own = (p.start_scale, p.readout_ratio, p.rate_unit)
    main = [
        _run(p, "main", name, seed, rate, *own)
        for name, seed in product(p.architectures, p.seeds)
        for rate in p.learning_rates(name)
    ]
    variations = [
        _run(p, "variation", name, p.seeds[0], p.learning_rates(name)[0], v.start_scale, v.readout_ratio, v.rate_unit)
        for v, name in product(p.variations, p.architectures)
    ]
    return main + variations


def _run(
    parameters: Fig1Parameters,
    part: str,
    architecture: str,
    seed: int,
    learning_rate: float,
    start_scale: float,
    readout_ratio: float,
    rate_unit: str,
) -> PlannedRun:
    p = parameters
    training = TrainingConfig(
        architecture=architecture,
        width=p.width,
        batch_size=p.batch_size,
        learning_rate=learning_rate,
        max_steps=p.steps(architecture),
        seed=seed,
        final_rate_fraction=p.final_rate_fraction,
        evaluate_every=p.evaluate_every,
        rate_unit=rate_unit,
        start_scale=start_scale,
        readout_ratio=readout_ratio,
        readout_start=p.readout_start,
        select="validation",
    )
    law = {name: getattr(p, name) for name in ("n_clusters", "dim", "center_scale", "noise_std")}
    sizes = {"train": p.n_train, "validation": p.n_validation, "test": p.n_test}
    cell = network_cell("axis_aligned", law, sizes, seed, training)
    return PlannedRun(part, architecture, seed, learning_rate, start_scale, readout_ratio, rate_unit, cell)


def runs_table(runs: Sequence[PlannedRun], records: Sequence[CellRecord]) -> pd.DataFrame:
    """One row per run: settings, errors at the kept checkpoint, stop reason, and `selected`.

    The main run with the smallest validation MSE of each architecture and seed is selected (A.1: model selection uses
    validation MSE only); a run without a finite error never is.
    """
    settings = ("part", "architecture", "seed", "learning_rate", "start_scale", "readout_ratio", "rate_unit")
    results = ("validation_mse", "test_mse", "best_step", "steps", "stop_reason")
    table = pd.DataFrame(
        [
            {name: getattr(run, name) for name in settings} | {name: record.result[name] for name in results}
            for run, record in zip(runs, records, strict=True)
        ]
    )
    table = table.astype({"validation_mse": float, "test_mse": float})
    main = table[(table["part"] == "main") & table["validation_mse"].notna()]
    best = main.groupby(["architecture", "seed"])["validation_mse"].idxmin()
    return table.assign(selected=table.index.isin(best))


def require_selection(table: pd.DataFrame) -> None:
    """Raise UserError that says how the runs ended when no run of `runs_table` could be selected."""
    if not table["selected"].any():
        ends = table[table["part"] == "main"]["stop_reason"].value_counts().to_dict()
        raise UserError(f"runs: none has a finite validation error ({ends}); lower learning_rates_*; see runs.csv")


def curves_table(runs: Sequence[PlannedRun], records: Sequence[CellRecord], selected: pd.Series) -> pd.DataFrame:
    """Validation and training MSE at every evaluation of the selected runs; columns architecture, seed, step, ..."""
    rows = [
        {"architecture": run.architecture, "seed": run.seed, "step": step, "train_mse": train, "validation_mse": valid}
        for run, record, chosen in zip(runs, records, selected, strict=True)
        if chosen
        for step, train, valid in record.result["history"]
    ]
    return pd.DataFrame(rows, columns=["architecture", "seed", "step", "train_mse", "validation_mse"])
