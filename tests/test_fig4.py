"""Figures 3 and 4: gated cells, what they share with Figure 2, tables, verdicts, edge cases."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from monolib.cells import Cell, CellStore
from monolib.errors import UserError
from monolib.fig2 import runs as fig2_runs
from monolib.fig2.parameters import Fig2Parameters
from monolib.fig4 import claims, one_cell, tables
from monolib.fig4.parameters import Fig4Parameters
from monolib.fig4.runs import gated_run, grid_runs, labelled_cells, variant_runs
from monolib.figures import parameter_file
from monolib.gated_cells import (
    GateSettings,
    chosen_gates,
    gated_cell,
    source_cell,
    stored_gates,
    true_gates,
)
from monolib.gates import find_gates, profiles
from monolib.local_predictors import fit_gated, fit_local
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import pool_network_cell, trained_network
from monolib.networks import Network
from monolib.parameter_files import check_parameters, read_yaml
from monolib.rfm import RFMConfig
from monolib.sample_size.tables import COLUMNS
from monolib.sweep import grouped_cells, one_thread, run_cells
from monolib.training_config import TrainingConfig

DATA = MixedLinkData(3, 300, 80, 1)
FIT = RFMConfig(n_updates=1)


def parameters(profile="smoke", **changes):
    return check_parameters(Fig4Parameters, read_yaml(parameter_file("fig4", profile)) | changes)


def network_cell(data=DATA, architecture="relu", steps=300):
    config = TrainingConfig(
        architecture, 64, 64, 0.01, steps, data.model_seed, evaluate_every=steps, select="training", start_scale=1.0
    )
    return pool_network_cell(data, config)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return CellStore(tmp_path_factory.mktemp("cells"))


@pytest.fixture(scope="module")
def learned(store):
    """(gated cell, its record, the network of its network cell)."""
    cell = gated_cell(network_cell(), GateSettings(3, seed=DATA.model_seed), FIT)
    record = run_cells([cell], store, n_jobs=1)[0]
    return cell, record, trained_network(source_cell(cell), store.read(source_cell(cell)))


# --- gated cells ---


def test_cell_is_the_procedure_on_the_networks_own_data(learned):
    cell, record, network = learned
    _, train, test = DATA.draw()
    with one_thread("cpu"), threadpool_limits(1):  # as in a cell: sums depend on the number of threads
        gates = find_gates(network, train.x, 3, DATA.model_seed)
        fits = fit_gated(train.x, train.y, gates, FIT)
        outputs = [fits.predict(test.x, gates.assign(test.x), t) for t in (0, 1)]
    np.testing.assert_allclose(record.result["test_mse"], [np.mean((f - test.y) ** 2) for f in outputs], rtol=1e-9)
    np.testing.assert_allclose(record.arrays["predictions"], outputs, rtol=1e-5, atol=1e-6)
    assert record.result["network_test_mse"] == pytest.approx(np.mean((network.predict(test.x) - test.y) ** 2))
    train_mse = np.mean((fits.predict(train.x, gates.assignment, 1) - train.y) ** 2)
    assert record.result["reports"][1]["train_mse"] == pytest.approx(train_mse, rel=1e-5)
    again = stored_gates(cell, record, network)
    np.testing.assert_array_equal(again.assign(test.x), record.arrays["test_gate"])


def test_laplace_behind_one_gate_by_an_independent_solve(learned):
    """Iteration 0 of one gate: (K + 1e-6 I)⁻¹ y with scipy's distances in the representation G_c^{1/2} x."""
    _, record, _ = learned
    _, train, test = DATA.draw()
    c = 0
    own, at = record.arrays["assignment"] == c, record.arrays["test_gate"] == c
    values, vectors = np.linalg.eigh(record.arrays["metrics"][c])
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    z, u = train.x[own] @ root, test.x[at] @ root
    distances = cdist(z, z)
    h = np.median(distances[np.triu_indices(len(z), 1)])
    alpha = np.linalg.solve(np.exp(-distances / h) + 1e-6 * np.eye(len(z)), train.y[own])
    np.testing.assert_allclose(record.arrays["predictions"][0][at], np.exp(-cdist(u, z) / h) @ alpha, atol=2e-5)


