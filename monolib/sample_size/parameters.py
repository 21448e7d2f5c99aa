"""Parameters that the figures share which plot test error against n on the mixed-link law (Figs. 2, 4, 6)."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monolib.mixed_link_data import POOL_POINTS
from monolib.parameter_files import FigureParameters

Count = Annotated[int, Field(ge=1, le=10**9)]
Clusters = Annotated[int, Field(ge=1, le=1000)]
Points = Annotated[int, Field(ge=2, le=POOL_POINTS)]
Width = Annotated[int, Field(ge=1, le=10**6)]
Positive = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, le=10**6)]
ArchitectureName = Literal["relu", "gelu", "reglu", "swiglu"]
RateUnit = Literal["weights", "width_aware"]


class TrainingVariation(BaseModel):
    """A start, rate unit and length of the cosine decay with which the networks are trained once more."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    start_scale: Positive
    readout_ratio: Positive
    rate_unit: RateUnit
    max_steps: Count


class SampleSizeParameters(FigureParameters):
    """What figures share that plot test error against n on the mixed-link law: data, training, kernel fits (A.2, A.3).

    clusters, sizes: the K and n, ascending; sizes are prefixes of one pool.  seeds: the paper's r.
    learning_rate_*: the paper's η, decaying by a cosine over `max_steps` to `final_rate_fraction` η.
    min_steps, target_mse, patience, min_improvement: see `stopping.StopRule`; target_mse also stops EigenPro.
    start_scale, readout_ratio, readout_start, rate_unit: see `training_config.TrainingConfig`.
    n_updates, ridge, exact_below, max_epochs, agop_points, bandwidth_points: see `rfm.RFMConfig`.
    page_clusters, page_size, page_seed: K, n and seed of the pages that look into one cell.
    overlay_profile: profile whose `curves.csv` is drawn in addition, as larger markers; "" for none.
    only_finished: draw the cells that are in the cache, and compute none.
    """

    clusters: Annotated[list[Clusters], Field(min_length=1)]
    sizes: Annotated[list[Points], Field(min_length=1)]
    n_test: Count
    seeds: Annotated[list[Seed], Field(min_length=1)]
    width: Width
    batch_size: Count
    learning_rate_relu: Positive
    final_rate_fraction: Share
    min_steps: Annotated[int, Field(ge=0, le=10**9)]
    max_steps: Count
    evaluate_every: Count
    target_mse: Positive
    patience: Count
    min_improvement: Annotated[float, Field(ge=0, lt=1)]
    start_scale: Positive
    readout_ratio: Positive
    readout_start: Literal["signs", "gaussian"]
    rate_unit: RateUnit
    n_updates: Annotated[int, Field(ge=0, le=20)]
    ridge: NotNegative
    exact_below: Count
    max_epochs: Count
    agop_points: Count
    bandwidth_points: Points
    page_clusters: Clusters
    page_size: Points
    page_seed: Seed
    overlay_profile: str
    only_finished: bool

    @model_validator(mode="after")
    def _check_grid(self) -> Self:
        for name in ("clusters", "sizes"):
            if getattr(self, name) != sorted(set(getattr(self, name))):
                raise ValueError(f"{name}={getattr(self, name)}: must be ascending without repeats")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds={self.seeds}: must not repeat an entry")
        if min(self.sizes) < max(self.clusters):
            raise ValueError(f"sizes={self.sizes}: must be at least {max(self.clusters)}, the largest K")
        for name, values in (("page_clusters", "clusters"), ("page_size", "sizes"), ("page_seed", "seeds")):
            if getattr(self, name) not in getattr(self, values):
                raise ValueError(f"{name}={getattr(self, name)}: must be one of {values}={getattr(self, values)}")
        if self.min_steps > self.max_steps:
            raise ValueError(f"min_steps={self.min_steps}: must be at most max_steps={self.max_steps}")
        return self

    @property
    def computes_missing_cells(self) -> bool:
        """Whether a run computes what the cache lacks."""
        return not self.only_finished

    def learning_rate(self, architecture: str) -> float:
        """η of an architecture before decay."""
        return float(getattr(self, f"learning_rate_{architecture}"))
