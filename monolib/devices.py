"""Which processor to compute on."""

import torch

from monolib.errors import UserError


def resolve_device(device: str) -> str:
    """ "cpu" or "cuda" for auto, cpu, cuda. Raises UserError for another name or when CUDA is asked for and absent."""
    if device not in ("auto", "cpu", "cuda"):
        raise UserError(f"device={device!r}: must be auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device='cuda': no CUDA device is available here; use auto or cpu")
    return ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
