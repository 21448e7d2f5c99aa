"""The cells of Figures 2 and 6: the grid over methods, K, n and seeds, and the variations."""

from dataclasses import dataclass, replace
from itertools import product

from monolib.cell_selection import LabelledCell, Labels
from monolib.cells import Cell
from monolib.fig2.parameters import Fig2Parameters
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import pool_network_cell
from monolib.sample_size.parameters import TrainingVariation
from monolib.sample_size.runs import SampleSizeRun, kernel_run, network_config, network_run


def grid_runs(p: Fig2Parameters) -> list[SampleSizeRun]:
    """Every method at every K, n and seed; at the paper's size 480."""
    runs = []
    for k, n, seed in product(p.clusters, p.sizes, p.seeds):
        runs += [network_run(p, architecture, k, n, seed) for architecture in p.architectures]
        runs += [kernel_run(p, method, k, n, seed) for method in ("global", "oracle")]
    return runs


@dataclass(frozen=True)
class VariationRun:
    """One network trained with another start, rate unit or length of decay."""

    architecture: str
    variation: TrainingVariation
    cell: Cell


def variation_runs(p: Fig2Parameters) -> list[VariationRun]:
    """Each of `variation_architectures` at the page's K, n and seed: the grid's own settings, then every variation."""
    if not p.variations:
        return []
    data = MixedLinkData(p.page_clusters, p.page_size, p.n_test, p.page_seed)
    own = TrainingVariation(
        start_scale=p.start_scale, readout_ratio=p.readout_ratio, rate_unit=p.rate_unit, max_steps=p.max_steps
    )
    runs = []
    for architecture, variation in product(p.variation_architectures, [own, *p.variations]):
        config = replace(network_config(p, architecture), seed=data.model_seed, **variation.model_dump())
        runs.append(VariationRun(architecture, variation, pool_network_cell(data, config)))
    return runs


def labelled_cells(p: Fig2Parameters) -> list[LabelledCell]:
    """Every cell of the figure with the labels that --only selects by: the grid, then the variations."""
    grid: list[LabelledCell] = [({"part": "grid", **run.labels}, run.cell) for run in grid_runs(p)]
    page: Labels = {"part": "variation", "K": p.page_clusters, "n": p.page_size, "seed": p.page_seed}
    varied: list[LabelledCell] = [
        ({**page, "method": run.architecture, **run.variation.model_dump()}, run.cell) for run in variation_runs(p)
    ]
    return grid + varied
