"""Theorem 1: closed forms against quadrature, differences and samples; flows against finer tolerances; controls."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.stats import multivariate_normal

from monolib.cells import CellStore
from monolib.claims import collect_claims
from monolib.errors import UserError
from monolib.figures import FIGURES
from monolib.laws import theorem1_law
from monolib.lemma_checks import LemmaCheck, checks_table, controls_table, lemma_claims, lemma_verdicts, slope
from monolib.links import hermite3
from monolib.parameter_files import check_parameters, read_yaml
from monolib.random_streams import generator
from monolib.run_figure import figure_parameters
from monolib.theorem1 import checks, plots
from monolib.theorem1.ascent import ascend, ascent_field, classify, initial_sign
from monolib.theorem1.cells import compute_theorem1_cells, theorem1_cell
from monolib.theorem1.claims import theorem1_claims
from monolib.theorem1.correlation import (
    correlation_by_quadrature,
    correlation_gradient,
    population_correlation,
    random_directions,
)
from monolib.theorem1.coverage import coverage_bounds, coverage_probability, covered_share, uniformity_p_value
from monolib.theorem1.critical_points import (
    critical_offset,
    critical_point,
    critical_value,
    signature,
    specialised_maximum,
    specialised_offset,
    sphere_hessian,
)
from monolib.theorem1.network_flow import flow_field, network_flow, tracking_error
from monolib.theorem1.parameters import Theorem1Parameters
from monolib.theorem1.relu_moments import relu_moments
from monolib.theorem1.sgd import train_by_sgd
from monolib.theorem1.teacher_flow import specialisation_time, teacher_flow


def directions(count, n_clusters, seed=0):
    return random_directions(count, n_clusters, np.random.default_rng(seed))


def parameters(root, **changes):
    values = read_yaml(root / "parameters" / "smoke" / "theorem1.yaml") | changes
    return check_parameters(Theorem1Parameters, values)


# Lemma 3


@pytest.mark.parametrize(("n_clusters", "separation"), [(1, 0.5), (2, 3.0), (4, 8.0)])
def test_lemma_3_correlation_against_one_dimensional_quadrature(n_clusters, separation):
    """Another route than the page's: first over ωᵀz given v_cᵀz (a smoothed ReLU), then adaptively over v_cᵀz."""
    for omega in directions(5, n_clusters):
        total = 0.0
        for c in range(n_clusters):
            b, rho = separation * omega[c], omega[n_clusters + c]
            s = np.sqrt(1 - rho**2)

            def integrand(u, b=b, rho=rho, s=s):
                t = (b + rho * u) / s
                cdf = 0.5 * (1 + torch.erf(torch.tensor(t / 2**0.5, dtype=torch.float64)).item())
                smoothed = s * (t * cdf + np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))
                return hermite3(u) * smoothed * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)

            total += quad(integrand, -12, 12, epsabs=1e-13, limit=200)[0] / n_clusters
        assert population_correlation(omega, separation) == pytest.approx(total, abs=1e-11)
        assert correlation_by_quadrature(omega, separation) == pytest.approx(total, abs=1e-11)


def test_lemma_3_correlation_against_samples():
    omega = critical_point(np.array([1.0, 0.0]), 3.0, 1)
    x, y, _ = theorem1_law(2, 3.0).sample(400_000, np.random.default_rng(1))
    products = y * np.maximum(x @ omega, 0)
    assert abs(products.mean() - population_correlation(omega, 3.0)) < 4 * products.std() / len(y) ** 0.5


def test_lemma_3_gradient_against_differences_on_the_sphere():
    for omega in directions(4, 3):
        gradient = correlation_gradient(omega[None], 2.5)[0]
        assert gradient @ omega == pytest.approx(0, abs=1e-15)
        for step in np.eye(6):
            ahead, behind = (omega + h * step for h in (1e-5, -1e-5))
            values = [population_correlation(w / np.linalg.norm(w), 2.5) for w in (ahead, behind)]
            assert gradient @ step == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-9)


# Lemmas 4 and 5


