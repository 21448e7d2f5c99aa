"""RFM: the whole loop against xRFM, its invariances, its reports, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import mixed_data

from monolib.eigenpro import EigenProConfig
from monolib.errors import UserError
from monolib.rfm import RFMConfig, fit_rfm, require_fit, smallest_test_mse_envelope


def predictions(fit, x):
    return [fit.predict(x, t) for t in range(len(fit.iterations))]


@pytest.mark.parametrize(("n_clusters", "n"), [(1, 1200), (10, 1500)])
def test_trajectory_equals_xrfm(n_clusters, n):
    xrfm = pytest.importorskip("xrfm.rfm_src")
    train, test, _ = mixed_data(n_clusters, n)
    config = RFMConfig(bandwidth=6.0, normalization="max_entry", agop_points=n)
    ours = fit_rfm(train.x, train.y, config)
    x, y, at = (torch.tensor(v, dtype=torch.float64) for v in (train.x, train.y[:, None], test.x))
    for updates in (1, 3):
        model = xrfm.RFM("l2", iters=updates, bandwidth=6.0, exponent=1.0, device="cpu", verbose=False)
        options = dict(reg=1e-6, return_best_params=False, early_stop_rfm=False, total_points_to_sample=n)
        metrics = model.fit((x, y), (at, torch.zeros(len(at), 1).double()), return_Ms=True, verbose=False, **options)
        theirs = model.predict(at).numpy().ravel()
        own = ours.predict(test.x, updates)
        assert np.linalg.norm(own - theirs) <= 2e-3 * np.linalg.norm(theirs)
        for t, metric in enumerate(metrics, start=1):
            assert (ours.iterations[t].metric - metric).norm() <= 2e-3 * metric.norm()


def test_normalisation_changes_nothing_under_the_median_bandwidth():
    train, test, _ = mixed_data(3, 500)
    fits = [
        fit_rfm(train.x, train.y, RFMConfig(normalization=n), train.cluster) for n in ("trace", "max_entry", "none")
    ]
    for other in fits[1:]:
        for own, theirs in zip(predictions(fits[0], test.x), predictions(other, test.x), strict=True):
            assert np.abs(own - theirs).max() <= 1e-10


def test_recovers_the_direction_of_a_single_cluster():
    train, test, law = mixed_data(1, 1500)
    fit = fit_rfm(train.x, train.y, RFMConfig())
    errors = fit.test_mse(test.x, test.y)
    top = torch.linalg.eigh(fit.iterations[-1].metric).eigenvectors[:, -1].numpy()
    assert abs(top @ law.directions[0]) > 0.995
    assert errors[-1] < 0.2 * errors[0]
    assert smallest_test_mse_envelope(errors) == min(errors)
    assert [step.report.metric for step in fit.iterations] == ["identity", "updated", "updated", "updated"]


def test_float32_eigenpro_agrees_with_float64():
    train, test, _ = mixed_data(5, 1500)
    solver = EigenProConfig(target_mse=None, max_epochs=10)
    config = RFMConfig(solver="eigenpro", eigenpro=solver)
    single, double = (
        fit_rfm(train.x, train.y, replace(config, dtype=t), train.cluster) for t in ("float32", "float64")
    )
    for own, theirs in zip(predictions(single, test.x), predictions(double, test.x), strict=True):
        assert np.linalg.norm(own - theirs) <= 1e-3 * np.linalg.norm(theirs)


def test_early_stopped_eigenpro_predicts_like_the_exact_fit():
    train, test, _ = mixed_data(10, 3000)
    exact, early = (
        fit_rfm(train.x, train.y, RFMConfig(solver=solver, n_updates=0), train.cluster)
        for solver in ("exact", "eigenpro")
    )
    assert early.iterations[0].report.stop_reason == "target"
    assert early.test_mse(test.x, test.y)[0] == pytest.approx(exact.test_mse(test.x, test.y)[0], rel=0.05)


def test_the_solver_changes_at_the_stated_size():
    config = RFMConfig()
    assert config.uses_exact(10_999)
    assert not config.uses_exact(11_000)


def test_same_seed_is_bit_identical_and_label_shapes_agree():
    train, test, _ = mixed_data(4, 400)
    config = RFMConfig(n_updates=2, agop_points=100, bandwidth_points=50)
    first, again = (fit_rfm(train.x, train.y, config, train.cluster) for _ in range(2))
    column = fit_rfm(train.x, train.y[:, None], config, train.cluster)
    strided = fit_rfm(np.asfortranarray(np.repeat(train.x, 2, axis=0))[::2], train.y, config, train.cluster)
    for other in (again, column, strided):
        for own, theirs in zip(predictions(first, test.x), predictions(other, test.x), strict=True):
            assert np.array_equal(own, theirs)
    different = fit_rfm(train.x, train.y, replace(config, seed=1), train.cluster)
    assert not np.array_equal(different.predict(test.x), first.predict(test.x))
    eigenpro = replace(config, solver="eigenpro")
    pair = [fit_rfm(train.x, train.y, eigenpro, train.cluster).predict(test.x) for _ in range(2)]
    assert np.array_equal(*pair)


def test_an_offset_of_the_data_does_not_matter():
    train, test, _ = mixed_data(2, 600)
    near, far = (fit_rfm(train.x + offset, train.y, RFMConfig(n_updates=2)) for offset in (0.0, 20.0))
    difference = near.predict(test.x) - far.predict(test.x + 20.0)
    assert np.abs(difference).max() <= 1e-6


def test_constant_and_zero_targets():
    train, test, _ = mixed_data(2, 200)
    constant = fit_rfm(train.x, np.full(200, 3.0), RFMConfig())
    assert np.isfinite(constant.predict(test.x)).all()
    zero = fit_rfm(train.x, np.zeros(200), RFMConfig())
    assert not zero.predict(test.x).any()
    assert [step.report.metric for step in zero.iterations] == ["identity", "kept", "kept", "kept"]


def test_one_member_clusters_and_single_points():
    train, _, _ = mixed_data(2, 101)
    cluster = np.where(np.arange(101) == 7, 5, train.cluster)
    fit = fit_rfm(train.x, train.y, RFMConfig(n_updates=1), cluster)
    assert [step.report.bandwidth_clusters for step in fit.iterations] == [2, 2]
    single = fit_rfm(train.x[:1], train.y[:1], RFMConfig())
    assert single.predict(train.x[:1])[0] == pytest.approx(train.y[0], rel=1e-5)
    assert single.iterations[-1].report.metric == "kept"
    assert single.iterations[-1].bandwidth == 1.0


def test_report_tells_what_happened():
    train, _, _ = mixed_data(2, 300)
    exact, iterated = (
        fit_rfm(train.x, train.y, RFMConfig(solver=solver, n_updates=1)).iterations[-1].report
        for solver in ("exact", "eigenpro")
    )
    assert (exact.solver, exact.stop_reason, exact.jitter) == ("exact", "solved", 0.0)
    assert exact.residual < 1e-8
    assert exact.seconds > 0
    assert (iterated.solver, iterated.stop_reason) == ("eigenpro", "target")
    assert 0 < iterated.train_mse <= 4e-4
    assert iterated.residual == pytest.approx((iterated.train_mse * 300) ** 0.5 / np.linalg.norm(train.y))
    assert iterated.steps == len(iterated.detail["history"])
    assert "seconds" not in exact.as_dict(with_seconds=False)


def test_progress_goes_to_stderr_and_only_when_asked(capsys):
    train, _, _ = mixed_data(1, 100)
    fit_rfm(train.x, train.y, RFMConfig(solver="eigenpro"))
    assert capsys.readouterr() == ("", "")
    fit_rfm(train.x, train.y, RFMConfig(solver="eigenpro"), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "RFM" in shown.err
    assert "EigenPro" in shown.err


def test_what_would_not_fit_is_refused_before_it_starts():
    with pytest.raises(
        UserError, match=r"an exact kernel fit of n=200000 points: needs about \d+\.\d\d GiB, the budget"
    ):
        require_fit(200_000, 20, RFMConfig(solver="exact", memory_gib=6.0))
    assert require_fit(200_000, 20, RFMConfig(memory_gib=6.0)) is False  # runs, without keeping the Gram matrix
    assert require_fit(20_000, 20, RFMConfig(memory_gib=6.0)) is True
    with pytest.raises(UserError, match="an EigenPro fit of n=200000 points"):
        require_fit(200_000, 20, RFMConfig(memory_gib=0.2))
    with pytest.raises(UserError, match="an exact kernel fit of n=50 points"):
        fit_rfm(np.zeros((50, 2)), np.zeros(50), RFMConfig(memory_gib=1e-6))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.array([[np.nan, 0.0]]), np.zeros(1), "x: contains NaN or infinite values"),
        (np.zeros((2, 1)), np.array([0.0, np.inf]), "y: contains NaN or infinite values"),
        (np.zeros((2, 1)), np.zeros((2, 2)), r"y\.shape=\(2, 2\)"),
        (np.zeros(3), np.zeros(3), r"x\.shape=\(3,\)"),
        (np.zeros((0, 3)), np.zeros(0), r"x\.shape=\(0, 3\)"),
    ],
)
def test_bad_data_are_refused_by_name(x, y, message):
    with pytest.raises(UserError, match=message):
        fit_rfm(x, y, RFMConfig())


@pytest.mark.parametrize(
    "change",
    [{"n_updates": -1}, {"solver": "lu"}, {"ridge": -1.0}, {"bandwidth": 0.0}, {"dtype": "half"}, {"device": "tpu"}],
)
def test_bad_settings_are_refused_by_name(change):
    with pytest.raises(UserError, match=f"^{next(iter(change))}="):
        RFMConfig(**change)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 30),
    d=st.integers(1, 6),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
    label_scale=st.sampled_from([0.0, 1e-5, 1.0, 1e5]),
    duplicates=st.booleans(),
    solver=st.sampled_from(["exact", "eigenpro"]),
    seed=st.integers(0, 2**16),
)
def test_any_data_give_finite_predictions(n, d, scale, label_scale, duplicates, solver, seed):
    rng = np.random.default_rng(seed)
    x = scale * rng.standard_normal((n, d)) + 3 * scale
    if duplicates:
        x = x[rng.integers(n, size=n)]
    y = label_scale * rng.standard_normal(n)
    config = RFMConfig(n_updates=2, solver=solver, eigenpro=EigenProConfig(max_epochs=5))
    fit = fit_rfm(x, y, config)
    for output in predictions(fit, x + 0.1 * scale):
        assert np.isfinite(output).all()
    for step in fit.iterations:
        assert torch.isfinite(step.metric).all()
        assert np.isfinite(step.report.train_mse)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("solver", ["exact", "eigenpro"])
def test_cuda_agrees_with_the_cpu(solver):
    train, test, _ = mixed_data(5, 1500)
    config = RFMConfig(solver=solver, eigenpro=EigenProConfig(target_mse=None, max_epochs=10), n_updates=1)
    cpu, cuda = (fit_rfm(train.x, train.y, replace(config, device=name), train.cluster) for name in ("cpu", "cuda"))
    for own, theirs in zip(predictions(cpu, test.x), predictions(cuda, test.x), strict=True):
        assert np.linalg.norm(own - theirs) <= 1e-3 * np.linalg.norm(theirs)
