"""E[φ(ω₁ᵀx) φ(ω₂ᵀx)] and its gradient under Theorem 1's law, in closed form (for Lemma 9), float64.

With b_i = ⟨ω_i, μ_c⟩ and r = ⟨ω₁, ω₂⟩ the pre-activations in cluster c are N(b_1, 1) and N(b_2, 1) of correlation r:

    L = P(X > 0, Y > 0),  A = φ(b_1) Φ(α_2),  B = φ(b_2) Φ(α_1),  α_1 = (b_1 − r b_2)/s,  α_2 = (b_2 − r b_1)/s
    E[X₊ Y₊] = (b_1 b_2 + r) L + b_1 B + b_2 A + s φ(b_1) φ(α_2),   s = √(1 − r²)

by partial integration (Stein); L by Owen's T function. 1 − r = ‖ω₁ − ω₂‖²/2 keeps the digits of nearly equal neurons.
"""

import numpy as np
from scipy.special import ndtr, owens_t

from monolib.links import FloatArray
from monolib.theorem1.correlation import coordinates, normal_density


def both_positive(b1: FloatArray, b2: FloatArray, alpha1: FloatArray, alpha2: FloatArray, r: FloatArray) -> FloatArray:
    """L = P(b_1 + G_1 > 0, b_2 + G_2 > 0) for standard normal G of correlation r, by Owen's T; arrays of one shape.

        L = (Φ(b_1) + Φ(b_2))/2 − T(b_1, α_2/b_1) − T(b_2, α_1/b_2) − [b_1 b_2 < 0, or = 0 with b_1 + b_2 < 0]/2

    Where both are 0: 1/4 + arcsin(r)/2π.  Source: D. B. Owen, Ann. Math. Stat. 27 (1956).
    """
    origin = (b1 == 0) & (b2 == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio1, ratio2 = alpha2 / b1, alpha1 / b2
    product = b1 * b2
    opposite = (product < 0) | ((product == 0) & (b1 + b2 < 0))
    value = 0.5 * (ndtr(b1) + ndtr(b2)) - owens_t(b1, ratio1) - owens_t(b2, ratio2) - 0.5 * opposite
    return np.where(origin, 0.25 + np.arcsin(np.clip(r, -1.0, 1.0)) / (2.0 * np.pi), value)


def relu_moments(left: FloatArray, right: FloatArray, separation: float) -> tuple[FloatArray, FloatArray]:
    """Moments of all pairs of unit vectors `left` (m, 2K), `right` (q, 2K).

        Q_jk = E[φ(ω_jᵀx) φ(ω_kᵀx)] (m, q),   ∇Q_jk = E[1{ω_jᵀx > 0} φ(ω_kᵀx) x] (m, q, 2K)

    averaged over the K clusters. ∇Q is the gradient of Q in ω_j, extended homogeneously. Source: Lemma 9 (the terms
    with f_θ), closed form as in the module.
    """
    close = np.square(left[:, None] - right).sum(-1)
    far = np.square(left[:, None] + right).sum(-1)
    one_minus_r, r, s = 0.5 * close, 0.5 * (far - close) / 2.0, 0.5 * np.sqrt(close * far)
    r, s, gap = r[..., None], s[..., None], one_minus_r[..., None]
    b1, b2 = np.broadcast_arrays(coordinates(left, separation)[0][:, None], coordinates(right, separation)[0])
    safe = np.where(s > 0, s, 1.0)
    alpha1, alpha2 = ((b1 - b2) + gap * b2) / safe, ((b2 - b1) + gap * b1) / safe
    alpha1, alpha2 = np.where(s > 0, alpha1, 0.0), np.where(s > 0, alpha2, 0.0)
    d1, d2 = normal_density(b1), normal_density(b2)
    both = both_positive(b1, b2, alpha1, alpha2, np.broadcast_to(r, b1.shape))
    at1, at2 = d1 * ndtr(alpha2), d2 * ndtr(alpha1)
    rest = s * d1 * normal_density(alpha2)
    moment = ((b1 * b2 + r) * both + b1 * at2 + b2 * at1 + rest).mean(-1)
    step = b2 * both + at2 + r * at1  # E[1{X > 0} Y₊ | c], the factor of μ_c
    crossing = ((b2 - r * b1) * at1 + rest).mean(-1, keepdims=True)  # the factor of ω_j, from the kink
    routing = np.concatenate([separation * step / b1.shape[-1], np.zeros_like(step)], -1)
    gradient = routing + crossing * left[:, None] + both.mean(-1, keepdims=True) * right
    return moment, gradient