@pytest.mark.parametrize("separation", [0.3, 2.0, 10.0])
@pytest.mark.parametrize("active", [1, 2, 4])
def test_lemma_4_critical_points_solve_their_equation(active, separation):
    b = critical_offset(active, separation)
    root = brentq(lambda q: active * q * (4 - q) - separation**2 * (1 - q), 1e-12, 1)
    assert b**2 == pytest.approx(root, rel=1e-10)
    tau = np.array([1.0, -1.0, 1.0, 1.0]) * (np.arange(4) < active)
    omega = critical_point(tau, separation, -1)
    assert np.linalg.norm(omega) == pytest.approx(1, abs=1e-13)
    assert np.abs(correlation_gradient(omega[None], separation)).max() < 1e-14
    assert -population_correlation(omega, separation) == pytest.approx(critical_value(active, 4, separation))
    assert signature(omega, separation, -1) == (active - 1, 8 - active, 0)


def test_lemma_4_hessian_against_differences_along_great_circles():
    omega = critical_point(np.array([1.0, -1.0, 0.0]), 2.0, 1)
    hessian = sphere_hessian(omega, 2.0, 1)
    for v in directions(5, 3, seed=2):
        v = v - (v @ omega) * omega
        v /= np.linalg.norm(v)
        values = [population_correlation(np.cos(t) * omega + np.sin(t) * v, 2.0) for t in (-1e-3, 0.0, 1e-3)]
        assert v @ hessian @ v == pytest.approx((values[0] - 2 * values[1] + values[2]) / 1e-6, abs=1e-6)


def test_lemma_4_pair_of_active_clusters_has_the_stated_curvature():
    """F'' = λ/2 (1/ρ_c² + 1/ρ_r²) > 0 along the curve that moves ρ² from one to the other."""
    r = 3.0
    omega = critical_point(np.array([1.0, 1.0]), r, 1)
    rho = omega[2]

    def value(t):
        return population_correlation(np.array([*omega[:2], np.sqrt(rho**2 + t), np.sqrt(rho**2 - t)]), r)

    lam = 1.5 * value(0.0) / (2 * rho**2)
    second = (value(1e-4) - 2 * value(0.0) + value(-1e-4)) / 1e-8
    assert second == pytest.approx(lam / 2 * (2 / rho**2), rel=1e-4)


def test_lemma_5_offset_is_the_one_cluster_critical_point_and_expands_as_stated():
    radii = np.array([0.1, 1.0, 5.0, 40.0])
    assert specialised_offset(radii) == pytest.approx([critical_offset(1, r) for r in radii], rel=1e-12)
    quartic = (radii**2 + 4 - np.sqrt(radii**4 + 4 * radii**2 + 16)) / 2
    assert specialised_offset(radii) ** 2 == pytest.approx(quartic, rel=1e-9)
    assert 1000**2 * (1 - specialised_offset(np.array(1000.0))) == pytest.approx(1.5, rel=1e-4)
    assert specialised_offset(np.array(1e-3)) / 1e-3 == pytest.approx(0.5, rel=1e-5)  # R → 0
    own = specialised_maximum(np.array([1]), np.array([-1.0]), np.array([1.0]), 3, 2.0)[0]
    assert own == pytest.approx(critical_point(np.array([0.0, -1.0, 0.0]), 2.0, 1), abs=1e-14)


def test_theorem_1_constant_is_one_for_every_separation():
    radii = np.geomspace(1e-3, 1e4, 400)
    rho = np.sqrt(1 - (specialised_offset(radii) / radii) ** 2)
    scaled = radii * np.sqrt(2 - 2 * np.minimum(rho, 1))
    assert (scaled < 1).all()


# Lemmas 6 and 7


@pytest.mark.parametrize(("n_clusters", "separation"), [(1, 0.5), (2, 3.0), (3, 6.0)])
def test_lemma_6_every_ascent_ends_at_a_specialised_maximum(n_clusters, separation):
    ends = ascend(directions(40, n_clusters), separation)
    assert ends.distance.max() < 1e-6
    finer = ascend(directions(40, n_clusters), separation, tolerance=1e-10)
    assert (ends.cluster == finer.cluster).all()
    assert (ends.orientation == finer.orientation).all()


