"""Specialisation of first-layer neurons (A.1): importance, active set, alignment A_j, dominance D_j, the table's row.

NumPy in, NumPy out, float64.
"""

from typing import NamedTuple

import numpy as np

from monolib.links import FloatArray
from monolib.networks import Network

MODERATE_COSINE, STRONG_COSINE = 0.71, 0.90  # the table's thresholds; the text writes 1/√2 for the first
DOMINANT, DOMINANT_2X = 1.0, 2.0


def importance(network: Network) -> FloatArray:
    """Importance I_j = |a_j|·‖w_j‖, gated |a_j|·‖w_{g,j}‖·‖w_{v,j}‖ (A.1); shape (m,). Biases do not count."""
    norms = [np.linalg.norm(np.asarray(weight, float), axis=1) for weight in network.first_layer.values()]
    return np.abs(np.asarray(network.readout, float)) * np.prod(norms, axis=0)


def active_neurons(importance: FloatArray, share: float = 0.999) -> np.ndarray:
    """Indices of the smallest leading set, by decreasing importance, that holds at least `share` of the total (A.1).

    importance: (m,), numbers ≥ 0; the result is sorted by decreasing importance, ties by index. All-zero importance
    gives an empty set. Raises ValueError for a negative or non-finite importance, or a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share={share}: must be in (0, 1]")
    if not (np.isfinite(importance).all() and (importance >= 0).all()):
        raise ValueError("importance: must hold finite numbers ≥ 0")
    order = np.argsort(-importance, kind="stable")
    cumulative = np.cumsum(importance[order])
    if len(order) == 0 or cumulative[-1] == 0:
        return order[:0]
    # at share = 1 rounding may leave the target above every partial sum but the last
    count = int(np.searchsorted(cumulative, share * cumulative[-1], side="left")) + 1
    return order[: min(count, len(order))]


def alignment(weight: FloatArray, directions: FloatArray) -> FloatArray:
    """Alignment A_j = max_c |⟨w_j, v_c⟩| / ‖w_j‖ (Eq. 1); shape (m,).

    weight: (m, d).  directions: unit vectors (K, d).  A zero weight vector has alignment 0.
    """
    norm = np.linalg.norm(weight, axis=1)
    projection = np.abs(weight @ directions.T).max(axis=1)
    return np.divide(projection, norm, out=np.zeros_like(norm), where=norm > 0)


def dominance(weight: FloatArray, predictive_coordinates: np.ndarray) -> FloatArray:
    """Dominance D_j = |w_j[p]| / max_{l≠p} |w_j[l]|, p the predictive coordinate with the largest |w_j[p]| (Eq. 2).

    weight: (m, d), for a law whose directions v_c are coordinate axes.  predictive_coordinates: (K,), their positions.
    A zero weight vector has dominance 0; one with a single non-zero coordinate, predictive, has infinity.
    """
    magnitude = np.abs(weight)
    best = predictive_coordinates[magnitude[:, predictive_coordinates].argmax(axis=1)]
    rows = np.arange(len(weight))
    peak = magnitude[rows, best]
    others = magnitude.copy()
    others[rows, best] = 0.0
    rival = others.max(axis=1)
    unrivalled = np.where(peak > 0, np.inf, 0.0)
    return np.divide(peak, rival, out=unrivalled, where=rival > 0)


class SpecializationRow(NamedTuple):
    """One row of Fig. 1's table: active neurons and, in percent of them, A ≥ .71, A ≥ .90, D > 1, D > 2."""

    weights: str
    active: int
    cos_071: float
    cos_090: float
    dominant: float
    dominant_2x: float


def specialization_table(network: Network, directions: FloatArray, share: float = 0.999) -> list[SpecializationRow]:
    """Rows of Fig. 1's table for one network: `hidden`, or `gate` and `value` over one active set (A.1).

    directions: (K, d) coordinate axes.  With no active neuron the percentages are nan.
    Raises ValueError when a direction is not a coordinate axis (D_j is defined for those).
    """
    if not (np.count_nonzero(directions, axis=1) == 1).all():
        raise ValueError("directions: every row must be a coordinate axis, for the dominance score D_j")
    active = active_neurons(importance(network), share)
    coordinates = np.abs(directions).argmax(axis=1)
    rows = []
    for name, weight in network.first_layer.items():
        chosen = np.asarray(weight, float)[active]
        a, d = alignment(chosen, directions), dominance(chosen, coordinates)
        hits = (a >= MODERATE_COSINE, a >= STRONG_COSINE, d > DOMINANT, d > DOMINANT_2X)
        percent = [100.0 * float(hit.mean()) if len(active) else float("nan") for hit in hits]
        rows.append(SpecializationRow(name, len(active), *percent))
    return rows
