"""The checks of Theorem 1's lemmas, and the same checks with something wrong put in (negative controls).

Every check takes the formula it is about as an argument, so that a wrong one goes through the very same code.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from monolib.laws import theorem1_law
from monolib.lemma_checks import LemmaCheck, slope
from monolib.links import FloatArray
from monolib.random_streams import generator
from monolib.theorem1.correlation import (
    SQRT6,
    correlation_by_quadrature,
    correlation_gradient,
    normal_density,
    population_correlation,
    random_directions,
)
from monolib.theorem1.coverage import (
    coverage_bounds,
    coverage_probability,
    covered_share,
    independence_p_value,
    uniformity_p_value,
)
from monolib.theorem1.critical_points import critical_point, critical_value, signature, specialised_offset
from monolib.theorem1.network_flow import network_flow
from monolib.theorem1.parameters import Theorem1Parameters
from monolib.theorem1.teacher_flow import TeacherPath

Correlation = Callable[[FloatArray, float], FloatArray]
LARGE = 8.0  # R from which slopes are fitted: b* = 1 − 3/(2R²) is still 9 % off 1 at R = 4
FEW_SIGMA = 4.0  # standard errors that a statistic may be off
P_DIGITS = 3.0  # −log₁₀ of the smallest p-value that passes


def _settings(p: Theorem1Parameters) -> list[tuple[int, float, FloatArray]]:
    """(K, R, directions) over the landscape's K and R."""
    rng = generator(p.seed, "test")
    return [(k, r, random_directions(p.n_points, k, rng)) for k in p.clusters for r in p.separations]


def check_correlation(p: Theorem1Parameters, candidate: Correlation = population_correlation) -> LemmaCheck:
    """Lemma 3: Φ against quadrature."""
    error = 0.0
    for _, r, omega in _settings(p):
        direct = np.array([correlation_by_quadrature(row, r) for row in omega])
        error = max(error, float(np.abs(candidate(omega, r) - direct).max()))
    return LemmaCheck("3", "Φ in closed form against Gauss–Hermite × Gauss–Legendre quadrature", error, 1e-10)


def check_monte_carlo(p: Theorem1Parameters, candidate: Correlation = population_correlation) -> LemmaCheck:
    """Lemma 3: Φ against the mean over samples, in standard errors, at the specialised maxima of moderate R."""
    worst = 0.0
    for i, k in enumerate(p.clusters):
        r = p.flow_separation
        x, y, _ = theorem1_law(k, r).sample(p.monte_carlo, generator(p.seed, "train", i))
        tau = np.zeros(k)
        tau[0] = 1.0
        omega = critical_point(tau, r, 1)
        products = y * np.maximum(x @ omega, 0.0)
        error = abs(float(candidate(omega[None], r)[0]) - products.mean())
        worst = max(worst, float(error / (products.std() / len(products) ** 0.5)))
    return LemmaCheck("3", "Φ at specialised maxima against sample means, in standard errors", worst, FEW_SIGMA)


def check_gradient(p: Theorem1Parameters, candidate: Correlation = correlation_gradient) -> LemmaCheck:
    """Lemma 3: ∇_S Φ against automatic differentiation of ‖w‖Φ(w/‖w‖), projected; relative to its largest entry."""
    error = 0.0
    for k, r, omega in _settings(p):
        w = torch.tensor(omega, requires_grad=True)
        unit = w / w.norm(dim=1, keepdim=True)
        b, rho = r * unit[:, :k], unit[:, k:]
        phi = -(b * torch.exp(-0.5 * b.square()) * rho**3).sum(1) / (k * SQRT6 * (2.0 * np.pi) ** 0.5)
        (gradient,) = torch.autograd.grad(phi.sum(), w)
        expected = gradient.numpy()
        error = max(error, float(np.abs(candidate(omega, r) - expected).max() / np.abs(expected).max()))
    return LemmaCheck("3", "∇_S Φ in closed form against automatic differentiation (relative)", error, 1e-10)