def test_lemma_6_field_is_the_gradient_rescaled_and_survives_large_separations():
    omega = directions(6, 2)
    sign = initial_sign(omega, 3.0)
    assert (sign == np.sign(population_correlation(omega, 3.0))).all()
    field = ascent_field(omega, 3.0, sign)
    gradient = sign[:, None] * correlation_gradient(omega, 3.0)
    ratio = (field * gradient).sum(1) / (gradient * gradient).sum(1)
    assert (ratio > 0).all()
    assert field == pytest.approx(ratio[:, None] * gradient, rel=1e-10)
    assert np.isfinite(ascent_field(omega, 300.0, initial_sign(omega, 300.0))).all()


def test_lemma_6_a_saddle_is_left_and_the_wrong_sign_ends_elsewhere():
    saddle = critical_point(np.array([1.0, 1.0]), 3.0, 1)
    pushed = saddle + 1e-4 * directions(1, 2)[0]
    ends = ascend(pushed[None] / np.linalg.norm(pushed), 3.0)
    assert ends.distance[0] < 1e-6
    start = directions(10, 2)
    right, wrong = ascend(start, 3.0), ascend(start, 3.0, sign=-initial_sign(start, 3.0))
    assert (np.linalg.norm(right.omega - wrong.omega, axis=1) > 0.1).all()


def test_lemma_7_teacher_flow_keeps_its_promises_and_agrees_with_the_a_w_form():
    start, times = directions(8, 2), np.linspace(0, 60, 61)
    path = teacher_flow(start, 3.0, times)
    assert path.sign_error() < 1e-10
    assert path.monotonicity_error() < 1e-10
    assert path.norm_error() < 1e-8
    alone = network_flow(start, 3.0, 0.0, times)
    assert alone.invariant_error() < 1e-8
    assert np.abs(alone.directions - path.directions).max() < 1e-6
    assert np.abs(alone.amplitude - path.amplitude).max() < 1e-6
    rough = teacher_flow(start, 3.0, times, rtol=1e-7)
    assert 0 < np.abs(rough.directions - path.directions).max() < 1e-3


def test_lemma_7_violations_are_seen():
    path = teacher_flow(directions(3, 2), 3.0, np.linspace(0, 40, 20))
    backwards = type(path)(path.times, -path.amplitude, path.directions[::-1], path.separation)
    assert backwards.sign_error() > 1e-3
    assert backwards.monotonicity_error() > 1e-3


def test_lemma_7_orbit_is_that_of_the_ascent():
    """Same orbit in another time: the ascent is followed for s = ∫|tanh u| dt."""
    start = directions(1, 2, seed=3)
    times = np.linspace(0, 80, 4001)
    path = teacher_flow(start, 3.0, times)
    sign = initial_sign(start, 3.0)
    clock = np.abs(np.tanh(path.amplitude[:, 0]))
    s = float(((clock[1:] + clock[:-1]) / 2 * np.diff(times)).sum())
    flow = solve_ivp(
        lambda _, w: sign[0] * correlation_gradient(w[None], 3.0)[0], (0, s), start[0], rtol=1e-9, atol=1e-11
    )
    assert flow.y[:, -1] == pytest.approx(path.directions[-1, 0], abs=1e-4)


def test_specialisation_time_is_when_the_flow_arrives():
    start = directions(1, 2, seed=4)[0]
    time = specialisation_time(start, 3.0, 0.1)
    path = teacher_flow(start[None], 3.0, np.array([0.0, 0.99 * time, time, 1.01 * time]))
    sign = initial_sign(start[None], 3.0)
    before, at, after = (classify(omega, sign, 3.0).distance[0] for omega in path.directions[1:])
    assert before > at > after
    assert at == pytest.approx(0.1, abs=1e-5)
    there = critical_point(np.array([1.0, 0.0]), 3.0, 1)
    assert specialisation_time(there, 3.0) == 0.0
    with pytest.raises(UserError, match="has not specialised by t=1"):
        specialisation_time(start, 3.0, 0.1, horizon=1.0)


