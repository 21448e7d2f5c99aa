"""Sweeps on an existing Dask cluster: one group of cells at a time on each worker process (so one per GPU).

Every task is bound to one worker, and a worker gets the next one when it is free, whatever its number of threads. A
group whose worker is gone goes to another; a group that loses MAX_DEATHS workers in a row without having got further is
given up. Workers that see this machine's cache folder work in it, with its locks and checkpoints; the others keep their
files in their own folder. Finished records come back to the client in both cases.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monolib.atomic_files import require_writable, write_text
from monolib.cells import Cell, CellRecord, CellStore
from monolib.devices import resolve_device
from monolib.errors import UserError
from monolib.provenance import code_version
from monolib.sweep import compute_group

try:
    from distributed import Client, Future, KilledWorker, get_worker
except ModuleNotFoundError as error:
    raise UserError("scheduler: needs Dask, which is not installed here; install monolib[dask]") from error

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
POLL_SECONDS = 1.0
RESULT_SECONDS = 60.0  # for the transfer of a finished record
MAX_DEATHS = 3

Compute = Callable[[Sequence[Sequence[Cell]]], None]


@contextmanager
def connected_cluster(address: str, store: CellStore, device: str) -> Iterator[Compute]:
    """A function that computes groups of cells on the workers of the scheduler at `address` and keeps them in `store`.

    device: "auto", "cpu" or "cuda", found on each worker.  Raises UserError when the scheduler cannot be reached, or a
    worker has another version of the code or not the device.
    """
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a lost connection is told below, in one line
    client = _connect(address)
    try:
        with _token(store.folder) as token:
            cluster = _Cluster(client, address, store, device, token)
            cluster.require_alike()
            yield cluster.compute
    finally:
        client.close()


def count_workers(address: str) -> int:
    """Worker processes of the scheduler at `address`. Raises UserError when it cannot be reached."""
    client = _connect(address)
    try:
        return len(client.nthreads())
    finally:
        client.close()


def _connect(address: str) -> Client:
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"scheduler={address!r}: cannot be reached ({reason})") from error


@contextmanager
def _token(folder: Path) -> Iterator[Path]:
    """A file by which a worker recognises the cache folder."""
    path = folder / f".{uuid.uuid4().hex}.token"
    write_text(path, path.name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _worker_facts(token: Path, device: str) -> dict[str, Any]:
    """Runs on a worker: its code, the device it would use, and whether it sees (and can write to) the cache folder."""
    try:
        shares_cache = token.read_text() == token.name
        require_writable(token.parent)
    except (OSError, UserError):
        shares_cache = False
    return {"code": code_version(), "device": resolve_device(device), "shares_cache": shares_cache}


class _SweepEnded(Exception):
    """The sweep that asked for a cell was cancelled or is gone."""


class _WorkerStore(CellStore):
    """Store on a worker: ends a computation at its next report when nobody waits for it any more."""

    def __init__(self, folder: Path, wanted: Callable[[], bool]) -> None:
        super().__init__(folder)
        self._wanted = wanted

    def report_share(self, cell: Cell, share: float) -> None:
        super().report_share(cell, share)
        if not self._wanted():
            raise _SweepEnded(cell.key)


def _compute_on_worker(cells: Sequence[Cell], folder: Path | None, device: str) -> list[CellRecord | None]:
    """Runs on a worker: the records of one group, computed in `folder`, or in the worker's own when that is None."""
    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    store = _WorkerStore(folder or Path(worker.local_directory) / "monolib-cells", wanted)
    compute_group(cells, store, resolve_device(device))
    return [store.read(cell) for cell in cells]


@dataclass(eq=False)
class _Task:
    """A group of cells on its way: its future, deaths of workers since it last got further, how far it was then."""

    cells: Sequence[Cell]
    future: Future | None = None
    deaths: int = 0
    progress: float = 0.0

    @property
    def name(self) -> str:
        return ", ".join(cell.key for cell in self.cells)


