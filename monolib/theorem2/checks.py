"""The checks of Theorem 2's lemmas, and the same checks with something wrong put in (negative controls).

Every check takes the formula it is about as an argument, so that a wrong one goes through the very same code.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from monolib.laws import theorem2_law
from monolib.lemma_checks import LemmaCheck, slope
from monolib.links import FloatArray, clipped_ramp
from monolib.random_streams import generator
from monolib.theorem2.exact_network import (
    ReluNetwork,
    exact_network,
    path_norm_bound,
    rademacher_bound,
    rademacher_found,
)
from monolib.theorem2.harmonics import (
    directional_energy,
    distance_to_sections,
    energy_by_sum,
    harmonic_dimension,
    project_directly,
)
from monolib.theorem2.hermite import VARIANCE, coefficients_by_quadrature, hermite_coefficients
from monolib.theorem2.lower_bound import limit_lower_bound, risk_lower_bound
from monolib.theorem2.parameters import Theorem2Parameters
from monolib.theorem2.tables import best_kernels
from monolib.theorem2.true_metric import exact_network_agop, risk_floor, true_agop

FEW_SIGMA = 4.0  # standard errors that a sample mean may be off
LEARNABLE = 2.5  # A of n = K^A from which the network is set against the kernels
SEPARATIONS = (1.0, 2.5)  # R at which Lemma 10 is checked


def check_exact_network(
    p: Theorem2Parameters, candidate: Callable[[int, float], ReluNetwork] = exact_network
) -> list[LemmaCheck]:
    """Lemma 10: F = f* on the support, the norms, and B_1 ≤ 3K."""
    difference = norms = balance = 0.0
    for k in p.clusters:
        for r in SEPARATIONS:
            network = candidate(k, r)
            x, y, _ = theorem2_law(k, r).sample(2000, generator(p.seed, "validation"))
            difference = max(difference, float(np.abs(network(x) - y).max()))
            norms = max(norms, abs(network.path_norm() / path_norm_bound(k, r) - 1))
            balanced = network.balanced()
            balance = max(balance, abs(balanced.frobenius() / network.path_norm() - 1), np.abs(balanced(x) - y).max())
    budget = max(path_norm_bound(k) / (3.0 * k) for k in p.clusters)
    return [
        LemmaCheck("10", "F of 2K neurons against f* on samples of the support: largest |F − f*|", difference, 1e-12),
        LemmaCheck("10", "path norm of F against K(1 + √(1 + R⁻²)) (relative)", norms, 1e-12),
        LemmaCheck("10", "balanced parameters: same function, ‖θ‖_F² = path norm (relative)", balance, 1e-12),
        LemmaCheck("10", "B_1/(3K), at most 1", budget, 1.0),
    ]


def check_capacity(p: Theorem2Parameters, mlp: pd.DataFrame) -> list[LemmaCheck]:
    """Lemma 11: suprema found by ascent against the bound; the trained network's risk against the theorem's."""
    ratio = 0.0
    for k in p.clusters:
        rng = generator(p.seed, "geometry", k)
        x = theorem2_law(k).sample(4 * k, rng).x
        ratio = max(ratio, rademacher_found(x, rng, draws=5, tries=40) / rademacher_bound(x))
    return [
        LemmaCheck("11", "Rademacher complexity found by ascent (from below) over its bound, at most 1", ratio, 1.0),
        LemmaCheck("T2", "risk of the trained network over 48K√((K+1)/n), at most 1", _largest(mlp), 1.0),
    ]


def _largest(mlp: pd.DataFrame) -> float:
    return float((mlp["risk"] / mlp["upper_bound"]).max())


Matrix = Callable[[int], FloatArray]


def check_metric(
    p: Theorem2Parameters, candidate: Matrix = true_agop, floor: Callable[[int], float] = risk_floor
) -> list[LemmaCheck]:
    """Lemma 12: the AGOP of f* and of the network F against sample means, and the risk floor, in standard errors."""
    agop = extended = risk = 0.0
    for k in p.clusters:
        n = max(2, p.monte_carlo // k)
        x, y, cluster = theorem2_law(k).sample(n, generator(p.seed, "agop", k))
        z = x[:, k:]
        slopes = np.zeros_like(x)
        rows = np.arange(n)
        slopes[rows, k + cluster] = (z[rows, cluster] > 0) & (z[rows, cluster] < 1)
        agop = max(agop, _matrix_error(slopes, candidate(k)))
        extended = max(extended, _matrix_error(exact_network(k).gradient(x), exact_network_agop(k)))
        loss = np.square(clipped_ramp(z).mean(1) - y)  # of E[f* | √M x], the best function of √M x
        risk = max(risk, float(abs(loss.mean() - floor(k)) / (loss.std() / n**0.5)))
    return [
        LemmaCheck("12", "AGOP of f* against (α/K) P_V: sample means, in standard errors", agop, FEW_SIGMA),
        LemmaCheck(
            "12", "AGOP of the network F (with its routing block) in closed form, likewise", extended, FEW_SIGMA
        ),
        LemmaCheck("12", "risk of E[f* | √M x] against (1 − 1/K) Var g(G), in standard errors", risk, FEW_SIGMA),
    ]


def _matrix_error(gradients: FloatArray, expected: FloatArray) -> float:
    """Largest deviation of the AGOP's class means from those of `expected`, in standard errors.

    A permutation of the clusters changes nothing, so that entries fall into six classes: each of the routing,
    predictive and cross blocks, on and off its diagonal; a class is averaged over its entries before it is compared.
    """
    k = gradients.shape[1] // 2
    routing, predictive = gradients[:, :k], gradients[:, k:]
    blocks = ((routing, routing, expected[:k, :k]), (predictive, predictive, expected[k:, k:]))
    worst = 0.0
    for left, right, block in (*blocks, (routing, predictive, expected[:k, k:])):
        on = (left * right).sum(1)
        off = left.sum(1) * right.sum(1) - on
        for values, total in ((on, float(np.trace(block))), (off, float(block.sum() - np.trace(block)))):
            error = abs(values.mean() - total)
            if error > 1e-9:  # some classes are zero in every sample
                worst = max(worst, error / max(float(values.std()) / len(values) ** 0.5, 1e-12))
    return worst


def check_hermite(candidate: Callable[[int], FloatArray] = hermite_coefficients) -> list[LemmaCheck]:
    """Lemma 13: ĝ_r against quadrature, and Parseval's identity with the tail that is left."""
    orders = 60
    error = float(np.abs(candidate(orders) - coefficients_by_quadrature(orders)).max())
    many = candidate(20_000)
    missing = abs(VARIANCE - float(np.square(many[1:]).sum()))
    return [
        LemmaCheck("13", "ĝ_r, r < 60, against Gauss–Legendre quadrature between the kinks", error, 1e-10),
        LemmaCheck("13", "Σ_{1 ≤ r < 20000} ĝ_r² against Var g(G), closed form", missing, 1e-6),
    ]


