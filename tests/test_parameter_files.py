"""Bad parameters: one clear line each, before anything is computed."""

import pytest

from monolib.errors import UserError
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig2.parameters import Fig2Parameters
from monolib.figures import FIGURES, parameter_file, profiles
from monolib.parameter_files import EXECUTION, check_parameters, notebook_parameters, read_assignment, read_yaml


@pytest.fixture
def good(root):
    return read_yaml(root / "parameters" / "smoke" / "fig1.yaml")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"widht": 5}, "widht=5: unknown parameter; did you mean width?"),
        ({"width": 2.5}, "width=2.5: input should be a valid integer"),
        ({"width": True}, "width=True: input should be a valid integer"),
        ({"width": "64"}, "width='64': is text, not a number"),
        ({"noise_std": "1e-6"}, "noise_std='1e-6': is text, not a number; YAML reads 1e-6 as text, write 1.0e-6"),
        ({"learning_rates_relu": [0.1, "1e-3"]}, "learning_rates_relu.1='1e-3': is text, not a number"),
        ({"width": 0}, "width=0: input should be greater than or equal to 1"),
        ({"width": -3}, "width=-3: input should be greater than or equal to 1"),
        ({"width": 10**7}, "width=10000000: input should be less than or equal to 1000000"),
        ({"n_train": 10**9, "dim": 4000}, "n_train=1000000000, dim=4000, width=32: need about"),
        ({"architectures": ["relu", "tanh"]}, "architectures.1='tanh': input should be 'relu', 'gelu', 'reglu' or"),
        ({"architectures": ["relu", "relu"]}, "architectures=['relu', 'relu']: must not repeat an entry"),
        ({"seeds": []}, "seeds=[]: list should have at least 1 item"),
        ({"seeds": [-1]}, "seeds.0=-1: input should be greater than or equal to 0"),
        ({"noise_std": float("nan")}, "noise_std=nan: input should be"),
        ({"start_scale": float("inf")}, "start_scale=inf: input should be"),
        ({"active_share": 1.5}, "active_share=1.5: input should be less than or equal to 1"),
        ({"dim": 3}, "dim=3: must be at least 2 · n_clusters = 4"),
        ({"device": "gpu"}, "device='gpu': input should be 'auto', 'cpu' or 'cuda'"),
        ({"profile": "../up"}, "profile='../up': must be a folder name"),
        ({"rate_unit": "balanced"}, "rate_unit='balanced': input should be 'weights' or 'width_aware'"),
        (
            {"variations": [{"start_scale": "1e-1", "readout_ratio": 1.0, "rate_unit": "weights"}]},
            "variations.0.start_scale='1e-1': is text, not a number",
        ),
        (
            {"variations": [{"start_scale": 1.0, "readout_ratio": 1.0, "rate_unit": "mup"}]},
            "variations.0.rate_unit='mup': input should be 'weights' or 'width_aware'",
        ),
        ({"variations": [1.0]}, "variations.0=1.0: input should be a valid dictionary"),
        ({"width": None}, "width=None: input should be a valid integer"),
    ],
)
def test_each_bad_value_gives_one_clear_line(good, change, line):
    with pytest.raises(UserError) as caught:
        check_parameters(Fig1Parameters, good | change)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_a_missing_value_and_several_problems_at_once(good):
    del good["width"]
    with pytest.raises(UserError) as caught:
        check_parameters(Fig1Parameters, good | {"dim": 2.5, "typo": 1})
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "width: has no value" in lines


def test_cuda_is_refused_where_there_is_none(good, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match=r"^device='cuda': no CUDA device is available here; use auto or cpu$"):
        check_parameters(Fig1Parameters, good | {"device": "cuda"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width: 3\nwidth: 4\n", "width: given more than once"),
        ("width: [1, 2\n", "parameters.yaml"),
        ("- 1\n", "must hold `name: value` lines"),
        ("", "must hold `name: value` lines"),
        ("x: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "parameters.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"parameters\.yaml") as caught:
        read_yaml(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"absent\.yaml: .*No such file"):
        read_yaml(tmp_path / "absent.yaml")


def test_assignments_read_like_the_files():
    assert read_assignment("width=256") == ("width", 256)
    assert read_assignment("seeds=[0, 1]") == ("seeds", [0, 1])
    assert read_assignment("noise_std=1e-6") == ("noise_std", "1e-6")  # refused later, as in a file
    for bad in ("width", "=3", "width=[1"):
        with pytest.raises(UserError):
            read_assignment(bad)


def test_notebook_names_are_parameters_and_nothing_else(good):
    cell = "\n".join(f"{name} = {value!r}" for name, value in good.items())
    own_code = "first = 1\nfor i in range(3):\n    records = [i]"
    later = {"first": 1, "records": [2], "i": 2, "title": "a"}
    history = ["", cell, "check()", own_code, "title = 'a'"]
    assert notebook_parameters(Fig1Parameters, good | later | {"In": history}).width == good["width"]
    for typo in ("# Parameters\nwidht = 5", f"{cell}\nwidht = 5"):
        with pytest.raises(UserError, match="widht=5: unknown parameter"):
            notebook_parameters(Fig1Parameters, good | later | {"In": [*history, typo], "widht": 5})


def test_parameters_are_frozen_and_know_their_identity(smoke):
    parameters = smoke()
    with pytest.raises(ValueError, match="frozen"):
        parameters.width = 3
    assert smoke(n_jobs=2, device="cpu", stack=4).identity() == parameters.identity()
    assert smoke(width=33).identity() != parameters.identity()
    assert set(EXECUTION) - {"only_finished"} <= set(Fig1Parameters.model_fields)
    values = read_yaml(parameter_file("fig2", "smoke"))
    whole, part = (check_parameters(Fig2Parameters, values | {"only_finished": flag}) for flag in (False, True))
    assert part.identity() == whole.identity()
    assert (whole.computes_missing_cells, part.computes_missing_cells) == (True, False)


def test_every_parameter_file_is_valid_and_named_after_its_folder(root):
    found = list((root / "parameters").glob("*/*.yaml"))
    assert {f.stem for f in found} == set(FIGURES)
    for file in found:
        parameters = check_parameters(FIGURES[file.stem].model, read_yaml(file))
        assert parameters.profile == file.parent.name
    assert profiles("fig1") == ["smoke", "small", "paper"]
