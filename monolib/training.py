"""Training of stacked networks with Adam: shuffled epochs, cosine decay, best checkpoint, exact resume.

Several networks of one shape (seeds, learning rates) train in one call. Each keeps its own data, batches, rate, step
count and stop rule, and on a CPU each gets bit for bit what it would get alone. Nothing in a step waits for the device:
errors are read once per evaluation.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from monolib.adam import adam_step, bias_corrections
from monolib.gradients import Workspace, loss_gradient
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData, TrainingResult, TrainingRun

SCHEDULED_STEPS = 1000  # rates sent to the device at once

# (position of the network in the call, its run) after each of its evaluations.
Progress = Callable[[int, TrainingRun], None]


def train_networks(
    configs: Sequence[TrainingConfig],
    data: Sequence[TrainingData],
    device: str = "cpu",
    checkpoints: Sequence[Path] | None = None,
    progress: Progress | None = None,
) -> list[TrainingResult]:
    """Train one network per configuration (Adam, cosine decay, no weight decay; A.1, A.2), float32.

    data: one entry per network (entries may be one object).  device: "cpu" or "cuda".
    checkpoints: one file per network; the state is saved there at every evaluation, and a call with the same
    configuration goes on from it, on a CPU to the same final weights as without the interruption.
    A network whose error is not finite ends with stop_reason "diverged"; the others go on.
    Raises ValueError when architecture, width, dimension or batch size differ between the networks, or when a
    checkpoint belongs to another configuration.
    """
    paths: Sequence[Path | None] = checkpoints if checkpoints is not None else [None] * len(configs)
    if not len(configs) == len(data) == len(paths):
        raise ValueError(f"configs, data, checkpoints: {len(configs)}, {len(data)}, {len(paths)} entries, must agree")
    runs = [TrainingRun(c, d, torch.device(device), path) for c, d, path in zip(configs, data, paths, strict=True)]
    if len({(run.shape, run.batch) for run in runs}) > 1:
        raise ValueError("configs: networks of one call must share architecture, width, dimension and batch size")
    with flushed_denormals():
        while running := [run for run in runs if run.stop_reason is None]:
            stack = NetworkStack(running)
            while all(run.stop_reason is None for run in running):
                for run in stack.advance():
                    if progress is not None:
                        progress(runs.index(run), run)
    return [run.result() for run in runs]


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Round numbers below 1e-38 to zero on this thread: the moments of dead neurons decay into that range, where
    a CPU is tens of times slower."""
    was_flushed = not bool(torch.tensor(1e-38) * 1e-3 > 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushed)


class NetworkStack:
    """The running networks of one call as stacked tensors; rebuilt when one of them ends."""

    def __init__(self, runs: list[TrainingRun]) -> None:
        self.runs, self.shape, device = runs, runs[0].shape, runs[0].flat.device
        self.flat = torch.stack([run.flat for run in runs])
        self.moments = torch.stack([run.moments for run in runs], dim=1)
        self.squared_error = torch.stack([run.squared_error for run in runs])
        for i, run in enumerate(runs):  # the runs look into the stack: there is one copy of the state
            run.flat, run.moments, run.squared_error = self.flat[i], self.moments[:, i], self.squared_error[i]
        self.gradient, self.scratch = torch.empty_like(self.flat), torch.empty_like(self.flat)
        self.x = self.flat.new_empty(len(runs), runs[0].batch, self.shape.dim + 1)
        self.y = self.flat.new_empty(len(runs), runs[0].batch)
        self.workspace = Workspace(self.shape, self.flat[:1] if device.type == "cpu" else self.flat)
        self.rates = torch.empty_like(self.flat)
        for i, run in enumerate(runs):
            self.rates[i] = run.config.rate_factor
        self.rates[:, -1] = 1.0  # the output bias is in the unit of the labels

    def advance(self) -> list[TrainingRun]:
        """Update every network, at most until one is due for evaluation; evaluate those that are and return them."""
        n_steps = min(SCHEDULED_STEPS, *(run.steps_to_evaluation() for run in self.runs))
        for schedule in self.schedule(n_steps):
            self.step(schedule)
        due = [run for run in self.runs if run.steps_to_evaluation() == 0]
        for run in due:
            run.evaluate()
        return due

    def schedule(self, n_steps: int) -> Tensor:
        """Rate, 1 − β₁ᵗ and 1 − β₂ᵗ of each network in each of the coming steps, shape (n_steps, 3, R, 1).

        Sent to the device at once, since a transfer in every step would make the host wait.
        """
        numbers = [
            [(run.rate(ahead), *bias_corrections(run.step + ahead)) for run in self.runs] for ahead in range(n_steps)
        ]
        return torch.tensor(numbers).transpose(1, 2).unsqueeze(3).to(self.flat.device)

    def step(self, schedule: Tensor) -> None:
        """One Adam update of every network, without waiting for the device; `schedule` (3, R, 1) as above."""
        for i, run in enumerate(self.runs):
            indices = run.batch_indices()
            torch.index_select(run.x, 0, indices, out=self.x[i])
            torch.index_select(run.y, 0, indices, out=self.y[i])
        self.squared_error += loss_gradient(self.shape, self.flat, self.x, self.y, self.gradient, self.workspace)
        adam_step(self.flat, self.gradient, self.moments, self.rates * schedule[0], schedule[1:], self.scratch)
        for run in self.runs:
            run.step += 1
