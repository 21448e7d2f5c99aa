"""When a training run ends, besides its last step: target error reached, plateau, divergence (A.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StopRule:
    """Stop rule of A.2; both criteria are checked at evaluations, and only after `min_steps`.

    target_mse: stop at a training MSE ≤ this (None: never).
    patience: stop after this many evaluations in a row without a relative improvement of at least `min_improvement`
    (None: never), counted as `evaluations_since_improvement` does.  Fig. 1 uses neither.
    """

    min_steps: int = 0
    target_mse: float | None = None
    patience: int | None = None
    min_improvement: float = 5e-4

    def reason(self, step: int, train_mse: Sequence[float]) -> str | None:
        """Why to stop after the evaluations `train_mse` (oldest first), or None to go on.

        "diverged" for a non-finite error (at any step), "target" or "plateau" otherwise.
        """
        if train_mse and not math.isfinite(train_mse[-1]):
            return "diverged"
        if step < self.min_steps or not train_mse:
            return None
        if self.target_mse is not None and train_mse[-1] <= self.target_mse:
            return "target"
        waited = evaluations_since_improvement(train_mse, self.min_improvement)
        if self.patience is not None and waited >= self.patience:
            return "plateau"
        return None


def evaluations_since_improvement(errors: Sequence[float], min_improvement: float) -> int:
    """Evaluations at the end of `errors` since the last that was at most (1 − min_improvement) times the reference.

    The reference is the error at the last improvement, so that many small improvements in a row count once they add up
    (A.2 speaks of an improvement of the training MSE and leaves open over which earlier value).
    """
    reference, since = math.inf, 0
    for error in errors:
        if error <= (1.0 - min_improvement) * reference:
            reference, since = error, 0
        else:
            since += 1
    return since
