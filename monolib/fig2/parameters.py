"""Parameters of Figures 2 and 6; values: `parameters/<profile>/fig2.yaml` and the notebook's parameters cell."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from monolib.sample_size.parameters import (
    ArchitectureName,
    Positive,
    SampleSizeParameters,
    TrainingVariation,
)


class Fig2Parameters(SampleSizeParameters):
    """Figures 2 and 6 (§3.2, A.2).

    architectures: networks to train.
    variations: other starts, rate units and lengths of decay (the paper does not state its own), each at `page_*` with
    every architecture of `variation_architectures`.
    """

    architectures: Annotated[list[ArchitectureName], Field(min_length=1)]
    learning_rate_gelu: Positive
    learning_rate_reglu: Positive
    learning_rate_swiglu: Positive
    variation_architectures: list[ArchitectureName]
    variations: list[TrainingVariation]

    @model_validator(mode="after")
    def _check_lists(self) -> Self:
        for name in ("architectures", "variation_architectures"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: must not repeat an entry")
        return self
