"""Gates from a ReLU network: each step of A.3 against its definition, and the cases that the paper does not name."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from monolib.errors import UserError
from monolib.gates import (
    Gates,
    active_by_two_means,
    contributions,
    find_gates,
    gate_metrics,
    mean_contributions,
    nearest_centroid,
    profiles,
)
from monolib.local_predictors import fit_gated, fit_local
from monolib.networks import Network
from monolib.rfm import RFMConfig


def network(weight, bias, readout, architecture="relu"):
    return Network(architecture, np.asarray(weight, float), np.asarray(bias, float), np.asarray(readout, float), 0.0)


def routing_network(n_gates=3, per_gate=2, d=5, dead=4, seed=0):
    """Neurons that are on for one group of inputs each (coordinates 0..K−1), and some that are never on."""
    rng = np.random.default_rng(seed)
    weight = np.vstack([np.repeat(np.eye(d)[:n_gates], per_gate, axis=0), 0.01 * rng.standard_normal((dead, d))])
    weight[: n_gates * per_gate, n_gates:] = rng.standard_normal((n_gates * per_gate, d - n_gates))
    bias = np.r_[np.full(n_gates * per_gate, -0.5), np.full(dead, -5.0)]
    return network(weight, bias, rng.choice([-1.0, 1.0], size=len(weight)))


def grouped_inputs(n, n_gates=3, d=5, seed=1):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % n_gates
    return np.hstack([4 * np.eye(n_gates)[group], 0.3 * rng.standard_normal((n, d - n_gates))]), group


def test_contributions_and_means_follow_their_definition():
    rng = np.random.default_rng(0)
    net, x = (
        network(rng.standard_normal((7, 3)), rng.standard_normal(7), rng.standard_normal(7)),
        rng.standard_normal((50, 3)),
    )
    expected = np.abs(net.readout) * np.maximum(x @ net.weight.T + net.bias, 0)
    np.testing.assert_allclose(contributions(net, x), expected, atol=1e-6)
    np.testing.assert_allclose(mean_contributions(net, np.tile(x, (400, 1))), expected.mean(0), rtol=1e-5)
    with pytest.raises(UserError, match="architecture='gelu'"):
        contributions(network(net.weight, net.bias, net.readout, "gelu"), x)


def test_two_means_equals_scikit_learns_best_of_many():
    rng = np.random.default_rng(1)
    for _ in range(20):
        m = 10 ** np.r_[rng.normal(-4, 0.7, rng.integers(3, 40)), rng.normal(-1, 0.7, rng.integers(3, 40))]
        logs = np.log10(m)[:, None]
        means = KMeans(2, n_init=20, random_state=0).fit(logs)
        upper = means.cluster_centers_.ravel().argmax()
        ours = active_by_two_means(m, at_least=1)
        inside = np.isin(np.arange(len(m)), ours)
        inertia = sum(((logs[s] - logs[s].mean()) ** 2).sum() for s in (inside, ~inside))
        assert inertia <= means.inertia_ + 1e-9
        assert inside.tolist() == (means.labels_ == upper).tolist() or inertia < means.inertia_ + 1e-9


def test_active_set_has_at_least_k_neurons_and_leaves_out_dead_ones():
    assert active_by_two_means(np.array([1e-3, 5.0, 1e-3, 2e-3]), at_least=3).tolist() == [0, 1, 3]
    assert active_by_two_means(np.array([0.0, 5.0, 0.0, 4.0, 0.004]), at_least=1).tolist() == [1, 3, 4]
    assert active_by_two_means(np.array([2.0, 2.0]), at_least=1).tolist() == [0, 1]
    assert active_by_two_means(np.array([3.0, 0.0]), at_least=5).tolist() == [0, 1]
    assert len(active_by_two_means(np.zeros(4), at_least=2)) == 2


def test_profiles_sum_to_one_or_are_zero():
    net = routing_network()
    x, _ = grouped_inputs(9)
    x = np.vstack([x, -10 * np.ones((2, 5)) * [1, 1, 1, 0, 0]])  # no routing neuron is on
    active = np.arange(6)
    p = profiles(net, active, x)
    np.testing.assert_allclose(p[:9].sum(1), 1.0, rtol=1e-6)
    assert not p[9:].any()
    c = contributions(net, x)[:, active]
    np.testing.assert_allclose(p[:9], c[:9] / c[:9].sum(1, keepdims=True), rtol=1e-5)


def test_gate_metrics_follow_equation_13():
    rng = np.random.default_rng(2)
    net = network(rng.standard_normal((4, 3)), np.zeros(4), np.ones(4))
    active, q = np.array([0, 2, 3]), rng.random((2, 3))
    for c, g in enumerate(gate_metrics(net, active, q)):
        expected = sum(q[c, j] * np.outer(net.weight[a], net.weight[a]) for j, a in enumerate(active)) / q[c].sum()
        np.testing.assert_allclose(g, expected, rtol=1e-12)
    np.testing.assert_array_equal(gate_metrics(net, active, np.zeros((1, 3)))[0], np.eye(3))


def test_gates_find_the_groups_and_assign_test_points_to_the_nearest_centroid():
    net = routing_network()
    x, group = grouped_inputs(300)
    gates = find_gates(net, x, 3, seed=0)
    assert gates.active.tolist() == [0, 1, 2, 3, 4, 5]
    table = np.zeros((3, 3))
    np.add.at(table, (group, gates.assignment), 1)
    assert (np.sort(table, axis=1)[:, :2] == 0).all()
    assert len(set(table.argmax(1))) == 3
    test, _ = grouped_inputs(50, seed=3)
    p = profiles(net, gates.active, test)
    distances = np.square(p[:, None] - gates.centroids[None]).sum(2)
    assert np.array_equal(gates.assign(test), distances.argmin(1))
    again = find_gates(net, x, 3, seed=0)
    assert np.array_equal(again.centroids, gates.centroids)
    with pytest.raises(UserError, match="n_gates=0"):
        find_gates(net, x, 0, seed=0)


def test_an_input_without_profile_goes_to_the_centroid_of_smallest_norm():
    net = routing_network()
    x, _ = grouped_inputs(60)
    gates = find_gates(net, x, 3, seed=0)
    nothing = np.array([[-10.0, -10.0, -10.0, 0.0, 0.0]])
    assert not profiles(net, gates.active, nothing).any()
    assert gates.assign(nothing)[0] == np.square(gates.centroids).sum(1).argmin()
    fits = fit_gated(x, x[:, 3], gates, RFMConfig(n_updates=1))
    assert np.isfinite(fits.predict(nothing, gates.assign(nothing))).all()


def test_a_gate_of_inputs_without_profile_gets_the_identity():
    net = routing_network()
    x, _ = grouped_inputs(60)
    x[::3, :3] = -10.0
    gates = find_gates(net, x, 3, seed=0)
    silent = gates.assignment[0]
    assert not gates.centroids[silent].any()
    np.testing.assert_array_equal(gates.metrics[silent], np.eye(5))
    fits = fit_gated(x, x[:, 3], gates, RFMConfig(n_updates=1))
    output = fits.predict(x, gates.assign(x))
    assert np.mean(np.square(output - x[:, 3])) < 1e-6


def test_empty_gates_stay_out_of_use():
    net = routing_network()
    x, _ = grouped_inputs(3)
    gates = find_gates(net, np.repeat(x, 5, axis=0), 8, seed=0)
    assert len(gates.centroids) == 8
    assert len(gates.occupied) == 3
    assert set(gates.assign(grouped_inputs(60, seed=4)[0])) <= set(gates.occupied)
    fits = fit_gated(np.repeat(x, 5, axis=0), np.ones(15), gates, RFMConfig(n_updates=1))
    assert sorted(fits.fits) == gates.occupied.tolist()
    assert len(find_gates(net, x, 8, seed=0).centroids) == 3  # fewer points than gates
    centroids = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert nearest_centroid(np.array([[0.1, 0.0]]), centroids, np.array([1])).tolist() == [1]


def test_a_gate_with_one_point_predicts_it():
    net = routing_network()
    x, group = grouped_inputs(61)
    keep = (group != 2) | (np.arange(61) == 2)
    x = x[keep]
    gates = find_gates(net, x, 3, seed=0)
    sizes = np.bincount(gates.assignment)
    assert 1 in sizes
    y = np.arange(len(x), dtype=float)
    fits = fit_gated(x, y, gates, RFMConfig(n_updates=2))
    alone = np.flatnonzero(gates.assignment == sizes.argmin())
    assert fits.predict(x, gates.assignment)[alone] == pytest.approx(y[alone], rel=1e-5)


def test_local_predictors_use_the_gates_metric():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((120, 3)), rng.standard_normal(120)
    net = network(np.eye(3), np.zeros(3), np.ones(3))
    metrics = np.stack([np.diag([1.0, 4.0, 0.25]), np.eye(3)])
    gates = Gates(net, np.arange(3), np.eye(3)[:2], metrics, np.arange(120) % 2)
    fits = fit_gated(x, y, gates, RFMConfig(n_updates=0))
    own = x[::2] @ np.diag([1.0, 2.0, 0.5])
    alone = fit_local(own, y[::2], np.zeros(60, dtype=int), RFMConfig(n_updates=0))
    np.testing.assert_allclose(
        fits.predict(x[::2] + 0.1, np.zeros(60, dtype=int)),
        alone.predict((x[::2] + 0.1) @ np.diag([1.0, 2.0, 0.5]), np.zeros(60, dtype=int)),
        rtol=1e-9,
    )
    with pytest.raises(UserError, match="cluster=7"):
        fits.predict(x[:1], np.array([7]))
    with pytest.raises(UserError, match="cluster: has 2 entries"):
        fit_local(x, y, np.array([0, 1]), RFMConfig())
