"""Figure 1: planned runs, selection, tables, verdicts, pictures, results folder."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from monolib.cells import CellRecord, CellStore
from monolib.claims import Claim, collect_claims, format_claims, read_claims, write_claims
from monolib.compare_results import largest_deviation
from monolib.errors import UserError
from monolib.fig1.claims import comparison, fig1_claims, is_paper_size, with_agreement
from monolib.fig1.paper import PAPER_TABLE
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig1.plots import draw_curves, draw_neurons, draw_table
from monolib.fig1.runs import curves_table, planned_runs, require_selection, runs_table
from monolib.fig1.tables import main_table, neurons_table, variations_table
from monolib.network_cells import trained_network
from monolib.parameter_files import read_yaml
from monolib.results_folder import ResultsFolder
from monolib.specialization import active_neurons, alignment, importance
from monolib.sweep import run_cells


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    """The smoke profile, computed once: parameters, planned runs, records."""
    parameters = Fig1Parameters(**read_yaml(root / "parameters" / "smoke" / "fig1.yaml"))
    planned = planned_runs(parameters)
    store = CellStore(tmp_path_factory.mktemp("cells"))
    return parameters, planned, run_cells([run.cell for run in planned], store, n_jobs=1)


def paper_parameters(root, **changes):
    return Fig1Parameters(**(read_yaml(root / "parameters" / "paper" / "fig1.yaml") | changes))


def paper_table():
    return PAPER_TABLE.assign(seed=0)


def test_paper_profile_is_the_papers_size(root):
    parameters = paper_parameters(root)
    assert is_paper_size(parameters)
    assert not is_paper_size(paper_parameters(root, width=2047))
    main = [run for run in planned_runs(parameters) if run.part == "main" and run.seed == parameters.seeds[0]]
    assert [run.learning_rate for run in main if run.architecture == "relu"] == [
        0.004,
        0.008,
        0.012,
        0.016,
        0.024,
        0.032,
    ]
    training = {run.architecture: run.cell.config["training"] for run in main}
    assert {name: t["max_steps"] for name, t in training.items()} == dict(
        relu=40000, gelu=20000, reglu=20000, swiglu=20000
    )
    assert [training[n]["learning_rate"] for n in ("gelu", "reglu", "swiglu")] == [0.016, 0.0016, 0.0256]
    assert all(t["width"] == t["batch_size"] == 2048 and t["final_rate_fraction"] == 0.1 for t in training.values())
    assert all(run.cell.config["sizes"] == {"train": 100000, "validation": 4096, "test": 2048} for run in main)


def test_variations_change_one_setting_and_share_cells_with_main_runs(smoke):
    names = ("start_scale", "readout_ratio", "rate_unit")
    settings = [dict(zip(names, v, strict=True)) for v in ((0.3, 1.0, "weights"), (1.0, 0.5, "width_aware"))]
    planned = planned_runs(smoke(start_scale=0.3, readout_ratio=1.0, rate_unit="weights", variations=settings))
    varied = [run for run in planned if run.part == "variation"]
    assert len(varied) == 2 * 4
    main = {run.cell.key for run in planned if run.part == "main"}
    for run in varied:
        setting = {name: getattr(run, name) for name in names}
        assert (run.cell.key in main) == (setting == settings[0])
        training = run.cell.config["training"]
        assert {name: training[name] for name in names} == setting
    assert {run.part for run in planned_runs(smoke(variations=[]))} == {"main"}


def test_search_selects_on_validation_alone(finished):
    parameters, planned, records = finished
    changed = [CellRecord(dict(record.result), record.arrays, record.provenance) for record in records]
    relu = [i for i, run in enumerate(planned) if run.part == "main" and run.architecture == "relu"]
    assert len(relu) == 2
    for i, validation, test in ((relu[0], 0.5, 0.1), (relu[1], 0.4, 0.9)):
        changed[i].result.update(validation_mse=validation, test_mse=test)
    table = runs_table(planned, changed)
    assert table["selected"].sum() == len(parameters.architectures)
    assert not table["selected"][relu[0]]
    assert table["selected"][relu[1]]
    changed[relu[1]].result.update(validation_mse=None)  # a run that diverged is never selected
    assert runs_table(planned, changed)["selected"][relu[0]]
    assert not table[table["part"] == "variation"]["selected"].any()


def test_tables_hold_what_the_networks_show(finished):
    parameters, planned, records = finished
    selected = runs_table(planned, records)["selected"]
    table = main_table(planned, records, selected, parameters.active_share)
    assert list(table.columns) == [
        *("architecture", "weights", "seed", "active"),
        *("cos_071", "cos_090", "dominant", "dominant_2x"),
    ]
    assert len(table) == 6
    assert table.iloc[:, 4:].apply(lambda column: column.between(0, 100)).all(axis=None)
    variations = variations_table(planned, records, parameters.active_share)
    assert set(variations["rate_unit"]) == {"width_aware"}
    neurons = neurons_table(planned, records, selected, parameters.active_share)
    gelu = next(i for i, run in enumerate(planned) if run.architecture == "gelu" and selected[i])
    network = trained_network(planned[gelu].cell, records[gelu])
    for (figure, neuron), rows in neurons.groupby(["figure", "neuron"]):
        weight = network.weight[neuron]
        np.testing.assert_allclose(rows["magnitude"], np.abs(weight), rtol=1e-6)
        a = alignment(weight[None].astype(float), np.eye(6)[2:4])[0]
        assert a == pytest.approx(rows["alignment"].iloc[0])
        assert (a >= 0.9) if figure == "fig1" else (a < 0.71 and rows["dominance"].iloc[0] > 2)
        assert neuron in active_neurons(importance(network), parameters.active_share)
    curves = curves_table(planned, records, selected)
    assert curves.groupby("architecture")["step"].max().eq(300).all()


def test_runs_that_diverged_have_no_measures_and_a_figure_without_any_says_so(finished):
    parameters, planned, records = finished
    failed = [CellRecord(record.result | {"validation_mse": None}, record.arrays, {}) for record in records]
    assert variations_table(planned, failed, parameters.active_share)["active"].isna().all()
    assert with_agreement(variations_table(planned, failed, parameters.active_share))["agree"].eq(0).all()
    with pytest.raises(UserError, match="none has a finite validation error"):
        require_selection(runs_table(planned, failed))
    require_selection(runs_table(planned, records))


def test_neurons_without_an_ungated_network(finished):
    _, planned, records = finished
    gated = [run.part == "main" and run.architecture in ("reglu", "swiglu") for run in planned]
    assert neurons_table(planned, records, gated, 0.999).empty


def test_verdicts_on_the_papers_own_table_are_reproduced(root):
    verdicts = fig1_claims(paper_table(), paper_parameters(root))
    assert [c.id for c in verdicts] == ["F1.a", "F1.b", "F1.c"]
    assert {c.verdict for c in verdicts} == {"reproduced"}
    assert "24 of 24 percentages and 6 of 6" in verdicts[2].here


@pytest.mark.parametrize(
    ("cell", "value", "claim", "verdict"),
    [
        (("relu", "hidden", "cos_090"), 19.9, "F1.a", "partly"),
        (("reglu", "gate", "cos_090"), 44.0, "F1.a", "partly"),
        (("reglu", "gate", "cos_071"), 48.4, "F1.b", "partly"),
        (("reglu", "gate", "cos_071"), 20.0, "F1.b", "not reproduced"),
        (("gelu", "hidden", "active"), 1710 * 1.26, "F1.c", "partly"),
        (("swiglu", "value", "dominant"), 77.4, "F1.c", "partly"),
    ],
)
def test_verdicts_notice_one_wrong_cell(root, cell, value, claim, verdict):
    table = paper_table().astype({"active": float}).set_index(["architecture", "weights"])
    table.loc[cell[:2], cell[2]] = value
    verdicts = {c.id: c.verdict for c in fig1_claims(table.reset_index(), paper_parameters(root))}
    assert verdicts[claim] == verdict


def test_verdicts_of_a_table_far_off_of_a_part_and_of_another_size(root, smoke):
    far = paper_table()
    far.loc[:, "cos_071":"dominant_2x"] = 0.0
    assert {c.verdict for c in fig1_claims(far, paper_parameters(root))} == {"not reproduced"}
    part = paper_table()[lambda t: t["architecture"] == "relu"]
    verdicts = {c.id: c.verdict for c in fig1_claims(part, paper_parameters(root))}
    assert set(verdicts.values()) == {"not run at this size"}
    assert "ReGLU gate not run" in fig1_claims(part, paper_parameters(root))[0].here
    assert fig1_claims(paper_table(), smoke())[2].verdict == "not run at this size"


def test_comparison_averages_over_seeds():
    two = pd.concat([paper_table(), paper_table().assign(seed=1, cos_071=lambda t: t["cos_071"] + 2)])
    rows = comparison(two).set_index(["architecture", "weights", "measure"])
    assert rows.loc[("relu", "hidden", "cos_071"), "here"] == pytest.approx(46.5)
    assert rows.loc[("relu", "hidden", "cos_071"), "seed_std"] == pytest.approx(np.sqrt(2))
    assert rows["agrees"].all()


def test_agreement_of_variations_counts_each_rows_measures():
    variations = PAPER_TABLE.assign(start_scale=1.0, readout_ratio=1.0, rate_unit="weights", validation_mse=0.1)
    variations.loc[2, ["cos_071", "active"]] = [0.0, 2000]
    assert with_agreement(variations)["agree"].tolist() == [5, 5, 3, 5, 5, 5]


def test_pictures_have_labels_and_every_panel(finished, smoke):
    parameters, planned, records = finished
    selected = runs_table(planned, records)["selected"]
    table = main_table(planned, records, selected, parameters.active_share)
    neurons = neurons_table(planned, records, selected, parameters.active_share)
    drawings = [
        draw_table(comparison(table), parameters.width, 2048),
        draw_neurons(neurons, "fig1", parameters.n_clusters, "title"),
        draw_neurons(neurons.iloc[:0], "fig5", parameters.n_clusters, "nothing to draw"),
        draw_curves(curves_table(planned, records, selected), parameters.noise_std),
    ]
    for drawing in drawings[:2] + drawings[3:]:
        assert drawing.axes
        assert all(axis.get_xlabel() for axis in drawing.axes if axis.axison)
    assert len(drawings[0].axes) == 5
    bars = [patch.get_height() for patch in drawings[1].axes[0].patches[: parameters.dim]]
    first = neurons[neurons["figure"] == "fig1"].sort_values(["importance_rank", "coordinate"])["magnitude"]
    np.testing.assert_allclose(bars, first[: parameters.dim])


def test_claims_round_trip_and_formats(tmp_path):
    claim = Claim("F1.a", "many", "10 %", "12 %", "width 3", "partly")
    write_claims(tmp_path / "small" / "fig1" / "claims.json", [claim])
    write_claims(tmp_path / "paper" / "fig1" / "claims.json", [claim])
    rows = collect_claims(tmp_path)
    assert rows == [("paper", claim), ("small", claim)]
    assert json.loads(format_claims(rows, "json"))[0]["verdict"] == "partly"
    assert format_claims(rows, "markdown").count("\n") == 3
    assert "verdict  partly" in format_claims(rows, "text")
    (tmp_path / "small" / "fig1" / "claims.json").write_text("[{}]")
    with pytest.raises(UserError, match="not a claims file"):
        read_claims(tmp_path / "small" / "fig1" / "claims.json")
    (tmp_path / "small" / "fig1" / "claims.json").write_text(json.dumps([asdict(claim) | {"here": None}]))
    with pytest.raises(UserError, match="a field is no text"):
        read_claims(tmp_path / "small" / "fig1" / "claims.json")
    with pytest.raises(ValueError, match="verdict='maybe'"):
        Claim("F1.a", "many", "10 %", "12 %", "width 3", "maybe")


def test_results_folder_of_another_configuration_is_refused_and_kept(tmp_path, smoke):
    folder = tmp_path / "fig1"
    ResultsFolder(folder, smoke().identity()).write_table("table", pd.DataFrame({"a": [1.0]}))
    ResultsFolder(folder, smoke(n_jobs=2).identity())
    with pytest.raises(UserError, match=r"holds results of other parameters \(width=32 there, 64 now\)"):
        ResultsFolder(folder, smoke(width=64).identity())
    assert (folder / "table.csv").read_text() == "a\n1\n"
    for damaged in ("{", "[]", "null"):
        (folder / "parameters.json").write_text(damaged)
        with pytest.raises(UserError, match=r"parameters\.json: is damaged"):
            ResultsFolder(folder, smoke().identity())


def test_results_folder_of_a_run_without_results_can_be_used_again(tmp_path, smoke):
    ResultsFolder(tmp_path, smoke().identity())
    ResultsFolder(tmp_path, smoke(width=64).identity())
    assert json.loads((tmp_path / "parameters.json").read_text())["width"] == 64


def test_results_folder_that_cannot_be_written_is_named(tmp_path, smoke):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/fig1: cannot be written"):
        ResultsFolder(tmp_path / "file" / "fig1", smoke().identity())


def test_results_folder_in_another_runs_hands_is_left_alone(tmp_path, smoke, monkeypatch):
    monkeypatch.setattr("monolib.results_folder.LOCK_SECONDS", 0.1)
    folder = tmp_path / "fig1"
    ResultsFolder(folder, smoke().identity())
    with FileLock(folder / ".lock.held"), pytest.raises(UserError, match="another run is writing there"):
        ResultsFolder(folder, smoke().identity())


def test_largest_deviation_finds_the_place_and_refuses_other_tables():
    old = pd.DataFrame({"name": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, np.nan]})
    assert largest_deviation(old, old)[0] == 0.0
    assert largest_deviation(old.assign(x=[1.0, 2.5]), old) == (0.5, "row 2, column x")
    assert largest_deviation(old.assign(y=[1.0, 3.0]), old) == (np.inf, "row 2, column y")
    flags = old.assign(selected=[True, False])
    assert largest_deviation(flags.assign(x=[1.0, 2.25]), flags) == (0.25, "row 2, column x")
    for other in (flags.assign(selected=[True, True]), old.assign(x=["a", "b"])):
        with pytest.raises(UserError):
            largest_deviation(other, flags if "selected" in other else old)
    for other in (old.assign(name=["a", "c"]), old.iloc[:1], old.drop(columns="x")):
        with pytest.raises(UserError):
            largest_deviation(other, old)
