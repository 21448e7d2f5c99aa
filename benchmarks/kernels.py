"""Speed of the kernel path against its peers, all measured in one run, as ratios.

Times are processor seconds of this process on one thread (they do not count what other programs take), medians over
rounds in which the contestants take turns. Writes the table as Markdown with --output.

    python benchmarks/kernels.py --output benchmarks/kernels.md
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from monolib.bandwidth import median_bandwidth
from monolib.eigenpro import EigenProConfig, EigenProFit, solve_eigenpro
from monolib.exact_solver import solve_exact
from monolib.kernels import KernelTiles, gram, kernel_product, mapped, rows_product
from monolib.laws import mixed_link_law
from monolib.provenance import device_name
from monolib.random_streams import generator
from monolib.rfm import RFMConfig, fit_rfm

HOST_GIB_LIMIT = 6.0


def data(n_clusters: int, n: int) -> tuple:
    """(training sample, test sample) of the mixed-link law."""
    law = mixed_link_law(n_clusters)
    return law.sample(n, generator(12345, "train")), law.sample(4096, generator(54321, "test"))


def laplace_points(n_clusters: int, n: int, dtype: torch.dtype) -> tuple:
    """(mapped training points, labels, mapped test points, test labels) for the Laplace kernel."""
    train, test = data(n_clusters, n)
    x, at = torch.tensor(train.x), torch.tensor(test.x)
    h = median_bandwidth(x, train.cluster, np.random.default_rng(0)).value
    root = torch.eye(x.shape[1], dtype=torch.float64)
    u, z = (mapped(p, root, x.mean(0), h, dtype) for p in (x, at))
    return u, torch.tensor(train.y), z, test.y


def medians(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median processor seconds of each, in turns, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(rounds + 1):
        for name, work in contestants.items():
            started = time.process_time()
            work()
            if i > 0:
                times[name].append(time.process_time() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def cdist_product(u: torch.Tensor, z: torch.Tensor, v: torch.Tensor, rows: int = 64) -> torch.Tensor:
    """torch.cdist in chunks, then exp, then the product."""
    parts = [torch.exp(-torch.cdist(u[i : i + rows], z)) @ v for i in range(0, len(u), rows)]
    return torch.cat(parts)


def sklearn_product(u: np.ndarray, v: np.ndarray, rows: int = 256) -> np.ndarray:
    """scikit-learn's euclidean_distances in chunks, then exp, then the product."""
    from sklearn.metrics.pairwise import euclidean_distances

    return np.concatenate([np.exp(-euclidean_distances(u[i : i + rows], u)) @ v for i in range(0, len(u), rows)])


def keops_product(u: torch.Tensor, v: torch.Tensor) -> Callable[[], object]:
    """pykeops' lazy formula on the CPU."""
    from pykeops.torch import LazyTensor

    def product() -> object:
        x, z = LazyTensor(u[:, None, :]), LazyTensor(u[None, :, :])
        return (-(((x - z) ** 2).sum(-1).sqrt())).exp() @ v[:, None]

    return product


def roofline(u: torch.Tensor, tile: int = 504) -> Callable[[], object]:
    """The matrix product and one exp for every pair, in tiles, and nothing else."""
    right, buffer = u.T.contiguous(), u.new_empty(tile * tile)
    values = -torch.rand(tile, tile)
    out = torch.empty_like(values)

    def work() -> None:
        for i in range(0, len(u), tile):
            for j in range(0, len(u), tile):
                rows, columns = min(tile, len(u) - i), min(tile, len(u) - j)
                block = buffer[: rows * columns].view(rows, columns)
                torch.mm(u[i : i + tile], right[:, j : j + tile], out=block)
                torch.exp(values[:rows, :columns], out=out[:rows, :columns])

    return work


def product_rows(n: int, rounds: int) -> list[str]:
    u, _, _, _ = laplace_points(10, n, torch.float32)
    v = torch.randn(n, generator=torch.Generator().manual_seed(0))
    other = u.clone()
    contestants: dict[str, Callable[[], object]] = {
        "K(X,X)v": lambda: kernel_product(u, None, v),
        "K(X,Z)v": lambda: kernel_product(u, other, v),
        "torch.cdist in chunks + exp": lambda: cdist_product(u, u, v),
        "roofline (product + exp)": roofline(u),
    }
    times = medians(contestants, rounds)
    peers: dict[str, Callable[[], object]] = {"scikit-learn": lambda: sklearn_product(u.numpy(), v.numpy())}
    try:
        peers["pykeops"] = keops_product(u, v)
        peers["pykeops"]()
    except (ImportError, OSError, RuntimeError) as error:
        print(f"pykeops does not run here: {error}", file=sys.stderr)
        peers.pop("pykeops", None)
    times |= medians(peers, 1)
    exact = gram(u[:2000].double(), u.double()) @ v.double()
    error = float((kernel_product(u, None, v)[:2000] - exact).norm() / exact.norm())
    lines = []
    for name in ("K(X,X)v", "K(X,Z)v"):
        for peer in ("torch.cdist in chunks + exp", "roofline (product + exp)", *peers):
            lines.append(row(f"{name}, n=m={n:,}, float32", peer, times[name], times[peer]))
    return [*lines, f"| relative error of K(X,X)v against float64 | | {error:.1e} | | |"]


def row(work: str, peer: str, ours: float, theirs: float, note: str = "") -> str:
    """One line of the table."""
    return f"| {work} | {peer} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f}{note} |"