def test_rand_index_is_the_pair_counting_one(learned):
    _, record, _ = learned
    _, _, test = DATA.draw()
    gate, cluster = record.arrays["test_gate"], test.cluster
    pairs = list(itertools.combinations(range(len(gate)), 2))
    same_gate = np.array([gate[i] == gate[j] for i, j in pairs])
    same_cluster = np.array([cluster[i] == cluster[j] for i, j in pairs])
    both, expected = (same_gate & same_cluster).sum(), same_gate.sum() * same_cluster.sum() / len(pairs)
    ari = (both - expected) / ((same_gate.sum() + same_cluster.sum()) / 2 - expected)
    assert record.result["gate_ari"] == pytest.approx(ari)


def test_the_network_is_trained_once_and_shared(learned, store):
    cell, _, _ = learned
    network = source_cell(cell)
    before = store.file(network, "json").read_bytes()
    other = gated_cell(network, GateSettings(2, seed=0), FIT)
    run_cells([other, network], store, n_jobs=1)
    assert store.file(network, "json").read_bytes() == before
    assert network.key == network_cell().key


def test_gated_cells_start_after_all_others():
    cells = [cell for _, cell in labelled_cells(parameters())]
    kinds = [group[0].kind for group in grouped_cells(cells, 1)]
    first = kinds.index("gated")
    assert set(kinds[first:]) == {"gated"}


def test_true_clusters_with_the_identity_are_the_oracle(store):
    cell = gated_cell(network_cell(), GateSettings(3, 0, "true", "identity"), FIT)
    record = run_cells([cell], store, n_jobs=1)[0]
    _, train, test = DATA.draw()
    oracle = fit_local(train.x, train.y, train.cluster, FIT)
    errors = [np.mean((oracle.predict(test.x, test.cluster, t) - test.y) ** 2) for t in (0, 1)]
    np.testing.assert_allclose(record.result["test_mse"], errors, rtol=1e-6)
    assert record.result["gate_ari"] == 1.0


def test_true_gates_average_the_profiles_of_a_cluster(learned):
    _, _, network = learned
    _, train, _ = DATA.draw()
    gates = true_gates(network, train, 3)
    p = profiles(network, gates.active, train.x)
    for c in range(3):
        q = p[train.cluster == c].astype(float).mean(0)
        weight = network.weight[gates.active].astype(float)
        np.testing.assert_allclose(gates.centroids[c], q, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(gates.metrics[c], (weight.T * q) @ weight / q.sum(), rtol=1e-4, atol=1e-7)
    with pytest.raises(ValueError, match="cluster: 3 has no training points"):
        true_gates(network, train, 4)


# --- edge cases ---


def test_one_cluster_has_one_gate_and_no_choice(tmp_path):
    data = MixedLinkData(1, 120, 40, 0)
    record = run_cells([gated_cell(network_cell(data), GateSettings(1, 0), FIT)], CellStore(tmp_path), n_jobs=1)[0]
    assert record.result["gates"] == 1
    assert not record.arrays["test_gate"].any()
    assert np.isfinite(record.result["test_mse"]).all()


def test_more_gates_than_active_neurons(learned):
    """With two neurons that matter, K = 3 keeps three; more gates than distinct profiles leave some empty."""
    _, _, network = learned
    _, train, _ = DATA.draw()
    readout = np.zeros_like(network.readout)
    readout[:2] = network.readout[:2]
    bare = Network("relu", network.weight, network.bias, readout, 0.0)
    gates = find_gates(bare, train.x, 3, 0)
    assert len(gates.active) == 3
    fits = fit_gated(train.x, train.y, gates, FIT)
    assert set(fits.fits) == set(gates.occupied)
    assert np.isfinite(fits.predict(train.x, gates.assign(train.x))).all()


def test_a_network_that_never_fires_leaves_one_gate(learned):
    """All biases far below zero: no input has a profile; all go to one gate, with the identity as its metric."""
    _, _, network = learned
    _, train, test = DATA.draw()
    silent = Network("relu", network.weight, np.full_like(network.bias, -1e3), network.readout, 0.0)
    gates = chosen_gates(silent, train, GateSettings(3, 0))
    assert len(gates.occupied) == 1
    np.testing.assert_array_equal(gates.metrics[gates.occupied[0]], np.eye(20))
    assert (gates.assign(test.x) == gates.occupied[0]).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GateSettings(0, 0), "n_gates=0"),
        (lambda: GateSettings(1, 0, assignment="guessed"), "assignment='guessed'"),
        (lambda: GateSettings(1, 0, metric="none"), "metric='none'"),
        (lambda: gated_cell(network_cell(architecture="reglu"), GateSettings(3, 0), FIT), "architecture='reglu'"),
        (lambda: gated_cell(network_cell(), GateSettings(2, 0, "true"), FIT), "n_gates=2: must be K=3"),
        (lambda: gated_cell(Cell("kernel", {}), GateSettings(2, 0), FIT), "must be a network cell"),
    ],
)
def test_impossible_gated_cells_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant_seeds": [7]}, "variant_seeds="),
        ({"other_gate_counts": [3]}, "other_gate_counts=.*K=3 itself"),
        ({"early_steps": [200]}, "early_steps="),
        ({"page_size": 300}, "page_size=300"),
    ],
)
def test_bad_parameters_are_told_in_one_line(changes, message):
    with pytest.raises(UserError, match=message):
        parameters(**changes)


