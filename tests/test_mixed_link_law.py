"""The mixed-link law against its definition (A.2)."""

import numpy as np
import pytest
from scipy import stats

from monolib.center_placement import farthest_point_directions, largest_similarity
from monolib.laws import MIXED_LINKS, mixed_link_law
from monolib.random_streams import generator


@pytest.mark.parametrize("n_clusters", [1, 2, 10, 50])
def test_geometry_and_check_values(n_clusters):
    law = mixed_link_law(n_clusters)
    assert (law.dim, law.noise_std, law.balanced, law.link_scale) == (20, 0.02, True, 1.0)
    assert not law.centers[:, 10:].any()
    assert not law.directions[:, :10].any()
    rho = largest_similarity(law.centers[:, :10])
    np.testing.assert_allclose(law.input_std, np.repeat([(1 - rho) / 8, 1.0], 10))
    if n_clusters == 1:
        assert rho == 0
        assert not law.centers.any()
    else:
        np.testing.assert_allclose(np.linalg.norm(law.centers, axis=1), 1.0)
    expected = {1: 0.0, 2: -1.0, 10: 0.06, 50: 0.45}[n_clusters]
    assert rho == pytest.approx(expected, abs=0.08)


def test_farthest_point_selection_is_greedy():
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    chosen = farthest_point_directions(6, 3, rng)
    candidates = same.standard_normal((20_000, 3))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    for c in range(1, 6):
        worst = (candidates @ chosen[:c].T).max(1)
        assert (chosen[c] @ chosen[:c].T).max() == pytest.approx(worst.min(), abs=1e-12)
    products = chosen @ chosen.T
    assert largest_similarity(chosen) == products[~np.eye(6, dtype=bool)].max()


def test_sample_follows_the_law():
    law = mixed_link_law(10)
    x, y, cluster = law.sample(40_000, generator(12345, "train"))
    assert np.array_equal(cluster, np.arange(40_000) % 10)
    z = (x - law.centers[cluster]) / law.input_std
    assert stats.kstest(z.ravel()[:60_000], "norm").pvalue > 1e-4
    t = np.einsum("nd,nd->n", x, law.directions[cluster])
    links = {"hermite2": (t**2 - 1) / np.sqrt(2), "sin": np.sin(t), "tanh": np.tanh(t)}
    clean = np.select([np.array([name == m for name in law.links])[cluster] for m in links], list(links.values()))
    assert stats.kstest((y - clean) / 0.02, "norm").pvalue > 1e-4


def test_links_vary_with_their_seed_and_geometry_does_not():
    laws = [mixed_link_law(50, link_seed=1000 + r) for r in range(5)]
    for law in laws[1:]:
        np.testing.assert_array_equal(law.centers, laws[0].centers)
        np.testing.assert_array_equal(law.directions, laws[0].directions)
        assert law.links != laws[0].links
    counts = [sum(law.links.count(name) for law in laws) for name in MIXED_LINKS]
    assert stats.chisquare(counts).pvalue > 1e-4
    other = mixed_link_law(50, geometry_seed=1)
    assert not np.allclose(other.directions, laws[0].directions)
    assert other.links == laws[0].links


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="n_clusters=0"):
        mixed_link_law(0)
    with pytest.raises(ValueError, match="block=0"):
        mixed_link_law(1, block=0)
