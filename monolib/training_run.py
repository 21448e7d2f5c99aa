"""One network on its way through training: batches, rate, evaluations, kept checkpoint, and what a resume needs."""

import json
import logging
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from monolib.adam import cosine_rate
from monolib.atomic_files import read_arrays, write_arrays
from monolib.gradients import append_one, predict
from monolib.networks import NetworkShape, initial_parameters
from monolib.random_streams import generator
from monolib.training_config import TrainingConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training and (for selection on validation) validation points: x (n, d), y (n,); training uses float32."""

    x: np.ndarray
    y: np.ndarray
    x_validation: np.ndarray | None = None
    y_validation: np.ndarray | None = None


@dataclass(frozen=True)
class Evaluation:
    """Errors at one evaluation: after `step` updates; `train_mse` is the full one if selection is on training, else
    the mean over the batches since the evaluation before, nan once the run left the finite numbers; `validation_mse` is
    nan without a validation set."""

    step: int
    train_mse: float
    validation_mse: float


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Kept checkpoint `best` (flat parameters, float32) and the record of its run.

    stop_reason: max_steps, target, plateau or diverged. history: every evaluation, oldest first.
    """

    best: np.ndarray
    best_step: int
    steps: int
    stop_reason: str
    history: tuple[Evaluation, ...]


class TrainingRun:
    """One network of a stack on its device: configuration, data and progress (everything that a resume needs)."""

    def __init__(
        self, config: TrainingConfig, data: TrainingData, device: torch.device, checkpoint: Path | None = None
    ) -> None:
        self.config, self.checkpoint, self.device = config, checkpoint, device
        self.x, self.y = _to_device(data.x, data.y, device)
        self.validation = None
        if data.x_validation is not None and data.y_validation is not None:
            self.validation = _to_device(data.x_validation, data.y_validation, device)
        if config.select == "validation" and self.validation is None:
            raise ValueError("select='validation': needs a validation set")
        self.shape = NetworkShape(config.architecture, data.x.shape[1], config.width)
        self.batch = min(config.batch_size, len(self.y))
        self.step, self.best_step, self.best_error = 0, 0, math.inf
        self.history: list[Evaluation] = []
        self.stop_reason: str | None = None
        rng = generator(config.seed, "initialisation")
        start = initial_parameters(self.shape, config.start_scale, config.readout_ratio, config.readout_start, rng)
        self.flat = start.to(device)
        self.moments = torch.zeros(2, self.shape.n_parameters, device=device)
        self.squared_error = torch.zeros((), device=device)  # sum of the batches' MSE since the evaluation before
        self.best = self.flat.clone()
        self._epoch, self._order = -1, torch.empty(0)
        if checkpoint is not None and checkpoint.exists():
            self._load(checkpoint)

    def batch_indices(self) -> Tensor:
        """Indices of the next batch: epochs are reshuffled, a partial batch at an epoch's end is left out of it."""
        per_epoch = len(self.y) // self.batch
        epoch, position = divmod(self.step, per_epoch)
        if epoch != self._epoch:
            order = generator(self.config.seed, "batches", epoch).permutation(len(self.y))
            indices = torch.from_numpy(order)
            if self.device.type == "cuda":
                indices = indices.pin_memory()  # so that the host need not wait for the transfer
            self._epoch, self._order = epoch, indices.to(self.device, non_blocking=True)
        return self._order[position * self.batch : (position + 1) * self.batch]

    def rate(self, ahead: int = 0) -> float:
        """Rate η of the coming step, or of the one `ahead` steps after it."""
        config = self.config
        final = config.learning_rate * config.final_rate_fraction
        return cosine_rate(self.step + ahead, config.max_steps, config.learning_rate, final)

    def steps_to_evaluation(self) -> int:
        """Updates until the next evaluation: every `evaluate_every` steps and at the last step; 0 if due now."""
        every, last = self.config.evaluate_every, self.evaluated_step
        return min((last // every + 1) * every, self.config.max_steps) - self.step

    @property
    def evaluated_step(self) -> int:
        """Step of the evaluation before; 0 at the start."""
        return self.history[-1].step if self.history else 0

    def evaluate(self) -> None:
        """Record errors after `step` updates, keep the best checkpoint, decide whether to stop, save the state."""
        batch_mse = float(self.squared_error) / (self.step - self.evaluated_step)
        self.squared_error.zero_()
        train = batch_mse if self.config.select == "validation" else self._mse(self.x, self.y)
        validation = math.nan if self.validation is None else self._mse(*self.validation)
        error = validation if self.config.select == "validation" else train
        if not (math.isfinite(batch_mse) and math.isfinite(error)):
            train = math.nan  # one mark for a run that left the finite numbers, seen by the stop rule
        elif error < self.best_error:
            self.best_error, self.best_step, self.best = error, self.step, self.flat.clone()
        self.history.append(Evaluation(self.step, train, validation))
        self.stop_reason = self.config.stop.reason(self.step, [e.train_mse for e in self.history])
        if self.stop_reason is None and self.step >= self.config.max_steps:
            self.stop_reason = "max_steps"
        if self.checkpoint is not None:
            self._save(self.checkpoint)

    def _mse(self, x: Tensor, y: Tensor) -> float:
        error = predict(self.shape, self.flat[None], x[None])[0] - y
        return float(error.double().square().mean())

    def result(self) -> TrainingResult:
        """The kept checkpoint and the record. Raises ValueError while the run has not ended."""
        if self.stop_reason is None:
            raise ValueError(f"training run at step {self.step} of {self.config.max_steps}: has not ended")
        return TrainingResult(self.best.cpu().numpy(), self.best_step, self.step, self.stop_reason, tuple(self.history))

    def _identity(self) -> str:
        return json.dumps(asdict(self.config) | {"n": len(self.y)}, sort_keys=True)

    def _save(self, path: Path) -> None:
        progress = {
            "identity": self._identity(),
            "step": self.step,
            "best_step": self.best_step,
            "best_error": self.best_error,
            "stop_reason": self.stop_reason,
            "history": [[e.step, e.train_mse, e.validation_mse] for e in self.history],
        }
        tensors = {name: getattr(self, name).cpu().numpy() for name in ("flat", "moments", "best")}
        write_arrays(path, progress=np.array(json.dumps(progress)), **tensors)

    def _load(self, path: Path) -> None:
        try:
            arrays = read_arrays(path)
            progress = json.loads(str(arrays["progress"]))
            identity = progress["identity"]
            shapes = {name: arrays[name].shape for name in ("flat", "moments", "best")}
            if shapes != {name: tuple(getattr(self, name).shape) for name in shapes} and identity == self._identity():
                raise ValueError(f"{path}: holds arrays of other shapes")
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("checkpoint %s is damaged (%s); training starts again from step 0", path.name, error)
            return
        if identity != self._identity():
            raise ValueError(f"{path}: checkpoint of another configuration")
        self.flat, self.moments, self.best = (
            torch.from_numpy(arrays[name]).to(self.device) for name in ("flat", "moments", "best")
        )
        self.history = [Evaluation(int(s), t, v) for s, t, v in progress["history"]]
        for name in ("step", "best_step", "best_error", "stop_reason"):
            setattr(self, name, progress[name])


def _to_device(x: np.ndarray, y: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    inputs = append_one(torch.from_numpy(np.ascontiguousarray(x, np.float32)))
    return inputs.to(device), torch.from_numpy(np.ascontiguousarray(y, np.float32)).to(device)
