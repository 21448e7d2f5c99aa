"""Sweeps: compute the cells that are missing, in worker processes, with one progress bar; finished cells are kept."""

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby

import joblib
import torch
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from monolib.cells import Cell, CellRecord, CellStore
from monolib.errors import UserError
from monolib.network_cells import compute_network_cells, stack_key, training_config

logger = logging.getLogger(__name__)


def resolve_device(device: str) -> str:
    """ "cpu" or "cuda" for auto, cpu, cuda. Raises UserError for another name or when CUDA is asked for and absent."""
    if device not in ("auto", "cpu", "cuda"):
        raise UserError(f"device={device!r}: must be auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device='cuda': no CUDA device is available here; use auto or cpu")
    return ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device


def run_cells(
    cells: Sequence[Cell], store: CellStore, device: str = "cpu", n_jobs: int = 0, stack: int = 1
) -> list[CellRecord]:
    """Records of `cells`, computing those that `store` lacks; interrupted, it goes on where it was.

    device: "cpu" or "cuda".  n_jobs: worker processes; 0 is one per core on a CPU, and one on CUDA.
    stack: networks of equal shape that one call trains together (1 on a CPU; more keep a GPU busy).
    An exception in a worker is raised here after the others have finished what they keep.
    """
    unique = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in unique if store.read(cell) is None]
    groups = _groups(missing, stack)
    jobs = min(n_jobs or (joblib.cpu_count() if device == "cpu" else 1), max(len(groups), 1))
    with _progress_bar(unique, missing, store):
        try:
            joblib.Parallel(n_jobs=jobs, batch_size=1)(joblib.delayed(compute_group)(g, store, device) for g in groups)
        except BaseException:
            if jobs > 1:
                get_reusable_executor().shutdown(wait=True, kill_workers=True)
            raise
    records = {cell.key: store.read(cell) for cell in unique}
    return [_present(records[cell.key], cell) for cell in cells]


def _present(record: CellRecord | None, cell: Cell) -> CellRecord:
    if record is None:
        raise UserError(f"cell {cell.key}: vanished from the cache while this run was using it; run again")
    return record


def _groups(cells: Sequence[Cell], stack: int) -> list[list[Cell]]:
    """Cells in groups of at most `stack` that can train together; long ones first, so that no worker idles at last."""
    ordered = sorted(cells, key=lambda cell: (-_work(cell), stack_key(cell), cell.key))
    alike = [list(group) for _, group in groupby(ordered, key=lambda cell: (-_work(cell), stack_key(cell)))]
    return [group[i : i + stack] for group in alike for i in range(0, len(group), stack)]


def _work(cell: Cell) -> float:
    """Multiplications of one cell's training, up to a factor: orders the cells and weighs their progress."""
    config = training_config(cell)
    branches = 2 if config.architecture in ("reglu", "swiglu") else 1
    return float(config.max_steps * config.width * min(config.batch_size, cell.config["sizes"]["train"]) * branches)


def compute_group(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Compute and keep the cells of one group, holding their locks; those that another run finished are left alone.

    On a CPU one thread is used, so that results do not depend on the number of workers.
    """
    with ExitStack() as held, _one_thread(device):
        for cell in sorted(cells, key=lambda cell: cell.key):  # one order for all runs: no two can wait in a circle
            if store.is_running(cell):
                logger.warning("cell %s is being computed by another run; waiting for it", cell.key)
            held.enter_context(store.lock(cell))
        missing = [cell for cell in cells if store.read(cell) is None]
        if missing:
            compute_network_cells(missing, store, device)


@contextmanager
def _one_thread(device: str) -> Iterator[None]:
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _progress_bar(cells: Sequence[Cell], missing: Sequence[Cell], store: CellStore) -> Iterator[None]:
    """Bar on stderr over the training steps of `missing`, weighted by their cost, read from the progress files."""
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
            shares = [_share_done(cell, store) for cell in missing]
            done = len(cells) - len(missing) + sum(share == 1.0 for share in shares)
            bar.set_description_str(f"{done}/{len(cells)} cells", refresh=False)
            bar.n = 100.0 * sum(share * _work(cell) for share, cell in zip(shares, missing, strict=True)) / total
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


def _share_done(cell: Cell, store: CellStore) -> float:
    if store.file(cell, "json").exists():
        return 1.0
    try:
        step = int(store.file(cell, "progress").read_text())
    except (OSError, ValueError):
        return 0.0
    return min(step / training_config(cell).max_steps, 0.999)
