"""The cells of Figure 4: networks, global, oracle and gated fits of the grid, and variants of the gated fits."""

from dataclasses import dataclass, replace
from itertools import product

from monolib.cell_selection import LabelledCell
from monolib.cells import Cell
from monolib.fig4.parameters import Fig4Parameters
from monolib.gated_cells import GateSettings, gated_cell
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import pool_network_cell
from monolib.sample_size.runs import SampleSizeRun, kernel_config, kernel_run, network_config, network_run


def gated_run(p: Fig4Parameters, n_clusters: int, n_train: int, seed: int) -> SampleSizeRun:
    """Local fits behind the M = K gates of the ReLU network of one (K, n, seed)."""
    network = network_run(p, "relu", n_clusters, n_train, seed).cell
    settings = GateSettings(n_clusters, seed=MixedLinkData(n_clusters, n_train, p.n_test, seed).model_seed)
    return SampleSizeRun("gated", n_clusters, n_train, seed, gated_cell(network, settings, kernel_config(p)))


def grid_runs(p: Fig4Parameters) -> list[SampleSizeRun]:
    """Every method at every K, n and seed; at the paper's size 320. All but the gated fits are Figure 2's cells."""
    runs = []
    for k, n, seed in product(p.clusters, p.sizes, p.seeds):
        runs.append(network_run(p, "relu", k, n, seed))
        runs += [kernel_run(p, method, k, n, seed) for method in ("global", "oracle")]
        runs.append(gated_run(p, k, n, seed))
    return runs


@dataclass(frozen=True)
class VariantRun:
    """Gated fits with another choice of gates, metric, or training length of the network, at the page's K and n.

    variant: which choice was changed.  n_gates, assignment, metric: see `gated_cells.GateSettings`.
    network_steps: longest training of the network.
    """

    variant: str
    n_gates: int
    assignment: str
    metric: str
    network_steps: int
    seed: int
    cell: Cell

    @property
    def labels(self) -> dict[str, str | int]:
        """What the command line's --only selects by."""
        return {"method": "gated", "variant": self.variant, "M": self.n_gates, "seed": self.seed}


def variant_runs(p: Fig4Parameters) -> list[VariantRun]:
    """The variants of every variant seed; the first one is the grid's own cell.

    "gate alone": learned gates, M = I in place of G_c.  "metric alone": one gate, whose G is that of all inputs.
    "true clusters with G_c": in place of learned gates (with M = I that would be the oracle).  M: when K is not known.
    steps: a network trained for fewer steps, with a cosine decay of that length.
    """
    k = p.page_clusters
    choices = [
        ("the paper's", k, "learned", "network", p.max_steps),
        ("gate alone", k, "learned", "identity", p.max_steps),
        ("metric alone", 1, "learned", "network", p.max_steps),
        ("true clusters with G_c", k, "true", "network", p.max_steps),
        *((f"M = {count}", count, "learned", "network", p.max_steps) for count in p.other_gate_counts),
        *((f"{steps} steps", k, "learned", "network", steps) for steps in p.early_steps),
    ]
    return [_variant(p, *choice, seed) for choice in choices for seed in p.variant_seeds]


def _variant(
    p: Fig4Parameters, variant: str, n_gates: int, assignment: str, metric: str, network_steps: int, seed: int
) -> VariantRun:
    data = MixedLinkData(p.page_clusters, p.page_size, p.n_test, seed)
    config = replace(network_config(p, "relu"), seed=data.model_seed, max_steps=network_steps)
    if network_steps < p.max_steps:
        every = min(config.evaluate_every, network_steps)
        config = replace(config, evaluate_every=every, stop=replace(config.stop, min_steps=network_steps))
    settings = GateSettings(n_gates, data.model_seed, assignment, metric)
    cell = gated_cell(pool_network_cell(data, config), settings, kernel_config(p))
    return VariantRun(variant, n_gates, assignment, metric, network_steps, seed, cell)


def labelled_cells(p: Fig4Parameters) -> list[LabelledCell]:
    """Every cell of the figure with the labels that --only selects by: the grid, then the variants."""
    grid: list[LabelledCell] = [({"part": "grid", **run.labels}, run.cell) for run in grid_runs(p)]
    page: dict[str, str | int] = {"part": "variant", "K": p.page_clusters, "n": p.page_size}
    return grid + [({**page, **run.labels}, run.cell) for run in variant_runs(p)]
