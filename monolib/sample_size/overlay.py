"""Curves of another profile, drawn over a figure as larger markers."""

import pandas as pd

from monolib.errors import UserError
from monolib.project_paths import resolve
from monolib.sample_size.tables import COLUMNS, seed_statistics


def overlay_statistics(results_folder: str, profile: str, figure: str) -> pd.DataFrame:
    """Statistics over seeds of `<results_folder>/<profile>/<figure>/curves.csv`; empty for no profile or no such file.

    Raises UserError when the file is no curves table.
    """
    path = resolve(results_folder) / profile / figure / "curves.csv"
    if not profile or not path.exists():
        return seed_statistics(pd.DataFrame(columns=list(COLUMNS)))
    curves = pd.read_csv(path)
    if not set(COLUMNS) <= set(curves.columns):
        raise UserError(f"{path}: must have the columns {', '.join(COLUMNS)}")
    return seed_statistics(curves)
