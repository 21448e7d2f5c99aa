"""How far a rerun's tables are from the committed ones."""

import io
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd

from monolib.errors import UserError
from monolib.project_paths import project_root


def committed_text(path: Path) -> str:
    """Text of a file as committed (HEAD). Raises UserError outside a git clone or when it is not committed."""
    relative = path.relative_to(project_root()).as_posix()
    command = ["git", "-C", str(project_root()), "show", f"HEAD:./{relative}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"{relative}: is not committed, or this is no git clone") from error


def largest_deviation(new: pd.DataFrame, committed: pd.DataFrame) -> tuple[float, str]:
    """Largest absolute deviation over the numbers of two tables, and where (row, column).

    Raises UserError when rows, columns or words differ: then the tables are not of the same configuration.
    """
    if list(new.columns) != list(committed.columns) or len(new) != len(committed):
        raise UserError("tables have other rows or columns than the committed ones")
    numbers = [name for name in new.columns if _is_number(new[name]) and _is_number(committed[name])]
    words = [name for name in new.columns if name not in numbers]
    if not new[words].equals(committed[words]):
        raise UserError("tables have other names or words than the committed ones")
    deviation = (new[numbers] - committed[numbers]).abs()
    unmatched = new[numbers].isna() != committed[numbers].isna()
    distances = deviation.mask(unmatched, np.inf).fillna(0.0).to_numpy()
    if distances.size == 0:
        return 0.0, "no numbers"
    row, column = np.unravel_index(distances.argmax(), distances.shape)
    return float(distances[row, column]), f"row {row + 1}, column {numbers[column]}"


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def committed_tables(folder: Path) -> set[str]:
    """Names of the committed tables of a results folder; empty outside a git clone."""
    relative = folder.relative_to(project_root()).as_posix()
    command = ["git", "-C", str(project_root()), "ls-tree", "--name-only", "HEAD", f"{relative}/"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return set()
    return {Path(name).name for name in listed.splitlines() if name.endswith(".csv")}


def compare_figure(folder: Path) -> list[str]:
    """One line per table of a results folder: identical, or the largest deviation from the committed table."""
    if not folder.is_relative_to(project_root()):
        raise UserError(f"{folder}: is not in the project; only its results are committed")
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise UserError(f"{folder.relative_to(project_root())}: holds no results; run the figure first")
    absent = sorted(committed_tables(folder) - {file.name for file in files})
    lines = [f"{name}: is committed, but not there" for name in absent]
    for file in files:
        text, committed = file.read_text(encoding="utf-8"), committed_text(file)
        if text == committed:
            lines.append(f"{file.name}: identical")
            continue
        try:
            new, old = (pd.read_csv(io.StringIO(t)) for t in (text, committed))
            deviation, place = largest_deviation(new, old)
            lines.append(f"{file.name}: largest deviation {deviation:.6g} ({place})")
        except (UserError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            lines.append(f"{file.name}: {error}")
    return lines