def _signs(active: int, n_clusters: int) -> FloatArray:
    """τ with `active` entries ±1, alternating."""
    tau = np.zeros(n_clusters)
    tau[:active] = np.where(np.arange(active) % 2 == 0, 1.0, -1.0)
    return tau


Point = Callable[[FloatArray, float, int], FloatArray]


def check_critical_points(p: Theorem1Parameters, candidate: Point = critical_point) -> list[LemmaCheck]:
    """Lemma 4: location (gradient zero, on the sphere), value, and signature of the Hessian, s = 1..K, both ζ."""
    location = value = mismatches = 0.0
    for k in p.clusters:
        for r in p.separations:
            for s in range(1, k + 1):
                for sign in (1, -1):
                    omega = candidate(_signs(s, k), r, sign)
                    scale = critical_value(s, k, r)
                    slope_here = np.linalg.norm(correlation_gradient(omega[None], r)) / (scale * max(1.0, r))
                    location = max(location, float(slope_here), abs(float(np.linalg.norm(omega)) - 1.0))
                    reached = sign * float(population_correlation(omega[None], r)[0])
                    value = max(value, abs(reached / scale - 1.0))
                    mismatches += signature(omega, r, sign) != (s - 1, 2 * k - s, 0)
    return [
        LemmaCheck("4", "s-cluster points solve s·b²(4−b²)/(R²(1−b²)) = 1: slope and norm there", location, 1e-10),
        LemmaCheck("4", "value of Ψ there: (s/(K√6)) |b| φ(b) |ρ|³ (relative)", value, 1e-10),
        LemmaCheck("4", "Hessian has s − 1 positive and 2K − s negative directions: mismatches", mismatches, 0.0),
    ]


def check_specialised(p: Theorem1Parameters, candidate: Correlation | None = None) -> list[LemmaCheck]:
    """Lemma 5: b* against numerical maximisation of the one-cluster objective, and its expansions for large R."""
    offset = candidate or (lambda r, _: specialised_offset(r))
    radii = np.array(p.separations)
    closed = offset(radii, 0.0)

    def best(r: float) -> float:
        def objective(t: float) -> float:
            return -float(np.log(t) - 0.5 * t**2 + 1.5 * np.log1p(-((t / r) ** 2)))

        return float(minimize_scalar(objective, bounds=(1e-9, r * (1 - 1e-12)), options={"xatol": 1e-12}).x)

    numerical = np.array([best(float(r)) for r in radii])
    large = radii[radii >= LARGE]
    off = np.abs(1.0 - offset(large, 0.0))
    constant = abs(float(off[-1] * large[-1] ** 2) - 1.5)
    return [
        LemmaCheck(
            "5", "b* against numerical maximisation on the branch", float(np.abs(closed - numerical).max()), 1e-6
        ),
        LemmaCheck(
            "5", "|b*| = 1 + O(R⁻²): slope in log R (R ≥ 8), off −2", abs(slope(list(large), list(off)) + 2), 0.05
        ),
        LemmaCheck("5", "its constant, R²(1 − |b*|) → 3/2, at the largest R", constant, 20.0 / large[-1] ** 2),
    ]


Ends = dict[str, np.ndarray]


