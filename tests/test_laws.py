"""The data laws against their definitions."""

import numpy as np
import pytest
from scipy import special, stats

from monolib.laws import ClusteredLaw, axis_aligned_law
from monolib.links import LINKS, clipped_ramp, hermite2, hermite3
from monolib.random_streams import STREAMS, generator


def test_hermite_links_equal_scipy_and_are_orthonormal():
    nodes, weights = special.roots_hermitenorm(20)
    weights = weights / weights.sum()
    for link, degree in ((hermite2, 2), (hermite3, 3)):
        expected = special.eval_hermitenorm(degree, nodes) / np.sqrt(special.factorial(degree))
        np.testing.assert_allclose(link(nodes), expected, rtol=1e-12, atol=1e-12)
        assert weights @ link(nodes) ** 2 == pytest.approx(1.0, abs=1e-12)
        assert weights @ link(nodes) == pytest.approx(0.0, abs=1e-12)
    assert weights @ (hermite2(nodes) * hermite3(nodes)) == pytest.approx(0.0, abs=1e-12)


def test_clipped_ramp_is_a_difference_of_two_relus():
    t = np.linspace(-2, 3, 101)
    np.testing.assert_allclose(clipped_ramp(t), np.maximum(t, 0) - np.maximum(t - 1, 0), atol=1e-15)


def test_axis_aligned_geometry_as_in_the_paper():
    law = axis_aligned_law()
    assert (law.n_clusters, law.dim, law.noise_std) == (10, 40, 0.005)
    for c in range(10):
        assert law.centers[c, c] == 20.0
        assert np.count_nonzero(law.centers[c]) == 1
        assert law.directions[c, 10 + c] == 1.0
        assert np.count_nonzero(law.directions[c]) == 1


def test_axis_aligned_sample_follows_its_law():
    law = axis_aligned_law()
    x, y, cluster = law.sample(60_000, generator(3, "train"))
    z = x - law.centers[cluster]
    assert stats.chisquare(np.bincount(cluster, minlength=10)).pvalue > 1e-4
    assert stats.kstest(z.ravel()[:50_000] * np.sqrt(40), "norm").pvalue > 1e-4
    covariance = np.cov(z.T)
    np.testing.assert_allclose(covariance, np.eye(40) / 40, atol=5 * np.sqrt(2 / 60_000) / 40)
    t = np.sqrt(40) * x[np.arange(len(x)), 10 + cluster]
    residual = y - (t**2 - 1) / np.sqrt(2)
    assert stats.kstest(residual / 0.005, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(residual, t)[0, 1]) < 0.02


def test_round_robin_prefixes_are_balanced():
    law = ClusteredLaw(np.eye(7), np.eye(7), ("sin",) * 7, np.ones(7), 0.0, balanced=True)
    cluster = law.sample(500, generator(0, "train")).cluster
    for n in (1, 6, 7, 100, 500):
        counts = np.bincount(cluster[:n], minlength=7)
        assert counts.max() - counts.min() <= 1


def test_each_cluster_uses_its_own_link_and_zero_spread_is_allowed():
    names = tuple(LINKS)
    identity = np.eye(len(names))
    law = ClusteredLaw(2 * identity, identity, names, np.zeros(len(names)), 0.0, link_scale=0.25, balanced=True)
    x, y, cluster = law.sample(10, generator(0, "test"))
    np.testing.assert_array_equal(x, 2 * identity[cluster])
    np.testing.assert_allclose(y, [LINKS[names[c]](np.array([0.5]))[0] for c in cluster])


def test_seeds_and_streams_are_reproducible_and_independent():
    law = axis_aligned_law()
    again = [law.sample(2000, generator(5, "train")).x for _ in range(2)]
    np.testing.assert_array_equal(*again)
    others = [law.sample(2000, generator(seed, stream)) for seed, stream in ((6, "train"), (5, "validation"))]
    for other in others:
        noise, other_noise = again[0] % 1.0, other.x % 1.0
        assert abs(np.corrcoef(noise.ravel(), other_noise.ravel())[0, 1]) < 0.02
    states = {generator(5, stream, i).integers(2**63) for stream in STREAMS for i in range(3)}
    assert len(states) == 3 * len(STREAMS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directions": 2 * np.eye(2)}, "norm 1"),
        ({"links": ("sin",)}, "links"),
        ({"links": ("sin", "cos")}, "links"),
        ({"input_std": np.array([1.0, -1.0])}, "input_std"),
        ({"noise_std": -1.0}, "noise_std=-1.0"),
        ({"directions": np.eye(3)}, "directions.shape"),
    ],
)
def test_inconsistent_laws_are_refused(change, message):
    good = dict(centers=np.eye(2), directions=np.eye(2), links=("sin", "tanh"), input_std=np.ones(2), noise_std=0.1)
    with pytest.raises(ValueError, match=message):
        ClusteredLaw(**(good | change))


def test_bad_sizes_and_streams_are_refused():
    with pytest.raises(ValueError, match="dim=19"):
        axis_aligned_law(dim=19)
    with pytest.raises(ValueError, match="n=0"):
        axis_aligned_law().sample(0, generator(0, "train"))
    with pytest.raises(ValueError, match="stream='trian'"):
        generator(0, "trian")
    with pytest.raises(ValueError, match="seed=-1"):
        generator(-1, "train")
