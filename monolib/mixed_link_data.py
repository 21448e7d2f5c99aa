"""The data of Figs. 2, 4 and 6: one training pool per K and seed, nested prefixes of it, and a test set (A.2, A.3)."""

import functools
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from monolib.errors import UserError
from monolib.laws import ClusteredLaw, Sample, mixed_link_law
from monolib.random_streams import generator

POOL_POINTS = 200_000
LINK_SEED, POOL_SEED, TEST_SEED = 1000, 12345, 54321  # of the paper's seed r, plus r; the first is the model's too


@functools.cache
def _law(n_clusters: int, link_seed: int) -> ClusteredLaw:
    """Placing the centers takes a while, and a sweep asks for every cell's law several times."""
    return mixed_link_law(n_clusters, link_seed=link_seed)


class MixedLinkDraw(NamedTuple):
    """The law, its first n training points, and the test set."""

    law: ClusteredLaw
    train: Sample
    test: Sample


@dataclass(frozen=True)
class MixedLinkData:
    """Which data a method sees: K, n, test points, the paper's seed r (A.2).

    The first `n_train` points of the pool of 200,000 that seed 12345 + r draws; `n_test` points of seed 54321 + r;
    links of seed 1000 + r; centers and directions depend on K alone. All methods of one (K, n, r) get the same points.
    Raises UserError for sizes that are not 1 ≤ n_train ≤ 200,000, n_test ≥ 1, or n_train < K.
    """

    n_clusters: int
    n_train: int
    n_test: int
    seed: int

    def __post_init__(self) -> None:
        if not self.n_clusters <= self.n_train <= POOL_POINTS:
            allowed = f"must lie between n_clusters={self.n_clusters} and {POOL_POINTS}, the pool's size"
            raise UserError(f"n_train={self.n_train}: {allowed}")
        if self.n_test < 1:
            raise UserError(f"n_test={self.n_test}: must be an integer ≥ 1")

    @property
    def model_seed(self) -> int:
        """Seed of links, initialisation and batches, 1000 + r."""
        return LINK_SEED + self.seed

    def law(self) -> ClusteredLaw:
        """The mixed-link law of K and r."""
        return _law(self.n_clusters, self.model_seed)

    def draw(self) -> MixedLinkDraw:
        """Law, training prefix and test set; float64, deterministic."""
        law = self.law()
        pool = law.sample(POOL_POINTS, generator(POOL_SEED + self.seed, "train"))
        train = Sample(*(values[: self.n_train].copy() for values in pool))
        return MixedLinkDraw(law, train, law.sample(self.n_test, generator(TEST_SEED + self.seed, "test")))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a cell's configuration."""
        return asdict(self)