def rfm_row(n: int, rounds: int) -> list[str]:
    from xrfm.rfm_src import RFM

    train, test = data(10, n)
    reports = []

    def ours() -> None:
        reports[:] = [step.report for step in fit_rfm(train.x, train.y, RFMConfig(), train.cluster).iterations]

    x, y = torch.tensor(train.x).float(), torch.tensor(train.y)[:, None].float()
    held_out = torch.tensor(test.x[:10]).float(), torch.tensor(test.y[:10])[:, None].float()

    def theirs() -> None:
        model = RFM("l2", iters=3, bandwidth=6.0, device="cpu", verbose=False)
        options = dict(reg=1e-6, return_best_params=False, early_stop_rfm=False, total_points_to_sample=n)
        model.fit((x, y), held_out, verbose=False, **options)

    times = medians({"ours": ours, "theirs": theirs}, rounds)
    residual = max(report.residual for report in reports)
    name, note = f"RFM, n={n:,}, 3 updates, exact", f" (relative residual {residual:.0e})"
    return [row(name, f"xRFM {version('xrfm')}, float32", times["ours"], times["theirs"], note)]


def solver_row(n: int, rounds: int) -> list[str]:
    u, y, _, _ = laplace_points(10, n, torch.float64)
    k = gram(u)
    times = medians({"mixed": lambda: solve_exact(k, y), "double": lambda: solve_exact(k, y, mixed=False)}, rounds)
    name = f"exact solve, n={n:,}, float32 Cholesky refined"
    return [row(name, "float64 Cholesky", times["mixed"], times["double"])]


def eigenpro_rows(n: int, rounds: int, with_exact: bool) -> list[str]:
    u, y, at, labels = laplace_points(10, n, torch.float32)
    fit = EigenProFit(u, y, EigenProConfig(), np.random.default_rng(0))
    tiles = KernelTiles(fit.u)

    def products() -> None:
        for rows in fit.batches():
            rows_product(tiles, rows, (0, n), fit.alpha)

    times = medians({"epoch": lambda: fit.epoch(1.0), "products": products}, rounds)
    lines = [row(f"EigenPro epoch, n={n:,}", "its kernel products alone", times["epoch"], times["products"])]
    if not with_exact:
        return lines
    started = time.process_time()
    result = solve_eigenpro(u, y, EigenProConfig(), np.random.default_rng(0), keep_gram=True)
    early = time.process_time() - started
    u64 = laplace_points(10, n, torch.float64)[0]
    started = time.process_time()
    exact = solve_exact(gram(u64), y, mixed=False)
    direct = time.process_time() - started
    errors = [
        float(np.mean(np.square(kernel_product(at, u, alpha.float()).numpy() - labels)))
        for alpha in (result.coefficients, exact.coefficients)
    ]
    note = f" (test MSE {errors[0] / errors[1] - 1:+.1%})"
    name = f"EigenPro to 4e-4 ({result.epochs} epochs), n={n:,}, K=10"
    return [*lines, row(name, "exact float64 solve", early, direct, note)]


def large_epoch(n: int) -> None:
    """One EigenPro epoch of a large fit, in a process of its own; prints seconds and peak memory."""
    u, y, _, _ = laplace_points(10, n, torch.float32)
    started = time.process_time()
    fit = EigenProFit(u, y, EigenProConfig(), np.random.default_rng(0))
    prepared = time.process_time() - started
    fit.epoch(1.0)
    epoch = time.process_time() - started - prepared
    print(prepared, epoch, peak_gib())


def peak_gib() -> float:
    """Peak memory of this program; getrusage would also count the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20


def large_row(n: int) -> list[str]:
    command = [sys.executable, __file__, "--large-epoch", str(n)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    prepared, epoch, peak = map(float, output)
    fit = prepared + 10 * epoch + 2 * 0.6 * epoch
    verdict = "under" if peak < HOST_GIB_LIMIT else "over"
    return [
        f"| EigenPro, n={n:,}, d=20: preconditioner {prepared:.0f} s, one epoch {epoch:.0f} s; "
        f"10 epochs and two full passes would take {fit / 60:.0f} min | | {epoch:.0f} | | "
        f"peak {peak:.2f} GiB, {verdict} {HOST_GIB_LIMIT:.0f} GiB |"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000, help="n of the products and of EigenPro")
    parser.add_argument("--rfm-points", type=int, default=5_000)
    parser.add_argument("--large-points", type=int, default=200_000, help="n of the memory check; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-exact", action="store_true", help="leave out the large exact solve (6.4 GB at 20,000)")
    parser.add_argument("--output", type=Path, help="write the table there as well")
    parser.add_argument("--large-epoch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    if options.large_epoch:
        large_epoch(options.large_epoch)
        return
    n, rounds = options.points, options.rounds
    lines = [
        f"{device_name('cpu')}, 1 thread, torch {version('torch').split('+')[0]}; processor time, medians of {rounds}",
        "",
        "| work | against | seconds | its seconds | ratio |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    steps: list[Callable[[], list[str]]] = [
        lambda: product_rows(n, rounds),
        lambda: solver_row(options.rfm_points, rounds),
        lambda: rfm_row(options.rfm_points, rounds),
        lambda: eigenpro_rows(n, rounds, not options.no_exact),
    ]
    if options.large_points:
        steps.append(lambda: large_row(options.large_points))
    for step in steps:
        found = step()
        print("\n".join(found), flush=True)
        lines += found
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
