"""Training: the optimiser, the loop, stop rules, checkpoints, and independence of stacked networks."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from reference_network import ReferenceNetwork

from monolib.adam import adam_step, bias_corrections, cosine_rate
from monolib.gradients import append_one
from monolib.laws import axis_aligned_law
from monolib.networks import ARCHITECTURES, NetworkShape, initial_parameters
from monolib.random_streams import generator
from monolib.stopping import StopRule, evaluations_since_improvement
from monolib.training import NetworkStack, flushed_denormals, train_networks
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData, TrainingRun


def small_data(n=500, seed=0):
    law = axis_aligned_law(n_clusters=2, dim=5)
    train, validation = law.sample(n, generator(seed, "train")), law.sample(200, generator(seed, "validation"))
    return TrainingData(train.x, train.y, validation.x, validation.y)


def config(**changes):
    values = dict(
        architecture="relu",
        width=16,
        batch_size=64,
        learning_rate=0.02,
        max_steps=60,
        seed=0,
        evaluate_every=20,
    )
    return TrainingConfig(**(values | changes))


def test_adam_and_cosine_equal_torch():
    draw = torch.Generator().manual_seed(0)
    flat = torch.randn(2, 9, dtype=torch.float64, generator=draw)
    reference = [flat[r].clone().requires_grad_() for r in range(2)]
    rates = (0.1, 0.3)
    optimisers = [torch.optim.Adam([p], lr=lr) for p, lr in zip(reference, rates, strict=True)]
    schedules = [
        torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=30, eta_min=lr / 10)
        for o, lr in zip(optimisers, rates, strict=True)
    ]
    moments, scratch = torch.zeros(2, *flat.shape, dtype=torch.float64), torch.empty_like(flat)
    for step in range(30):
        gradient = torch.randn(flat.shape, dtype=flat.dtype, generator=draw)
        rate = torch.tensor([[cosine_rate(step, 30, lr, lr / 10)] for lr in rates], dtype=torch.float64)
        corrections = torch.tensor(bias_corrections(step), dtype=torch.float64).reshape(2, 1, 1).expand(2, 2, 1)
        adam_step(flat, gradient, moments, rate, corrections, scratch)
        for r in range(2):
            reference[r].grad = gradient[r]
            optimisers[r].step()
            schedules[r].step()
    torch.testing.assert_close(flat, torch.stack(reference).detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_whole_loop_equals_a_plain_torch_loop(architecture):
    """Same batches, nn.Module, autograd, torch.optim.Adam, in float64: the float32 loop stays within its rounding."""
    data, settings = small_data(), config(architecture=architecture, max_steps=40, evaluate_every=40)
    run = TrainingRun(settings, data, torch.device("cpu"))
    reference = ReferenceNetwork(run.shape, run.flat.double())
    optimiser = torch.optim.Adam(reference.parameters(), lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=40, eta_min=settings.learning_rate / 10)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    for _ in range(40):
        batch = run.batch_indices()
        run.step += 1
        optimiser.zero_grad()
        (reference(x[batch]) - y[batch]).square().mean().backward()
        optimiser.step()
        schedule.step()
    trained = train_networks([settings], [data])[0]
    assert trained.best_step == 40
    expected = reference.flat()
    error = (torch.from_numpy(trained.best).double() - expected).abs().max() / expected.abs().max()
    assert float(error) < 2e-3


def test_width_aware_rate_moves_weights_less_and_the_output_bias_alike():
    data = small_data()
    shape = NetworkShape("relu", 5, 16)
    start = initial_parameters(shape, 1.0, 1.0, "signs", generator(0, "initialisation")).numpy()
    moved = {}
    for unit in ("weights", "width_aware"):
        settings = config(rate_unit=unit, max_steps=1, evaluate_every=1)
        moved[unit] = np.abs(train_networks([settings], [data])[0].best - start)
    used = moved["weights"][:-1] > 1e-3  # a first Adam step has the size of the rate wherever the gradient is not 0
    np.testing.assert_allclose(moved["weights"][:-1][used], 0.02, rtol=1e-2)
    np.testing.assert_allclose(moved["width_aware"][:-1][used], 0.02 / 4, rtol=1e-2)
    assert moved["width_aware"][-1] == pytest.approx(moved["weights"][-1]) == pytest.approx(0.02, rel=1e-3)


def test_each_network_of_a_stack_is_bit_for_bit_what_it_is_alone():
    settings = [
        config(seed=0),
        config(seed=1, learning_rate=0.05, max_steps=45),
        config(seed=2, evaluate_every=7, stop=StopRule(target_mse=10.0)),
    ]
    data = [small_data(seed=0), small_data(n=700, seed=1), small_data(seed=0)]
    together = train_networks(settings, data)
    for one, its_data, result in zip(settings, data, together, strict=True):
        alone = train_networks([one], [its_data])[0]
        np.testing.assert_array_equal(result.best, alone.best)
        assert result.history == alone.history
        assert (result.stop_reason, result.steps) == (alone.stop_reason, alone.steps)
    assert [r.steps for r in together] == [60, 45, 7]


def test_networks_of_unlike_shape_are_refused():
    with pytest.raises(ValueError, match="must share"):
        train_networks([config(), config(width=17)], [small_data()] * 2)
    with pytest.raises(ValueError, match="must agree"):
        train_networks([config()], [])


def test_training_lowers_the_error_to_what_the_network_can_reach():
    settings = config(width=64, max_steps=1500, evaluate_every=100, learning_rate=0.01)
    result = train_networks([settings], [small_data(n=4000)])[0]
    errors = [e.validation_mse for e in result.history]
    assert min(errors) < 0.1  # a constant has 1
    assert result.best_step == result.history[int(np.argmin(errors))].step


def test_selection_on_the_full_training_error():
    data = small_data()
    settings = config(select="training")
    result = train_networks([settings], [TrainingData(data.x, data.y)])[0]
    reference = ReferenceNetwork(NetworkShape("relu", 5, 16), torch.from_numpy(result.best))
    output = reference(torch.from_numpy(data.x).float()).detach()
    mse = float((output - torch.from_numpy(data.y)).square().mean())
    kept = next(e for e in result.history if e.step == result.best_step)
    assert kept.train_mse == pytest.approx(mse, rel=1e-4) == min(e.train_mse for e in result.history)
    assert math.isnan(kept.validation_mse)
    with pytest.raises(ValueError, match="needs a validation set"):
        train_networks([config()], [TrainingData(data.x, data.y)])


def test_a_run_that_leaves_the_finite_numbers_is_recorded_and_the_others_go_on():
    wild, tame = config(learning_rate=1e30), config(seed=1)
    results = train_networks([wild, tame], [small_data()] * 2)
    assert [r.stop_reason for r in results] == ["diverged", "max_steps"]
    assert results[0].steps == 20
    assert math.isnan(results[0].history[-1].train_mse)
    assert np.isfinite(results[0].best).all()
    np.testing.assert_array_equal(results[1].best, train_networks([tame], [small_data()])[0].best)


def test_stop_rules():
    assert StopRule().reason(10**6, [1.0] * 1000) is None
    rule = StopRule(min_steps=100, target_mse=4e-4, patience=3)
    assert rule.reason(50, [1e-5]) is None
    assert rule.reason(100, [5e-4, 4e-4]) == "target"
    assert rule.reason(100, [1.0, 0.9996, 0.9996, 0.9996]) == "plateau"
    assert rule.reason(100, [1.0, 0.9996, 0.9994, 0.9994]) is None  # small gains that add up past 5e-4 count
    assert rule.reason(10, [1.0, math.nan]) == "diverged"
    assert evaluations_since_improvement([3.0, 2.0, 2.0, 1.0, 1.5, 1.2], 5e-4) == 2
    assert evaluations_since_improvement([], 5e-4) == 0


def test_training_stops_by_the_rules():
    data = small_data()
    target = config(stop=StopRule(min_steps=30, target_mse=100.0))
    plateau = config(max_steps=200, learning_rate=1e-9, evaluate_every=10, stop=StopRule(patience=3, min_steps=20))
    first, second = train_networks([target, plateau], [data] * 2)
    assert (first.stop_reason, first.steps) == ("target", 40)
    assert second.stop_reason == "plateau"
    assert second.steps < 200


def test_batches_cover_an_epoch_once_and_are_reshuffled():
    run = TrainingRun(config(batch_size=100), small_data(n=450), torch.device("cpu"))
    epochs = []
    for _ in range(2):
        batches = []
        for _ in range(4):
            batches.append(run.batch_indices().tolist())
            run.step += 1
        flat = [i for batch in batches for i in batch]
        assert len(set(flat)) == 400
        epochs.append(flat)
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(("n", "width"), [(10, 16), (1, 1), (500, 1)])
def test_fewer_points_than_a_batch_and_width_one(n, width):
    result = train_networks([config(width=width, batch_size=64)], [small_data(n=n)])[0]
    assert result.steps == 60
    assert np.isfinite(result.best).all()


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_training import config, small_data
from monolib.training import train_networks
settings = [config(seed=s, width=64, max_steps=4000, evaluate_every=50) for s in (0, 1)]
train_networks(settings, [small_data()] * 2, checkpoints=[Path(p) for p in {paths!r}])
"""


