"""Verdicts of Theorem 1's page, from the table of checks."""

import pandas as pd

from monolib.claims import Claim
from monolib.lemma_checks import lemma_claims
from monolib.theorem1.parameters import Theorem1Parameters

WORDS = {
    "T1": ("random neurons of the full network specialise, up to O(1/R)", "Theorem 1"),
    "3": ("cubic correlation identity for the population correlation and its gradient", "Lemma 3"),
    "4": ("positive local maxima use one cluster; s active clusters are a saddle", "Lemma 4"),
    "5": ("the specialised maxima: location and expansion", "Lemma 5"),
    "6": ("flows of fixed positive sign end at a specialised maximum", "Lemma 6"),
    "7": ("the neuron selects its sign and then specialises", "Lemma 7"),
    "8": ("selected labels are uniform and independent; coverage", "Lemma 8"),
    "9": ("the full network tracks single neurons to O(mε²)", "Lemma 9"),
}


def size_text(p: Theorem1Parameters) -> str:
    """The run's size in words."""
    return (
        f"K {p.clusters[0]}..{p.clusters[-1]}, R {p.separations[0]:g}..{p.separations[-1]:g}, m {p.tracking_widths[-1]}"
    )


def theorem1_claims(checks: pd.DataFrame, parameters: Theorem1Parameters) -> list[Claim]:
    """Claims T1 and T1.3 to T1.9; checks: columns of `lemma_checks.checks_table`."""
    return lemma_claims("T1", WORDS, checks, size_text(parameters))
