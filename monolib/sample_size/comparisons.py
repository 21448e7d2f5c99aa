"""What the verdicts of figures over n share: paired comparisons at one (K, n), their grade, the size in words."""

from collections.abc import Sequence

import pandas as pd

from monolib.claims import NOT_RUN, Claim
from monolib.sample_size.paired import PairedDifference, paired_difference
from monolib.sample_size.parameters import SampleSizeParameters
from monolib.sample_size.tables import paired_log_ratio


def size_text(p: SampleSizeParameters, curves: pd.DataFrame) -> str:
    """The run's size in words; n and the networks' seeds as far as `curves` holds them."""
    networks = curves[curves["method"].isin(["relu", "gelu", "reglu", "swiglu"])]
    seeds = (networks if len(networks) else curves)["seed"].nunique()
    own = f"width {p.width}, batch {p.batch_size}, {p.min_steps} to {p.max_steps} steps"
    return f"{own}, n up to {curves['n_train'].max()}, {seeds} seed{'s' if seeds > 1 else ''}"


def compared(curves: pd.DataFrame, method: str, against: str, n_clusters: int, n_train: int) -> PairedDifference | None:
    """Paired difference of ln test MSE, or None when no seed has both methods there."""
    ratios = paired_log_ratio(curves, method, against, n_clusters, n_train)
    return None if ratios.empty else paired_difference(ratios)


def graded(conditions: Sequence[bool], clear: Sequence[bool]) -> str:
    """reproduced when every condition holds and is clear, partly when at least one holds, else not reproduced."""
    if all(conditions) and all(clear):
        return "reproduced"
    return "partly" if any(conditions) else "not reproduced"


def largest_common(curves: pd.DataFrame, clusters: Sequence[int], methods: Sequence[str]) -> int | None:
    """Largest n at which all `methods` were run for all `clusters`."""
    wanted = {(k, method) for k in clusters for method in methods}
    for n in sorted({int(n) for n in curves["n_train"]}, reverse=True):
        rows = curves[curves["n_train"] == n]
        if wanted <= set(zip(rows["n_clusters"], rows["method"], strict=True)):
            return n
    return None


def pairs_claim(
    curves: pd.DataFrame,
    size: str,
    name: str,
    text: str,
    paper: str,
    clusters: Sequence[int],
    pairs: Sequence[tuple[str, str]],
) -> Claim:
    """Claim that the first method of each pair is below the second at every K of `clusters`, at their largest common n.

    Not run when some method was not run at some K.
    """
    n = largest_common(curves, clusters, [method for pair in pairs for method in pair])
    if n is None:
        return Claim(name, text, paper, f"K = {', '.join(map(str, clusters))} were not all run", size, NOT_RUN)
    found, here = [], []
    for k in clusters:
        for method, against in pairs:
            difference = compared(curves, method, against, k, n)
            assert difference is not None
            found.append(difference)
            here.append(f"K={k} {method}/{against} {difference.as_factor()}")
    met = graded([d.is_below_zero for d in found], [d.excludes_zero for d in found])
    return Claim(name, text, paper, f"n = {n}: {'; '.join(here)}", size, met)
