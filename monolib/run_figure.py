"""Running a figure: check the parameters, compute the missing cells, execute the notebook, keep everything."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import papermill

from monolib.atomic_files import write_text
from monolib.cells import CellStore
from monolib.devices import resolve_device
from monolib.errors import UserError
from monolib.figures import FigureEntry, figure_entry, parameter_file
from monolib.parameter_files import FigureParameters, check_parameters, read_assignment, read_yaml
from monolib.project_paths import resolve
from monolib.results_folder import ResultsFolder
from monolib.sweep import run_cells

logger = logging.getLogger(__name__)


def figure_parameters(entry: FigureEntry, profile: str, assignments: Sequence[str] = ()) -> FigureParameters:
    """Checked parameters of a profile, changed by `name=value` assignments.

    Changed results get a profile name of their own (`small+width=256`), unless `profile` is among the assignments.
    Raises UserError, one line per problem.
    """
    values: dict[str, Any] = read_yaml(parameter_file(entry.name, profile))
    changes = dict(read_assignment(text) for text in assignments)
    original = check_parameters(entry.model, values)
    changed = check_parameters(entry.model, values | changes)
    differing = [n for n in changes if n != "profile" and changed.identity().get(n) != original.identity().get(n)]
    if differing and "profile" not in changes:
        parts = [f"{n}={changes[n]}".translate(str.maketrans("", "", " []'\"")).replace("/", "_") for n in differing]
        changed = check_parameters(entry.model, values | changes | {"profile": "+".join([profile, *parts])})
    return changed


def results_path(entry: FigureEntry, parameters: FigureParameters) -> Path:
    """Folder of the figure's results, `<results_folder>/<profile>/<figure>`."""
    return resolve(parameters.results_folder) / parameters.profile / entry.name


def run_figure(name: str, profile: str, assignments: Sequence[str] = ()) -> Path:
    """Run one figure and return its results folder; finished cells are reused, an interrupted run goes on.

    Raises UserError for bad parameters, an unknown figure or profile, or a folder that cannot be used, all before any
    computation; and when a notebook cell fails.
    """
    entry = figure_entry(name)
    parameters = figure_parameters(entry, profile, assignments)
    folder = results_path(entry, parameters)
    results = ResultsFolder(folder, parameters.identity())
    store = CellStore(resolve(parameters.cache_folder))
    started = time.perf_counter()
    cells = entry.cells(parameters)
    run_cells(cells, store, resolve_device(parameters.device), parameters.n_jobs, parameters.stack)
    print(f"{len(cells)} cells are there after {time.perf_counter() - started:.0f} s; executing {entry.notebook}")
    _execute(entry, parameters, results.folder)
    return folder


def _execute(entry: FigureEntry, parameters: FigureParameters, folder: Path) -> None:
    """Execute the notebook with papermill; the executed copy goes into `folder`, without the machine's paths."""
    output = folder / f"{entry.notebook}.ipynb"
    unfinished = folder / f".{entry.notebook}.unfinished.ipynb"
    try:
        papermill.execute_notebook(
            entry.notebook_path,
            unfinished,
            parameters=parameters.model_dump(),
            progress_bar=False,
            cwd=str(folder),
            extra_arguments=["--log-level=ERROR"],  # of the kernel, whose warnings would land on the terminal
        )
        notebook = nbformat.read(unfinished, as_version=4)
        write_text(output, nbformat.writes(without_traces(notebook)) + "\n")
    except papermill.PapermillExecutionError as error:
        raise UserError(f"{entry.notebook}: cell {error.exec_count} failed: {error.ename}: {error.evalue}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def without_traces(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The executed notebook without times, chance names, and papermill's paths, which name the machine's folders."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"  # papermill's own is new every time
    return notebook
