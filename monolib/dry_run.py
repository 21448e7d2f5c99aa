"""What a run would cost, without running it: cells, hours for some numbers of workers, memory."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from monolib.cell_kinds import CELL_KINDS
from monolib.cell_selection import select_cells
from monolib.cells import Cell, CellStore
from monolib.cost_probes import Cost
from monolib.devices import resolve_device
from monolib.figures import figure_entry
from monolib.memory import GIB, available_memory
from monolib.parameter_files import FigureParameters
from monolib.project_paths import resolve
from monolib.provenance import device_name
from monolib.run_figure import figure_parameters
from monolib.sweep import grouped_cells, local_jobs, one_thread

WORKERS = (1, 8, 64)  # hours are given for these too


def dry_run(
    name: str, profile: str, assignments: Sequence[str] = (), only: Sequence[str] = (), scheduler: str | None = None
) -> str:
    """What the run would cost on machines like this one; nothing is written and no cell is computed.

    scheduler: its number of workers is among those that hours are given for.
    Raises UserError for bad parameters, an unknown figure or profile, a selection that matches nothing, and a scheduler
    that cannot be reached.
    """
    entry = figure_entry(name)
    parameters = figure_parameters(entry, profile, assignments)
    labelled = entry.labelled_cells(parameters)
    cells = select_cells(labelled, only) if only else [cell for _, cell in labelled]
    cluster = _cluster_workers(scheduler)
    store = CellStore(resolve(parameters.cache_folder))
    distinct = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in distinct if store.share_done(cell) < 1.0]
    counts = f"{len(cells)} cells, {len(distinct)} of them distinct, {len(distinct) - len(missing)} finished"
    lines = [f"{entry.name}, profile {parameters.profile}: {counts}, {len(missing)} to compute"]
    if missing:
        lines += _estimate(missing, store, parameters, cluster)
    return "\n".join(lines)


def _cluster_workers(scheduler: str | None) -> int | None:
    if scheduler is None:
        return None
    from monolib.dask_sweep import count_workers  # needs the dask extra

    return count_workers(scheduler)


@dataclass(frozen=True)
class _Estimate:
    """Of one group: its cells, what they cost, and the seconds that are left of it."""

    cells: list[Cell]
    cost: Cost
    seconds: float


def _estimate(missing: list[Cell], store: CellStore, parameters: FigureParameters, cluster: int | None) -> list[str]:
    """Lines on time and memory."""
    device = resolve_device(parameters.device)
    with one_thread(device):
        groups = grouped_cells([cell for cell in missing if CELL_KINDS[cell.kind].cost], parameters.stack)
        estimates = [_group_estimate(group, store, device) for group in groups]
    unmeasured = [cell.kind for cell in missing if not CELL_KINDS[cell.kind].cost]
    notes = [f"  {unmeasured.count(kind):4d} × {kind}: not measured" for kind in dict.fromkeys(unmeasured)]
    if not estimates:
        return notes
    jobs = min(local_jobs(device, parameters.n_jobs), len(estimates))
    threads = "one thread a worker" if device == "cpu" else "one worker a device"
    lines = [
        f"measured on this machine ({device_name(device)}, {threads}); steps and epochs are upper limits, and cells "
        "that stop early take less:"
    ]
    lines += _rows(estimates) + notes
    lines.append(_hours(estimates, jobs, cluster))
    lines.append(_memory(estimates, jobs, device))
    problems = dict.fromkeys(f"cannot run here: {e.cost.label}: {e.cost.problem}" for e in estimates if e.cost.problem)
    return lines + list(problems)


def _group_estimate(group: list[Cell], store: CellStore, device: str) -> _Estimate:
    measure = CELL_KINDS[group[0].kind].cost
    assert measure is not None
    cost = measure(group, device)
    left = 1.0 - sum(map(store.share_done, group)) / len(group)
    return _Estimate(group, cost, left * cost.seconds)


def _rows(estimates: Sequence[_Estimate]) -> list[str]:
    """One line for each label: how many cells, hours of each and of all."""
    rows = []
    for label in dict.fromkeys(e.cost.label for e in estimates):
        own = [e for e in estimates if e.cost.label == label]
        count, seconds = sum(len(e.cells) for e in own), sum(e.seconds for e in own)
        rows.append(f"  {count:4d} × {label}: {_time(seconds / count)} each, {_time(seconds)} together")
    return rows


def _time(seconds: float) -> str:
    return (
        f"{seconds / 3600:.1f} h"
        if seconds >= 3600
        else f"{seconds / 60:.1f} min"
        if seconds >= 60
        else f"{seconds:.1f} s"
    )


def _hours(estimates: Sequence[_Estimate], jobs: int, cluster: int | None) -> str:
    named = {jobs: "this machine"} | ({} if cluster is None else {cluster: "the scheduler's"})
    parts = []
    for workers in sorted({*WORKERS, *named} - {0}):
        note = f" ({named[workers]})" if workers in named else ""
        parts.append(f"{workers} worker{'s' * (workers > 1)}{note} {_time(_makespan(estimates, workers))}")
    return f"at most, on as many workers like this one: {', '.join(parts)}"


def _makespan(estimates: Sequence[_Estimate], workers: int) -> float:
    """Seconds until the last worker ends, each taking the next group when it is free, in the sweep's order."""
    free = [0.0] * workers
    for estimate in estimates:
        heapq.heappush(free, heapq.heappop(free) + estimate.seconds)
    return max(free)


def _memory(estimates: Sequence[_Estimate], jobs: int, device: str) -> str:
    """What the largest group needs, and all local workers at once at most."""
    largest = max(estimates, key=lambda e: e.cost.memory)
    process = psutil.Process().memory_info().rss
    there = available_memory(device) / GIB
    together = jobs * (largest.cost.memory + process) / GIB
    return (
        f"memory: at most {largest.cost.memory / GIB:.2f} GiB of arrays ({largest.cost.label}) and {process / GIB:.2f} "
        f"GiB for a process; {jobs} at once at most {together:.2f} GiB; free here: {there:.2f} GiB"
    )