def check_harmonics(
    p: Theorem2Parameters,
    dimension: Callable[[int, int], int] = harmonic_dimension,
    energy: Callable[[int, int], float] = directional_energy,
) -> list[LemmaCheck]:
    """Lemma 14: H_{r,K} and α_{r,K} against the null space of the Laplacian, the proof's sum, and large K."""
    mismatches = direct = by_sum = growth = 0.0
    for r in range(2, p.harmonic_orders + 1):
        for k in range(2, p.harmonic_clusters + 1):
            found = project_directly(r, k)
            mismatches += found[0] != dimension(r, k)
            direct = max(direct, abs(found[1] - energy(r, k)))
            by_sum = max(by_sum, abs(energy_by_sum(r, k) - energy(r, k))) if k > 2 else by_sum
        large = [10**4, 10**5]
        growth = max(growth, abs(slope(large, [float(dimension(r, k)) for k in large]) - r))
    limit = max(1.0 - energy(r, 10**6) for r in range(2, p.harmonic_orders + 1))
    return [
        LemmaCheck("14", "H_{r,K} against the null space of the Laplacian: mismatches", mismatches, 0.0),
        LemmaCheck("14", "α_{r,K} against the projection of x_1^r on that null space", direct, 1e-10),
        LemmaCheck("14", "α_{r,K} as product against the sum in the proof", by_sum, 1e-10),
        LemmaCheck("14", "H_{r,K} = Θ(K^r): slope in log K, off r, K = 10⁴ to 10⁵", growth, 0.01),
        LemmaCheck("14", "1 − α_{r,K} at K = 10⁶", limit, 1e-4),
    ]


SUBSPACES = ((2, 4, 5), (3, 4, 5), (3, 4, 12), (4, 5, 20))  # r, K, N of the random subspaces


def check_subspaces(
    p: Theorem2Parameters, expected: Callable[[int, int], float] = lambda n, dimension: 1.0 - n / dimension
) -> list[LemmaCheck]:
    """Lemma 15, for spans of N zonal harmonics at random points, where it is an equality; in standard errors."""
    worst = 0.0
    for i, (r, k, n) in enumerate(SUBSPACES):
        points = generator(p.seed, "geometry", 1000 + i).standard_normal((p.subspace_draws, n, k))
        points /= np.linalg.norm(points, axis=-1, keepdims=True)
        distance = distance_to_sections(r, points, np.eye(k)[0])
        error = distance.std() / len(distance) ** 0.5
        worst = max(worst, float(abs(distance.mean() - expected(n, harmonic_dimension(r, k))) / error))
    return [
        LemmaCheck("15", "E dist(v, S)² of N random sections against 1 − N/H_{r,K}, in standard errors", worst, 4.0)
    ]


