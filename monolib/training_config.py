"""What fixes one training run, besides its data."""

import math
from dataclasses import dataclass, field

from monolib.networks import ARCHITECTURES
from monolib.stopping import StopRule


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that fixes one training run, besides its data (A.1, A.2).

    learning_rate: the rate η of the paper, decaying by a cosine to `final_rate_fraction` · η at `max_steps`.
    rate_unit: what Adam moves by about η a step: "weights" the weights themselves (ordinary Adam), "width_aware" the
    weights times m^p, p = 1/2 (gated 1/3), which are of size 1 at the start. The output bias moves by η in both.
    start_scale, readout_ratio, readout_start: see `networks.initial_parameters`.
    select: the kept checkpoint has the smallest "validation" or full "training" MSE among the evaluations.
    """

    architecture: str
    width: int
    batch_size: int
    learning_rate: float
    max_steps: int
    seed: int
    final_rate_fraction: float = 0.1
    evaluate_every: int = 500
    rate_unit: str = "weights"
    start_scale: float = 1.0
    readout_ratio: float = 1.0
    readout_start: str = "signs"
    select: str = "validation"
    stop: StopRule = field(default_factory=StopRule)

    def __post_init__(self) -> None:
        for name in ("width", "batch_size", "max_steps", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: must be an integer ≥ 1")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise ValueError(f"learning_rate={self.learning_rate}: must be a number > 0")
        for name, allowed in (("rate_unit", ("weights", "width_aware")), ("select", ("validation", "training"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: must be {' or '.join(allowed)}")

    @property
    def rate_factor(self) -> float:
        """Factor on η for weight, gate, readout and hidden biases: 1 for "weights", m^(−p) for "width_aware"."""
        p = ARCHITECTURES[self.architecture].balance_exponent if self.rate_unit == "width_aware" else 0.0
        return float(self.width**-p)