class _Cluster:
    """The workers of one scheduler during one sweep."""

    def __init__(self, client: Client, address: str, store: CellStore, device: str, token: Path) -> None:
        self.client, self.address, self.store, self.device, self.token = client, address, store, device, token
        self.usable: dict[str, bool] = {}  # workers by address: whether they share the cache folder
        self.refused: dict[str, str] = {}  # and why the others are not used
        self.changed = threading.Event()  # a task ended
        self.told_waiting, self.computing = False, False

    def require_alike(self) -> None:
        """Look at the workers that are there. Raises UserError, one line for each that cannot take part."""
        self.look()
        if self.refused:
            raise UserError("\n".join(self.refused.values()))
        shared = sum(self.usable.values())
        print(f"{len(self.usable)} workers at {self.address}, {shared} of them share {self.store.folder}", flush=True)

    def compute(self, groups: Sequence[Sequence[Cell]]) -> None:
        """Compute the groups in their order; whatever ends it, tasks that still run are cancelled."""
        waiting = deque(_Task(group) for group in groups)
        running: dict[str, _Task] = {}
        self.computing = True
        try:
            while waiting or running:
                self.look()
                for worker in running.keys() - self.usable.keys():
                    waiting.appendleft(self._bereaved(running.pop(worker), worker))
                for worker in [w for w in self.usable if w not in running][: len(waiting)]:
                    running[worker] = self._submitted(waiting.popleft(), worker)
                self.changed.wait(POLL_SECONDS)
                self.changed.clear()
                for worker in [w for w, task in running.items() if task.future is not None and task.future.done()]:
                    if not self._kept(running[worker]):
                        waiting.appendleft(self._bereaved(running[worker], worker))
                    del running[worker]
        finally:
            if running:
                self._cancel([task.future for task in running.values()])

    def look(self) -> None:
        """Bring the list of usable workers up to date. Raises UserError when the scheduler is gone."""
        try:
            alive = self.client.nthreads()
            new = [w for w in alive if w not in self.usable and w not in self.refused]
            arguments = (_worker_facts, self.token, self.device)
            facts = self.client.run(*arguments, workers=new, on_error="return") if new else {}
        except (OSError, TimeoutError) as error:
            raise UserError(f"scheduler={self.address!r}: connection lost ({' '.join(str(error).split())})") from error
        self.usable = {w: shares for w, shares in self.usable.items() if w in alive}
        for worker in facts:
            self._judge(worker, facts[worker])
        if not self.usable and not self.told_waiting:
            logger.warning("no worker at %s can compute yet; waiting for one", self.address)
        self.told_waiting = not self.usable

    def _judge(self, worker: str, facts: dict[str, Any] | Exception) -> None:
        if isinstance(facts, OSError):  # it went away meanwhile
            return
        if isinstance(facts, Exception):
            problem = f"{type(facts).__name__}: {facts}" if not isinstance(facts, UserError) else str(facts)
        else:
            here, there = code_version(), facts["code"]
            differs = [name for name in here if here[name] != there[name] and None not in (here[name], there[name])]
            problem = f"has {_code(there)}, this machine has {_code(here)}; update one of them" if differs else ""
            if differs == ["uncommitted_changes"]:  # an edit since the worker started, perhaps of something else
                logger.warning("worker %s: %s", worker, problem)
                problem = ""
            self.usable |= {} if problem else {worker: facts["shares_cache"]}
        if problem:
            self.refused[worker] = f"worker {worker}: {' '.join(problem.split())}"
            if self.computing:  # one that came later; those of the start are an error
                logger.warning("%s; it is not used", self.refused[worker])

    def _submitted(self, task: _Task, worker: str) -> _Task:
        folder = self.store.folder if self.usable[worker] else None
        key = f"{task.cells[0].key}-{uuid.uuid4().hex}"
        arguments = (task.cells, folder, self.device)
        task.future = self.client.submit(_compute_on_worker, *arguments, key=key, workers=[worker], pure=False)
        task.future.add_done_callback(lambda _: self.changed.set())
        return task

    def _kept(self, task: _Task) -> bool:
        """Keep the records of a task that ended; False when it has to run again. Raises the task's exception."""
        future = task.future
        assert future is not None
        if future.status == "error":
            failure = future.exception()
            if isinstance(failure, KilledWorker):
                raise UserError(f"cell {task.name}: the worker died each time it was computed ({failure})")
            future.result()  # raises it with the worker's traceback
        if future.status != "finished":
            return False
        try:
            records = future.result(timeout=RESULT_SECONDS)
        except (TimeoutError, CancelledError, OSError):  # the worker died with it
            return False
        for cell, record in zip(task.cells, records, strict=True):
            if record is None:
                return False
            if self.store.read(cell) is None:
                self.store.write(cell, record)
        return True

    def _bereaved(self, task: _Task, worker: str) -> _Task:
        """The task of a worker that is gone, to run again. Raises UserError when it was one worker too many."""
        self._cancel([task.future])
        progress = sum(map(self.store.share_done, task.cells))
        task.deaths = 1 if progress > task.progress else task.deaths + 1
        task.progress = progress
        if task.deaths >= MAX_DEATHS:
            raise UserError(f"cell {task.name}: {task.deaths} workers died while they computed it, the last {worker}")
        logger.warning("worker %s is gone; cell %s goes to another one", worker, task.name)
        return task

    def _cancel(self, futures: Sequence[Future | None]) -> None:
        with suppress(OSError, TimeoutError):
            self.client.cancel(futures, force=True)


def _code(version: Mapping[str, Any]) -> str:
    changes = " with uncommitted changes" if version["uncommitted_changes"] else ""
    return f"monolib {version['monolib']}, commit {(version['commit'] or 'unknown')[:12]}{changes}"
