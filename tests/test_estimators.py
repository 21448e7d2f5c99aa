"""The scikit-learn estimators: scikit-learn's own checks, and what they compute."""

import numpy as np
import pytest
from kernel_data import mixed_data
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from monolib.errors import UserError
from monolib.estimators import MLPGatedRegressor, PerClusterRegressor, RFMRegressor
from monolib.gates import find_gates
from monolib.local_predictors import fit_gated
from monolib.rfm import RFMConfig, fit_rfm

SMALL_NETWORK = dict(width=64, network_batch_size=128, min_steps=1, max_steps=1500)


@parametrize_with_checks(
    [
        RFMRegressor(),
        RFMRegressor(n_updates=0, solver="eigenpro", dtype="float64"),
        PerClusterRegressor(),
        MLPGatedRegressor(n_gates=2, **(SMALL_NETWORK | {"width": 16, "max_steps": 100})),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)  # none is declared to fail


def test_rfm_regressor_is_fit_rfm():
    train, test, _ = mixed_data(3, 400)
    model = RFMRegressor(n_updates=2, random_state=4).fit(train.x, train.y, train.cluster)
    fit = fit_rfm(train.x, train.y, RFMConfig(n_updates=2, seed=4), train.cluster)
    for t in range(3):
        assert np.array_equal(model.predict(test.x, iteration=t), fit.predict(test.x, t))
    assert len(model.reports_) == 3
    assert model.bandwidth_ == fit.iterations[-1].bandwidth
    assert np.array_equal(model.metric_, fit.iterations[-1].metric)
    assert np.array_equal(clone(model).fit(train.x, train.y, train.cluster).predict(test.x), model.predict(test.x))
    with pytest.raises(UserError, match="cluster: must be 400 integers"):
        model.fit(train.x, train.y, train.cluster[:5])


def test_works_in_a_grid_search():
    train, _, _ = mixed_data(1, 300)
    search = GridSearchCV(RFMRegressor(random_state=0), {"n_updates": [0, 2]}, cv=3).fit(train.x, train.y)
    assert search.best_params_ == {"n_updates": 2}


def test_oracle_fits_every_cluster_on_its_own_and_beats_the_global_fit():
    train, test, _ = mixed_data(5, 1500)
    oracle = PerClusterRegressor(random_state=0).fit(train.x, train.y, train.cluster)
    output = oracle.predict(test.x, test.cluster)
    for c in range(5):
        mine, theirs = train.cluster == c, test.cluster == c
        alone = fit_rfm(train.x[mine], train.y[mine], RFMConfig(seed=c))
        np.testing.assert_allclose(output[theirs], alone.predict(test.x[theirs]), rtol=1e-12)
    together = RFMRegressor(random_state=0).fit(train.x, train.y, train.cluster).predict(test.x)
    assert np.mean(np.square(output - test.y)) < 0.5 * np.mean(np.square(together - test.y))
    with pytest.raises(UserError, match="cluster=None"):
        oracle.predict(test.x)
    with pytest.raises(UserError, match="cluster=9"):
        oracle.predict(test.x[:1], [9])
    with pytest.raises(UserError, match="cluster: must be 1500 integers"):
        oracle.fit(train.x, train.y, train.cluster + 0.5)


def test_oracle_and_global_agree_for_one_cluster():
    train, test, _ = mixed_data(1, 300)
    oracle = PerClusterRegressor(random_state=0).fit(train.x, train.y, train.cluster)
    together = RFMRegressor(random_state=0).fit(train.x, train.y, train.cluster)
    assert np.array_equal(oracle.predict(test.x, test.cluster), together.predict(test.x))


def test_gated_regressor_trains_a_network_and_beats_the_global_kernel():
    train, test, _ = mixed_data(2, 3000)
    model = MLPGatedRegressor(n_gates=2, learning_rate=3e-3, random_state=0, **(SMALL_NETWORK | {"width": 128}))
    model.fit(train.x, train.y)
    together = RFMRegressor(random_state=0).fit(train.x, train.y, train.cluster)
    gated, glob = (float(np.mean(np.square(m.predict(test.x) - test.y))) for m in (model, together))
    assert gated < glob
    agreement = np.zeros((2, 2))
    np.add.at(agreement, (train.cluster, model.gates_.assignment), 1)
    assert agreement.max(1).sum() > 0.9 * len(train.x)


def test_gated_regressor_takes_a_trained_network():
    train, test, _ = mixed_data(2, 500)
    source = MLPGatedRegressor(n_gates=2, random_state=1, **SMALL_NETWORK).fit(train.x, train.y).network_
    model = MLPGatedRegressor(n_gates=2, network=source, random_state=1, n_updates=1).fit(train.x, train.y)
    gates = find_gates(source, train.x, 2, 1)
    fits = fit_gated(train.x, train.y, gates, RFMConfig(n_updates=1, seed=1))
    assert model.network_ is source
    assert np.array_equal(model.predict(test.x), fits.predict(test.x, gates.assign(test.x)))
    assert np.array_equal(model.predict(test.x, iteration=0), fits.predict(test.x, gates.assign(test.x), 0))
