"""The exact two-neuron-per-cluster network of Lemma 10, its norms, and its capacity bound (Lemma 11), float64."""

from dataclasses import dataclass

import numpy as np

from monolib.links import FloatArray


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """f(x) = Σ_j a_j φ(w_jᵀx) without biases: `weight` (m, d), `readout` (m,). Source: B.2.1."""

    weight: FloatArray
    readout: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """f(x) (n,) for x (n, d)."""
        return np.maximum(x @ self.weight.T, 0.0) @ self.readout

    def gradient(self, x: FloatArray) -> FloatArray:
        """∇f(x) (n, d), almost everywhere."""
        return ((x @ self.weight.T > 0) * self.readout) @ self.weight

    def path_norm(self) -> float:
        """Σ_j |a_j| ‖w_j‖, of this parameterisation."""
        return float(np.abs(self.readout) @ np.linalg.norm(self.weight, axis=1))

    def frobenius(self) -> float:
        """‖θ‖_F² = ½ Σ_j (a_j² + ‖w_j‖²)."""
        return 0.5 * float(np.square(self.readout).sum() + np.square(self.weight).sum())

    def balanced(self) -> "ReluNetwork":
        """The same function with |a_j| = ‖w_j‖, for which ‖θ‖_F² is the path norm. Source: Lemma 10."""
        norm = np.linalg.norm(self.weight, axis=1)
        scale = np.sqrt(np.abs(self.readout) / np.where(norm > 0, norm, 1.0))
        safe = np.where(scale > 0, scale, 1.0)
        return ReluNetwork(self.weight * scale[:, None], self.readout / safe)


def exact_network(n_clusters: int, separation: float = 1.0) -> ReluNetwork:
    """F = Σ_c [φ(v_cᵀx) − φ((v_c − μ_c/R²)ᵀx)], which is f* on the support of Theorem 2's law. Source: Lemma 10."""
    identity = np.eye(n_clusters)
    first = np.hstack([np.zeros_like(identity), identity])
    second = np.hstack([-identity / separation, identity])
    return ReluNetwork(np.vstack([first, second]), np.repeat([1.0, -1.0], n_clusters))


def path_norm_bound(n_clusters: int, separation: float = 1.0) -> float:
    """B_R = K (1 + √(1 + R⁻²)). Source: Lemma 10."""
    return n_clusters * (1.0 + np.sqrt(1.0 + separation**-2.0))


def rademacher_found(x: FloatArray, rng: np.random.Generator, draws: int, tries: int, steps: int = 60) -> float:
    """A lower estimate of R̂_n(F_1): mean over sign draws of max_ω |Σ_i ε_i φ(ωᵀx_i)|/n over unit ω.

    The largest value found by fixed-point ascent, ω ← direction of Σ_i ε_i 1{ωᵀx_i > 0} x_i, from `tries` starts; the
    supremum itself may be larger.  x: (n, d).  Source: Lemma 11.
    """
    found = []
    for _ in range(draws):
        signs = rng.choice([-1.0, 1.0], size=len(x))
        best = 0.0
        for side in (1.0, -1.0):
            omega = rng.standard_normal((tries, x.shape[1]))
            for _ in range(steps):
                omega /= np.maximum(np.linalg.norm(omega, axis=1, keepdims=True), 1e-300)
                before = omega @ x.T
                best = max(best, float((np.maximum(before, 0.0) @ (side * signs)).max()))
                omega = ((before > 0) * (side * signs)) @ x
        found.append(best / len(x))
    return float(np.mean(found))


def rademacher_bound(x: FloatArray) -> float:
    """(2/n) √(Σ_i ‖x_i‖²), the bound for B = 1. Source: Lemma 11."""
    return 2.0 * float(np.sqrt(np.square(x).sum())) / len(x)
