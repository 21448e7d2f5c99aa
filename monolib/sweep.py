"""Sweeps: compute the cells that are missing, in worker processes, with one progress bar; finished cells are kept."""

import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby

import joblib
import torch
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from monolib.atomic_files import require_writable
from monolib.cell_kinds import CELL_KINDS
from monolib.cells import Cell, CellRecord, CellStore
from monolib.devices import resolve_device
from monolib.errors import UserError
from monolib.provenance import code_version

logger = logging.getLogger(__name__)

IDLE_SECONDS = 15  # a worker without work for so long ends; it would else outlive a sweep that was killed


def run_cells(
    cells: Sequence[Cell],
    store: CellStore,
    device: str = "cpu",
    n_jobs: int = 0,
    stack: int = 1,
    scheduler: str | None = None,
) -> list[CellRecord]:
    """Records of `cells`, computing those that `store` lacks; interrupted, it goes on where it was.

    device: "cpu", "cuda" or "auto".  n_jobs: worker processes; 0 is one per core on a CPU, and one on CUDA.
    stack: networks of equal shape that one call trains together (1 on a CPU; more keep a GPU busy).
    scheduler: address of a Dask scheduler (tcp://host:port) whose workers compute instead of this machine; then each
    of them finds its own device, and n_jobs has no meaning.
    An exception in a worker, or an interruption, ends the other workers and is raised here; checkpoints are kept.
    """
    require_writable(store.folder)
    unique = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in unique if store.read(cell) is None]
    groups = grouped_cells(missing, stack)
    if scheduler is None or not groups:
        with _progress_bar(unique, missing, store):
            _compute_here(groups, store, resolve_device(device), n_jobs)
    else:
        from monolib.dask_sweep import connected_cluster  # needs the dask extra

        with connected_cluster(scheduler, store, device) as compute, _progress_bar(unique, missing, store):
            compute(groups)
    records = {cell.key: store.read(cell) for cell in unique}
    return [_present(records[cell.key], cell) for cell in cells]


def local_jobs(device: str, n_jobs: int) -> int:
    """Worker processes on this machine: `n_jobs`; if that is 0, one per core on a CPU, and one on CUDA."""
    return n_jobs or (joblib.cpu_count() if device == "cpu" else 1)


def _compute_here(groups: Sequence[Sequence[Cell]], store: CellStore, device: str, n_jobs: int) -> None:
    jobs = min(local_jobs(device, n_jobs), max(len(groups), 1))
    try:
        tasks = (joblib.delayed(compute_group)(group, store, device, os.getpid()) for group in groups)
        joblib.Parallel(n_jobs=jobs, batch_size=1, idle_worker_timeout=IDLE_SECONDS)(tasks)
    except BaseException:
        if jobs > 1:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)
        raise


def _present(record: CellRecord | None, cell: Cell) -> CellRecord:
    if record is None:
        raise UserError(f"cell {cell.key}: vanished from the cache while this run was using it; run again")
    return record


def grouped_cells(cells: Sequence[Cell], stack: int) -> list[list[Cell]]:
    """Cells in groups of at most `stack` that can be computed together; long ones first, so no worker idles at last.

    Cells that read others come after all others: what they read is then there, or being computed.
    """
    ordered = sorted(cells, key=lambda cell: (_reads_others(cell), -_work(cell), _stack_key(cell), cell.key))
    alike = [list(group) for _, group in groupby(ordered, key=lambda cell: (-_work(cell), _stack_key(cell)))]
    return [group[i : i + stack] for group in alike for i in range(0, len(group), stack)]


def _reads_others(cell: Cell) -> bool:
    return CELL_KINDS[cell.kind].reads_others


def _work(cell: Cell) -> float:
    return CELL_KINDS[cell.kind].work(cell)


def _stack_key(cell: Cell) -> tuple[str, str]:
    return cell.kind, CELL_KINDS[cell.kind].stack_key(cell)


def compute_group(cells: Sequence[Cell], store: CellStore, device: str, owner: int | None = None) -> None:
    """Compute and keep the cells of one group, holding their locks; those that another run finished are left alone.

    On a CPU one thread is used, so that results do not depend on the number of workers.  owner: process that runs the
    sweep; a worker that it started ends when it is gone, however it went. None: the worker is not ours to end.
    """
    if owner is not None:
        _end_with(owner)
    code_version()  # noted before computing: a commit made meanwhile is not the code that runs
    with ExitStack() as held, one_thread(device):
        for cell in sorted(cells, key=lambda cell: cell.key):  # one order for all runs: no two can wait in a circle
            if store.is_running(cell):
                logger.warning("cell %s is being computed by another run; waiting for it", cell.key)
            held.enter_context(store.lock(cell))
        missing = [cell for cell in cells if store.read(cell) is None]
        if missing:
            CELL_KINDS[missing[0].kind].compute(missing, store, device)


@functools.cache
def _end_with(owner: int) -> None:
    """From now on, end this process soon after its parent `owner` is gone; nothing where `owner` is not its parent."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1.0)
        os._exit(1)  # files are whole at any moment, and locks fall with the process

    if os.getppid() == owner:
        threading.Thread(target=watch, daemon=True).start()


@contextmanager
def one_thread(device: str) -> Iterator[None]:
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _progress_bar(cells: Sequence[Cell], missing: Sequence[Cell], store: CellStore) -> Iterator[None]:
    """Bar on stderr over the work of `missing`, read from their progress files."""
    if not missing:
        yield
        return
    total = sum(map(_work, missing))
    finished = threading.Event()
    bar = tqdm(
        total=100.0,
        bar_format="{desc} {percentage:5.1f} %|{bar}| {elapsed} < {remaining}",
        file=sys.stderr,
        mininterval=0.5,
        ascii=False,
        dynamic_ncols=True,
    )

    def watch() -> None:
        while True:
            ended = finished.wait(1.0 if sys.stderr.isatty() else 10.0)
            shares = [store.share_done(cell) for cell in missing]
            done = len(cells) - len(missing) + sum(share == 1.0 for share in shares)
            bar.set_description_str(f"{done}/{len(cells)} cells", refresh=False)
            work = sum(share * _work(cell) for share, cell in zip(shares, missing, strict=True))
            bar.n = min(100.0 * work / total, 100.0)  # rounding may exceed it
            bar.refresh()
            if ended:
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
        bar.close()
