"""Networks and their hand-derived gradients against autograd."""

import numpy as np
import pytest
import torch
from reference_network import PHI, ReferenceNetwork

from monolib import gradients
from monolib.gradients import append_one, loss_gradient, predict
from monolib.networks import ARCHITECTURES, Network, NetworkShape, initial_parameters

EVERY_ARCHITECTURE = pytest.mark.parametrize("architecture", list(ARCHITECTURES))


def random_stack(architecture, n_networks=1, dim=5, width=7, n=50, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shape = NetworkShape(architecture, dim, width)
    flat = torch.randn(n_networks, shape.n_parameters, generator=generator, dtype=dtype)
    x = append_one(torch.randn(n_networks, n, dim, generator=generator, dtype=dtype))
    y = torch.randn(n_networks, n, generator=generator, dtype=dtype)
    return shape, flat, x, y


@EVERY_ARCHITECTURE
def test_activation_and_slope_equal_autograd_far_out_too(architecture):
    z = torch.cat([torch.linspace(-40, 40, 2001, dtype=torch.float64), torch.tensor([-1e3, 0.0, 1e3]).double()])
    z.requires_grad_()
    expected = PHI[architecture](z)
    (slope,) = torch.autograd.grad(expected.sum(), z)
    value, by_hand, scratch = z.detach().clone(), torch.empty_like(z), torch.empty_like(z)
    ARCHITECTURES[architecture].activation(value, by_hand, scratch)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(by_hand, slope, rtol=1e-13, atol=1e-13)


@EVERY_ARCHITECTURE
@pytest.mark.parametrize("n_networks", [1, 3])
@pytest.mark.parametrize("rows", [16, 50, 64])
def test_gradient_equals_autograd(architecture, n_networks, rows, monkeypatch):
    monkeypatch.setattr(gradients, "block_rows", lambda *_: rows)  # one short last block, one whole block, one too long
    shape, flat, x, y = random_stack(architecture, n_networks)
    by_hand = torch.full_like(flat, torch.nan)
    mse = loss_gradient(shape, flat, x, y, by_hand)
    for r in range(n_networks):
        reference = ReferenceNetwork(shape, flat[r])
        loss = (reference(x[r, :, :-1]) - y[r]).square().mean()
        loss.backward()
        expected = reference.flat(gradient=True)
        assert float(mse[r]) == pytest.approx(loss.item(), rel=1e-12)
        assert float((by_hand[r] - expected).abs().max() / expected.abs().max()) < 1e-10


@EVERY_ARCHITECTURE
def test_gradient_equals_finite_differences(architecture):
    shape, flat, x, y = random_stack(architecture)
    by_hand = torch.empty_like(flat)
    loss_gradient(shape, flat, x, y, by_hand)
    for i in range(0, shape.n_parameters, 5):
        step = torch.zeros_like(flat)
        step[0, i] = 1e-6
        ahead, behind = ((predict(shape, flat + s, x) - y).square().mean() for s in (step, -step))
        assert float(by_hand[0, i]) == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-4, abs=1e-5)


@EVERY_ARCHITECTURE
def test_predictions_agree_between_stack_single_network_and_reference(architecture):
    shape, flat, x, _ = random_stack(architecture, n_networks=2)
    stacked = predict(shape, flat, x)
    for r in range(2):
        inputs = x[r, :, :-1]
        expected = ReferenceNetwork(shape, flat[r])(inputs).detach()
        torch.testing.assert_close(stacked[r], expected, rtol=1e-12, atol=1e-12)
        network = Network.from_flat(shape, flat[r].numpy())
        np.testing.assert_allclose(network.predict(inputs.numpy()), expected.numpy(), rtol=1e-12, atol=1e-12)


@EVERY_ARCHITECTURE
def test_start_is_balanced_with_the_stated_sizes(architecture):
    shape, rng = NetworkShape(architecture, dim=30, width=4000), np.random.default_rng(0)
    p = 1 / 3 if architecture in ("reglu", "swiglu") else 1 / 2
    network = Network.from_flat(shape, initial_parameters(shape, 0.5, 2.0, "gaussian", rng).numpy())
    for weight in network.first_layer.values():
        assert np.linalg.norm(weight, axis=1).mean() == pytest.approx(0.5 * 4000**-p, rel=0.02)
    assert np.sqrt(np.mean(np.square(network.readout))) == pytest.approx(1.0 * 4000**-p, rel=0.05)
    assert not network.bias.any()
    signs = initial_parameters(shape, 0.5, 2.0, "signs", rng)
    readout = shape.views(signs[None])["readout"][0].numpy()
    np.testing.assert_allclose(np.abs(readout), 4000**-p, rtol=1e-6)
    assert abs((readout > 0).mean() - 0.5) < 0.05


def test_bad_shapes_and_starts_are_refused():
    with pytest.raises(ValueError, match="architecture='tanh'"):
        NetworkShape("tanh", 3, 3)
    with pytest.raises(ValueError, match="width=0"):
        NetworkShape("relu", 3, 0)
    shape, rng = NetworkShape("relu", 3, 3), np.random.default_rng(0)
    with pytest.raises(ValueError, match="start_scale=0"):
        initial_parameters(shape, 0.0, 1.0, "signs", rng)
    with pytest.raises(ValueError, match="readout_start='zeros'"):
        initial_parameters(shape, 1.0, 1.0, "zeros", rng)
