"""Verdicts on the claims of Figures 2 and 6, from `curves.csv` alone, paired over seeds."""

import math
from itertools import pairwise

import pandas as pd

from monolib.claims import NOT_RUN, Claim, verdict
from monolib.fig2.parameters import Fig2Parameters
from monolib.sample_size.comparisons import compared, graded, largest_common, pairs_claim, size_text
from monolib.sample_size.paired import paired_difference
from monolib.sample_size.tables import paired_log_ratio

MANY = (10, 50)  # the K that the claims on many clusters name
ALIKE = math.log(1.25)  # "behaves similarly": the mean ratio of test MSEs within 25 %


def fig2_claims(curves: pd.DataFrame, p: Fig2Parameters) -> list[Claim]:
    """Verdicts F2.a to F2.d, F6.a, F6.b. curves: `tables.curves_table`, possibly without some of the grid's cells.

    Every comparison is the mean over seeds of ln(MSE ratio). "Clear" is a mean more than two standard errors from zero;
    a comparison from one seed has no standard error and is never clear, so its claim is "partly" at most.
    """
    size = size_text(p, curves)
    claims = (_advantage_shrinks, _beat_global, _approach_oracles, _gating, _other_activations, _smallest_sample)
    return [claim(curves, size) for claim in claims]


def _advantage_shrinks(curves: pd.DataFrame, size: str) -> Claim:
    n = int(curves["n_train"].max())
    text = f"RFM's advantage shrinks as K grows: Laplace over RFM (smallest test MSE) at n = {n} decreases along K"
    paper = "decreasing along K = 1, 2, 10, 50 (Fig. 2)"
    by_k = {k: paired_log_ratio(curves, "laplace", "rfm_envelope", k, n) for k in sorted(set(curves["n_clusters"]))}
    by_k = {k: ratios for k, ratios in by_k.items() if not ratios.empty}
    if len(by_k) < 2:
        return Claim("F2.a", text, paper, "fewer than two K were run", size, NOT_RUN)
    steps = [paired_difference((by_k[b] - by_k[a]).dropna()) for a, b in pairwise(by_k)]
    ratios = ", ".join(f"K={k}: {math.exp(r.mean()):.2f}" for k, r in by_k.items())
    means = curves[curves["n_train"] == n].groupby(["n_clusters", "method"])["test_mse"].mean().unstack()
    drawn = ", ".join(f"{means['laplace'][k] / means['rfm_envelope'][k]:.2f}" for k in by_k)
    changes = ", ".join(f"{a}→{b} {step.as_factor()}" for (a, b), step in zip(pairwise(by_k), steps, strict=True))
    met = graded([step.is_below_zero for step in steps], [step.excludes_zero for step in steps])
    return Claim("F2.a", text, paper, f"{ratios}; factors {changes}; ratios of the means drawn {drawn}", size, met)


def _beat_global(curves: pd.DataFrame, size: str) -> Claim:
    text = "MLPs beat global kernels for many clusters: ReLU and ReGLU below global RFM (smallest test MSE), K = 10, 50"
    pairs = (("relu", "rfm_envelope"), ("reglu", "rfm_envelope"))
    return pairs_claim(curves, size, "F2.b", text, "far below for K = 10, 50 (Fig. 2)", MANY, pairs)


def _approach_oracles(curves: pd.DataFrame, size: str) -> Claim:
    text = "MLPs approach the oracles: the best MLP is closer (log scale) to oracle RFM than to global RFM, K = 10, 50"
    paper = "close to the oracles (Fig. 2)"
    networks = [name for name in ("relu", "gelu", "reglu", "swiglu") if name in set(curves["method"])]
    n = largest_common(curves, MANY, [*networks, "oracle_rfm", "rfm_envelope"]) if networks else None
    if n is None:
        return Claim("F2.c", text, paper, "K = 10 and 50 were not both run", size, NOT_RUN)
    here, differences = [], []
    for k in MANY:
        at = curves[(curves["n_clusters"] == k) & (curves["n_train"] == n)]
        best = str(at[at["method"].isin(networks)].groupby("method")["test_mse"].mean().idxmin())
        above = paired_log_ratio(curves, best, "oracle_rfm", k, n)
        below = paired_log_ratio(curves, "rfm_envelope", best, k, n)
        differences.append(paired_difference((above - below).dropna()))
        distances = f"{math.exp(above.mean()):.1f} times the oracle, global RFM {math.exp(below.mean()):.1f} times it"
        here.append(f"K={k} {best}: {distances}, difference of the logarithms {differences[-1].as_factor()}")
    met = graded([d.is_below_zero for d in differences], [d.excludes_zero for d in differences])
    return Claim("F2.c", text, paper, f"n = {n}: {'; '.join(here)}", size, met)


def _gating(curves: pd.DataFrame, size: str) -> Claim:
    text = "gating improves sample efficiency: ReGLU below ReLU for K = 10 and 50 at the largest n, paired over seeds"
    return pairs_claim(curves, size, "F2.d", text, "below for K = 10, 50 (Fig. 2)", MANY, (("reglu", "relu"),))


def _other_activations(curves: pd.DataFrame, size: str) -> Claim:
    text = (
        "GELU behaves like ReLU (mean ratio within 25 %), SwiGLU shares ReGLU's gain (below GELU) and is the best of "
        "the four, K = 10, 50 at the largest n"
    )
    paper = "so in Fig. 6"
    networks = ("relu", "gelu", "reglu", "swiglu")
    n = largest_common(curves, MANY, networks)
    if n is None:
        return Claim("F6.a", text, paper, "not all four networks were run for K = 10 and 50", size, NOT_RUN)
    holds, clear, here = [], [], []
    for k in MANY:
        alike = compared(curves, "gelu", "relu", k, n)
        others = {name: compared(curves, "swiglu", name, k, n) for name in networks[:3]}
        assert alike is not None
        holds.append(abs(alike.mean) <= ALIKE)
        clear.append(alike.seeds > 1)
        here.append(f"K={k} gelu/relu {alike.as_factor()}")
        for name, difference in others.items():
            assert difference is not None
            holds.append(difference.is_below_zero)
            clear.append(difference.excludes_zero)
            here.append(f"swiglu/{name} {difference.as_factor()}")
    return Claim("F6.a", text, paper, f"n = {n}: {'; '.join(here)}", size, graded(holds, clear))


def _smallest_sample(curves: pd.DataFrame, size: str) -> Claim:
    n = int(curves["n_train"].min())
    text = f"the gain of gating is not uniform at the smallest n ({n}): some gated network is not below its ungated one"
    paper = "not uniform at the smallest n (A.2)"
    here, gains = [], []
    for gated, plain in (("reglu", "relu"), ("swiglu", "gelu")):
        for k in MANY:
            difference = compared(curves, gated, plain, k, n)
            if difference is not None:
                gains.append(difference.is_below_zero)
                here.append(f"K={k} {gated}/{plain} {difference.as_factor()}")
    if len(gains) < 2 * len(MANY):
        return Claim("F6.b", text, paper, "not all four networks were run for K = 10 and 50", size, NOT_RUN)
    return Claim("F6.b", text, paper, "; ".join(here), size, verdict([not all(gains)]))