def check_risks(kernel: pd.DataFrame, bound: Callable[[float, int], float] = risk_lower_bound) -> list[LemmaCheck]:
    """Lemma 16 and, at ρ = 0, Lemma 12: bound minus measured risk, in standard errors, largest over all fits."""
    pairs = zip(kernel["n_train"], kernel["n_clusters"], strict=True)
    bounds = np.array([bound(n, k) for n, k in pairs])
    excess = float(((bounds - kernel["risk"]) / kernel["standard_error"]).max())
    bare = kernel[kernel["metric"] == "0"]
    floor = float(((bare["floor"] - bare["risk"]) / bare["standard_error"]).max())
    return [
        LemmaCheck("16", "lower bound minus risk of every kernel fit, in standard errors: at most 1", excess, 1.0),
        LemmaCheck("16", "ρ = 0: floor of Lemma 12 minus risk, in standard errors: at most 1", floor, 1.0),
    ]


def check_limit(limit: Callable[[float], float] = limit_lower_bound) -> list[LemmaCheck]:
    """Lemma 17: the bound at K = 10⁶ against its limit, and the limit is positive."""
    exponents = (1.0, 2.0, 2.5, 3.0)
    error = max(abs(risk_lower_bound(1e6**a, 10**6) / limit(a) - 1.0) for a in exponents)
    smallest = min(limit_lower_bound(a) for a in range(1, 31))
    return [
        LemmaCheck("17", "bound at K = 10⁶, n = K^A, against Σ_{r>A} ĝ_r² (relative), A = 1, 2, 2.5, 3", error, 0.02),
        LemmaCheck("17", "the limit is positive for A ≤ 30: minus its smallest value", -smallest, 0.0),
    ]


def check_separation(kernel: pd.DataFrame, mlp: pd.DataFrame) -> list[LemmaCheck]:
    """Theorem 2 as measured: networks of path norm ≤ 3K against the kernels' bound and against the kernels run.

    The paper's regime is n = K^A for every A, with bounds that separate only for very large K (Lemma 17): whether
    the network is below the kernels' bound already at A = 2.5 is a row of its own.
    """
    inside = mlp[mlp["path_norm_over_3k"] <= 1]
    last = inside.loc[inside.groupby("n_clusters")["n_train"].idxmax()]
    below = float((last["risk"] / last["lower_bound"]).min())
    both = best_kernels(kernel).merge(inside, on=["n_clusters", "n_train"], suffixes=("", "_mlp"))
    enough = both[both["n_train"] >= np.round(both["n_clusters"] ** LEARNABLE)].sort_values(["n_clusters", "n_train"])
    against = float(enough["risk_mlp"].iloc[-1] / enough["risk"].iloc[-1]) if len(enough) else float("nan")
    at = inside[inside["n_train"] == np.round(inside["n_clusters"] ** LEARNABLE)].sort_values("n_clusters")
    early = float(at["risk"].iloc[-1] / at["lower_bound"].iloc[-1]) if len(at) else float("nan")
    return [
        LemmaCheck(
            "T2", "risk of the network over the kernels' lower bound, n = K^2.5, largest K: at most 1", early, 1.0
        ),
        LemmaCheck("T2", "risk of the network over the kernels' lower bound, largest n, best K: at most 1", below, 1.0),
        LemmaCheck("T2", "risk of the network over the best kernel's, largest K with n ≥ K^2.5: below 1", against, 1.0),
    ]


def negative_controls(p: Theorem2Parameters, kernel: pd.DataFrame) -> list[LemmaCheck]:
    """The checks with a wrong constant, index or factor; every one must be detected."""

    def renamed(change: str, check: LemmaCheck) -> LemmaCheck:
        return LemmaCheck(check.lemma, f"{change}: {check.statement}", check.error, check.tolerance)

    def off(k: int, r: float) -> ReluNetwork:
        return exact_network(k, 1.01 * r)

    def shifted(orders: int) -> FloatArray:
        return np.concatenate([hermite_coefficients(2), hermite_coefficients(orders + 1)[3:]])

    def fewer(r: int, k: int) -> int:
        return harmonic_dimension(r, k) - 1

    def even(r: int, k: int) -> float:
        return directional_energy(r, k + 1)

    def absolute(n: float, k: int) -> float:
        return float(np.abs(hermite_coefficients(40)[2:]).sum())

    network = check_exact_network(p, off)
    metric = check_metric(p, lambda k: 1.1 * true_agop(k), lambda k: VARIANCE)
    harmonics = check_harmonics(p, fewer, even)
    return [
        renamed("R + 1 %", network[0]),
        renamed("R + 1 %", network[1]),
        renamed("1.1 α for α", metric[0]),
        renamed("no factor 1 − 1/K", metric[2]),
        renamed("He_{r−1} for He_{r−2}", check_hermite(shifted)[0]),
        renamed("H_{r,K} − 1", harmonics[0]),
        renamed("K + 1 for K", harmonics[1]),
        renamed("1 − (N − 1)/H", check_subspaces(p, lambda n, dimension: 1.0 - (n - 1) / dimension)[0]),
        renamed("without n/H and α_{r,K}, |ĝ_r| for ĝ_r²", check_risks(kernel, absolute)[0]),
        renamed("r ≥ A − 1 for r > A", check_limit(lambda a: limit_lower_bound(a - 1))[0]),
    ]