# Lemma 8


def test_lemma_8_coverage_against_brute_force_and_simulation():
    from itertools import product

    brute = np.mean([set(draw) == {0, 1, 2} for draw in product(range(3), repeat=5)])
    assert coverage_probability(3, 5) == pytest.approx(brute, abs=1e-15)
    assert coverage_probability(3, 2) == 0
    assert coverage_probability(1, 1) == 1
    labels = np.random.default_rng(0).integers(4, size=80_000)
    share, groups = covered_share(labels, 4, 8)
    assert groups == 10_000
    assert share == pytest.approx(coverage_probability(4, 8), abs=0.02)
    m = np.arange(1, 60)
    exact = np.array([coverage_probability(4, int(i)) for i in m])
    union, exponential = coverage_bounds(4, m)
    assert (exact >= union - 1e-12).all()
    assert (union >= exponential).all()


def test_lemma_8_uniformity_test_detects_a_bias():
    rng = np.random.default_rng(0)
    assert uniformity_p_value(rng.integers(4, size=4000), 4) > 1e-3
    assert uniformity_p_value(rng.choice(4, 4000, p=[0.3, 0.24, 0.23, 0.23]), 4) < 1e-3
    assert uniformity_p_value(np.zeros(10, int), 1) == 1.0


# Lemma 9


def test_relu_moments_against_bivariate_normal_quadrature():
    r = 2.0
    left, right = directions(2, 2, seed=5)
    moment, _ = relu_moments(left[None], right[None], r)
    grid, weight = np.polynomial.legendre.leggauss(120)
    expected = 0.0
    for c in range(2):
        mean = r * np.array([left[c], right[c]])
        law = multivariate_normal(mean, [[1, left @ right], [left @ right, 1]])
        points = 5.5 * (grid + 1)
        x, y = np.meshgrid(points, points, indexing="ij")
        density = law.pdf(np.stack([x, y], -1))
        expected += 5.5**2 * np.einsum("i,j,ij->", weight * points, weight * points, density) / 2
    assert moment[0, 0] == pytest.approx(expected, rel=1e-9)


def test_relu_moments_gradient_against_differences_and_the_limit_of_equal_neurons():
    w = directions(3, 2, seed=6)
    moment, gradient = relu_moments(w, w, 3.0)
    assert moment == pytest.approx(moment.T, rel=1e-12)
    assert np.einsum("jkd,jd->jk", gradient, w) == pytest.approx(moment, rel=1e-12)  # Euler: of degree 1
    for d in range(4):
        values = []
        for h in (1e-6, -1e-6):
            moved = w + h * np.eye(4)[d]
            norm = np.linalg.norm(moved, axis=1, keepdims=True)
            values.append(norm * relu_moments(moved / norm, w, 3.0)[0])
        numeric = (values[0] - values[1]) / 2e-6
        off = ~np.eye(3, dtype=bool)
        assert gradient[..., d][off] == pytest.approx(numeric[off], abs=1e-8)
    near = w[:1] + 1e-5 * w[1:2]
    near /= np.linalg.norm(near)
    assert relu_moments(w[:1], near, 3.0)[0][0, 0] == pytest.approx(moment[0, 0], rel=1e-4)
    b = 3.0 * w[0, :2]
    cdf = 0.5 * (1 + torch.erf(torch.tensor(b / 2**0.5)).numpy())
    single = ((b**2 + 1) * cdf + b * np.exp(-(b**2) / 2) / np.sqrt(2 * np.pi)).mean()
    assert moment[0, 0] == pytest.approx(single, rel=1e-12)
    both = relu_moments(np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 0.0, 1.0]]), 3.0)[0]
    assert both[0, 0] == pytest.approx(1 / (2 * np.pi), rel=1e-12)  # two independent half-normals


