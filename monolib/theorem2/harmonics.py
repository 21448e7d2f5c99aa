"""Harmonic polynomials of K Gaussian variables: dimensions, energies, and direct projections (Lemmas 14, 15)."""

from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np
from scipy.linalg import null_space
from scipy.special import eval_gegenbauer, gammaln

from monolib.links import FloatArray


def harmonic_dimension(order: int, n_clusters: int) -> int:
    """H_{r,K} = C(K+r−1, r) − C(K+r−3, r−2), exact; r ≥ 2. Source: Lemma 14."""
    r, k = order, n_clusters
    return comb(k + r - 1, r) - (comb(k + r - 3, r - 2) if k + r >= 3 else 0)


def directional_energy(order: int, n_clusters: int) -> float:
    """α_{r,K} = ‖P_{r,K} h_r(qᵀz)‖² of a unit vector q. Source: Lemma 14.

    r = 2m: ∏_{j<m} (K+2j−1)/(K+2m+2j−2);  r = 2m+1: ∏_{j<m} (K+2j−1)/(K+2m+2j)
    """
    m, odd = divmod(order, 2)
    j = np.arange(m)
    return float(np.prod((n_clusters + 2.0 * j - 1) / (n_clusters + 2.0 * m + 2 * j - 2 + 2 * odd)))


def energy_by_sum(order: int, n_clusters: int) -> float:
    """α_{r,K} as the alternating sum in Lemma 14's proof (loses digits at large r)."""
    r, half = order, n_clusters / 2
    j = np.arange(r // 2 + 1)
    logs = gammaln(r + 1) + gammaln(r - j + half - 1) - j * np.log(4) - gammaln(j + 1) - gammaln(r - 2 * j + 1)
    return float(((-1.0) ** j * np.exp(logs - gammaln(r + half - 1))).sum())


def _monomials(order: int, n_clusters: int) -> list[tuple[int, ...]]:
    """Exponents of the monomials of degree `order` in K variables."""
    choices = combinations_with_replacement(range(n_clusters), order)
    return [tuple(choice.count(i) for i in range(n_clusters)) for choice in choices]


def project_directly(order: int, n_clusters: int) -> tuple[int, float]:
    """(dimension of the harmonic polynomials of degree r in K variables, energy of x_1^r in them), by linear algebra.

    The null space of the Laplacian as a matrix on monomials; the inner product of Gaussian chaos gives the monomial
    x^a the squared norm a!.  Cost grows like C(K+r−1, r)³.  Source: Lemma 14, from its definitions.
    """
    above, below = _monomials(order, n_clusters), _monomials(order - 2, n_clusters)
    row = {exponents: i for i, exponents in enumerate(below)}
    laplacian = np.zeros((len(below), len(above)))
    for column, exponents in enumerate(above):
        for i, power in enumerate(exponents):
            if power >= 2:
                lowered = (*exponents[:i], power - 2, *exponents[i + 1 :])
                laplacian[row[lowered], column] += power * (power - 1)
    norms = np.array([np.prod([float(factorial(power)) for power in exponents]) ** 0.5 for exponents in above])
    basis = null_space(laplacian / norms)  # orthonormal in coordinates scaled by the norms of the monomials
    first = above.index((order, *[0] * (n_clusters - 1)))
    return basis.shape[1], float(np.square(basis[first]).sum())


def distance_to_sections(order: int, points: FloatArray, target: FloatArray) -> FloatArray:
    """dist(v, S)²/‖v‖² for the zonal harmonic v of `target` (K,) and S spanned by those of unit vectors `points`.

    points: (..., N, K).  Inner products of zonal harmonics are normalised Gegenbauer polynomials of the cosine.
    Shape (...).  Needs K ≥ 3 and N ≤ H_{r,K}.  Source: Lemma 15, with the subspaces of Lemma 16.
    """
    shape = points.shape[-1] / 2 - 1
    top = eval_gegenbauer(order, shape, 1.0)
    gram = eval_gegenbauer(order, shape, np.clip(points @ np.swapaxes(points, -1, -2), -1, 1)) / top
    cross = eval_gegenbauer(order, shape, np.clip(points @ target, -1, 1)) / top
    return 1.0 - (cross * np.linalg.solve(gram, cross[..., None])[..., 0]).sum(-1)
