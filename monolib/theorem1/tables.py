"""The tables of Theorem 1's page, from the finished cells."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from monolib.cells import Cell, CellRecord
from monolib.theorem1.coverage import coverage_bounds, coverage_probability, covered_share
from monolib.theorem1.critical_points import specialised_offset
from monolib.theorem1.teacher_flow import TeacherPath

Parts = Mapping[str, Sequence[tuple[Cell, CellRecord]]]


def by_part(plan: Mapping[str, list[Cell]], records: Sequence[CellRecord]) -> dict[str, list[tuple[Cell, CellRecord]]]:
    """The records of all cells of `plan`, in its order, by part."""
    supply = iter(records)
    return {part: [(cell, next(supply)) for cell in cells] for part, cells in plan.items()}


def labels_of(parts: Parts) -> np.ndarray:
    """Clusters chosen by the neurons of Lemma 8's ascents."""
    return np.concatenate([record.arrays["cluster"] for _, record in parts["labels"]])


def ascents_table(parts: Parts) -> pd.DataFrame:
    """Per K and R: ends at no one-cluster maximum, largest distance to ω*, component off v_c, closed-form b*."""
    rows = []
    for cell, record in parts["landscape"]:
        r = cell.config["separation"]
        rows.append(
            {
                "n_clusters": cell.config["n_clusters"],
                "separation": r,
                "starts": len(record.arrays["distance"]),
                "lost": int((record.arrays["distance"] > 1e-6).sum()),
                "distance": record.arrays["distance"].max(),
                "off_component": record.arrays["off"].mean(),
                "offset": float(specialised_offset(np.array(r))),
            }
        )
    return pd.DataFrame(rows)


def coverage_table(labels: np.ndarray, n_clusters: int, widths: Sequence[int]) -> pd.DataFrame:
    """Per m: measured share of covered groups and its standard error, exact law, the two bounds."""
    rows = []
    for m in widths:
        share, groups = covered_share(labels, n_clusters, m)
        exact = coverage_probability(n_clusters, m)
        union, exponential = (float(bound) for bound in coverage_bounds(n_clusters, np.array(m)))
        error = (exact * (1 - exact) / groups) ** 0.5
        rows.append((m, groups, share, error, exact, union, exponential))
    names = ["width", "groups", "measured", "standard_error", "exact", "union_bound", "exponential_bound"]
    return pd.DataFrame(rows, columns=names)


def tracking_table(parts: Parts) -> pd.DataFrame:
    """Tracking error by ε (random starts) and by m (copies of one neuron), and error/(m ε²)."""
    rows = []
    for part in ("epsilons", "widths"):
        for cell, record in parts[part]:
            m, epsilon, error = cell.config["width"], cell.config["epsilon"], record.result["error"]
            rows.append((part, m, epsilon, error, error / (m * epsilon**2), record.result["invariant"]))
    return pd.DataFrame(rows, columns=["part", "width", "epsilon", "error", "error_over_m_eps2", "invariant_error"])


def theorem_table(parts: Parts) -> pd.DataFrame:
    """Per ε: T_δ, largest |u| at T_δ, tracking error, largest and mean ‖ω_j(T_δ) − τ_j v_J‖."""
    rows = []
    for cell, record in parts["theorem"]:
        distance = record.arrays["distance"]
        facts = tuple(record.result[name] for name in ("time", "largest_amplitude", "error"))
        rows.append((cell.config["epsilon"], *facts, distance.max(), distance.mean()))
    names = ["epsilon", "time", "largest_amplitude", "tracking_error", "largest_distance", "mean_distance"]
    return pd.DataFrame(rows, columns=names)


def times_table(parts: Parts) -> pd.DataFrame:
    """Per R: median, 90 % quantile and largest time to specialise."""
    rows = []
    for cell, record in parts["times"]:
        rows.append((cell.config["separation"], *np.quantile(record.arrays["time"], [0.5, 0.9, 1.0])))
    return pd.DataFrame(rows, columns=["separation", "median", "quantile_90", "largest"])


def sgd_table(parts: Parts) -> pd.DataFrame:
    """Per batch size: median and largest |ω_SGD − ω_flow| at the end."""
    rows = []
    for cell, record in parts["sgd"]:
        drift = record.arrays["drift"][-1]
        rows.append((cell.config["batch"], np.median(drift), drift.max()))
    return pd.DataFrame(rows, columns=["batch", "median_drift", "largest_drift"])


def flows_table(path: TeacherPath, cluster: np.ndarray) -> pd.DataFrame:
    """The drawn flows: neuron, chosen cluster J (from 1), time, u, ρ_1, ρ_2 (0 when K = 1), b_J/R, ρ_J."""
    k = path.directions.shape[-1] // 2
    frames = []
    for j, c in enumerate(cluster):
        omega = path.directions[:, j]
        second = omega[:, k + 1] if k > 1 else np.zeros(len(omega))
        columns = {"time": path.times, "amplitude": path.amplitude[:, j], "rho_1": omega[:, k], "rho_2": second}
        columns |= {"routing": omega[:, c], "predictive": omega[:, k + c]}
        frames.append(pd.DataFrame(columns).assign(neuron=j, cluster=c + 1))
    return pd.concat(frames, ignore_index=True)
