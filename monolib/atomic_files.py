"""Files that are written whole or not at all, and arrays that load without running code."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from monolib.errors import UserError


def require_writable(folder: Path) -> None:
    """Make `folder` and write to it, before work that would be lost. Raises UserError when that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error})") from error


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` on a temporary file beside `path`, flush it to disk, then rename it to `path`.

    A process killed at any moment leaves either the old file or the new one. Raises OSError as the system does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    write_atomically(path, lambda stream: stream.write(text.encode()))


def write_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write named arrays as an uncompressed .npz, whole or not at all."""
    write_atomically(path, lambda stream: np.savez(stream, allow_pickle=False, **arrays))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Named arrays of an .npz; object arrays are refused (they could run code).

    Raises ValueError that names the file when it is truncated or no .npz, FileNotFoundError when it is absent.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # zipfile and numpy raise many kinds for a damaged file
        raise ValueError(f"{path}: not a readable array file ({error})") from error
