"""Parameters of Figures 3 and 4; values: `parameters/<profile>/fig4.yaml` and the notebook's parameters cell."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from monolib.sample_size.parameters import Count, SampleSizeParameters, Seed

Gates = Annotated[int, Field(ge=1, le=10_000)]


class Fig4Parameters(SampleSizeParameters):
    """Figures 3 and 4 (§3.3, A.3).

    variant_seeds: seeds of the variants, each at the page's K and n.
    other_gate_counts: numbers of gates M besides K.
    early_steps: lengths of training of networks that have not learned yet (a whole cosine decay each).
    """

    variant_seeds: list[Seed]
    other_gate_counts: list[Gates]
    early_steps: list[Count]

    @model_validator(mode="after")
    def _check_lists(self) -> Self:
        for name in ("variant_seeds", "other_gate_counts", "early_steps"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: must not repeat an entry")
        if not set(self.variant_seeds) <= set(self.seeds):
            raise ValueError(f"variant_seeds={self.variant_seeds}: must be among seeds={self.seeds}")
        if self.page_clusters in self.other_gate_counts:
            raise ValueError(f"other_gate_counts={self.other_gate_counts}: holds K={self.page_clusters} itself")
        if self.early_steps and max(self.early_steps) >= self.max_steps:
            raise ValueError(f"early_steps={self.early_steps}: must be below max_steps={self.max_steps}")
        return self
