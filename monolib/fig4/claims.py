"""Verdicts on the claims of Figure 4, from `curves.csv` alone, paired over seeds."""

import math

import pandas as pd

from monolib.claims import NOT_RUN, Claim
from monolib.fig4.parameters import Fig4Parameters
from monolib.sample_size.comparisons import graded, largest_common, pairs_claim, size_text
from monolib.sample_size.paired import paired_difference
from monolib.sample_size.tables import paired_log_ratio

ALL = (2, 5, 10, 50)  # the K of the figure


def fig4_claims(curves: pd.DataFrame, p: Fig4Parameters) -> list[Claim]:
    """Verdicts F4.a, F4.b. curves: `tables.curves_table`, possibly without some of the grid's cells.

    Comparisons are means over seeds of ln(MSE ratio), "clear" beyond two standard errors; without the four K of the
    paper the claims are not run. The global RFM enters with its smallest test MSE, its most favourable number.
    """
    size = size_text(p, curves)
    return [_better_than_global(curves, size), _near_oracle(curves, size)]


def _better_than_global(curves: pd.DataFrame, size: str) -> Claim:
    text = "the network's gates improve Laplace and RFM (global: smallest test MSE) at every K, at the largest n"
    paper = "substantially, at K = 2, 5, 10, 50 (Fig. 4)"
    pairs = (("gated_laplace", "laplace"), ("gated_rfm", "rfm_envelope"))
    return pairs_claim(curves, size, "F4.a", text, paper, ALL, pairs)


def _near_oracle(curves: pd.DataFrame, size: str) -> Claim:
    """Closer to the oracle on the logarithmic scale: ln(gated/oracle) < ln(global/gated).

    That the ratio gated/oracle is below global/oracle would only say that gated is below global, which is F4.a.
    """
    text = "MLP-gated RFM approaches the oracle: closer (log scale) to oracle RFM than to global RFM, at every K"
    paper = "approaches the cluster-aware oracle (Fig. 4)"
    n = largest_common(curves, ALL, ["gated_rfm", "rfm_envelope", "oracle_rfm"])
    if n is None:
        return Claim("F4.b", text, paper, "K = 2, 5, 10 and 50 were not all run", size, NOT_RUN)
    differences, here = [], []
    for k in ALL:
        above = paired_log_ratio(curves, "gated_rfm", "oracle_rfm", k, n)
        total = paired_log_ratio(curves, "rfm_envelope", "oracle_rfm", k, n)
        differences.append(paired_difference((2 * above - total).dropna()))
        ratios = f"gated/oracle {math.exp(above.mean()):.3g}, global/oracle {math.exp(total.mean()):.3g}"
        here.append(f"K={k}: {ratios}, difference of the logarithms {differences[-1].as_number()}")
    met = graded([d.is_below_zero for d in differences], [d.excludes_zero for d in differences])
    return Claim("F4.b", text, paper, f"n = {n}: {'; '.join(here)}", size, met)
