"""Notebooks: pairs in step, sources without outputs, executed through papermill's own command line."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from monolib.figures import FIGURES
from monolib.parameter_files import read_yaml
from monolib.project_paths import project_root

NOTEBOOKS = sorted((project_root() / "notebooks").glob("*.ipynb"))
PAIRS = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
ENTRIES = pytest.mark.parametrize("entry", FIGURES.values(), ids=list(FIGURES))
# what a smoke run leaves: pictures and tables by name, a line of the verdict table, cells
OUTCOMES = {
    "fig1": (
        ("table", "curves", "fig1_neurons", "fig5_neurons"),
        ("table", "runs", "curves", "neurons", "variations"),
        "| F1.c |",
    ),
    "kernels": (
        ("metrics", "learned", "errors", "curves"),
        ("errors", "summary", "metrics", "entries", "curves", "variations"),
        "| K.4 |",
    ),
    "fig2": (
        ("fig2", "fig6", "one_cell"),
        ("curves", "variations", "one_cell"),
        "| F6.b |",
    ),
    "fig4": (
        ("fig3", "contributions", "profiles", "gates", "predictions", "fig4", "variants"),
        ("curves", "gates", "misrouted", "variants"),
        "| F4.b |",
    ),
    "theorem1": (
        ("off_component", "flows", "alignment", "times", "coverage", "tracking", "sgd", "dependencies"),
        ("checks", "controls", "ascents", "flows", "coverage", "tracking", "theorem", "times", "sgd"),
        "| T1.9 |",
    ),
    "theorem2": (
        ("metric", "energies", "bound", "kernels", "risks"),
        ("checks", "controls", "kernel", "mlp", "bound", "comparison"),
        "| T2.17 |",
    ),
}


def papermill(*arguments, cwd):
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_every_notebook_has_its_pair(root):
    assert {p.stem for p in NOTEBOOKS} == {p.stem for p in (root / "notebooks").glob("*.py")} != set()


@PAIRS
def test_pair_is_in_step_and_source_has_no_outputs(path):
    notebook, script = nbformat.read(path, as_version=4), jupytext.read(path.with_suffix(".py"))
    cells = [[(c.cell_type, c.source, c.metadata.get("tags", [])) for c in n.cells] for n in (notebook, script)]
    assert cells[0] == cells[1], f"{path.name} and its .py differ: run `make notebooks`"
    assert notebook.metadata.kernelspec == script.metadata.kernelspec
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


def test_a_pair_out_of_step_is_noticed(tmp_path, root):
    for suffix in (".py", ".ipynb"):
        source = root / "notebooks" / f"01_specialized_neurons{suffix}"
        text = source.read_text()
        (tmp_path / source.name).write_text(text.replace("noise_std = 0.005", "noise_std = 0.5", suffix == ".py"))
    with pytest.raises(AssertionError, match="run `make notebooks`"):
        test_pair_is_in_step_and_source_has_no_outputs(tmp_path / "01_specialized_neurons.ipynb")


@PAIRS
def test_no_long_code_cells(path):
    code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    parameters = [source for source in code if source.startswith("profile = ")]
    assert len(parameters) == 1
    assert max(source.count("\n") + 1 for source in code if source not in parameters) <= 25


@ENTRIES
def test_defaults_are_the_small_profile(root, entry):
    notebook = nbformat.read(entry.notebook_path, as_version=4)
    tagged = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    defaults = {s.targets[0].id: ast.literal_eval(s.value) for s in ast.parse(tagged[0]).body}
    assert defaults == read_yaml(root / "parameters" / "small" / f"{entry.name}.yaml")
    assert set(defaults) == set(entry.model.model_fields)


@pytest.fixture(scope="module", params=list(FIGURES))
def executed(request, root, tmp_path_factory):
    """The smoke profile through papermill's command line, from a working folder far from the project."""
    folder, entry = tmp_path_factory.mktemp("elsewhere"), FIGURES[request.param]
    result = papermill(
        entry.notebook_path,
        "out.ipynb",
        "-f",
        root / "parameters" / "smoke" / f"{entry.name}.yaml",
        *("-p", "results_folder", str(folder / "results"), "-p", "cache_folder", str(folder / "cells")),
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return entry, folder, folder / "results" / "smoke" / entry.name


def test_executed_notebook_holds_its_figures_and_its_verdict_table(executed):
    entry, folder, results = executed
    pictures, tables, verdict = OUTCOMES[entry.name]
    notebook = nbformat.read(folder / "out.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == len(pictures)
    assert any(verdict in output.get("data", {}).get("text/markdown", "") for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)
    names = {path.name for path in results.iterdir()}
    files = {f"{name}.csv" for name in tables} | {f"{name}.{suffix}" for name in pictures for suffix in ("pdf", "png")}
    assert files | {"claims.json", "provenance.json", "parameters.json"} <= names


def test_provenance_names_code_libraries_and_device_for_every_cell(executed, root):
    entry, _, results = executed
    records = json.loads((results / "provenance.json").read_text())
    parameters = entry.model(**read_yaml(root / "parameters" / "smoke" / f"{entry.name}.yaml"))
    assert set(records) == {cell.key for cell in entry.cells(parameters)}
    for record in records.values():
        expected = {"monolib", "commit", "uncommitted_changes", "torch", "numpy", "device_name", "threads", "seconds"}
        assert expected <= set(record)
        assert record["threads"] == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-p", "widht", "5"], "widht=5: unknown parameter; did you mean width?"),
        (["-y", "noise_std: 1e-6"], "noise_std='1e-6': is text, not a number"),
        (["-p", "architectures", "relu"], "architectures='relu': input should be a valid list"),
    ],
)
def test_a_typo_on_papermills_command_line_stops_the_run_with_one_line(tmp_path, root, arguments, line):
    result = papermill(
        root / "notebooks" / "01_specialized_neurons.ipynb",
        "out.ipynb",
        "-f",
        root / "parameters" / "smoke" / "fig1.yaml",
        *("-p", "results_folder", str(tmp_path / "results"), "-p", "cache_folder", str(tmp_path / "cells")),
        *arguments,
        cwd=tmp_path,
    )
    assert result.returncode != 0
    assert f"UserError: {line}" in result.stderr
    assert not (tmp_path / "cells").exists()


@ENTRIES
def test_a_notebook_can_be_run_again_in_the_same_kernel(entry, root, tmp_path):
    notebook = nbformat.read(entry.notebook_path, as_version=4)
    folders = {"results_folder": str(tmp_path / "results"), "cache_folder": str(tmp_path / "cells")}
    smoke = read_yaml(root / "parameters" / "smoke" / f"{entry.name}.yaml") | folders
    lines = "\n".join(f"{name} = {value!r}" for name, value in smoke.items())
    index = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    notebook.cells[index].source = lines
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = code + [nbformat.v4.new_code_cell(cell.source) for cell in code]
    NotebookClient(notebook, timeout=300).execute()


def test_committed_executed_notebooks_name_no_machine(root):
    for path in Path(root / "results").glob("*/*/*.ipynb"):
        text = path.read_text()
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|Users|var|private)/", text), path
        assert "papermill" not in json.loads(text)["metadata"]