# --- the grid ---


@pytest.mark.parametrize("profile", ["small", "paper"])
def test_cells_are_those_of_figure_2_where_k_agrees(profile):
    fig2 = check_parameters(Fig2Parameters, read_yaml(parameter_file("fig2", profile)))
    shared = {cell.key for _, cell in fig2_runs.labelled_cells(fig2)}
    runs = grid_runs(parameters(profile))
    ours = {run.cell.key for run in runs if run.method != "gated" and run.n_clusters in (2, 10, 50)}
    assert ours <= shared
    assert len(runs) == {"small": 192, "paper": 320}[profile]


def test_a_gated_run_reads_the_grids_network():
    p = parameters()
    run = gated_run(p, 3, 400, 1)
    network = next(r for r in grid_runs(p) if (r.method, r.n_clusters, r.n_train, r.seed) == ("relu", 3, 400, 1))
    assert source_cell(run.cell).key == network.cell.key


def test_variants_change_one_thing():
    p = parameters()
    runs = {run.variant: run for run in variant_runs(p)}
    own = runs["the paper's"]
    assert own.cell.key == gated_run(p, 3, 400, 0).cell.key
    for name, run in runs.items():
        changed = [
            field
            for field in ("n_gates", "assignment", "metric", "network_steps")
            if getattr(run, field) != getattr(own, field)
        ]
        assert len(changed) == (name != "the paper's"), name
    assert source_cell(runs["50 steps"].cell).config["training"]["max_steps"] == 50


# --- tables and verdicts ---


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    p = parameters(clusters=[3], sizes=[200], page_size=200, seeds=[0], other_gate_counts=[2], early_steps=[50])
    store = CellStore(tmp_path_factory.mktemp("grid"))
    grid, variants = grid_runs(p), variant_runs(p)
    records = run_cells([run.cell for run in [*grid, *variants]], store, n_jobs=1)
    return grid, records[: len(grid)], variants, records[len(grid) :]


def test_curves_table_has_every_method(computed):
    grid, records, _, _ = computed
    curves = tables.curves_table(grid, records)
    assert tuple(curves.columns[:4]) == COLUMNS[:4]
    assert set(curves["method"]) == {*tables.DRAWN, "rfm"}
    gated = curves[curves["method"].str.startswith("gated")]
    assert gated["gate_ari"].notna().all()
    assert curves.loc[~curves["method"].str.startswith("gated"), "gate_ari"].isna().all()
    assert float(curves.loc[curves["method"] == "noise", "test_mse"].iloc[0]) == pytest.approx(4e-4)
    assert len(tables.gates_table(curves)) == 1


