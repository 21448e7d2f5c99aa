"""Parameters of the kernels page; values: `parameters/<profile>/kernels.yaml` and the notebook's parameters cell."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from monolib.parameter_files import FigureParameters

Count = Annotated[int, Field(ge=1, le=10**7)]
Clusters = Annotated[int, Field(ge=1, le=1000)]
Points = Annotated[int, Field(ge=2, le=10**7)]
NotNegative = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=10**6)]


class KernelsParameters(FigureParameters):
    """Laplace kernel, RFM and EigenPro on the mixed-link law (A.2).

    clusters: the K of the comparison, ascending.  seeds: the paper's r.  exact_below, ridge, target_mse, max_epochs,
    agop_points, bandwidth_points: see `rfm.RFMConfig` and `eigenpro.EigenProConfig`.
    curve_clusters, curve_points: K and n of the convergence curves.  descent_epochs: steps of plain gradient descent.
    variation_*: the first seed at `curve_clusters` again with each of these, one at a time (ledger of open points);
    empty lists mean no variations.
    """

    clusters: Annotated[list[Clusters], Field(min_length=1)]
    n_train: Points
    n_test: Count
    seeds: Annotated[list[Seed], Field(min_length=1)]
    n_updates: Annotated[int, Field(ge=0, le=20)]
    ridge: NotNegative
    exact_below: Count
    target_mse: Positive
    max_epochs: Count
    agop_points: Count
    bandwidth_points: Points
    curve_clusters: Clusters
    curve_points: Points
    descent_epochs: Count
    variation_agop_points: list[Count]
    variation_bandwidth_points: list[Points]
    variation_normalizations: list[Literal["trace", "max_entry", "none"]]
    variation_solvers: list[Literal["exact", "eigenpro"]]
    variation_subsamples: list[Count]
    variation_dtypes: list[Literal["float32", "float64"]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.clusters != sorted(set(self.clusters)):
            raise ValueError(f"clusters={self.clusters}: must be ascending without repeats")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds={self.seeds}: must not repeat an entry")
        if self.n_train < max(self.clusters):
            raise ValueError(f"n_train={self.n_train}: must be at least {max(self.clusters)}, the largest K")
        return self
