"""A figure's results folder `results/<profile>/<figure>`: one configuration, whole files, tables, figures, claims."""

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from filelock import FileLock, Timeout
from matplotlib.figure import Figure

from monolib.atomic_files import require_writable, write_atomically, write_text
from monolib.claims import Claim, write_claims
from monolib.errors import UserError

IDENTITY_FILE = "parameters.json"
LOCK_SECONDS = 10.0  # a writer holds the lock for a moment


class ResultsFolder:
    """Opens (and makes) the folder for one configuration.

    identity: the parameters that fix the results; they are kept in `parameters.json`.
    Raises UserError when the folder cannot be written, holds results of other parameters, or another run is writing
    to it at this moment.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self._lock = FileLock(folder / ".lock.held", is_singleton=True)
        require_writable(folder)
        try:
            with self._lock.acquire(timeout=LOCK_SECONDS):
                self._claim(dict(identity))
        except Timeout:
            message = "another run is writing there; wait for it or use another profile name"
            raise UserError(f"{folder}: {message}") from None

    def _claim(self, identity: dict[str, Any]) -> None:
        path = self.folder / IDENTITY_FILE
        if path.exists():
            try:
                kept = json.loads(path.read_text(encoding="utf-8"))
                if not isinstance(kept, dict):
                    raise ValueError("holds no parameters")
            except ValueError as error:
                raise UserError(f"{path}: is damaged ({error}); remove it to use the folder") from error
            if not any(self.folder.glob("*.csv")):  # an earlier run ended before it had results
                kept = identity
            changed = [name for name in sorted(kept.keys() | identity.keys()) if kept.get(name) != identity.get(name)]
            if changed:
                differences = "; ".join(f"{n}={kept.get(n)!r} there, {identity.get(n)!r} now" for n in changed)
                raise UserError(
                    f"{self.folder}: holds results of other parameters ({differences}); "
                    "use another profile name, or remove the folder"
                )
        write_text(path, json.dumps(identity, indent=1) + "\n")

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write `<name>.csv`: six significant digits, no index, no timing, so that reruns can be compared."""
        self._write(f"{name}.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))

    def write_claims(self, claims: Iterable[Claim]) -> None:
        """Write `claims.json`."""
        with self._lock.acquire(timeout=LOCK_SECONDS):
            write_claims(self.folder / "claims.json", claims)

    def write_provenance(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Write `provenance.json`: where each cell comes from, by the cell's name."""
        self._write("provenance.json", json.dumps(records, indent=1, sort_keys=True) + "\n")

    def write_figure(self, name: str, figure: Figure) -> None:
        """Write `<name>.pdf` and `<name>.png` without dates, so that an unchanged figure is an unchanged file."""
        for suffix, undated in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
            save = functools.partial(figure.savefig, format=suffix, metadata=undated)
            with self._lock.acquire(timeout=LOCK_SECONDS):
                write_atomically(self.folder / f"{name}.{suffix}", save)

    def show_figure(self, name: str, figure: Figure) -> None:
        """Write the figure and show it where it is called (a notebook)."""
        self.write_figure(name, figure)
        plt.show()

    def _write(self, name: str, text: str) -> None:
        with self._lock.acquire(timeout=LOCK_SECONDS):
            write_text(self.folder / name, text)