def test_variants_table_sets_them_beside_global_and_oracle(computed):
    grid, records, variants, varied = computed
    table = tables.variants_table(variants, varied, tables.curves_table(grid, records))
    assert list(table["variant"])[-2:] == ["global", "oracle"]
    own = table[table["variant"] == "the paper's"].iloc[0]
    assert own["gated_rfm"] == varied[0].result["test_mse"][-1]
    means = tables.variant_means(table)
    assert list(means["variant"]) == list(dict.fromkeys(table["variant"]))
    assert tables.variants_table([], [], pd.DataFrame()).empty


def test_misrouted_points_by_hand(computed):
    grid, records, _, _ = computed
    table = tables.misrouted_table(grid, records)
    index = next(i for i, run in enumerate(grid) if run.method == "gated")
    arrays = records[index].arrays
    _, train, test = MixedLinkData(3, 200, 512, 0).draw()
    owner = {g: np.bincount(train.cluster[arrays["assignment"] == g]).argmax() for g in np.unique(arrays["assignment"])}
    wrong = np.array([owner[g] for g in arrays["test_gate"]]) != test.cluster
    errors = (arrays["predictions"][-1] - test.y) ** 2
    assert list(table["misrouted"]) == [wrong.sum()]
    assert table["share_of_error"][0] == pytest.approx(errors[wrong].sum() / errors.sum())
    assert table["mse_of_others"][0] == pytest.approx(errors[~wrong].mean())


def test_gates_are_named_by_the_cluster_of_most_of_their_points(learned):
    cell, record, network = learned
    law, _, test = DATA.draw()
    counts = one_cell.confusion(record.arrays["test_gate"], test.cluster, 3, 3)
    assert counts.sum() == len(test.x)
    assert counts[1, 2] == ((record.arrays["test_gate"] == 1) & (test.cluster == 2)).sum()
    facts = one_cell.gates_facts(stored_gates(cell, record, network), record.arrays["learned_metrics"], law, counts)
    v = law.directions[facts["cluster"][0]]
    metric = record.arrays["metrics"][0]
    assert facts["along_v G_c"][0] == pytest.approx(v @ metric @ v / np.trace(metric))
    assert list(facts["points"]) == list(counts.sum(1))


def synthetic(errors, seeds=3, clusters=(2, 5, 10, 50)):
    rng = np.random.default_rng(0)
    rows = [
        (k, 1000, seed, method, math.exp(seed + 0.02 * rng.standard_normal()) * error(k), 1e-4, 1, "solved")
        for k in clusters
        for seed in range(seeds)
        for method, error in errors.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


PAPER_LIKE = {
    "laplace": lambda k: 0.3,
    "rfm_envelope": lambda k: 0.1,
    "gated_laplace": lambda k: 0.05,
    "gated_rfm": lambda k: 0.004,
    "oracle_rfm": lambda k: 0.002,
}


def verdicts(curves):
    return [claim.verdict for claim in claims.fig4_claims(curves, parameters())]


def test_data_like_the_papers_reproduce_its_claims():
    assert verdicts(synthetic(PAPER_LIKE)) == ["reproduced", "reproduced"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gated_laplace": lambda k: 0.5 if k == 50 else 0.05}, ["partly", "reproduced"]),
        ({"gated_rfm": lambda k: 0.08}, ["reproduced", "not reproduced"]),
        ({"gated_rfm": lambda k: 0.08 if k == 2 else 0.004}, ["reproduced", "partly"]),
        ({"gated_rfm": lambda k: 0.2, "gated_laplace": lambda k: 0.5}, ["not reproduced", "not reproduced"]),
    ],
)
def test_a_claim_fails_when_the_data_say_so(changes, expected):
    assert verdicts(synthetic(PAPER_LIKE | changes)) == expected


def test_without_all_k_or_with_one_seed():
    assert verdicts(synthetic(PAPER_LIKE, clusters=(2, 5, 10))) == ["not run at this size"] * 2
    assert verdicts(synthetic(PAPER_LIKE, seeds=1)) == ["partly", "partly"]
