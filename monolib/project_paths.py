"""Where the project's folders are: always beside the package, never relative to the working folder."""

from pathlib import Path

from monolib.errors import UserError


def project_root() -> Path:
    """Folder that holds `notebooks/`, `parameters/` and `results/`.

    Raises UserError when the package is installed apart from them (it has to be an editable install).
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / "pyproject.toml").is_file() or not (root / "notebooks").is_dir():
        raise UserError(f"{root} has no notebooks/: install monolib from a clone with `pip install -e .`")
    return root


def resolve(folder: str) -> Path:
    """`folder` as an absolute path; a relative one is taken from the project root. Raises UserError for no path."""
    try:
        path = Path(folder).expanduser()
        path.exists()
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(f"{folder!r}: is not a usable path ({error})") from error
    return path if path.is_absolute() else project_root() / path
