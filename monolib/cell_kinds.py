"""The kinds of cells a sweep can compute, each with the few functions that a sweep needs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from monolib import gated_cells, kernel_cells, network_cells
from monolib.cells import Cell, CellStore
from monolib.cost_probes import Cost, gated_cost, kernel_cost, network_cost
from monolib.theorem1 import cells as theorem1_cells
from monolib.theorem2 import cells as theorem2_cells


class CellKind(NamedTuple):
    """compute(cells, store, device) computes and writes cells of one group, and reports each cell's share done in its
    progress file; cells with equal stack_key(cell) can form a group; work(cell) is the cost, up to a factor;
    cost(cells, device) is what one group costs on this machine, measured (None: minutes at most, not measured); cells
    that read others (`reads_others`) are started after all that do not."""

    compute: Callable[[Sequence[Cell], CellStore, str], None]
    stack_key: Callable[[Cell], str]
    work: Callable[[Cell], float]
    cost: Callable[[Sequence[Cell], str], Cost] | None
    reads_others: bool = False


CELL_KINDS: dict[str, CellKind] = {
    "network": CellKind(
        network_cells.compute_network_cells, network_cells.stack_key, network_cells.training_work, network_cost
    ),
    "kernel": CellKind(kernel_cells.compute_kernel_cells, kernel_cells.stack_key, kernel_cells.fit_work, kernel_cost),
    "theorem1": CellKind(
        theorem1_cells.compute_theorem1_cells, theorem1_cells.stack_key, theorem1_cells.theorem1_work, None
    ),
    "theorem2": CellKind(
        theorem2_cells.compute_theorem2_cells, theorem2_cells.stack_key, theorem2_cells.theorem2_work, None
    ),
    "gated": CellKind(
        gated_cells.compute_gated_cells, gated_cells.stack_key, gated_cells.gated_work, gated_cost, reads_others=True
    ),
}
