"""Speed of one training step against a plain PyTorch loop, both measured in one run.

The plain loop is what one would write first: nn.Module, autograd, torch.optim.Adam. Both train the same network on the
same batches; they take turns, and medians are compared. The last column says which part of the time the matrix products
would need at this processor's peak, measured in the same run on a large square product.

    python benchmarks/training_step.py --width 2048 --batch 2048 --dim 40 --threads 1
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from monolib.laws import axis_aligned_law
from monolib.networks import ARCHITECTURES
from monolib.provenance import device_name
from monolib.random_streams import generator
from monolib.training import NetworkStack, flushed_denormals
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData, TrainingRun

PHI = {"relu": nn.ReLU(), "reglu": nn.ReLU(), "gelu": nn.GELU(), "swiglu": nn.SiLU()}


class PlainNetwork(nn.Module):
    """One hidden layer out of nn.Linear."""

    def __init__(self, architecture: str, dim: int, width: int) -> None:
        super().__init__()
        self.phi = PHI[architecture]
        self.first = nn.Linear(dim, width)
        self.value = nn.Linear(dim, width) if ARCHITECTURES[architecture].gated else None
        self.readout = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.phi(self.first(x))
        return self.readout(hidden if self.value is None else hidden * self.value(x)).squeeze(1)


def plain_step(architecture: str, data: TrainingData, width: int, batch: int, device: str) -> Callable[[], None]:
    """A step of the plain loop, batches by random permutation."""
    x = torch.from_numpy(data.x).float().to(device)
    y = torch.from_numpy(data.y).float().to(device)
    network = PlainNetwork(architecture, x.shape[1], width).to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    def step() -> None:
        indices = torch.randint(len(y), (batch,), device=device)
        optimiser.zero_grad()
        (network(x[indices]) - y[indices]).square().mean().backward()
        optimiser.step()

    return step


def monolib_step(architecture: str, data: TrainingData, width: int, batch: int, device: str) -> Callable[[], None]:
    """A step of `monolib.training`, everything included: rates, batches, gradient, Adam."""
    config = TrainingConfig(architecture, width, batch, 1e-3, 10**6, seed=0)
    stack = NetworkStack([TrainingRun(config, data, torch.device(device))])
    schedule = iter(stack.schedule(1000))
    return lambda: stack.step(next(schedule))


def milliseconds(step: Callable[[], None], device: str) -> float:
    """Time of one call, the device's work included."""
    started = time.perf_counter()
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - started)


def peak_gflops(device: str) -> float:
    """Rate of a 2048³ float32 product, best of ten."""
    a = torch.randn(2048, 2048, device=device)
    out = torch.empty_like(a)
    return 2 * 2048**3 / min(milliseconds(lambda: torch.mm(a, a, out=out), device) for _ in range(10)) / 1e6


def product_gflop(architecture: str, dim: int, width: int, batch: int) -> float:
    """Work of the matrix products of one step: two per first-layer block, two with the readout."""
    blocks = 2 if ARCHITECTURES[architecture].gated else 1
    return 4 * batch * width * (blocks * (dim + 1) + 1) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("width", 2048), ("batch", 2048), ("dim", 40), ("threads", 1), ("steps", 30)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    threadpool_limits(options.threads)
    sample = axis_aligned_law(dim=options.dim).sample(100_000, generator(0, "train"))
    data = TrainingData(sample.x, sample.y, sample.x[:10], sample.y[:10])
    peak = peak_gflops(options.device)
    print(f"{device_name(options.device)}, {options.threads} thread(s), peak {peak:.0f} Gflop/s")
    print(f"torch {torch.__version__}")
    print(f"width {options.width}, batch {options.batch}, dim {options.dim}; medians of {options.steps} steps")
    print(f"{'':8s} {'plain ms':>9s} {'monolib ms':>11s} {'ratio':>6s} {'of the product peak':>20s}")
    for architecture in ARCHITECTURES:
        sizes = (architecture, data, options.width, options.batch, options.device)
        steps = {"plain": plain_step(*sizes), "monolib": monolib_step(*sizes)}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for i in range(options.steps + 5):
            for name, step in steps.items():
                with flushed_denormals():  # for both, so that the plain loop is not slowed by denormals either
                    elapsed = milliseconds(step, options.device)
                if i >= 5:
                    times[name].append(elapsed)
        plain, ours = (statistics.median(times[name]) for name in ("plain", "monolib"))
        ideal = 1e3 * product_gflop(architecture, options.dim, options.width, options.batch) / peak
        print(f"{architecture:8s} {plain:9.1f} {ours:11.1f} {plain / ours:6.2f} {ideal / ours:19.0%}")
    print(f"largest memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
