"""The cells of figures that plot test error against n on the mixed-link law: networks, global and oracle RFM (A.2)."""

from dataclasses import dataclass, replace

from monolib.cells import Cell
from monolib.eigenpro import EigenProConfig
from monolib.kernel_cells import kernel_cell
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import pool_network_cell
from monolib.rfm import RFMConfig
from monolib.sample_size.parameters import SampleSizeParameters
from monolib.stopping import StopRule
from monolib.training_config import TrainingConfig


@dataclass(frozen=True)
class SampleSizeRun:
    """One cell of the grid: its method (an architecture, "global", "oracle" or "gated"), K, n, seed."""

    method: str
    n_clusters: int
    n_train: int
    seed: int
    cell: Cell

    @property
    def labels(self) -> dict[str, str | int]:
        """What the command line's --only selects by."""
        return {"method": self.method, "K": self.n_clusters, "n": self.n_train, "seed": self.seed}


def kernel_run(p: SampleSizeParameters, method: str, n_clusters: int, n_train: int, seed: int) -> SampleSizeRun:
    """Global or oracle RFM of one (K, n, seed); for K = 1 they are one cell (A.2)."""
    data = MixedLinkData(n_clusters, n_train, p.n_test, seed)
    cell = kernel_cell("global" if n_clusters == 1 else method, data, kernel_config(p))
    return SampleSizeRun(method, n_clusters, n_train, seed, cell)


def network_run(p: SampleSizeParameters, architecture: str, n_clusters: int, n_train: int, seed: int) -> SampleSizeRun:
    """Network of one (K, n, seed)."""
    data = MixedLinkData(n_clusters, n_train, p.n_test, seed)
    cell = pool_network_cell(data, replace(network_config(p, architecture), seed=data.model_seed))
    return SampleSizeRun(architecture, n_clusters, n_train, seed, cell)


def kernel_config(p: SampleSizeParameters) -> RFMConfig:
    """Settings of the kernel fits."""
    return RFMConfig(
        n_updates=p.n_updates,
        ridge=p.ridge,
        exact_below=p.exact_below,
        bandwidth_points=p.bandwidth_points,
        agop_points=p.agop_points,
        eigenpro=EigenProConfig(target_mse=p.target_mse, max_epochs=p.max_epochs),
    )


def network_config(p: SampleSizeParameters, architecture: str) -> TrainingConfig:
    """Settings of the training, with seed 0."""
    return TrainingConfig(
        architecture=architecture,
        width=p.width,
        batch_size=p.batch_size,
        learning_rate=p.learning_rate(architecture),
        max_steps=p.max_steps,
        seed=0,
        final_rate_fraction=p.final_rate_fraction,
        evaluate_every=p.evaluate_every,
        rate_unit=p.rate_unit,
        start_scale=p.start_scale,
        readout_ratio=p.readout_ratio,
        readout_start=p.readout_start,
        select="training",
        stop=StopRule(p.min_steps, p.target_mse, p.patience, p.min_improvement),
    )