def test_flow_field_is_the_gradient_of_the_population_loss_on_many_samples():
    epsilon, r = 0.7, 2.0
    rng = np.random.default_rng(7)
    weight, readout = directions(3, 2, seed=8) * 1.3, np.array([0.5, -0.8, 0.2])
    found = flow_field(readout, weight, r, epsilon)
    x, y, _ = theorem1_law(2, r).sample(1_000_000, rng)
    before = x @ weight.T
    residual = y - epsilon**2 * np.maximum(before, 0) @ readout
    products = residual[:, None] * np.maximum(before, 0)
    assert (np.abs(found[0] - products.mean(0)) < 4.5 * products.std(0) / 1000).all()
    for j in range(3):
        slopes = readout[j] * (residual * (before[:, j] > 0))[:, None] * x
        assert (np.abs(found[1][j] - slopes.mean(0)) < 4.5 * slopes.std(0) / 1000).all()


def test_lemma_9_error_is_quadratic_in_epsilon_and_linear_in_copies():
    start, times = directions(4, 2), np.linspace(0, 30, 31)
    alone = network_flow(start, 3.0, 0.0, times)
    errors = [tracking_error(network_flow(start, 3.0, e, times), alone) for e in (3e-3, 1e-3)]
    assert slope([3e-3, 1e-3], errors) == pytest.approx(2, abs=0.02)
    finer = network_flow(start, 3.0, 1e-3, times, rtol=1e-12)
    assert tracking_error(finer, network_flow(start, 3.0, 1e-3, times)) < 1e-3 * errors[1]
    one = network_flow(start[:1], 3.0, 0.0, times)
    copies = []
    for m in (2, 6):
        network = network_flow(np.repeat(start[:1], m, 0), 3.0, 1e-3, times)
        alike = type(one)(one.times, np.repeat(one.readout, m, 1), np.repeat(one.weight, m, 1))
        copies.append(tracking_error(network, alike))
    assert slope([2, 6], copies) == pytest.approx(1, abs=0.02)


def test_sgd_approaches_the_flow_with_larger_batches():
    start = directions(4, 2)
    drifts = []
    for batch in (50, 3200):
        sgd = train_by_sgd(start, 3.0, 0.05, 0.02, batch, 1000, 10, np.random.default_rng(0))
        flow = network_flow(start, 3.0, 0.05, sgd.times)
        drifts.append(np.abs(sgd.amplitude - flow.amplitude)[-1].mean())
    assert sgd.times[-1] == pytest.approx(20)
    assert drifts[1] < 0.4 * drifts[0]


# The page


def test_every_negative_control_is_detected(root):
    p = parameters(root, clusters=[2], n_points=3, monte_carlo=100_000)
    labels = np.random.default_rng(0).integers(3, size=3000)
    epsilons, widths = [(e, e**2) for e in (0.1, 0.01, 0.001)], [(m, 1e-4 * m) for m in (2, 4)]
    table = controls_table(checks.negative_controls(p, labels, epsilons, widths))
    assert len(table) == 10
    assert set(table["verdict"]) == {"detected"}
    right = [checks.check_correlation(p), checks.check_monte_carlo(p), checks.check_gradient(p)]
    right += checks.check_critical_points(p) + checks.check_specialised(p)
    right += checks.check_labels(labels, 3, p.cover_widths) + checks.check_tracking(epsilons, widths)
    assert set(checks_table(right)["verdict"]) == {"holds"}


def test_checks_of_ends_see_a_lost_orbit():
    good = {"distance": np.array([1e-9]), "off": np.array([0.1])}
    lost = {"distance": np.array([0.5]), "off": np.array([0.2])}
    ends = [(2, 8.0, good), (2, 16.0, {"distance": np.array([1e-9]), "off": np.array([0.05])})]
    assert all(check.holds for check in checks.check_ascents(ends))
    assert not any(check.holds for check in checks.check_ascents([*ends, (2, 8.0, lost)])[:2])
    far = checks.check_theorem([1e-2, 1e-4], [np.array([0.9]), np.array([0.3])], 0.1, 4.0)
    assert far.holds
    assert not checks.check_theorem([1e-4, 1e-2], [np.array([0.9]), np.array([0.3])], 0.1, 4.0).holds


