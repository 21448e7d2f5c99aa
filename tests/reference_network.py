"""An independent implementation of the four networks: torch modules, autograd, torch's own optimiser and schedule."""

import torch
from torch import Tensor, nn

from monolib.networks import NetworkShape

PHI = {"relu": nn.ReLU(), "reglu": nn.ReLU(), "gelu": nn.GELU(), "swiglu": nn.SiLU()}


class ReferenceNetwork(nn.Module):
    """One hidden layer out of nn.Linear, started from the flat parameters of a monolib network."""

    def __init__(self, shape: NetworkShape, flat: Tensor) -> None:
        super().__init__()
        self.phi = PHI[shape.architecture]
        parts = shape.views(flat[None])
        self.weight = _linear(parts["weight"][0])
        self.gate = _linear(parts["gate"][0]) if "gate" in parts else None
        self.readout = nn.Linear(shape.width, 1).to(flat.dtype)
        self.readout.weight.data = parts["readout"].clone()
        self.readout.bias.data = parts["output_bias"][0].clone()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.phi(self.weight(x)) if self.gate is None else self.phi(self.gate(x)) * self.weight(x)
        return self.readout(hidden).squeeze(1)

    def flat(self, gradient: bool = False) -> Tensor:
        """Parameters (or gradients) in the order of `NetworkShape.views`."""
        layers = [self.weight, *([self.gate] if self.gate is not None else [])]
        tensors = [t for layer in layers for t in (layer.weight, layer.bias)]
        tensors += [self.readout.weight, self.readout.bias]
        chosen = [(t.grad if gradient else t.detach()) for t in tensors]
        return torch.cat([(t.T if t.dim() == 2 and len(t) > 1 else t).reshape(-1) for t in chosen])


def _linear(block: Tensor) -> nn.Linear:
    layer = nn.Linear(block.shape[0] - 1, block.shape[1]).to(block.dtype)
    layer.weight.data, layer.bias.data = block[:-1].T.clone(), block[-1].clone()
    return layer
