"""Selecting cells by labels, and running a part of a figure."""

import pytest

from monolib.cell_selection import select_cells
from monolib.cells import Cell, CellStore
from monolib.command_line import main
from monolib.errors import UserError
from monolib.figures import FIGURES
from monolib.run_figure import figure_parameters

CELLS = [
    ({"method": method, "K": k, "n": n, "rate": 0.016}, Cell("kernel", {"method": method, "K": k, "n": n}))
    for method in ("relu", "rfm")
    for k in (1, 10, 50)
    for n in (200, 1000)
] + [({"method": "bayes", "K": 1}, Cell("kernel", {"method": "bayes"}))]


@pytest.mark.parametrize(
    ("only", "count"),
    [
        (["K=10"], 4),
        (["K=10,K=50,n=200"], 4),
        (["K=10", "n=200", "method=rfm"], 1),
        ([" K = 10 , n=1e3"], 2),
        (["rate=0.0160"], 12),
        (["K=1"], 5),
        (["method=bayes"], 1),
    ],
)
def test_cells_are_selected_by_all_names_and_any_of_a_names_values(only, count):
    selected = select_cells(CELLS, only)
    assert len(selected) == count
    for cell in selected:
        config = cell.config
        texts = ",".join(only).replace(" ", "").split(",")
        if any(text.startswith("K=") for text in texts) and "K" in config:
            assert f"K={config['K']}" in texts


@pytest.mark.parametrize(
    ("only", "line"),
    [
        (["k=10"], "only=k=10: k is unknown; names are method, K, n, rate"),
        (["K=7"], "only=K=7: K=7 matches no cell; K is one of 1, 10, 50"),
        (["K=ten"], "only=K=ten: K=ten matches no cell; K is one of 1, 10, 50"),
        (["K=10,K=7"], "only=K=10,K=7: K=7 matches no cell; K is one of 1, 10, 50"),
        (["K=10,method=bayes"], "only=K=10,method=bayes: method=bayes matches no cell; method is one of relu, rfm"),
        (["method=bayes,n=200"], "only=method=bayes,n=200: n=200 matches no cell; these cells have no n"),
        (["K"], "only='K': must be name=value,name=value"),
        (["K=1,"], "only='K=1,': must be name=value,name=value"),
        ([""], "only='': must be name=value,name=value"),
    ],
)
def test_a_selection_that_means_nothing_is_one_line(only, line):
    with pytest.raises(UserError) as caught:
        select_cells(CELLS, only)
    assert str(caught.value) == line


@pytest.mark.parametrize("figure", sorted(FIGURES))
def test_every_planned_cell_of_a_figure_can_be_selected_by_its_labels(figure):
    entry = FIGURES[figure]
    parameters = figure_parameters(entry, "smoke")
    labelled = entry.labelled_cells(parameters)
    assert [cell for _, cell in labelled] == entry.cells(parameters)
    for labels, cell in labelled:
        text = ",".join(f"{name}={value}" for name, value in labels.items())
        assert cell in select_cells(labelled, [text])


def test_a_part_of_a_figure_is_computed_and_the_rest_remains(tmp_path, capsys):
    folders = ["--set", f"results_folder={tmp_path / 'results'}", "--set", f"cache_folder={tmp_path / 'cells'}"]
    command = ["run", "fig1", "--profile", "smoke", *folders, "--only"]
    assert main([*command, "architecture=reglu,part=main"]) == 0
    assert "1 selected cells are there" in (out := capsys.readouterr().out)
    assert "1 of the 9 cells of fig1; 8 remain" in out
    assert main([*command, "architecture=reglu"]) == 0
    assert "2 of the 9 cells of fig1; 7 remain" in capsys.readouterr().out
    entry = FIGURES["fig1"]
    parameters = figure_parameters(entry, "smoke")
    expected = {cell.key for cell in select_cells(entry.labelled_cells(parameters), ["architecture=reglu"])}
    assert {path.stem for path in CellStore(tmp_path / "cells").folder.glob("*.json")} == expected
    assert not (tmp_path / "results").exists()
    assert main([*command, "architecture=tanh"]) == 1
    assert capsys.readouterr().err.startswith(
        "monolib: only=architecture=tanh: architecture=tanh matches no cell; archi"
    )
