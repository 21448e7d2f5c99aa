"""How much memory there is, and a refusal, before the work starts, of what would not fit."""

import psutil
import torch

from monolib.errors import UserError

GIB = 2**30


def available_memory(device: str) -> int:
    """Free memory of "cpu" (the host's) or "cuda" (the device's), in bytes."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return int(psutil.virtual_memory().available)


def memory_budget(device: str, memory_gib: float | None) -> int:
    """Bytes that a fit may use: `memory_gib`, or 80 % of what is free when it is None.

    Raises UserError for a budget that is not a number > 0.
    """
    if memory_gib is None:
        return int(0.8 * available_memory(device))
    if not memory_gib > 0:
        raise UserError(f"memory_gib={memory_gib}: must be a number > 0, or None for 80 % of what is free")
    return int(memory_gib * GIB)


def require_memory(needed: float, budget: int, what: str) -> None:
    """Raises UserError that names `what`, the bytes `needed` and the `budget` when the former exceed the latter."""
    if needed > budget:
        raise UserError(
            f"{what}: needs about {needed / GIB:.2f} GiB, the budget is {budget / GIB:.2f} GiB (memory_gib)"
        )
