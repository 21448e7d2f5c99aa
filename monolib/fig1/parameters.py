"""Parameters of Figures 1 and 5; values: `parameters/<profile>/fig1.yaml` and the notebook's parameters cell."""

from typing import Annotated, Literal, Self

import joblib
import psutil
from pydantic import BaseModel, ConfigDict, Field, model_validator

from monolib.networks import ARCHITECTURES
from monolib.parameter_files import FigureParameters

Count = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=1, le=10**6)]
Positive = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
ArchitectureName = Literal["relu", "gelu", "reglu", "swiglu"]
RateUnit = Literal["weights", "width_aware"]


class Variation(BaseModel):
    """A start and rate unit with which every architecture is trained once more."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    start_scale: Positive
    readout_ratio: Positive
    rate_unit: RateUnit


class Fig1Parameters(FigureParameters):
    """Figures 1 and 5: the axis-aligned law, four networks, the active set (§3.1, A.1).

    Rates are the paper's η before decay; several rates for one architecture are searched on validation MSE.
    readout_ratio: |a_j| over ‖w_j‖ at the start, 1 for a balanced start.  variations: other starts and rate units (the
    paper does not state its own); each costs one run per architecture, with the first seed and rate.
    """

    n_clusters: Count
    dim: Count
    center_scale: Positive
    noise_std: Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
    n_train: Count
    n_validation: Count
    n_test: Count
    seeds: Annotated[list[Seed], Field(min_length=1)]
    architectures: Annotated[list[ArchitectureName], Field(min_length=1)]
    width: Width
    batch_size: Count
    evaluate_every: Count
    learning_rates_relu: Annotated[list[Positive], Field(min_length=1)]
    learning_rates_gelu: Annotated[list[Positive], Field(min_length=1)]
    learning_rates_reglu: Annotated[list[Positive], Field(min_length=1)]
    learning_rates_swiglu: Annotated[list[Positive], Field(min_length=1)]
    final_rate_fraction: Share
    steps_relu: Count
    steps_gelu: Count
    steps_reglu: Count
    steps_swiglu: Count
    rate_unit: RateUnit
    start_scale: Positive
    readout_ratio: Positive
    readout_start: Literal["signs", "gaussian"]
    active_share: Share
    variations: list[Variation]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dim < 2 * self.n_clusters:
            raise ValueError(f"dim={self.dim}: must be at least 2 · n_clusters = {2 * self.n_clusters}")
        for name in ("seeds", "architectures"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: must not repeat an entry")
        self._check_memory()
        return self

    def _check_memory(self) -> None:
        """Refuse sizes whose data and network state alone exceed the machine's memory."""
        points = self.n_train + self.n_validation + self.n_test
        network = (2 * (self.dim + 1) + 1) * self.width
        workers = min(self.n_jobs or joblib.cpu_count(), len(self.architectures) * len(self.seeds))
        needed = workers * (8 * points * (2 * self.dim + 3) + 4 * self.stack * network * 8)
        available = psutil.virtual_memory().total
        if needed > available:
            raise ValueError(
                f"n_train={self.n_train}, dim={self.dim}, width={self.width}: need about {needed / 2**30:,.0f} GiB, "
                f"this machine has {available / 2**30:,.0f} GiB"
            )

    def steps(self, architecture: str) -> int:
        """Training steps of an architecture."""
        return int(getattr(self, f"steps_{architecture}"))

    def learning_rates(self, architecture: str) -> list[float]:
        """Rates searched for an architecture."""
        return list(getattr(self, f"learning_rates_{architecture}"))


assert set(ARCHITECTURES) == set(ArchitectureName.__args__)  # type: ignore[attr-defined]
