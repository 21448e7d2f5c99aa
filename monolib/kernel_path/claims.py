"""Verdicts of the page, from the tables alone."""

import numpy as np
import pandas as pd

from monolib.claims import NOT_RUN, Claim, verdict
from monolib.kernel_path.parameters import KernelsParameters

RECOVERED, EXACT_TOLERANCE = 0.99, 0.05


def size_text(p: KernelsParameters) -> str:
    """The run's size in words."""
    return f"n {p.n_train}, {len(p.seeds)} seed{'s' if len(p.seeds) > 1 else ''}; curves n {p.curve_points}"


def kernel_claims(
    summary: pd.DataFrame, metrics: pd.DataFrame, curves: pd.DataFrame, parameters: KernelsParameters
) -> list[Claim]:
    """Verdicts K.1 to K.4; tables as `tables.summary_table`, `metrics_table`, `curves_table` make them."""
    size = size_text(parameters)
    return [_recovers(metrics, size), _shrinks(summary, size), _oracles(summary, size), _eigenpro(curves, size)]


def _not_run(name: str, claim: str, paper: str, size: str) -> Claim:
    return Claim(name, claim, paper, "the K it is about were not run", size, NOT_RUN)


def _recovers(metrics: pd.DataFrame, size: str) -> Claim:
    text = "for K = 1 RFM finds the predictive direction: absolute cosine of its top eigenvector with v "
    text += f"at least {RECOVERED}"
    last = metrics[(metrics["n_clusters"] == 1) & (metrics["iteration"] == metrics["iteration"].max())]
    if last.empty:
        return _not_run("K.1", text, "RFM is best at K = 1 (Fig. 2)", size)
    cosines = last["top_cosine"]
    met = verdict([bool(value >= RECOVERED) for value in cosines])
    return Claim("K.1", text, "RFM is best at K = 1 (Fig. 2)", f"smallest cosine {cosines.min():.4f}", size, met)


def _shrinks(summary: pd.DataFrame, size: str) -> Claim:
    text = "RFM's advantage shrinks as K grows: test MSE of Laplace over RFM (envelope) decreases along K"
    if len(summary) < 2:
        return _not_run("K.2", text, "decreasing (Fig. 2)", size)
    ratios = summary.sort_values("n_clusters")["laplace_over_rfm"].to_numpy()
    pairs = zip(summary["n_clusters"], ratios, strict=True)
    here = ", ".join(f"K={k}: {ratio:.2f}" for k, ratio in pairs)
    met = verdict([bool(step < 0) for step in np.diff(ratios)])
    return Claim("K.2", text, "decreasing (Fig. 2)", here, size, met)


def _oracles(summary: pd.DataFrame, size: str) -> Claim:
    text = "given the cluster the local problems are easy: oracle RFM below global RFM at every K > 1"
    many = summary[summary["n_clusters"] > 1]
    if many.empty:
        return _not_run("K.3", text, "far below (Fig. 2, dashed)", size)
    rows = list(zip(many["n_clusters"], many["oracle_rfm"], many["rfm_envelope"], strict=True))
    here = ", ".join(f"K={k}: {oracle:.3g} against {glob:.3g}" for k, oracle, glob in rows)
    met = verdict([bool(oracle < glob) for _, oracle, glob in rows])
    return Claim("K.3", text, "far below (Fig. 2, dashed)", here, size, met)


def _eigenpro(curves: pd.DataFrame, size: str) -> Claim:
    exact = float(curves.loc[curves["method"] == "exact", "test_mse"].iloc[-1])
    own = curves[curves["method"] == "EigenPro"]
    early, train, epochs = float(own["test_mse"].iloc[-1]), float(own["train_mse"].iloc[-1]), len(own)
    return Claim(
        id="K.4",
        claim=f"EigenPro stopped at training MSE 4e-4 predicts as well as the exact fit: test MSE within "
        f"{EXACT_TOLERANCE:.0%}",
        paper="EigenPro and exact solves are used interchangeably (A.2)",
        here=f"{early:.4g} in {epochs} epochs (training MSE {train:.1e}), exact {exact:.4g}: {early / exact - 1:+.1%}",
        size=size,
        verdict=verdict([abs(early / exact - 1) <= EXACT_TOLERANCE]),
    )