def test_kill_and_resume_give_the_weights_of_an_uninterrupted_run(tmp_path, root):
    settings = [config(seed=s, width=64, max_steps=4000, evaluate_every=50) for s in (0, 1)]
    paths = [tmp_path / f"{s}.checkpoint" for s in (0, 1)]
    code = KILLED.format(tests=str(root / "tests"), paths=[str(p) for p in paths])
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not all(p.exists() for p in paths) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    process.kill()
    process.wait()
    resumed_at = TrainingRun(settings[0], small_data(), torch.device("cpu"), paths[0]).step
    assert 0 < resumed_at < 4000
    resumed = train_networks(settings, [small_data()] * 2, checkpoints=paths)
    straight = train_networks(settings, [small_data()] * 2)
    for a, b in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(a.best, b.best)
        assert a.history == b.history


def test_checkpoint_of_another_configuration_is_refused_and_a_truncated_one_starts_again(tmp_path, caplog):
    path = tmp_path / "run.checkpoint"
    train_networks([config()], [small_data()], checkpoints=[path])
    with pytest.raises(ValueError, match="another configuration"):
        train_networks([config(seed=1)], [small_data()], checkpoints=[path])
    path.write_bytes(path.read_bytes()[:300])
    result = train_networks([config()], [small_data()], checkpoints=[path])[0]
    assert "starts again from step 0" in caplog.text
    np.testing.assert_array_equal(result.best, train_networks([config()], [small_data()])[0].best)


