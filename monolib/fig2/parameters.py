"""Parameters of Figures 2 and 6; values: `parameters/<profile>/fig2.yaml` and the notebook's parameters cell."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from monolib.sample_size.parameters import (
    ArchitectureName,
    Clusters,
    Points,
    Positive,
    SampleSizeParameters,
    Seed,
    TrainingVariation,
)


class Fig2Parameters(SampleSizeParameters):
    """Figures 2 and 6 (§3.2, A.2).

    architectures: networks to train.  page_*: the K, n and seed of the page that looks into one cell.
    variations: other starts, rate units and lengths of decay (the paper does not state its own), each at `page_*` with
    every architecture of `variation_architectures`.
    overlay_profile: profile whose `curves.csv` is drawn in addition, as larger markers; "" for none.
    """

    architectures: Annotated[list[ArchitectureName], Field(min_length=1)]
    learning_rate_gelu: Positive
    learning_rate_reglu: Positive
    learning_rate_swiglu: Positive
    page_clusters: Clusters
    page_size: Points
    page_seed: Seed
    variation_architectures: list[ArchitectureName]
    variations: list[TrainingVariation]
    overlay_profile: str

    @model_validator(mode="after")
    def _check_page(self) -> Self:
        for name, values in (("page_clusters", "clusters"), ("page_size", "sizes"), ("page_seed", "seeds")):
            if getattr(self, name) not in getattr(self, values):
                raise ValueError(f"{name}={getattr(self, name)}: must be one of {values}={getattr(self, values)}")
        for name in ("architectures", "variation_architectures"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: must not repeat an entry")
        return self
