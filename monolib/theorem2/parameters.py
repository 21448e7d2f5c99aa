"""Parameters of Theorem 2's page; values: `parameters/<profile>/theorem2.yaml` and the notebook's parameters cell."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from monolib.parameter_files import FigureParameters

Clusters = Annotated[int, Field(ge=3, le=1000)]
Count = Annotated[int, Field(ge=1, le=10**7)]
Several = Annotated[int, Field(ge=2, le=10**7)]
Exponent = Annotated[float, Field(ge=0.5, le=8)]
NotNegative = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=10**6)]


class Theorem2Parameters(FigureParameters):
    """What is checked, and at which sizes (§4.2, B.2).

    clusters: K.  kernel_exponents, kernel_points: the A of n = K^A, and the largest n, of the kernel methods; n_draws
    training sets for each.  ratios: the ρ of M_ρ in units of α/K (the standard kernel, M = I, comes on top).
    ridges: of the kernel fits.  mlp_*: the same for the network, with its width over K, weight decay, Adam's step,
    steps and batch.  n_test: points for a risk.  harmonic_orders, harmonic_clusters: largest r and K of the direct
    projections.  monte_carlo: samples of Lemmas 10 to 12.  subspace_draws: random subspaces of Lemma 15.
    """

    seed: Seed
    clusters: Annotated[list[Clusters], Field(min_length=1)]
    kernel_exponents: Annotated[list[Exponent], Field(min_length=1)]
    kernel_points: Count
    n_draws: Several
    ratios: Annotated[list[NotNegative], Field(min_length=1)]
    ridges: Annotated[list[Positive], Field(min_length=1)]
    n_test: Several
    mlp_clusters: Annotated[list[Clusters], Field(min_length=1)]
    mlp_exponents: Annotated[list[Exponent], Field(min_length=1)]
    mlp_points: Count
    mlp_draws: Several
    mlp_width_factor: Count
    mlp_decay: Positive
    mlp_learning_rate: Positive
    mlp_steps: Count
    mlp_batch: Count
    harmonic_orders: Annotated[int, Field(ge=2, le=8)]
    harmonic_clusters: Annotated[int, Field(ge=2, le=6)]
    monte_carlo: Several
    subspace_draws: Several

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("clusters", "kernel_exponents", "ratios", "ridges", "mlp_clusters", "mlp_exponents"):
            values = getattr(self, name)
            if values != sorted(set(values)):
                raise ValueError(f"{name}={values}: must be ascending without repeats")
        if 0 not in self.ratios:
            raise ValueError(f"ratios={self.ratios}: must hold 0, RFM without a regularised metric")
        smallest = min(self.clusters) ** min(self.kernel_exponents)
        if self.kernel_points < smallest:
            raise ValueError(f"kernel_points={self.kernel_points}: must be at least {smallest:g}, the smallest n")
        if not set(self.mlp_clusters) & set(self.clusters):
            raise ValueError(f"mlp_clusters={self.mlp_clusters}: must share a K with clusters={self.clusters}")
        return self