# the peak since the program started: ru_maxrss would count the process that forked it
FULL_SIZE = """
from pathlib import Path
from monolib.laws import axis_aligned_law
from monolib.random_streams import generator
from monolib.training import train_networks
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData
law = axis_aligned_law()
train, validation = law.sample(100_000, generator(0, "train")), law.sample(4096, generator(0, "validation"))
config = TrainingConfig("swiglu", width=2048, batch_size=2048, learning_rate=0.01, max_steps=3, seed=0)
train_networks([config], [TrainingData(train.x, train.y, validation.x, validation.y)])
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_memory_at_the_size_of_figure_1_stays_below_1_gb():
    result = subprocess.run([sys.executable, "-c", FULL_SIZE], capture_output=True, text=True, check=True)
    assert int(result.stdout) * 1024 < 1e9


def test_denormal_mode_is_put_back():
    tiny = torch.tensor(1e-38)
    assert float(tiny * 1e-3) > 0
    with flushed_denormals():
        assert float(tiny * 1e-3) == 0
    assert float(tiny * 1e-3) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"learning_rate": math.inf}, "learning_rate=inf"),
        ({"max_steps": 0}, "max_steps=0"),
        ({"rate_unit": "balanced"}, "rate_unit='balanced'"),
        ({"select": "test"}, "select='test'"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        config(**change)


ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.cuda
@ON_CUDA
def test_cuda_steps_do_not_wait_for_the_device():
    device = torch.device("cuda")
    stack = NetworkStack([TrainingRun(config(seed=s), small_data(), device) for s in range(2)])
    schedule = stack.schedule(20)  # several epochs of 7 batches
    torch.cuda.set_sync_debug_mode("error")
    try:
        for numbers in schedule:
            stack.step(numbers)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.cuda
@ON_CUDA
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_cuda_agrees_with_cpu(architecture):
    settings = [config(architecture=architecture, seed=s) for s in range(3)]
    cpu, cuda = (train_networks(settings, [small_data()] * 3, device) for device in ("cpu", "cuda"))
    for a, b in zip(cpu, cuda, strict=True):
        np.testing.assert_allclose(a.history[-1].validation_mse, b.history[-1].validation_mse, rtol=1e-2)


def test_append_one():
    assert append_one(torch.zeros(2, 3)).tolist() == [[0.0, 0.0, 0.0, 1.0]] * 2
