"""Verdicts on Figure 1's claims, from the table alone."""

import numpy as np
import pandas as pd

from monolib.claims import NOT_RUN, Claim, verdict
from monolib.fig1.paper import PAPER_SIZE, PAPER_TABLE
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig1.tables import MEASURES

PERCENTAGE_TOLERANCE, COUNT_TOLERANCE = 10.0, 0.25  # points; relative


def comparison(table: pd.DataFrame) -> pd.DataFrame:
    """Paper against here, one row per architecture, weights and measure: `paper`, `here` (mean over seeds),
    `seed_std` (nan for one seed), `agrees` (within 10 points; active counts within 25 %)."""
    keys = ["architecture", "weights"]
    here = table.melt(id_vars=[*keys, "seed"], value_vars=list(MEASURES), var_name="measure")
    statistics = here.groupby([*keys, "measure"])["value"].agg(here="mean", seed_std="std")
    paper = PAPER_TABLE.melt(id_vars=keys, value_vars=list(MEASURES), var_name="measure", value_name="paper")
    merged = paper.join(statistics, on=[*keys, "measure"], how="inner")
    tolerance = (COUNT_TOLERANCE * merged["paper"]).where(merged["measure"] == "active", PERCENTAGE_TOLERANCE)
    return merged.assign(agrees=(merged["here"] - merged["paper"]).abs() <= tolerance).reset_index(drop=True)


def with_agreement(variations: pd.DataFrame) -> pd.DataFrame:
    """`tables.variations_table` with a column `agree`: how many of a row's five measures agree with the paper's."""
    rows = [variations.iloc[[i]].assign(seed=0) for i in range(len(variations))]
    return variations.assign(agree=[int(comparison(row)["agrees"].sum()) for row in rows])


def is_paper_size(parameters: Fig1Parameters) -> bool:
    """Whether every size and rate that the paper states is the paper's."""
    return all(getattr(parameters, name) == value for name, value in PAPER_SIZE.items())


def size_text(parameters: Fig1Parameters) -> str:
    """The run's size in words."""
    p = parameters
    seeds = f"{len(p.seeds)} seed{'s' if len(p.seeds) > 1 else ''}"
    return f"width {p.width}, batch {p.batch_size}, n {p.n_train}, {p.steps_relu} steps (ReLU), {seeds}"


def fig1_claims(table: pd.DataFrame, parameters: Fig1Parameters) -> list[Claim]:
    """Verdicts F1.a, F1.b, F1.c; thresholds in the claims' texts. A claim on a missing network is not run."""
    size = size_text(parameters)
    mean = table.groupby(["architecture", "weights"])[list(MEASURES)].mean()
    return [_many_monosemantic(mean, size), _gates_specialise_more(mean, size), _every_cell(table, parameters, size)]


def _value(mean: pd.DataFrame, architecture: str, weights: str, measure: str) -> float:
    found = mean[measure].get((architecture, weights), float("nan"))
    return float(found)  # nan where the architecture was not run


def _percent(value: float) -> str:
    return "not run" if np.isnan(value) else f"{value:.1f} %"


def _many_monosemantic(mean: pd.DataFrame, size: str) -> Claim:
    floors = {("relu", "hidden"): 20.0, ("gelu", "hidden"): 20.0, ("reglu", "gate"): 45.0}
    found = {key: _value(mean, *key, "cos_090") for key in floors}
    return Claim(
        id="F1.a",
        claim="many active neurons are monosemantic: A ≥ .90 for at least 20 % of active ReLU and GELU neurons "
        "and 45 % of ReGLU gates",
        paper="ReLU 33.4 %, GELU 28.2 %, ReGLU gate 56.1 %",
        here="ReLU {}, GELU {}, ReGLU gate {}".format(*map(_percent, found.values())),
        size=size,
        verdict=NOT_RUN if np.isnan([*found.values()]).any() else verdict([found[k] >= v for k, v in floors.items()]),
    )


def _gates_specialise_more(mean: pd.DataFrame, size: str) -> Claim:
    gate, value = (_value(mean, "reglu", weights, "cos_071") for weights in ("gate", "value"))
    return Claim(
        id="F1.b",
        claim="ReGLU gates specialise more than values: A ≥ .71 at least 20 points more often",
        paper="gate 73.1 %, value 28.5 %",
        here=f"gate {_percent(gate)}, value {_percent(value)}",
        size=size,
        verdict=NOT_RUN if np.isnan(gate) else verdict([gate > value, gate - value >= 20.0]),
    )


def _every_cell(table: pd.DataFrame, parameters: Fig1Parameters, size: str) -> Claim:
    cells = comparison(table)
    counts = cells["measure"] == "active"
    percentages, actives = cells.loc[~counts, "agrees"], cells.loc[counts, "agrees"]
    agree = [bool(value) for value in cells["agrees"]]
    complete = len(agree) == PAPER_TABLE.shape[0] * len(MEASURES)
    return Claim(
        id="F1.c",
        claim="every cell of the table, within 10 points (percentages) and 25 % (active counts)",
        paper="30 cells",
        here=f"{percentages.sum()} of {len(percentages)} percentages and {actives.sum()} of {len(actives)} "
        "active counts agree",
        size=size,
        verdict=verdict(agree, len(agree) // 2) if complete and is_paper_size(parameters) else NOT_RUN,
    )