def check_ascents(ends: Sequence[tuple[int, float, Ends]]) -> list[LemmaCheck]:
    """Lemmas 5, 6 and Theorem 1's constants from the ends of ascents: (K, R, arrays of the "ascent" cells)."""
    lost = sum(int((e["distance"] > 1e-6).sum()) for _, _, e in ends)
    total = sum(len(e["distance"]) for _, _, e in ends)
    farthest = max(float(e["distance"].max()) for _, _, e in ends)
    large = sorted({r for _, r, _ in ends if r >= LARGE})
    off = [np.mean([e["off"].mean() for _, r, e in ends if r == radius]) for radius in large]
    scaled = max(float((e["off"] * r).max()) for _, r, e in ends)
    return [
        LemmaCheck("6", f"share of {total} ascents that end at no one-cluster maximum", lost / total, 0.0),
        LemmaCheck("6", "largest distance of an end to ω* of Lemma 5 (orbits are followed to 1e-7)", farthest, 1e-6),
        LemmaCheck(
            "T1", "component off v_c is O(1/R): slope in log R (R ≥ 8), off −1", abs(slope(large, off) + 1), 0.02
        ),
        LemmaCheck("T1", "R · (component off v_c) of all ends, any R and K: at most 1", scaled, 1.0),
    ]


