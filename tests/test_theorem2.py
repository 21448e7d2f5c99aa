"""Theorem 2: closed forms against quadrature, linear algebra, samples and brute force; measured risks; controls."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm, gammaln
from scipy.stats import norm
from sklearn.kernel_ridge import KernelRidge

from monolib.cells import CellStore
from monolib.claims import collect_claims
from monolib.errors import UserError
from monolib.figures import FIGURES
from monolib.laws import Sample, theorem2_law
from monolib.lemma_checks import checks_table, controls_table
from monolib.links import clipped_ramp
from monolib.parameter_files import check_parameters, read_yaml
from monolib.random_streams import generator
from monolib.run_figure import figure_parameters
from monolib.sweep import run_cells
from monolib.theorem2 import checks, tables
from monolib.theorem2.cells import compute_theorem2_cells, theorem2_cell, theorem2_work
from monolib.theorem2.claims import theorem2_claims
from monolib.theorem2.exact_network import (
    ReluNetwork,
    exact_network,
    path_norm_bound,
    rademacher_bound,
    rademacher_found,
)
from monolib.theorem2.harmonics import (
    directional_energy,
    distance_to_sections,
    energy_by_sum,
    harmonic_dimension,
    project_directly,
)
from monolib.theorem2.hermite import ALPHA, MEAN, VARIANCE, hermite_coefficients, normalised_hermite
from monolib.theorem2.kernel_risk import kernel_risks
from monolib.theorem2.lower_bound import crossing_clusters, limit_lower_bound, mlp_upper_bound, risk_lower_bound
from monolib.theorem2.parameters import Theorem2Parameters
from monolib.theorem2.runs import planned_cells
from monolib.theorem2.true_metric import exact_network_agop, regularised_metric, risk_floor, true_agop
from monolib.theorem2.weight_decay import WeightDecayConfig, clipped_risk, train_with_decay


def parameters(root, **changes):
    values = read_yaml(root / "parameters" / "smoke" / "theorem2.yaml") | changes
    return check_parameters(Theorem2Parameters, values)


@pytest.fixture(scope="module")
def measured(root, tmp_path_factory):
    """(kernel table, network table) of a small run."""
    p = parameters(root, mlp_steps=50, n_test=200)
    plan = planned_cells(p)
    records = run_cells(plan["kernel"] + plan["mlp"], CellStore(tmp_path_factory.mktemp("cells")), n_jobs=1)
    split = len(plan["kernel"])
    return tables.kernel_table(plan["kernel"], records[:split]), tables.mlp_table(plan["mlp"], records[split:])


# Lemmas 10 and 11


@pytest.mark.parametrize("separation", [1.0, 3.0])
def test_lemma_10_network_is_the_target_on_the_support_only(separation):
    network = exact_network(5, separation)
    x, y, _ = theorem2_law(5, separation).sample(3000, np.random.default_rng(0))
    assert network(x) == pytest.approx(y, abs=1e-13)
    assert network.path_norm() == pytest.approx(5 * (1 + np.hypot(1, 1 / separation)))
    assert network.path_norm() == pytest.approx(path_norm_bound(5, separation))
    between = x.copy()
    between[:, :5] *= 0.5
    assert np.abs(network(between) - y).max() > 0.1
    balanced = network.balanced()
    assert balanced(x) == pytest.approx(y, abs=1e-13)
    assert np.abs(balanced.readout) == pytest.approx(np.linalg.norm(balanced.weight, axis=1))
    assert balanced.frobenius() == pytest.approx(network.path_norm())
    assert network.frobenius() >= balanced.frobenius()


def test_network_gradient_against_differences():
    rng = np.random.default_rng(1)
    network = ReluNetwork(rng.standard_normal((6, 4)), rng.standard_normal(6))
    x = rng.standard_normal((3, 4))
    for d, step in enumerate(1e-6 * np.eye(4)):
        numeric = (network(x + step) - network(x - step)) / 2e-6
        assert network.gradient(x)[:, d] == pytest.approx(numeric, abs=1e-8)


def test_lemma_11_ascent_finds_the_supremum_of_a_plane_and_stays_below_the_bound():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 2))
    angles = np.linspace(0, 2 * np.pi, 20_001)
    hidden = np.maximum(np.stack([np.cos(angles), np.sin(angles)], 1) @ x.T, 0)
    suprema = []
    signs = np.random.default_rng(3)
    for _ in range(4):
        suprema.append(np.abs(hidden @ signs.choice([-1.0, 1.0], size=6)).max() / 6)
        for _ in range(2):
            signs.standard_normal((30, 2))  # the starts that the search draws
    found = rademacher_found(x, np.random.default_rng(3), draws=4, tries=30)
    assert 0.95 * np.mean(suprema) < found < 1.0001 * np.mean(suprema)
    assert found < rademacher_bound(x)


# Lemma 12


def test_lemma_12_constants_against_quadrature():
    density = norm.pdf
    assert pytest.approx(norm.cdf(1) - norm.cdf(0)) == ALPHA
    assert pytest.approx(quad(lambda t: clipped_ramp(t) * density(t), -9, 9, points=[0, 1])[0], abs=1e-10) == MEAN
    second = quad(lambda t: clipped_ramp(t) ** 2 * density(t), -9, 9, points=[0, 1])[0]
    assert pytest.approx(second - MEAN**2, abs=1e-10) == VARIANCE


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_lemma_12_agops_against_samples(n_clusters):
    x, y, cluster = theorem2_law(n_clusters).sample(200_000, np.random.default_rng(4))
    gradient = exact_network(n_clusters).gradient(x)
    assert gradient.T @ gradient / len(x) == pytest.approx(exact_network_agop(n_clusters), abs=5e-3)
    z = x[:, n_clusters:]
    assert true_agop(n_clusters)[-1, -1] == pytest.approx(((z > 0) & (z < 1)).mean() / n_clusters, rel=0.02)
    best = clipped_ramp(z).mean(1)
    assert np.mean((best - y) ** 2) == pytest.approx(risk_floor(n_clusters), abs=2e-3)
    assert len(np.unique(cluster)) == n_clusters


def test_lemma_12_reading_of_the_gradient_off_the_support_decides_the_metric():
    """The same function on the support, another AGOP: its routing block dominates for many clusters."""
    for k in (4, 64):
        top = np.linalg.eigvalsh(exact_network_agop(k))[-1]
        assert top > 10 * ALPHA / k
    assert true_agop(4)[:4].any() == np.False_
    assert regularised_metric(3, 0.5) == pytest.approx(np.diag([0.5] * 3 + [0.5 + ALPHA / 3] * 3))


# Lemma 13


def test_lemma_13_coefficients_against_adaptive_quadrature_and_scipy():
    ours = hermite_coefficients(15)
    for r in range(15):

        def integrand(t, r=r):
            return clipped_ramp(t) * eval_hermitenorm(r, t) * norm.pdf(t) / np.exp(gammaln(r + 1) / 2)

        assert ours[r] == pytest.approx(quad(integrand, 0, 14, points=[1], limit=200)[0], abs=1e-9)
    t = np.linspace(-3, 3, 7)
    scaled = [eval_hermitenorm(r, t) / np.exp(gammaln(r + 1) / 2) for r in range(12)]
    assert normalised_hermite(t, 12) == pytest.approx(np.array(scaled), rel=1e-9, abs=1e-12)
    assert np.square(hermite_coefficients(50_000)[1:]).sum() == pytest.approx(VARIANCE, abs=1e-8)
    assert len(hermite_coefficients(1)) == 1
    assert (np.abs(hermite_coefficients(500)[400:]) > 0).any()  # not eventually zero


# Lemmas 14 and 15


@pytest.mark.parametrize(("order", "n_clusters"), [(2, 2), (3, 3), (4, 3), (5, 4)])
def test_lemma_14_against_linear_algebra_and_the_sum_of_the_proof(order, n_clusters):
    dimension, energy = project_directly(order, n_clusters)
    assert dimension == harmonic_dimension(order, n_clusters)
    assert energy == pytest.approx(directional_energy(order, n_clusters), rel=1e-12)
    if n_clusters > 2:
        assert energy_by_sum(order, n_clusters) == pytest.approx(energy, rel=1e-10)


def test_lemma_14_energy_against_samples_of_the_projected_polynomial():
    """r = 2: the harmonic part of h_2(z_1) is (z_1² − |z|²/K)/√2, whose squared norm is 1 − 1/K."""
    z = np.random.default_rng(5).standard_normal((400_000, 5))
    part = (z[:, 0] ** 2 - np.square(z).mean(1)) / 2**0.5
    assert np.mean(part**2) == pytest.approx(directional_energy(2, 5), abs=0.02)
    assert directional_energy(2, 5) == pytest.approx(1 - 1 / 5)
    assert [harmonic_dimension(r, 3) for r in range(2, 6)] == [5, 7, 9, 11]  # spherical harmonics, 2r + 1
    assert harmonic_dimension(4, 1) == 0


def test_lemma_15_distance_against_explicit_harmonics():
    """r = 2, K = 3: zonal harmonics as traceless matrices, the distance by least squares."""
    rng = np.random.default_rng(6)
    points = rng.standard_normal((3, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    target = np.array([0.0, 0.0, 1.0])

    def matrix(q):
        return (np.outer(q, q) - np.eye(3) / 3).ravel()

    span, v = np.stack([matrix(q) for q in points], 1), matrix(target)
    rest = v - span @ np.linalg.lstsq(span, v, rcond=None)[0]
    assert distance_to_sections(2, points, target) == pytest.approx(rest @ rest / (v @ v), rel=1e-10)


# Lemmas 16 and 17


def test_lemma_16_bound_at_the_sizes_of_the_project():
    values = [risk_lower_bound(64**a, 64) for a in (1, 2, 2.5)]
    assert values == pytest.approx([0.0354, 0.0228, 0.0167], abs=5e-5)
    assert risk_lower_bound(64, 64, orders=800) == pytest.approx(values[0], rel=1e-6)
    assert risk_lower_bound(10, 1) == 0
    assert risk_lower_bound(5, 4) > risk_lower_bound(50, 4) > 0
    direct = sum(
        hermite_coefficients(60)[r] ** 2 * directional_energy(r, 6) * max(1 - 30 / harmonic_dimension(r, 6), 0)
        for r in range(2, 60)
    )
    assert risk_lower_bound(30, 6, orders=60) == pytest.approx(direct, rel=1e-12)


def test_lemma_17_limits():
    squares = np.square(hermite_coefficients(5))
    assert limit_lower_bound(2.5) == pytest.approx(VARIANCE - squares[1] - squares[2])
    assert limit_lower_bound(0.5) == limit_lower_bound(1)  # the bound starts at order 2
    assert risk_lower_bound(1e6**2, 10**6) == pytest.approx(limit_lower_bound(2), rel=1e-3)


def test_theorem_2_bounds_cross_where_they_say():
    k = crossing_clusters(5.0)
    upper = 48 * 2**0.5 * k ** ((3 - 5) / 2)
    assert upper == pytest.approx(limit_lower_bound(5), rel=1e-10)
    assert float(mlp_upper_bound(np.array(k**5), np.array(k))) <= upper
    assert crossing_clusters(3.0) == float("inf")


def test_lemma_16_the_best_of_the_span_is_above_the_bound():
    """Least squares over the span of n kernel sections, fitted on 20,000 fresh points of one cluster."""
    k, n = 6, 12
    law = theorem2_law(k)
    risks = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        train, many = law.sample(n, rng), law.sample(20_000, rng)
        many = Sample(*(values[many.cluster == 0] for values in many))
        distance = np.linalg.norm(many.x[:, None] - train.x, axis=-1)
        sections = np.exp(-distance / 2)
        rest = many.y - sections @ np.linalg.lstsq(sections, many.y, rcond=None)[0]
        risks.append(np.mean(rest**2))
    assert np.mean(risks) > risk_lower_bound(n, k)


@pytest.mark.parametrize("metric", [np.eye(6), regularised_metric(3, 0.0), regularised_metric(3, 0.05)])
def test_kernel_risks_against_scikit_learn(metric):
    law, rng = theorem2_law(3), np.random.default_rng(7)
    train, test = law.sample(40, rng), law.sample(100, rng)
    found = kernel_risks(metric, [0.01, 0.5], train, test, np.random.default_rng(0))
    a, b = (values @ np.sqrt(metric) for values in (train.x, test.x))  # the metrics are diagonal
    within = [
        np.linalg.norm(a[i] - a[j])
        for c in range(3)
        for i in np.flatnonzero(train.cluster == c)
        for j in np.flatnonzero(train.cluster == c)
        if i < j
    ]
    assert len(within) > 10
    medians = []
    for c in range(3):
        own = a[train.cluster == c]
        medians.append(np.median(np.linalg.norm(own[:, None] - own, axis=-1)[np.triu_indices(len(own), 1)]))
    h = np.median(medians)
    for ridge, risk in zip([0.01, 0.5], found, strict=True):
        gram, cross = (np.exp(-np.linalg.norm(u[:, None] - a, axis=-1) / h) for u in (a, b))
        reference = KernelRidge(alpha=ridge, kernel="precomputed").fit(gram, train.y).predict(cross)
        assert risk == pytest.approx(np.mean((reference - test.y) ** 2), rel=1e-6)


def test_weight_decay_lowers_the_norm_and_the_network_learns():
    law, rng = theorem2_law(3), np.random.default_rng(8)
    train, test = law.sample(1500, rng), law.sample(2000, rng)
    networks = []
    for decay in (1e-5, 1e-2):
        config = WeightDecayConfig(24, decay, 0.03, 600, 256, 0)
        networks.append(train_with_decay(train.x, train.y, config))
    risks = [clipped_risk(network, test.x, test.y) for network in networks]
    assert risks[0] < 0.2 * VARIANCE
    assert networks[1].path_norm() < 0.8 * networks[0].path_norm()
    assert risks[1] > risks[0]
    again = train_with_decay(train.x, train.y, WeightDecayConfig(24, 1e-5, 0.03, 600, 256, 0))
    assert (again.weight == networks[0].weight).all()
    assert clipped_risk(ReluNetwork(np.eye(6), np.full(6, 50.0)), test.x, test.y) <= 1


# The page


def test_every_negative_control_is_detected(root, measured):
    p = parameters(root, monte_carlo=100_000, subspace_draws=4000)
    table = controls_table(checks.negative_controls(p, measured[0]))
    assert len(table) == 10
    assert set(table["verdict"]) == {"detected"}
    right = checks.check_exact_network(p) + checks.check_capacity(p, measured[1]) + checks.check_metric(p)
    right += checks.check_hermite() + checks.check_harmonics(p) + checks.check_subspaces(p)
    right += checks.check_risks(measured[0]) + checks.check_limit()
    assert set(checks_table(right)["verdict"]) == {"holds"}


def test_tables_hold_every_risk(root, measured):
    kernel, mlp = measured
    p = parameters(root)
    sizes = {(k, n) for k in p.clusters for n in (k, round(k**2.5)) if n <= p.kernel_points}
    assert len(kernel) == len(sizes) * (len(p.ratios) + 1) * len(p.ridges)
    assert set(kernel["metric"]) == {"standard", "0", "1"}
    assert len(tables.best_kernels(kernel)) == len(sizes)
    assert list(mlp["n_train"]) == [32, 256]
    comparison = tables.comparison_table(kernel, mlp)
    assert list(comparison["n_train"]) == [32]
    row = comparison.iloc[0]
    assert row["kernel_over_mlp"] == pytest.approx(row["risk_kernel"] / row["risk_mlp"])
    bounds = tables.bound_table([4, 8], [1.0, 2.0])
    assert list(bounds["n_train"]) == [4, 16, 8, 64]


def test_separation_check_needs_the_network_below_the_bound(measured):
    kernel, mlp = measured
    good = mlp.assign(risk=1e-9)
    assert all(check.holds for check in checks.check_separation(kernel, good))
    assert not any(check.holds for check in checks.check_separation(kernel, mlp.assign(risk=1.0)))


def test_cells_hold_what_the_functions_compute(tmp_path):
    store = CellStore(tmp_path)
    cell = theorem2_cell("kernel", 3, 20, 50, 0, 1, ratios=[0.0], ridges=[0.1])
    compute_theorem2_cells([cell], store, "cpu")
    law = theorem2_law(3)
    train, test = law.sample(20, generator(0, "train", 1)), law.sample(50, generator(0, "test", 1))
    expected = kernel_risks(np.eye(6), [0.1], train, test, generator(0, "bandwidth", 1))
    assert store.read(cell).result["risks"]["standard"] == expected
    larger = theorem2_cell("kernel", 3, 2000, 50, 0, 1, ratios=[0.0], ridges=[0.1])
    assert theorem2_work(larger) > theorem2_work(cell)
    with pytest.raises(ValueError, match="task='fit'"):
        theorem2_cell("fit", 3, 20, 50, 0, 1)


def test_committed_results_are_of_the_committed_parameters(root):
    kept = json.loads((root / "results" / "small" / "theorem2" / "parameters.json").read_text())
    assert kept == figure_parameters(FIGURES["theorem2"], "small").identity()
    table = pd.read_csv(root / "results" / "small" / "theorem2" / "checks.csv", dtype={"lemma": str})
    claims = theorem2_claims(table, figure_parameters(FIGURES["theorem2"], "small"))
    committed = [
        claim for profile, claim in collect_claims(root / "results") if profile == "small" and "T2" in claim.id
    ]
    assert [(c.id, c.verdict) for c in committed] == [(c.id, c.verdict) for c in claims]
    controls = pd.read_csv(root / "results" / "small" / "theorem2" / "controls.csv")
    assert set(controls["verdict"]) == {"detected"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusters": [8, 4]}, "clusters=.*ascending"),
        ({"clusters": [2, 4]}, "clusters.*greater than or equal to 3"),
        ({"ratios": [1.0]}, "ratios=.*must hold 0"),
        ({"kernel_points": 3}, "kernel_points=3: must be at least 4"),
        ({"mlp_clusters": [5]}, "mlp_clusters=.*must share a K"),
    ],
)
def test_bad_parameters_are_refused_by_name(root, changes, message):
    with pytest.raises(UserError, match=message):
        parameters(root, **changes)
