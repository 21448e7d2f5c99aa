"""The tables of Figures 1 and 5: specialisation of the selected networks, of the variations, and the neurons drawn."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from monolib.cells import CellRecord
from monolib.fig1.runs import PlannedRun
from monolib.network_cells import cell_law, trained_network
from monolib.networks import Network
from monolib.specialization import (
    DOMINANT_2X,
    MODERATE_COSINE,
    STRONG_COSINE,
    SpecializationRow,
    active_neurons,
    alignment,
    dominance,
    importance,
    specialization_table,
)

MEASURES = ("active", "cos_071", "cos_090", "dominant", "dominant_2x")
N_MONOSEMANTIC, N_DOMINANT = 6, 3  # neurons drawn in Fig. 1 (the paper's number is not stated) and in Fig. 5


def _networks(
    runs: Sequence[PlannedRun], records: Sequence[CellRecord], chosen: Sequence[bool]
) -> Iterator[tuple[PlannedRun, Network]]:
    for run, record, is_chosen in zip(runs, records, chosen, strict=True):
        if is_chosen:
            yield run, trained_network(run.cell, record)


def main_table(
    runs: Sequence[PlannedRun], records: Sequence[CellRecord], selected: Sequence[bool], active_share: float
) -> pd.DataFrame:
    """Fig. 1's table for the selected runs: `architecture, weights, seed, active, cos_071, ...`, percentages 0–100."""
    rows = [
        {"architecture": run.architecture, "weights": row.weights, "seed": run.seed, **_measures(row)}
        for run, network in _networks(runs, records, selected)
        for row in specialization_table(network, cell_law(run.cell).directions, active_share)
    ]
    return pd.DataFrame(rows, columns=["architecture", "weights", "seed", *MEASURES])


def variations_table(runs: Sequence[PlannedRun], records: Sequence[CellRecord], active_share: float) -> pd.DataFrame:
    """The same measures for every variation, with its start scale, readout ratio, rate unit and validation MSE.

    The measures of a run without a finite validation error are nan: its kept weights are its start.
    """
    settings = ("start_scale", "readout_ratio", "rate_unit", "architecture")
    variations = [(run, record) for run, record in zip(runs, records, strict=True) if run.part == "variation"]
    rows = [
        {name: getattr(run, name) for name in settings}
        | {"weights": row.weights, **_measures(row, record), "validation_mse": record.result["validation_mse"]}
        for run, record in variations
        for row in specialization_table(trained_network(run.cell, record), cell_law(run.cell).directions, active_share)
    ]
    return pd.DataFrame(rows, columns=[*settings, "weights", *MEASURES, "validation_mse"])


def _measures(row: SpecializationRow, record: CellRecord | None = None) -> dict[str, float]:
    failed = record is not None and record.result["validation_mse"] is None
    return {name: float("nan") if failed else getattr(row, name) for name in MEASURES}


def neurons_table(
    runs: Sequence[PlannedRun], records: Sequence[CellRecord], selected: Sequence[bool], active_share: float
) -> pd.DataFrame:
    """The neurons that Figs. 1 (bottom) and 5 draw, one row per neuron and input coordinate (counted from 1).

    fig1: highest-importance active neurons with A ≥ .90.  fig5: highest-importance active neurons with A < .71 and
    D > 2.  Both from the GELU network of the first seed, or from the first ungated one without GELU; the table is empty
    without either, and short when fewer neurons qualify.
    Columns: figure, architecture, seed, neuron, importance_rank (from 1), alignment, dominance, coordinate, magnitude.
    """
    candidates = [item for item in _networks(runs, records, selected) if item[1].gate is None]
    candidates.sort(key=lambda item: item[0].architecture != "gelu")
    rows: list[dict[str, object]] = []
    for run, network in candidates[:1]:
        directions = cell_law(run.cell).directions
        active = active_neurons(importance(network), active_share)
        weight = network.weight[active].astype(float)
        a, d = alignment(weight, directions), dominance(weight, np.abs(directions).argmax(axis=1))
        monosemantic = np.flatnonzero(a >= STRONG_COSINE)[:N_MONOSEMANTIC]
        dominant = np.flatnonzero((a < MODERATE_COSINE) & (d > DOMINANT_2X))[:N_DOMINANT]
        for figure, ranks in (("fig1", monosemantic), ("fig5", dominant)):
            rows += [
                {
                    "figure": figure,
                    "architecture": run.architecture,
                    "seed": run.seed,
                    "neuron": int(active[rank]),
                    "importance_rank": int(rank) + 1,
                    "alignment": a[rank],
                    "dominance": d[rank],
                    "coordinate": coordinate + 1,
                    "magnitude": abs(weight[rank, coordinate]),
                }
                for rank in ranks
                for coordinate in range(weight.shape[1])
            ]
    names = ("figure", "architecture", "seed", "neuron", "importance_rank", "alignment", "dominance")
    return pd.DataFrame(rows, columns=[*names, "coordinate", "magnitude"])
