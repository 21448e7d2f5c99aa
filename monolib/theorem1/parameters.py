"""Parameters of Theorem 1's page; values: `parameters/<profile>/theorem1.yaml` and the notebook's parameters cell."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from monolib.parameter_files import FigureParameters

Clusters = Annotated[int, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=1, le=10**7)]
Positive = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
Small = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, le=10**6)]


class Theorem1Parameters(FigureParameters):
    """What is checked, and at which sizes (§4.1, B.1).

    clusters, separations: K and R of the landscape (Lemmas 3 to 6); n_points directions for Lemma 3, n_starts ascents
    for each K and R, monte_carlo samples.  label_*: the ascents of Lemma 8 (K, R, number; label_chunk in one cell);
    cover_widths: the m of the coverage curve.  flow_*: the flows that are drawn, and those of Lemmas 7 and 9 (K, R, m,
    and flow_time, their t).  tracking_time, tracking_epsilons, tracking_widths: Lemma 9.  theorem_delta,
    theorem_epsilons, theorem_width: the whole of Theorem 1.  time_separations, time_neurons: how long a neuron takes.
    sgd_*: plain SGD on samples until tracking_time.
    """

    seed: Seed
    clusters: Annotated[list[Clusters], Field(min_length=1)]
    separations: Annotated[list[Positive], Field(min_length=1)]
    n_points: Count
    monte_carlo: Count
    n_starts: Count
    label_clusters: Clusters
    label_separation: Positive
    n_labels: Count
    label_chunk: Count
    cover_widths: Annotated[list[Count], Field(min_length=1)]
    flow_clusters: Clusters
    flow_separation: Positive
    flow_neurons: Count
    flow_time: Positive
    tracking_time: Positive
    tracking_epsilons: Annotated[list[Small], Field(min_length=2)]
    tracking_widths: Annotated[list[Count], Field(min_length=2)]
    theorem_width: Count
    theorem_delta: Small
    theorem_epsilons: Annotated[list[Small], Field(min_length=1)]
    time_separations: Annotated[list[Positive], Field(min_length=2)]
    time_neurons: Count
    sgd_epsilon: Small
    sgd_step: Positive
    sgd_batches: Annotated[list[Count], Field(min_length=2)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("clusters", "separations", "cover_widths", "tracking_widths", "time_separations", "sgd_batches"):
            values = getattr(self, name)
            if values != sorted(set(values)):
                raise ValueError(f"{name}={values}: must be ascending without repeats")
        for name in ("tracking_epsilons", "theorem_epsilons"):
            values = getattr(self, name)
            if values != sorted(set(values), reverse=True):
                raise ValueError(f"{name}={values}: must be descending without repeats")
        if len([r for r in self.separations if r >= 8]) < 2:
            raise ValueError(f"separations={self.separations}: must hold two numbers ≥ 8, for the slope in R")
        if max(self.cover_widths) > self.n_labels:
            raise ValueError(f"cover_widths={self.cover_widths}: must not exceed n_labels={self.n_labels}")
        return self
