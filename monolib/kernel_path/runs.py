"""The kernel fits of the page."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from monolib.cell_selection import Labels
from monolib.cells import Cell
from monolib.eigenpro import EigenProConfig
from monolib.kernel_cells import kernel_cell
from monolib.kernel_path.parameters import KernelsParameters
from monolib.mixed_link_data import MixedLinkData
from monolib.rfm import RFMConfig


@dataclass(frozen=True)
class PlannedFit:
    """One fit: its part ("comparison", "curve", "variation"), method, K, seed, what it varies, and its cell."""

    part: str
    method: str
    n_clusters: int
    seed: int
    variation: str
    cell: Cell

    @property
    def labels(self) -> Labels:
        """What `--only` selects by."""
        n = self.cell.config["data"]["n_train"]
        return {"part": self.part, "method": self.method, "K": self.n_clusters, "n": n, "seed": self.seed}


def main_config(p: KernelsParameters) -> RFMConfig:
    """The settings of the comparison."""
    solver = EigenProConfig(target_mse=p.target_mse, max_epochs=p.max_epochs)
    return RFMConfig(
        n_updates=p.n_updates,
        ridge=p.ridge,
        exact_below=p.exact_below,
        bandwidth_points=p.bandwidth_points,
        agop_points=p.agop_points,
        eigenpro=solver,
    )


def planned_fits(p: KernelsParameters) -> list[PlannedFit]:
    """Comparison (global and oracle, every K and seed), convergence curves, variations."""
    config = main_config(p)
    fits = [
        PlannedFit(
            "comparison", method, k, r, "", kernel_cell(method, MixedLinkData(k, p.n_train, p.n_test, r), config)
        )
        for k, r, method in product(p.clusters, p.seeds, ("global", "oracle"))
    ]
    curve = (p.curve_clusters, p.seeds[0])
    curve_data = MixedLinkData(curve[0], p.curve_points, p.n_test, curve[1])
    variation_data = MixedLinkData(curve[0], p.n_train, p.n_test, curve[1])
    for name, method, changed in _curves(p, config):
        cell = kernel_cell(method, curve_data, changed)
        fits.append(PlannedFit("curve", method, *curve, name, cell))
    for name, changed in _variations(p, config):
        cell = kernel_cell("global", variation_data, changed)
        fits.append(PlannedFit("variation", "global", *curve, name, cell))
    return fits


def _curves(p: KernelsParameters, config: RFMConfig) -> Iterator[tuple[str, str, RFMConfig]]:
    """EigenPro, gradient descent on all points at once with the largest stable step, and the exact solution."""
    every = replace(config.eigenpro, evaluate_every_epoch=True)
    yield "EigenPro", "curve", replace(config, eigenpro=every)
    plain = replace(every, target_mse=None, eigenvectors=0, batch_size=p.curve_points, max_epochs=p.descent_epochs)
    yield "gradient descent", "curve", replace(config, eigenpro=plain)
    yield "exact", "global", replace(config, solver="exact", n_updates=0)


def _variations(p: KernelsParameters, config: RFMConfig) -> Iterator[tuple[str, RFMConfig]]:
    if not any(getattr(p, name) for name in type(p).model_fields if name.startswith("variation_")):
        return
    yield "as in the comparison", config
    for points in p.variation_agop_points:
        yield f"AGOP over {points} points", replace(config, agop_points=points)
    for points in p.variation_bandwidth_points:
        yield f"bandwidth from {points} points per cluster", replace(config, bandwidth_points=points)
    for normalization in p.variation_normalizations:
        yield f"AGOP normalised: {normalization}", replace(config, normalization=normalization)
    for solver in p.variation_solvers:
        yield f"solver {solver}", replace(config, solver=solver)
    for s in p.variation_subsamples:
        own = replace(config.eigenpro, subsample=s)
        yield f"solver eigenpro, subsample {s}", replace(config, solver="eigenpro", eigenpro=own)
    for dtype in p.variation_dtypes:
        yield f"solver eigenpro, {dtype}", replace(config, solver="eigenpro", dtype=dtype)
