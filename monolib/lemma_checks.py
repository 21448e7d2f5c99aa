"""Rows of the theory pages: a lemma's statement, the largest error found, the tolerance, the verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from monolib.claims import Claim, verdict


@dataclass(frozen=True)
class LemmaCheck:
    """One row: `lemma` (number, or "T1", "T2"), `statement` (what was compared, and how), `error`, `tolerance`."""

    lemma: str
    statement: str
    error: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """error ≤ tolerance; an error that is no number does not hold."""
        return bool(self.error <= self.tolerance)


def checks_table(checks: Iterable[LemmaCheck]) -> pd.DataFrame:
    """Columns lemma, statement, error, tolerance, verdict ("holds" or "fails")."""
    rows = [(c.lemma, c.statement, float(c.error), float(c.tolerance), _word(c)) for c in checks]
    return pd.DataFrame(rows, columns=["lemma", "statement", "error", "tolerance", "verdict"])


def _word(check: LemmaCheck) -> str:
    return "holds" if check.holds else "fails"


def controls_table(controls: Iterable[LemmaCheck]) -> pd.DataFrame:
    """The same checks with something wrong put in: columns as `checks_table`, verdict "detected" or "missed"."""
    table = checks_table(controls)
    return table.assign(verdict=["missed" if word == "holds" else "detected" for word in table["verdict"]])


def lemma_verdicts(checks: pd.DataFrame) -> dict[str, bool]:
    """Whether all rows of a lemma hold, by lemma."""
    return {str(name): bool((rows["verdict"] == "holds").all()) for name, rows in checks.groupby("lemma", sort=False)}


def lemma_claims(prefix: str, words: dict[str, tuple[str, str]], checks: pd.DataFrame, size: str) -> list[Claim]:
    """One claim per lemma: id `<prefix>.<lemma>`, or `prefix` for the theorem's own row.

    words: per lemma what it says and what the paper has for it.  The verdict is reproduced when all rows hold.
    """
    claims = []
    for lemma, rows in checks.groupby("lemma", sort=False):
        holds = [bool(word == "holds") for word in rows["verdict"]]
        worst = rows.iloc[int(_margin(rows).to_numpy().argmax())]
        here = f"{sum(holds)} of {len(holds)} checks hold; nearest to its tolerance: {worst['statement']}: "
        here += f"{worst['error']:.2g} (at most {worst['tolerance']:.2g})"
        name = prefix if lemma == prefix else f"{prefix}.{lemma}"
        claims.append(Claim(name, *words[str(lemma)], here, size, verdict(holds)))
    return sorted(claims, key=lambda claim: claim.id != prefix)


def _margin(rows: pd.DataFrame) -> pd.Series:
    """How much of the tolerance is used up; exact checks (tolerance 0) that hold use up nothing."""
    tolerance = rows["tolerance"].where(rows["tolerance"] > 0, 1e-300)
    return (rows["error"] / tolerance).fillna(float("inf"))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least-squares slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
