"""Kernel values, products and bandwidths against scipy and numpy, with the expanded Gram matrix as the bad example."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import RANK_ONE, points, random_metric, reference_gram
from scipy.spatial.distance import pdist

from monolib.bandwidth import median_bandwidth
from monolib.errors import UserError
from monolib.kernels import KernelTiles, gram, kernel_product, mapped, metric_root
from monolib.memory import memory_budget, require_memory

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6}


def mapped_points(x, metric, bandwidth, dtype=torch.float64, center=None):
    center = x.mean(0) if center is None else center
    return mapped(points(x), metric_root(points(metric)), points(center), bandwidth, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_gram_equals_scipy_and_has_an_exact_diagonal(dtype, offset):
    rng = np.random.default_rng(0)
    x, z, metric = (
        rng.standard_normal((900, 20)) + offset,
        rng.standard_normal((300, 20)) + offset,
        random_metric(rng, 20),
    )
    u, w = (mapped_points(p, metric, 3.0, dtype, x.mean(0)) for p in (x, z))
    np.testing.assert_allclose(gram(u, w), reference_gram(x, z, metric, 3.0), atol=TOLERANCE[dtype], rtol=0)
    own = gram(u)
    np.testing.assert_allclose(own, reference_gram(x, x, metric, 3.0), atol=TOLERANCE[dtype], rtol=0)
    assert (own.diagonal() == 1).all()
    assert torch.equal(own, own.T)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gram_is_accurate_for_close_points_of_large_data(dtype):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, 5))
    x[200:] = x[:200] + 1e-7 * rng.standard_normal((200, 5))
    u = mapped_points(x, np.eye(5), 1.0, torch.float64)
    np.testing.assert_allclose(gram(u), reference_gram(u, u, np.eye(5), 1.0), atol=1e-12, rtol=0)
    single = u.to(dtype)
    expected = reference_gram(single.double(), single.double(), np.eye(5), 1.0)
    np.testing.assert_allclose(gram(single), expected, atol=1e-6, rtol=0)


def expanded_gram(u):
    """What other codes do: the expansion in the points' own precision, without a correction."""
    square = u.square().sum(1)
    return torch.exp(-(square[:, None] + square - 2 * u @ u.T).clamp_min(0).sqrt())


def test_rank_one_metric_and_duplicates_stay_positive_where_the_expansion_does_not():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((800, 4))
    x[400:500] = x[:100]
    u = mapped_points(x, RANK_ONE, 0.5)
    assert torch.linalg.eigvalsh(gram(u))[0] > -1e-12
    single = mapped_points(x, RANK_ONE, 0.5, torch.float32)
    assert torch.linalg.eigvalsh(expanded_gram(single).double())[0] < -1e-4  # the negative control
    assert torch.linalg.eigvalsh(gram(single).double())[0] > -1e-5


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("tile_bytes", [None, 3000, 2**26])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_products_equal_the_gram_matrix_for_every_tile_size(dtype, tolerance, tile_bytes, columns):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1217, 7)) + 20
    u = mapped_points(x, random_metric(rng, 7), 2.0, dtype)
    v = torch.tensor(rng.standard_normal((1217, *columns)), dtype=dtype)
    small = v[:311]
    for ours, exact in (
        (kernel_product(u, None, v, tile_bytes), gram(u) @ v),
        (kernel_product(u, u[:311], small, tile_bytes), gram(u, u[:311].contiguous()) @ small),
    ):
        assert ours.shape == exact.shape
        assert (ours - exact).norm() <= 10 * tolerance * exact.norm()


def test_tiles_hold_exact_ones_for_pairs_of_a_point_with_itself():
    u = mapped_points(np.random.default_rng(4).standard_normal((300, 20)) + 20, np.eye(20), 1.0, torch.float32)
    tiles = KernelTiles(u, tile_bytes=2**14)
    block = tiles.tile((40, 90), (60, 200), out=u.new_empty(50, 140))
    assert (block.diagonal(-20) == 1)[:30].all() or (block[20:, :30].diagonal() == 1).all()
    other = KernelTiles(u, u.clone(), tile_bytes=2**14).tile((0, 50), (0, 50)).diagonal()
    assert (other < 1).any()  # without the knowledge that the points are the same, the expansion shows


