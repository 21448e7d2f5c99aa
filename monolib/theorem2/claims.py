"""Verdicts of Theorem 2's page, from the table of checks."""

import pandas as pd

from monolib.claims import Claim
from monolib.lemma_checks import lemma_claims
from monolib.theorem2.parameters import Theorem2Parameters

WORDS = {
    "T2": ("a norm-constrained network learns what kernels and RFM cannot", "Theorem 2"),
    "10": ("2K neurons represent f* exactly, within the norm budget 3K", "Lemma 10"),
    "11": ("path-norm bound on the Rademacher complexity", "Lemma 11"),
    "12": ("the true AGOP is (α/K) P_V and loses the cluster", "Lemma 12"),
    "13": ("Hermite coefficients of the clipped ramp", "Lemma 13"),
    "14": ("harmonic dimension and directional energy", "Lemma 14"),
    "15": ("random invariant subspaces miss a share 1 − N/D", "Lemma 15"),
    "16": ("no kernel or RFM risk below the all-orders bound", "Lemma 16"),
    "17": ("the bound stays positive for n = K^A", "Lemma 17"),
}


def size_text(p: Theorem2Parameters) -> str:
    """The run's size in words."""
    return f"K {p.clusters[0]}..{p.clusters[-1]}, kernels n ≤ {p.kernel_points}, networks n ≤ {p.mlp_points}"


def theorem2_claims(checks: pd.DataFrame, parameters: Theorem2Parameters) -> list[Claim]:
    """Claims T2 and T2.10 to T2.17; checks: columns of `lemma_checks.checks_table`."""
    return lemma_claims("T2", WORDS, checks, size_text(parameters))
