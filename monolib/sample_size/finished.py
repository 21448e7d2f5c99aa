"""The cells of a grid that a figure draws: all of them, or those that are in the cache."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from monolib.cells import Cell, CellRecord, CellStore
from monolib.devices import resolve_device
from monolib.errors import UserError
from monolib.sample_size.parameters import SampleSizeParameters
from monolib.sweep import run_cells


class HasCell(Protocol):
    """A planned run."""

    @property
    def cell(self) -> Cell:
        """Its cell."""


Run = TypeVar("Run", bound=HasCell)


def available_runs(
    runs: Sequence[Run], store: CellStore, p: SampleSizeParameters, needed: bool = True
) -> tuple[list[Run], list[CellRecord]]:
    """The runs to draw and their records: all, computing what is missing, or with `only_finished` those in the cache.

    Raises UserError when `only_finished` finds none of runs that are `needed`.
    """
    if not p.only_finished:
        return list(runs), run_cells([run.cell for run in runs], store, resolve_device(p.device), p.n_jobs, p.stack)
    found = [(run, record) for run in runs if (record := store.read(run.cell)) is not None]
    if needed and runs and not found:
        raise UserError(f"only_finished=True: none of the {len(runs)} cells is in {store.folder}")
    return [run for run, _ in found], [record for _, record in found]