def test_cells_hold_what_the_functions_compute(tmp_path):
    store = CellStore(tmp_path)
    cell = theorem1_cell("ascent", 2, 3.0, 0, count=5, index=1)
    other = theorem1_cell("tracking", 2, 3.0, 0, width=2, epsilon=0.01, copies=False, time=5.0)
    compute_theorem1_cells([cell, other], store, "cpu")
    start = random_directions(5, 2, generator(0, "initialisation", 1))
    assert (store.read(cell).arrays["cluster"] == ascend(start, 3.0).cluster).all()
    assert 0 < store.read(other).result["error"] < 1e-2
    with pytest.raises(ValueError, match="task='fit'"):
        theorem1_cell("fit", 2, 3.0, 0)


def test_verdicts_come_from_the_rows():
    rows = [LemmaCheck("3", "a", 1.0, 2.0), LemmaCheck("3", "b", 3.0, 2.0), LemmaCheck("T1", "c", 0.0, 0.0)]
    table = checks_table([*rows, LemmaCheck("4", "d", float("nan"), 1.0)])
    assert list(table.columns) == ["lemma", "statement", "error", "tolerance", "verdict"]
    assert list(table["verdict"]) == ["holds", "fails", "holds", "fails"]
    assert lemma_verdicts(table) == {"3": False, "T1": True, "4": False}
    words = dict.fromkeys(("3", "4", "T1"), ("says", "paper"))
    claims = lemma_claims("T1", words, table, "size")
    assert [(c.id, c.verdict) for c in claims] == [
        ("T1", "reproduced"),
        ("T1.3", "partly"),
        ("T1.4", "not reproduced"),
    ]
    assert "b: 3 (at most 2)" in claims[1].here


def test_figure_7_shows_a_failed_lemma(root):
    table = checks_table([LemmaCheck(name, "x", 0.0, 1.0) for name in plots.NODES])
    failed = checks_table([LemmaCheck(name, "x", 2.0 if name == "6" else 0.0, 1.0) for name in plots.NODES])
    texts = [
        [t.get_text() for t in plots.draw_dependencies(lemma_verdicts(t), t).axes[0].texts] for t in (table, failed)
    ]
    assert sum("holds (1 of 1)" in text for text in texts[0]) == len(plots.NODES)
    assert [text for text in texts[1] if "fails" in text] == [
        "Lemma 6\nflows of fixed\nsign specialise\nfails (0 of 1)"
    ]


def test_committed_results_are_of_the_committed_parameters(root):
    kept = json.loads((root / "results" / "small" / "theorem1" / "parameters.json").read_text())
    assert kept == figure_parameters(FIGURES["theorem1"], "small").identity()
    table = pd.read_csv(root / "results" / "small" / "theorem1" / "checks.csv", dtype={"lemma": str})
    claims = theorem1_claims(table, figure_parameters(FIGURES["theorem1"], "small"))
    committed = [
        claim for profile, claim in collect_claims(root / "results") if profile == "small" and "T1" in claim.id
    ]
    assert [(c.id, c.verdict) for c in committed] == [(c.id, c.verdict) for c in claims]
    controls = pd.read_csv(root / "results" / "small" / "theorem1" / "controls.csv")
    assert set(controls["verdict"]) == {"detected"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusters": [2, 1]}, "clusters=.*ascending"),
        ({"tracking_epsilons": [0.01, 0.1]}, "tracking_epsilons=.*descending"),
        ({"separations": [0.5, 8.0]}, "separations=.*two numbers ≥ 8"),
        ({"cover_widths": [3, 1000]}, "cover_widths=.*must not exceed n_labels"),
        ({"sgd_step": 0.0}, "sgd_step=0.0"),
    ],
)
def test_bad_parameters_are_refused_by_name(root, changes, message):
    with pytest.raises(UserError, match=message):
        parameters(root, **changes)
