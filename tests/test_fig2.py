"""Figures 2 and 6: the data's law and nesting, cells, tables, paired statistics, verdicts."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from monolib.cells import CellStore
from monolib.errors import UserError
from monolib.fig2 import claims, one_cell, tables
from monolib.fig2.paper import PAPER_SIZE, size_differences
from monolib.fig2.parameters import Fig2Parameters
from monolib.fig2.runs import grid_runs, labelled_cells, variation_runs
from monolib.figures import parameter_file
from monolib.kernel_cells import kernel_cell
from monolib.local_predictors import fit_local
from monolib.mixed_link_data import POOL_POINTS, MixedLinkData
from monolib.network_cells import cell_law, n_train, pool_network_cell, trained_network, training_config
from monolib.networks import Network
from monolib.parameter_files import check_parameters, read_yaml
from monolib.rfm import RFMConfig
from monolib.run_figure import run_figure, run_part
from monolib.sample_size.finished import available_runs
from monolib.sample_size.overlay import overlay_statistics
from monolib.sample_size.paired import paired_difference
from monolib.sample_size.tables import COLUMNS, curves_table, paired_log_ratio, seed_statistics
from monolib.sweep import run_cells
from monolib.training_config import TrainingConfig


def parameters(profile="smoke", **changes):
    return check_parameters(Fig2Parameters, read_yaml(parameter_file("fig2", profile)) | changes)


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """(parameters, runs, records, store) of a part of the smoke profile."""
    p = parameters(architectures=["relu", "reglu"], sizes=[200, 400], seeds=[0, 1], variations=[])
    store = CellStore(tmp_path_factory.mktemp("cells"))
    runs = grid_runs(p)
    return p, runs, run_cells([run.cell for run in runs], store, n_jobs=1), store


# --- data ---


@pytest.mark.parametrize("n_clusters", [1, 2, 10, 50])
def test_training_sets_are_nested_and_balanced(n_clusters):
    small, large = (MixedLinkData(n_clusters, n, 10, 3).draw().train for n in (2_003, 5_000))
    for a, b in zip(small, large, strict=True):
        np.testing.assert_array_equal(a, b[:2_003])
    for sample in (small, large):
        counts = np.bincount(sample.cluster, minlength=n_clusters)
        assert counts.max() - counts.min() <= 1


def test_what_seeds_share_and_what_they_do_not():
    first, second = (MixedLinkData(10, 1_000, 500, r).draw() for r in (0, 1))
    np.testing.assert_array_equal(first.law.centers, second.law.centers)
    np.testing.assert_array_equal(first.law.directions, second.law.directions)
    assert first.law.links != second.law.links
    assert not np.isclose(first.train.x, second.train.x).any()
    assert not np.isclose(first.train.x[:500], first.test.x).any()
    assert MixedLinkData(10, 1_000, 500, 4).model_seed == 1004


def test_moments_of_the_pool():
    law, train, test = MixedLinkData(10, POOL_POINTS, 4_096, 0).draw()
    assert (len(train.x), len(test.x)) == (200_000, 4_096)
    for c in range(10):
        x = train.x[train.cluster == c]
        z = (x.mean(0) - law.centers[c]) / (law.input_std / math.sqrt(len(x)))
        assert stats.kstest(z, "norm").pvalue > 1e-4
        covariance = np.cov(x.T) / np.outer(law.input_std, law.input_std)
        assert np.abs(covariance - np.eye(20)).max() < 6 / math.sqrt(len(x))
    clean = law.noiseless(train.x, train.cluster)
    assert np.std(train.y - clean) == pytest.approx(0.02, rel=0.01)


def test_separation_between_neighbouring_clusters():
    """σ_K puts neighbouring centers √(2(1 − ρ)) apart, that is at 8 σ_K for ρ = 1/2 and further away below it."""
    law = MixedLinkData(50, 100, 10, 0).law()
    distances = np.linalg.norm(law.centers[:, None] - law.centers[None], axis=2)[~np.eye(50, dtype=bool)]
    rho, sigma = 1 - distances.min() ** 2 / 2, law.input_std[0]
    assert sigma == pytest.approx((1 - rho) / 8)
    assert distances.min() / sigma == pytest.approx(8 * math.sqrt(2 / (1 - rho)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((10, 9, 5, 0), "n_train=9"), ((1, POOL_POINTS + 1, 5, 0), "n_train=200001"), ((1, 5, 0, 0), "n_test=0")],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        MixedLinkData(*arguments)


# --- cells ---


def test_the_paper_has_480_cells_and_its_numbers():
    p = parameters("paper")
    runs = grid_runs(p)
    assert len(runs) == 480
    assert len({run.cell.key for run in runs}) == 480 - 20  # K = 1: the oracle is the global fit
    assert size_differences(p).empty
    assert {row["parameter"] for _, row in size_differences(parameters()).iterrows()} <= set(PAPER_SIZE)
    config = training_config(next(run.cell for run in runs if (run.method, run.seed) == ("swiglu", 3)))
    assert (config.learning_rate, config.seed, config.select) == (0.01, 1003, "training")
    stop = config.stop
    assert (stop.min_steps, stop.target_mse, stop.patience, stop.min_improvement) == (20_000, 4e-4, 60, 5e-4)


def test_every_method_of_a_place_in_the_grid_sees_the_same_data():
    runs = [r for r in grid_runs(parameters("paper")) if (r.n_clusters, r.n_train, r.seed) == (10, 50_000, 2)]
    data = [run.cell.config["data"] for run in runs]
    assert len(runs) == 6
    assert all(entry == {"n_clusters": 10, "n_train": 50_000, "n_test": 4096, "seed": 2} for entry in data)


def test_pool_network_cell_trains_on_the_prefix_and_keeps_the_smallest_full_training_error(tmp_path):
    data = MixedLinkData(3, 300, 50, 1)
    config = TrainingConfig("relu", 32, 64, 0.01, 60, data.model_seed, evaluate_every=20, select="training")
    cell = pool_network_cell(data, config)
    record = run_cells([cell], CellStore(tmp_path), n_jobs=1)[0]
    law, train, test = data.draw()
    network = trained_network(cell, record)
    mse = np.mean(np.square(network.predict(train.x) - train.y))
    assert record.result["train_mse"] == pytest.approx(mse, rel=1e-4)
    assert record.result["train_mse"] == min(row[1] for row in record.result["history"])
    assert record.result["test_mse"] == pytest.approx(np.mean(np.square(network.predict(test.x) - test.y)), rel=1e-6)
    assert (n_train(cell), cell_law(cell).links) == (300, law.links)


def test_oracle_cell_reports_the_pooled_training_error(tmp_path):
    data, config = MixedLinkData(3, 100, 50, 0), RFMConfig(n_updates=1)
    record = run_cells([kernel_cell("oracle", data, config)], CellStore(tmp_path), n_jobs=1)[0]
    _, train, _ = data.draw()
    fits = fit_local(train.x, train.y, train.cluster, config)
    for t in (0, 1):
        error = np.mean(np.square(fits.predict(train.x, train.cluster, t) - train.y))
        report = record.result["reports"][t]
        assert report["train_mse"] == pytest.approx(error, rel=1e-6)
        assert report["stop_reason"] == "solved"


def test_bad_parameters_are_told_in_one_line():
    for changes, message in (
        ({"sizes": [400, 200]}, "sizes="),
        ({"sizes": [2], "page_size": 2}, "sizes=.*at least 3"),
        ({"min_steps": 300}, "min_steps=300"),
        ({"page_clusters": 7}, "page_clusters=7: must be one of"),
        ({"architectures": ["relu", "relu"]}, "architectures="),
        ({"seeds": [1, 1], "page_seed": 1}, "seeds="),
    ):
        with pytest.raises(UserError, match=message):
            parameters(**changes)


# --- tables ---


def test_curves_table_has_every_method_at_every_place(computed):
    p, runs, records, _ = computed
    curves = curves_table(runs, records, p.n_test)
    assert tuple(curves.columns) == COLUMNS
    methods = {"relu", "reglu", "laplace", "rfm", "rfm_envelope", "oracle_laplace", "oracle_rfm", "bayes"}
    for _, place in curves.groupby(["n_clusters", "n_train", "seed"]):
        assert sorted(place["method"]) == sorted(methods)
        value = place.set_index("method")["test_mse"]
        assert value["rfm_envelope"] <= min(value["laplace"], value["rfm"])
    one = curves[curves["n_clusters"] == 1].pivot(index=["n_train", "seed"], columns="method", values="test_mse")
    np.testing.assert_array_equal(one["laplace"], one["oracle_laplace"])
    np.testing.assert_array_equal(one["rfm"], one["oracle_rfm"])
    assert not curves.isna().any().any()


def test_bayes_rows_use_the_prefix(computed):
    p, runs, records, _ = computed
    curves = curves_table(runs, records, p.n_test)
    row = curves[(curves["method"] == "bayes") & (curves["n_clusters"] == 1) & (curves["n_train"] == 200)].iloc[0]
    law, train, test = MixedLinkData(1, 200, p.n_test, int(row["seed"])).draw()
    assert row["train_mse"] == pytest.approx(np.mean(np.square(law.noiseless(train.x, train.cluster) - train.y)))
    assert row["test_mse"] == pytest.approx(np.mean(np.square(law.noiseless(test.x, test.cluster) - test.y)))


def test_only_finished_draws_what_is_there(computed, tmp_path):
    _, runs, _, store = computed
    more = parameters(only_finished=True, architectures=["relu", "reglu", "gelu"], variations=[])
    found, _ = available_runs(grid_runs(more), store, more)
    assert {run.cell.key for run in found} == {run.cell.key for run in runs}
    with pytest.raises(UserError, match="only_finished=True: none of the"):
        available_runs(grid_runs(more), CellStore(tmp_path), more)
    assert available_runs([], store, more) == ([], [])


def test_overlay_reads_another_profile(computed, tmp_path):
    p, runs, records, _ = computed
    curves = curves_table(runs, records, p.n_test)
    assert overlay_statistics(str(tmp_path), "paper", "fig2").empty
    (tmp_path / "paper" / "fig2").mkdir(parents=True)
    curves.to_csv(tmp_path / "paper" / "fig2" / "curves.csv", index=False)
    read = overlay_statistics(str(tmp_path), "paper", "fig2")
    pd.testing.assert_frame_equal(read, seed_statistics(curves))
    (tmp_path / "paper" / "fig2" / "curves.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="must have the columns"):
        overlay_statistics(str(tmp_path), "paper", "fig2")
    assert overlay_statistics(str(tmp_path), "", "fig2").empty


def test_variations_start_with_the_grid_setting():
    p = parameters()
    runs = variation_runs(p)
    assert len(runs) == len(p.variation_architectures) * (1 + len(p.variations))
    grid = {run.cell.key for run in grid_runs(p)}
    assert [run.cell.key in grid for run in runs] == [True, False, False, False] * 2
    assert len({cell.key for _, cell in labelled_cells(p)}) == len(grid) + 6


# --- inside one cell ---


def test_contributions_of_hand_made_neurons_name_their_clusters():
    data = MixedLinkData(3, 300, 600, 0)
    law, _, test = data.draw()
    network = Network(
        "relu",
        np.vstack([law.centers, np.zeros((1, 20))]),
        np.array([-0.5, -0.5, -0.5, 0.0]),
        np.array([1.0, -2.0, 3.0, 5.0]),
        0.0,
    )
    contributions = one_cell.cluster_contributions(network, test, 3)
    by_hand = [
        [
            np.abs(a * np.maximum(test.x[test.cluster == c] @ w + b, 0)).mean()
            for w, b, a in zip(network.weight, network.bias, network.readout, strict=True)
        ]
        for c in range(3)
    ]
    np.testing.assert_allclose(contributions, by_hand, atol=1e-12)
    neurons = one_cell.neuron_clusters(contributions)
    assert list(neurons["neuron"]) == list(neurons["cluster"]) == [0, 1, 2]
    assert (neurons["selectivity"] > 0.95).all()
    table = one_cell.clusters_table(law, {"relu": network}, test, "relu")
    assert list(table["neurons"]) == [1, 1, 1]
    pooled = np.average(table["mse_relu"], weights=table["test_points"])
    assert pooled == pytest.approx(np.mean(np.square(network.predict(test.x) - test.y)))


def test_alignment_of_a_cluster_is_that_of_its_neurons():
    law, _, test = MixedLinkData(2, 300, 400, 0).draw()
    weight = law.centers + law.directions  # one neuron per cluster, along its direction
    network = Network("relu", weight, np.zeros(2), np.ones(2), 0.0)
    table = one_cell.clusters_table(law, {"relu": network}, test, "relu")
    np.testing.assert_allclose(table["cosine"], 1.0)


# --- paired statistics and verdicts ---


def test_paired_difference_agrees_with_scipy():
    values = pd.Series([-0.3, -0.1, -0.25, 0.02])
    found = paired_difference(values)
    assert found.standard_error == pytest.approx(stats.sem(values))
    assert found.mean / found.standard_error == pytest.approx(stats.ttest_1samp(values, 0).statistic)
    one = paired_difference(pd.Series([-1.0]))
    assert math.isnan(one.standard_error)
    assert one.is_below_zero
    assert not one.excludes_zero
    with pytest.raises(ValueError, match="at least one pair"):
        paired_difference(pd.Series(dtype=float))


def synthetic(errors, clusters=(1, 2, 10, 50), seeds=3, spread=0.02):
    """Curves with test MSE errors[method](K), a different level per seed, and a little independent noise."""
    rng = np.random.default_rng(0)
    rows = []
    for k in clusters:
        for seed in range(seeds):
            level = math.exp(seed)  # common to all methods of a seed: pairing removes it
            for method, error in errors.items():
                mse = level * error(k) * math.exp(spread * rng.standard_normal())
                rows.append((k, 1000, seed, method, mse, 1e-4, 10, "target"))
    return pd.DataFrame(rows, columns=list(COLUMNS))


PAPER_LIKE = {
    "relu": lambda k: 0.02,
    "gelu": lambda k: 0.019,
    "reglu": lambda k: 0.01,
    "swiglu": lambda k: 0.008,
    "laplace": lambda k: 0.5 + 2 / k,
    "rfm_envelope": lambda k: 0.5,
    "oracle_rfm": lambda k: 0.004,
}


def verdicts(curves):
    return {claim.id: claim.verdict for claim in claims.fig2_claims(curves, parameters())}


def test_data_like_the_papers_reproduce_its_claims():
    assert verdicts(synthetic(PAPER_LIKE)) == {
        "F2.a": "reproduced",
        "F2.b": "reproduced",
        "F2.c": "reproduced",
        "F2.d": "reproduced",
        "F6.a": "reproduced",
        "F6.b": "not reproduced",
    }


@pytest.mark.parametrize(
    ("changes", "claim", "expected"),
    [
        ({"laplace": lambda k: 0.5 + k}, "F2.a", "not reproduced"),
        ({"laplace": lambda k: 1.5 if k == 50 else 0.5 + 2 / k}, "F2.a", "partly"),
        ({"relu": lambda k: 0.9 if k == 50 else 0.02}, "F2.b", "partly"),
        ({"oracle_rfm": lambda k: 1e-6}, "F2.c", "not reproduced"),
        ({"reglu": lambda k: 0.03}, "F2.d", "not reproduced"),
        ({"gelu": lambda k: 0.05}, "F6.a", "partly"),
        ({"reglu": lambda k: 0.03}, "F6.b", "reproduced"),
    ],
)
def test_a_claim_fails_when_the_data_say_so(changes, claim, expected):
    assert verdicts(synthetic(PAPER_LIKE | changes))[claim] == expected


def test_a_difference_within_its_error_is_not_reproduced():
    close = PAPER_LIKE | {"reglu": lambda k: 0.0199}
    assert verdicts(synthetic(close, spread=0.3))["F2.d"] != "reproduced"
    assert verdicts(synthetic(PAPER_LIKE, seeds=1))["F2.d"] == "partly"


def test_claims_about_many_clusters_are_not_run_without_them():
    found = verdicts(synthetic(PAPER_LIKE, clusters=(1, 2, 10)))
    assert found["F2.a"] == "reproduced"
    assert {found[name] for name in ("F2.b", "F2.c", "F2.d", "F6.a", "F6.b")} == {"not run at this size"}
    few = synthetic({name: PAPER_LIKE[name] for name in ("laplace", "rfm_envelope")})
    assert verdicts(few)["F2.d"] == "not run at this size"


def test_the_largest_common_size_is_used():
    curves = synthetic(PAPER_LIKE)
    longer = curves[curves["n_clusters"] != 50].assign(n_train=5000)
    claim = next(c for c in claims.fig2_claims(pd.concat([curves, longer]), parameters()) if c.id == "F2.d")
    assert claim.here.startswith("n = 1000")


def test_ratios_pair_seeds_and_drop_those_that_lack_a_method():
    curves = synthetic(PAPER_LIKE, spread=0.0)
    gone = curves[~((curves["seed"] == 1) & (curves["method"] == "relu"))]
    ratios = paired_log_ratio(gone, "reglu", "relu", 10, 1000)
    np.testing.assert_allclose(ratios, math.log(0.5))
    assert list(ratios.index) == [0, 2]


def test_endings_count_every_network(computed):
    p, runs, records, _ = computed
    curves = curves_table(runs, records, p.n_test)
    endings = tables.endings_table(curves)
    reasons = [name for name in endings.columns if name not in ("method", "n_clusters", "median_steps")]
    assert endings[reasons].to_numpy().sum() == curves["method"].isin(tables.NETWORKS).sum()


def test_a_part_is_computed_and_drawn(tmp_path):
    """`--only` computes some kernel fits, `only_finished` draws them: no network is there, and nothing is computed."""
    folders = [f"results_folder={tmp_path / 'results'}", f"cache_folder={tmp_path / 'cells'}"]
    told = run_part("fig2", "smoke", [*folders, "n_jobs=1"], ["method=global,seed=0"])
    assert told.startswith("4 selected cells are there")
    folder = run_figure("fig2", "smoke", [*folders, "only_finished=true"])
    curves = pd.read_csv(folder / "curves.csv")
    # for K = 1 the oracle is the same cell
    assert set(curves.loc[curves["n_clusters"] == 3, "method"]) == {"laplace", "rfm", "rfm_envelope", "bayes"}
    assert set(curves.loc[curves["n_clusters"] == 1, "method"]) >= {"oracle_laplace", "oracle_rfm"}
    assert len(list((tmp_path / "cells").glob("*.json"))) == 4
    assert "not run at this size" in (folder / "claims.json").read_text()
