"""How m independent uniform labels cover K clusters (Lemma 8): the exact law, the bounds, and tests of uniformity."""

from math import comb

import numpy as np
from scipy.stats import chi2, chi2_contingency

from monolib.links import FloatArray


def coverage_probability(n_clusters: int, width: int) -> float:
    """P(all K clusters are among m uniform labels) = Σ_j (−1)^j C(K, j) (1 − j/K)^m, with exact integers.

    The coupon collector's law.  Source: Lemma 8 (of which the union bound is the first term).
    """
    covered = sum((-1) ** j * comb(n_clusters, j) * (n_clusters - j) ** width for j in range(n_clusters + 1))
    return covered / n_clusters**width


def coverage_bounds(n_clusters: int, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lower bounds 1 − K(1 − 1/K)^m and 1 − K e^{−m/K}, at each m of `width`. Source: Lemma 8, Theorem 1."""
    m = np.asarray(width, dtype=float)
    return 1.0 - n_clusters * (1.0 - 1.0 / n_clusters) ** m, 1.0 - n_clusters * np.exp(-m / n_clusters)


def covered_share(labels: np.ndarray, n_clusters: int, width: int) -> tuple[float, int]:
    """Share of disjoint groups of `width` labels that hold all clusters, and the number of groups."""
    groups = len(labels) // width
    table = np.zeros((groups, n_clusters), dtype=bool)
    table[np.repeat(np.arange(groups), width), labels[: groups * width]] = True
    return float(table.all(1).mean()), groups


def uniformity_p_value(labels: np.ndarray, n_clusters: int) -> float:
    """p-value of Pearson's chi-square test that labels in 0..K−1 are uniform; 1 for K = 1. Source: Lemma 8."""
    if n_clusters == 1:
        return 1.0
    counts = np.bincount(labels, minlength=n_clusters)
    expected = len(labels) / n_clusters
    return float(chi2.sf(np.square(counts - expected).sum() / expected, n_clusters - 1))


def independence_p_value(first: np.ndarray, second: np.ndarray, n_clusters: int) -> float:
    """p-value of the chi-square test that two sequences of labels are independent; 1 for K = 1. Source: Lemma 8."""
    if n_clusters == 1:
        return 1.0
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, (first, second), 1)
    return float(chi2_contingency(table, correction=False).pvalue)
