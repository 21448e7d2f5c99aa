"""Paired comparisons over seeds: mean difference, its standard error, and whether zero is excluded."""

import math
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class PairedDifference:
    """Mean of paired differences over seeds, with its standard error (nan for one seed)."""

    mean: float
    standard_error: float
    seeds: int

    @property
    def is_below_zero(self) -> bool:
        """Whether the mean is negative."""
        return self.mean < 0

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside two standard errors of the mean; never with one seed."""
        return self.seeds > 1 and abs(self.mean) > 2 * self.standard_error

    def as_factor(self) -> str:
        """A difference of logarithms as a factor: `0.62 (−0.48 ± 0.05)`; one seed has no standard error."""
        return f"{math.exp(self.mean):.3g} (ln {self.as_number()})"

    def as_number(self) -> str:
        """The mean with its standard error: `-0.48 ± 0.05`; one seed has none."""
        error = f" ± {self.standard_error:.2g}" if self.seeds > 1 else ", one seed"
        return f"{self.mean:+.2f}{error}"


def paired_difference(differences: pd.Series) -> PairedDifference:
    """Statistics of paired differences, one per seed. Raises ValueError for none."""
    if differences.empty:
        raise ValueError("differences: must hold at least one pair")
    count = len(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return PairedDifference(float(differences.mean()), error, count)
