"""Cells: the units of a sweep. One configuration, one small JSON record, one array file, found again by their hash."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from monolib.atomic_files import read_arrays, write_arrays, write_text
from monolib.errors import UserError

logger = logging.getLogger(__name__)

CELL_VERSION = 1  # raise it when a change to the method changes what a cell holds: older cells are then recomputed

REPORT_SECONDS = 0.3


@dataclass(frozen=True)
class Cell:
    """One computation: `kind` names the function that does it, `config` (plain JSON values) is all that it reads."""

    kind: str
    config: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Name of the cell's files: hash of kind and configuration."""
        text = json.dumps([self.kind, dict(self.config)], sort_keys=True, allow_nan=False)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


@dataclass(frozen=True, eq=False)
class CellRecord:
    """A finished cell: `result` (plain JSON values), `arrays` by name, `provenance`."""

    result: dict[str, Any]
    arrays: dict[str, np.ndarray]
    provenance: dict[str, Any]


class CellStore:
    """Folder of finished cells. Safe for several processes: files are whole or absent, and a lock guards each cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, cell: Cell, suffix: str) -> Path:
        """Path of one of the cell's files: json, npz (finished), checkpoint, progress, lock (while it runs)."""
        return self.folder / f"{cell.key}.{suffix}"

    def lock(self, cell: Cell) -> FileLock:
        """Lock that the process which computes `cell` holds; the system releases it when that process dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.file(cell, "lock"), is_singleton=True)

    def is_running(self, cell: Cell) -> bool:
        """Whether another process computes the cell at this moment."""
        if not self.file(cell, "lock").exists():
            return False
        lock = FileLock(self.file(cell, "lock"), timeout=0)
        try:
            with lock:
                return False
        except TimeoutError:
            return True

    def report_share(self, cell: Cell, share: float) -> None:
        """Note in its progress file which share of the cell's work is done; a computation calls it as it goes on."""
        write_text(self.file(cell, "progress"), str(share))

    def share_reporter(self, cell: Cell) -> Callable[[float], None]:
        """`report_share` of one cell for computations that get on fast: a few times a second at most."""
        last = time.monotonic()

        def report(share: float) -> None:
            nonlocal last
            if time.monotonic() - last > REPORT_SECONDS:
                last = time.monotonic()
                self.report_share(cell, share)

        return report

    def share_done(self, cell: Cell) -> float:
        """Share of the cell's work that is done: 1 when it is finished, else what its progress file says."""
        if self.file(cell, "json").exists():
            return 1.0
        try:
            return min(float(self.file(cell, "progress").read_text()), 0.999)
        except (OSError, ValueError):
            return 0.0

    def read(self, cell: Cell) -> CellRecord | None:
        """The finished cell, or None when it is absent or damaged (which is reported as a warning)."""
        path = self.file(cell, "json")
        try:
            record = json.loads(path.read_text())
            if record.get("version", 1) != CELL_VERSION:
                raise ValueError("was computed by another version of the method")
            if record["config"] != json.loads(json.dumps(dict(cell.config))):
                raise ValueError("holds another configuration")
            arrays_file = self.file(cell, "npz")
            if hashlib.sha256(arrays_file.read_bytes()).hexdigest() != record["arrays_sha256"]:
                raise ValueError(f"does not belong to {arrays_file.name}")
            return CellRecord(record["result"], read_arrays(arrays_file), record["provenance"])
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("cell %s is damaged (%s) and will be computed again", path.name, error)
            return None

    def write(self, cell: Cell, record: CellRecord) -> None:
        """Keep a finished cell; its JSON is written last, so that a cell that can be read is complete."""
        arrays_file = self.file(cell, "npz")
        write_arrays(arrays_file, **record.arrays)
        content = {
            "version": CELL_VERSION,
            "kind": cell.kind,
            "config": dict(cell.config),
            "result": record.result,
            "provenance": record.provenance,
            "arrays_sha256": hashlib.sha256(arrays_file.read_bytes()).hexdigest(),
        }
        write_text(self.file(cell, "json"), json.dumps(content, indent=1))
        for suffix in ("checkpoint", "progress"):
            self.file(cell, suffix).unlink(missing_ok=True)
