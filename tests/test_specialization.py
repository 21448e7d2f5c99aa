"""Specialisation measures against brute force, on random and on degenerate input."""

import numpy as np
import pytest

from monolib.networks import Network
from monolib.specialization import active_neurons, alignment, dominance, importance, specialization_table


def network(weight, readout, gate=None):
    weight, readout = np.asarray(weight, float), np.asarray(readout, float)
    bias = np.zeros(len(readout))
    gate = None if gate is None else np.asarray(gate, float)
    name = "relu" if gate is None else "reglu"
    return Network(name, weight, bias, readout, 0.0, gate, None if gate is None else bias)


def test_importance_formulas():
    w, g, a = [[3.0, 4.0], [0.0, 0.0]], [[0.0, 2.0], [1.0, 0.0]], [-2.0, 7.0]
    np.testing.assert_allclose(importance(network(w, a)), [10.0, 0.0])
    np.testing.assert_allclose(importance(network(w, a, g)), [20.0, 0.0])


def test_active_set_is_the_smallest_leading_set():
    rng = np.random.default_rng(0)
    for share in (0.5, 0.9, 0.999):
        values = rng.exponential(size=200)
        active = active_neurons(values, share)
        assert values[active].sum() >= share * values.sum()
        assert values[active[:-1]].sum() < share * values.sum()
        assert values[active].min() >= np.delete(values, active).max()
        assert (np.diff(values[active]) <= 0).all()


def test_active_set_of_degenerate_importance():
    assert active_neurons(np.zeros(5)).size == 0
    assert active_neurons(np.array([])).size == 0
    assert active_neurons(np.array([3.0])).tolist() == [0]
    assert active_neurons(np.ones(4), 0.5).tolist() == [0, 1]  # ties by index
    assert active_neurons(np.array([0.1] * 10), 1.0).size == 10
    for bad in (np.array([1.0, -1.0]), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="importance"):
            active_neurons(bad)
    with pytest.raises(ValueError, match="share=0"):
        active_neurons(np.ones(3), 0.0)


def test_alignment_and_dominance_equal_the_definitions():
    rng = np.random.default_rng(1)
    weight, directions = rng.standard_normal((50, 7)), np.eye(7)[3:6]
    a, d = alignment(weight, directions), dominance(weight, np.array([3, 4, 5]))
    for j, w in enumerate(weight):
        products = [abs(w @ v) for v in directions]
        best = int(np.argmax(products))
        assert a[j] == pytest.approx(max(products) / np.sqrt(w @ w))
        assert d[j] == pytest.approx(abs(w[3 + best]) / max(abs(w[i]) for i in range(7) if i != 3 + best))


def test_measures_ignore_sign_and_scale():
    rng = np.random.default_rng(2)
    weight, directions = rng.standard_normal((50, 7)), np.eye(7)[3:6]
    scaled = weight * rng.choice([-1, 1], 50)[:, None] * rng.uniform(0.1, 9, 50)[:, None]
    np.testing.assert_allclose(alignment(scaled, directions), alignment(weight, directions))
    np.testing.assert_allclose(dominance(scaled, np.arange(3, 6)), dominance(weight, np.arange(3, 6)))


def test_measures_of_degenerate_weights():
    weight = np.array([[0.0, 0.0, 0.0], [0.0, 5.0, 0.0], [2.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    directions = np.eye(3)[1:2]  # K = 1
    np.testing.assert_allclose(alignment(weight, directions), [0.0, 1.0, np.sqrt(0.5), 0.0])
    np.testing.assert_allclose(dominance(weight, np.array([1])), [0.0, np.inf, 1.0, 0.0])


def test_table_counts_over_one_active_set_for_gate_and_value():
    directions = np.eye(4)[2:]
    gate = [[0, 0, 1, 0.1], [0, 0, 0.1, 1], [1, 0, 0, 0], [0, 0, 1, 0]]
    value = [[1, 1, 1, 1], [0, 0, 1, 0.9], [0, 0, 1, 0], [1e-9, 0, 0, 0]]
    rows = specialization_table(network(value, [1, 1, 1, 1], gate), directions)
    assert [(r.weights, r.active) for r in rows] == [("gate", 3), ("value", 3)]
    np.testing.assert_allclose(rows[0][2:], [200 / 3] * 4)
    np.testing.assert_allclose(rows[1][2:], [200 / 3, 100 / 3, 200 / 3, 100 / 3])


def test_table_of_one_neuron_and_of_none():
    directions = np.eye(2)[1:]
    assert specialization_table(network([[0.0, 2.0]], [1.0]), directions)[0][1:] == (1, 100.0, 100.0, 100.0, 100.0)
    empty = specialization_table(network([[0.0, 0.0]], [1.0]), directions)[0]
    assert empty.active == 0
    assert np.isnan(empty.cos_071)
    with pytest.raises(ValueError, match="coordinate axis"):
        specialization_table(network([[0.0, 2.0]], [1.0]), np.array([[0.6, 0.8]]))


def test_thresholds_are_inclusive_for_cosines_and_strict_for_dominance():
    at_threshold = [[np.sqrt(1 - 0.9**2), 0.9], [1.0, 1.0], [1.0, 2.0]]
    row = specialization_table(network(at_threshold, [1.0, 1.0, 1.0]), np.eye(2)[1:])[0]
    assert alignment(np.array(at_threshold), np.eye(2)[1:])[0] == 0.9
    assert row.cos_090 == pytest.approx(100 / 3)
    assert row.cos_071 == pytest.approx(200 / 3)
    assert row.dominant == pytest.approx(200 / 3)  # D = 1 does not count
    assert row.dominant_2x == pytest.approx(100 / 3)  # D = 2 does not count
