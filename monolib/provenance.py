"""Where a result comes from: code, libraries and machine, without a user's or a host's name."""

import functools
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

import monolib


@functools.cache
def code_version() -> dict[str, str | bool | None]:
    """Package version, git commit and whether the tree had uncommitted changes (None outside a git clone)."""
    root = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(root), *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    changes = git("status", "--porcelain", "--", "monolib")
    return {
        "monolib": monolib.__version__,
        "commit": git("rev-parse", "HEAD"),
        "uncommitted_changes": None if changes is None else bool(changes),
    }


def device_name(device: str) -> str:
    """Name of the processor ("cpu") or of the CUDA device."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    cpuinfo = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in _lines(cpuinfo) if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def provenance(device: str, seconds: float) -> dict[str, object]:
    """Record to keep with a result: code, torch and numpy versions, device, threads, wall seconds.

    The code is as it was at the first call in this process of `code_version`.  seconds: since the last resume.
    """
    return {
        **code_version(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
        "device": device,
        "device_name": device_name(device),
        "threads": torch.get_num_threads(),
        "seconds": round(seconds, 3),
    }