def check_teacher(path: TeacherPath, ends: Ends) -> list[LemmaCheck]:
    """Lemma 7: invariants of the flow; it chooses the same maximum as the ascent from the same start."""
    rho = path.directions[-1][:, path.directions.shape[-1] // 2 :]
    arrived = np.abs(rho).max(1) > 0.8
    other = int((np.abs(rho).argmax(1) != ends["cluster"])[arrived].sum())
    alone = network_flow(path.directions[0], path.separation, 0.0, path.times)
    drift = float(np.abs(alone.directions - path.directions).max())
    return [
        LemmaCheck("7", "ζu(t) > 0 and ζΦ(ω(t)) ≥ |Φ(ω⁰)| for all t: violation", path.sign_error(), 1e-9),
        LemmaCheck("7", "ζΦ(ω(t)) never falls: largest relative fall", path.monotonicity_error(), 1e-9),
        LemmaCheck("7", "‖ω(t)‖ = 1 (u, ω form): largest error", path.norm_error(), 1e-7),
        LemmaCheck("7", "‖w‖² − a² = ε² ((a, w) form): largest relative error", alone.invariant_error(), 1e-7),
        LemmaCheck("7", "(u, ω) of Eq. 17 against gradient flow in (a, w): largest |Δω|", drift, 1e-6),
        LemmaCheck("7", f"cluster of the flow and of the ascent differ ({int(arrived.sum())} arrived)", other, 0.0),
    ]


def check_labels(
    labels: np.ndarray, n_clusters: int, widths: Sequence[int], law: Callable[[int, int], float] = coverage_probability
) -> list[LemmaCheck]:
    """Lemma 8: uniform and independent labels, coverage against the coupon collector's law, and the bounds."""
    half = len(labels) // 2
    uniform = -np.log10(max(uniformity_p_value(labels, n_clusters), 1e-300))
    independent = -np.log10(max(independence_p_value(labels[:half], labels[half : 2 * half], n_clusters), 1e-300))
    z, excess = 0.0, 0.0
    for m in widths:
        share, groups = covered_share(labels, n_clusters, m)
        exact = law(n_clusters, m)
        error = np.sqrt(max(exact * (1 - exact), 1.0 / groups) / groups)
        z = max(z, abs(share - exact) / error)
        excess = max(excess, float(coverage_bounds(n_clusters, np.array(m))[0]) - exact)
    return [
        LemmaCheck("8", f"uniform labels: −log₁₀ p of chi-square, {len(labels)} neurons", float(uniform), P_DIGITS),
        LemmaCheck("8", "independent labels: −log₁₀ p of chi-square, pairs", float(independent), P_DIGITS),
        LemmaCheck("8", "coverage against the exact coupon-collector law, in standard errors", z, FEW_SIGMA),
        LemmaCheck("8", "1 − K(1−1/K)^m above the exact probability by", excess, 1e-12),
    ]


def check_tracking(epsilons: Sequence[tuple[float, float]], widths: Sequence[tuple[int, float]]) -> list[LemmaCheck]:
    """Lemma 9: slopes of the tracking error in ε (three smallest) and in m (copies of one neuron): (value, error)."""
    small = sorted(epsilons)[:3]
    in_epsilon = slope([e for e, _ in small], [error for _, error in small])
    in_width = slope([m for m, _ in widths], [error for _, error in widths])
    return [
        LemmaCheck("9", "tracking error is O(mε²): slope in log ε, off 2", abs(in_epsilon - 2), 0.05),
        LemmaCheck("9", "and for m copies of one neuron: slope in log m, off 1", abs(in_width - 1), 0.05),
    ]


def check_sgd(batches: Sequence[int], drifts: Sequence[FloatArray]) -> list[LemmaCheck]:
    """Lemma 9 on samples: median |ω_SGD − ω_flow| at the end, for the batches."""
    medians = [float(np.median(drift)) for drift in drifts]
    text = f"SGD (batch {batches[-1]}) against the population flow: median |Δω| at the end"
    return [LemmaCheck("9", text, medians[-1], 0.05)]


def check_theorem(epsilons: Sequence[float], distances: Sequence[FloatArray], delta: float, r: float) -> LemmaCheck:
    """Theorem 1 at the smallest ε: max_j ‖ω_j(T_δ) − τ_j v_J‖ − C/R with C = 1, against δ."""
    worst = float(distances[int(np.argmin(epsilons))].max()) - 1.0 / r
    return LemmaCheck("T1", "max_j ‖ω_j(T_δ) − τ_j v_J‖ − 1/R of the full network, smallest ε: at most δ", worst, delta)


def negative_controls(
    p: Theorem1Parameters,
    labels: np.ndarray,
    epsilons: Sequence[tuple[float, float]],
    widths: Sequence[tuple[int, float]],
) -> list[LemmaCheck]:
    """The checks with a wrong constant, exponent, law or rate; every one must be detected."""

    def renamed(change: str, check: LemmaCheck) -> LemmaCheck:
        return LemmaCheck(check.lemma, f"{change}: {check.statement}", check.error, check.tolerance)

    def scaled(omega: FloatArray, r: float) -> FloatArray:
        return population_correlation(omega, r) * (6.0 / 5.0) ** 0.5

    def summed(omega: FloatArray, r: float) -> FloatArray:
        return population_correlation(omega, r) * (omega.shape[1] // 2)

    def squared(omega: FloatArray, r: float) -> FloatArray:
        k = omega.shape[1] // 2
        b = r * omega[:, :k]
        return -(b * normal_density(b) * omega[:, k:] ** 2).sum(1) / (k * SQRT6)

    def shifted(tau: FloatArray, r: float, sign: int) -> FloatArray:
        return critical_point(tau, 1.01 * r, sign)

    def other(r: FloatArray, _: float) -> FloatArray:
        return np.sqrt((r**2 + 4 - np.sqrt(r**4 + 5 * r**2 + 16)) / 2)

    worse = [(e, error / e) for e, error in epsilons]
    biased = np.where(labels == 0, np.arange(len(labels)) % p.label_clusters, labels)
    return [
        renamed("√5 for √6", check_correlation(p, scaled)),
        renamed("ρ² for ρ³", check_correlation(p, squared)),
        renamed("no factor 1/K", check_monte_carlo(p, summed)),
        renamed("gradient of R + 1 %", check_gradient(p, lambda w, r: correlation_gradient(w, 1.01 * r))),
        renamed("points of R + 1 %", check_critical_points(p, shifted)[0]),
        renamed("5R² for 4R²", check_specialised(p, other)[0]),
        renamed("a part of cluster 1's neurons moved", check_labels(biased, p.label_clusters, p.cover_widths)[0]),
        renamed(
            "the law of K + 1 clusters",
            check_labels(labels, p.label_clusters, p.cover_widths, lambda k, m: coverage_probability(k + 1, m))[2],
        ),
        renamed("errors of order ε", check_tracking(worse, widths)[0]),
        renamed("errors of order m²", check_tracking(epsilons, [(m, e * m) for m, e in widths])[1]),
    ]