def test_far_points_underflow_to_nothing_and_stay_finite():
    u = points([[0.0], [50.0], [1e6], [1e30]], torch.float32)
    k = gram(u[:3])
    assert torch.isfinite(k).all()
    assert float(k[0, 2]) < 1e-37
    assert torch.isfinite(kernel_product(u[:3].contiguous(), None, torch.ones(3))).all()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.integers(1, 12),
    scale=st.sampled_from([1e-6, 1.0, 1e5]),
    offset=st.sampled_from([0.0, 20.0, -1e4]),
    duplicates=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32]),
    seed=st.integers(0, 2**16),
)
def test_any_shape_scale_and_offset_gives_a_finite_symmetric_kernel(n, d, scale, offset, duplicates, dtype, seed):
    rng = np.random.default_rng(seed)
    x = offset + scale * rng.standard_normal((n, d))
    if duplicates:
        x = x[rng.integers(n, size=n)]
    h = median_bandwidth(points(x), None, rng).value
    u = mapped_points(x, np.eye(d), h, dtype)
    k = gram(u)
    assert torch.isfinite(k).all()
    assert ((k >= 0) & (k <= 1)).all()
    assert (k.diagonal() == 1).all()
    np.testing.assert_allclose(k, reference_gram(x, x, np.eye(d), h), atol=1e-5)
    v = torch.tensor(rng.standard_normal(n), dtype=dtype)
    noise = 1e-6 if dtype == torch.float64 else 2e-2  # the expansion near distance zero
    assert (kernel_product(u, None, v) - k @ v).abs().max() <= noise * max(1.0, float(v.abs().sum()))


def test_root_is_the_root_and_bad_metrics_are_refused():
    metric = random_metric(np.random.default_rng(5), 6)
    root = metric_root(points(metric))
    np.testing.assert_allclose(root @ root, metric, atol=1e-12)
    assert torch.equal(metric_root(-torch.eye(2)), torch.zeros(2, 2, dtype=torch.float64))
    for bad, message in (
        (torch.ones(2, 3), "metric.shape"),
        (torch.tensor([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (torch.tensor([[float("nan")]]), "finite"),
    ):
        with pytest.raises(UserError, match=message):
            metric_root(bad)
    with pytest.raises(UserError, match=r"bandwidth=0\.0"):
        mapped(torch.ones(2, 2), torch.eye(2).double(), torch.zeros(2), 0.0, torch.float64)


def test_bandwidth_is_the_median_over_clusters_of_medians_within():
    rng = np.random.default_rng(6)
    z = rng.standard_normal((90, 3)) * np.repeat([1.0, 2.0, 5.0], 30)[:, None]
    cluster = np.repeat([4, 0, 9], 30)
    expected = np.median([np.median(pdist(z[cluster == c])) for c in (0, 4, 9)])
    found = median_bandwidth(points(z), cluster, rng)
    assert found.value == pytest.approx(expected, rel=1e-13)
    assert found.clusters == 3
    single = median_bandwidth(points(z), None, rng)
    assert single.value == pytest.approx(np.median(pdist(z)), rel=1e-13)


def test_bandwidth_from_a_subsample_is_seeded_and_close():
    z = points(np.random.default_rng(7).standard_normal((5000, 10)))
    draws = [median_bandwidth(z, None, np.random.default_rng(s), 300).value for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert draws[0] == pytest.approx(np.median(pdist(z)), rel=0.03)


def test_clusters_without_a_distance_do_not_count_for_the_bandwidth():
    z = points(np.vstack([np.arange(3.0)[:, None], np.full((2, 1), 7.0), [[100.0]]]))
    found = median_bandwidth(z, np.array([0, 0, 0, 1, 1, 2]), np.random.default_rng(0))
    assert found == (1.0, 1)
    same = np.full((7, 3), 1e4 / 3)
    assert median_bandwidth(points(same), None, np.random.default_rng(0)) == (1.0, 0)
    assert median_bandwidth(points(np.vstack([same, same[:1] + 1e-3])), None, np.random.default_rng(0)) == (1.0, 0)
    assert median_bandwidth(points([[1.0]]), None, np.random.default_rng(0)) == (1.0, 0)
    with pytest.raises(UserError, match="cluster: has 1 entries"):
        median_bandwidth(z, np.array([0]), np.random.default_rng(0))
    with pytest.raises(UserError, match="max_points=1"):
        median_bandwidth(z, None, np.random.default_rng(0), 1)


def test_memory_is_refused_in_words():
    assert memory_budget("cpu", 2.0) == 2**31
    assert memory_budget("cpu", None) > 0
    with pytest.raises(UserError, match=r"memory_gib=0: must be"):
        memory_budget("cpu", 0)
    with pytest.raises(UserError, match=r"this: needs about 3\.00 GiB, the budget is 2\.00 GiB"):
        require_memory(3 * 2**30, 2**31, "this")
