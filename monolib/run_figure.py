"""Running a figure: check the parameters, compute the missing cells, execute the notebook, keep everything."""

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill

from monolib.atomic_files import write_text
from monolib.cell_selection import select_cells
from monolib.cells import Cell, CellStore
from monolib.errors import UserError
from monolib.figures import FigureEntry, figure_entry, parameter_file
from monolib.parameter_files import FigureParameters, check_parameters, read_assignment, read_yaml
from monolib.project_paths import resolve
from monolib.results_folder import ResultsFolder
from monolib.sweep import run_cells


def figure_parameters(entry: FigureEntry, profile: str, assignments: Sequence[str] = ()) -> FigureParameters:
    """Checked parameters of a profile, changed by `name=value` assignments.

    Changed results get a profile name of their own (`small+width=256`), unless `profile` is among the assignments.
    Raises UserError, one line per problem.
    """
    values: dict[str, Any] = read_yaml(parameter_file(entry.name, profile))
    pairs = [read_assignment(text) for text in assignments]
    changes = dict(pairs)
    if len(changes) < len(pairs):
        raise UserError(f"{' '.join(assignments)}: a parameter is given more than once")
    original = check_parameters(entry.model, values)
    changed = check_parameters(entry.model, values | changes)
    differing = [n for n in changes if n != "profile" and changed.identity().get(n) != original.identity().get(n)]
    if differing and "profile" not in changes:
        label = "+".join([profile, *(_label(name, changes[name]) for name in differing)])
        changed = check_parameters(entry.model, values | changes | {"profile": label})
    return changed


def _label(name: str, value: Any) -> str:
    """`name=value` for a folder's name; a hash for a value that is long or holds other signs."""
    text = str(value).translate(str.maketrans("", "", " []'\""))
    if not re.fullmatch(r"[A-Za-z0-9_.,-]{1,40}", text):
        text = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{name}={text}"


def results_path(entry: FigureEntry, parameters: FigureParameters) -> Path:
    """Folder of the figure's results, `<results_folder>/<profile>/<figure>`."""
    return resolve(parameters.results_folder) / parameters.profile / entry.name


def computed_cells(entry: FigureEntry, parameters: FigureParameters) -> tuple[int, int]:
    """How many of the figure's cells are in the cache, and how many there are."""
    store = CellStore(resolve(parameters.cache_folder))
    cells = {cell.key: cell for cell in entry.cells(parameters)}
    return sum(store.file(cell, "json").exists() for cell in cells.values()), len(cells)


def run_figure(name: str, profile: str, assignments: Sequence[str] = (), scheduler: str | None = None) -> Path:
    """Run one figure and return its results folder; finished cells are reused, an interrupted run goes on.

    scheduler: address of a Dask scheduler (tcp://host:port) whose workers compute the cells.
    Raises UserError for bad parameters, an unknown figure or profile, or a folder that cannot be used, all before any
    computation; and when a notebook cell fails.
    """
    entry = figure_entry(name)
    parameters = figure_parameters(entry, profile, assignments)
    folder = results_path(entry, parameters)
    results = ResultsFolder(folder, parameters.identity())
    seconds = _compute(entry.cells(parameters), parameters, scheduler) if parameters.computes_missing_cells else 0.0
    done, total = computed_cells(entry, parameters)
    print(f"{done} of {total} cells are there after {seconds:.0f} s; executing {entry.notebook}", flush=True)
    _execute(entry, parameters, results.folder)
    return folder


def run_part(
    name: str, profile: str, assignments: Sequence[str], only: Sequence[str], scheduler: str | None = None
) -> str:
    """Compute the cells of a figure that `only` selects (see `cell_selection`), no notebook; says what remains.

    Raises UserError as `run_figure` does, and for a selection that matches nothing.
    """
    entry = figure_entry(name)
    parameters = figure_parameters(entry, profile, assignments)
    cells = select_cells(entry.labelled_cells(parameters), only)
    seconds = _compute(cells, parameters, scheduler)
    done, total = computed_cells(entry, parameters)
    selected = len({cell.key for cell in cells})
    rest = f"{total - done} remain for the run without --only, which also executes the notebook"
    return f"{selected} selected cells are there after {seconds:.0f} s: {done} of the {total} cells of {name}; {rest}"


def _compute(cells: Sequence[Cell], parameters: FigureParameters, scheduler: str | None) -> float:
    """Compute what is missing; the seconds it took."""
    started = time.perf_counter()
    store = CellStore(resolve(parameters.cache_folder))
    run_cells(cells, store, parameters.device, parameters.n_jobs, parameters.stack, scheduler)
    return time.perf_counter() - started


def _execute(entry: FigureEntry, parameters: FigureParameters, folder: Path) -> None:
    """Execute the notebook with papermill; the executed copy goes into `folder`, without the machine's paths."""
    with tempfile.TemporaryDirectory() as scratch, _silent_kernel():
        unfinished = Path(scratch) / "unfinished.ipynb"
        try:
            papermill.execute_notebook(
                entry.notebook_path,
                unfinished,
                parameters=parameters.model_dump(),
                progress_bar=False,
                cwd=str(folder),
            )
        except papermill.PapermillExecutionError as error:
            failure = f"cell {error.exec_count} failed: {error.ename}: {error.evalue}"
            raise UserError(f"{entry.notebook}: {failure}") from error
        notebook = nbformat.read(unfinished, as_version=4)
        write_text(folder / f"{entry.notebook}.ipynb", nbformat.writes(without_traces(notebook)) + "\n")


@contextmanager
def _silent_kernel() -> Iterator[None]:
    """Keep what a kernel prints beside its cells' outputs (warnings, tracebacks when it is stopped) off the terminal.

    A kernel inherits the file descriptor 2, and papermill has no other way to it.
    """
    terminal, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(nothing)


def without_traces(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The executed notebook without times, chance names, and papermill's paths, which name the machine's folders."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"  # papermill's own is new every time
    return notebook
