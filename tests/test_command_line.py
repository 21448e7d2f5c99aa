"""The command line, run as a user runs it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from monolib.command_line import main
from monolib.figures import FIGURES
from monolib.run_figure import figure_parameters


def monolib(*arguments, cwd, **options):
    command = [sys.executable, "-m", "monolib", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, **options)


def folders(tmp_path):
    return ("--set", f"results_folder={tmp_path / 'results'}", "--set", f"cache_folder={tmp_path / 'cells'}")


def test_run_computes_then_finds_everything_done(tmp_path):
    arguments = ("run", "fig1", "--profile", "smoke", *folders(tmp_path))
    first = monolib(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "9/9 cells" in first.stderr
    assert "F1.c" in first.stdout
    folder = tmp_path / "results" / "smoke" / "fig1"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "01_specialized_neurons.ipynb" in before
    second = monolib(*arguments, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "cells |" not in second.stderr
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == set()
    notebook = json.loads(before["01_specialized_neurons.ipynb"])
    assert "papermill" not in notebook["metadata"]


def test_changed_parameters_get_a_folder_of_their_own(root):
    entry = FIGURES["fig1"]
    assert figure_parameters(entry, "smoke").profile == "smoke"
    changed = figure_parameters(entry, "smoke", ["width=16", "seeds=[1, 2]"])
    assert (changed.profile, changed.width, changed.seeds) == ("smoke+width=16+seeds=1,2", 16, [1, 2])
    assert figure_parameters(entry, "smoke", ["width=16", "profile=mine"]).profile == "mine"
    assert figure_parameters(entry, "smoke", ["n_jobs=2"]).profile == "smoke"
    long = figure_parameters(
        entry, "smoke", ["variations=[{start_scale: 1.0, readout_ratio: 0.1, rate_unit: weights}]"]
    )
    assert re.fullmatch(r"smoke\+variations=[0-9a-f]{8}", long.profile)
    assert figure_parameters(entry, "smoke", ["width=32"]).profile == "smoke"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["run", "fig9"],
            "monolib: figure='fig9': must be one of fig1, kernels, fig2, fig4, theorem1, theorem2, fig3, fig5, fig6, "
            "fig7",
        ),
        (
            ["run", "fig1", "--profile", "huge"],
            "monolib: profile='huge': must be one of smoke, small, paper for fig1",
        ),
        (["run", "fig1", "--set", "widht=3"], "monolib: widht=3: unknown parameter; did you mean width?"),
        (
            ["run", "fig1", "--set", "width=8", "--set", "width=9"],
            "monolib: width=8 width=9: a parameter is given more",
        ),
        (["run", "fig1", "--profile", "../parameters/smoke"], "monolib: profile='../parameters/smoke': must be one of"),
        (["run", "fig1", "--set", "results_folder=~nobody0/x"], "monolib: '~nobody0/x': is not a usable path"),
        (["run", "fig1", "--set", "width"], "monolib: 'width': must be name=value"),
        (["run", "fig1", "--set", "results_folder=/proc/none"], "monolib: /proc/none/small/fig1: cannot be written"),
        (["compare", "fig1", "--profile", "huge"], "monolib: profile='huge'"),
    ],
)
def test_bad_requests_end_with_one_line_and_status_1(capsys, arguments, line):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(line)
    assert error.count("\n") == 1


def test_help_and_list(tmp_path):
    assert "--set" in monolib("run", "--help", cwd=tmp_path).stdout
    listed = monolib("list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "fig1, also as fig5" in listed.stdout
    for profile in ("smoke", "small", "paper"):
        assert f"  {profile}" in listed.stdout


def test_claims_in_every_format(capsys):
    for style in ("text", "markdown", "json"):
        assert main(["claims", "--format", style]) == 0
        assert "F1.a" in capsys.readouterr().out


def test_compare_against_the_committed_results(tmp_path, root):
    """In a clone: nothing changed is identical, a changed number is found, uncommitted results are said to be so."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(root), str(clone)], check=True)
    shutil.copytree(root / "monolib", clone / "monolib", dirs_exist_ok=True)
    shutil.copytree(root / "parameters", clone / "parameters", dirs_exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(clone)}
    same = monolib("compare", "fig1", "--profile", "small", cwd=clone, env=environment)
    assert same.returncode == 0, same.stderr
    assert "table.csv: identical" in same.stdout
    assert "0 of 32 cells are computed here" in same.stdout
    table = clone / "results" / "small" / "fig1" / "table.csv"
    lines = table.read_text().splitlines()
    fields = lines[1].split(",")
    fields[3] = str(int(fields[3]) + 7)
    table.write_text("\n".join([lines[0], ",".join(fields), *lines[2:]]) + "\n")
    changed = monolib("compare", "fig1", "--profile", "small", cwd=clone, env=environment)
    assert "table.csv: largest deviation 7 (row 1, column active)" in changed.stdout
    runs = table.with_name("runs.csv")
    runs.write_text(runs.read_text().replace("20000,20000,max_steps", "19999,20000,max_steps"))
    table.with_name("curves.csv").write_text("")
    table.with_name("neurons.csv").unlink()
    odd = monolib("compare", "fig1", "--profile", "small", cwd=clone, env=environment)
    assert odd.returncode == 0, odd.stderr
    for line in (
        "runs.csv: largest deviation 1 ",
        "curves.csv: No columns",
        "neurons.csv: is committed, but not there",
    ):
        assert line in odd.stdout
    table.with_name("new.csv").write_text("a\n1\n")
    uncommitted = monolib("compare", "fig1", "--profile", "small", cwd=clone, env=environment)
    assert uncommitted.returncode == 1
    assert "is not committed" in uncommitted.stderr


def process_group(leader):
    """Processes of the group that `leader` leads, zombies left out."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, group, state in rows if int(group) == leader and not state.startswith("Z")]


def test_ctrl_c_while_the_notebook_executes_is_clean_too(tmp_path):
    command = [sys.executable, "-m", "monolib", "run", "fig1", "--profile", "smoke", *folders(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, bufsize=1
    )
    assert "executing" in process.stdout.readline()
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "interrupted; what is computed is kept" in error
    assert "Traceback" not in error
    assert not list(tmp_path.glob("results/smoke/fig1/*.ipynb"))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_ends_with_its_workers_and_goes_on_from_there(tmp_path, sent):
    arguments = ["run", "fig1", "--profile", "smoke", *folders(tmp_path)]
    arguments += ["--set", "profile=long", "--set", "steps_relu=20000", "--set", 'architectures=["relu"]']
    command = [sys.executable, "-m", "monolib", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    cells = Path(tmp_path / "cells")
    deadline = time.monotonic() + 60
    while not list(cells.glob("*.checkpoint")) and time.monotonic() < deadline:
        time.sleep(0.05)
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # what a terminal does
    else:
        process.send_signal(sent)  # what a batch system or another user does
    _, error = process.communicate(timeout=60)  # its workers' ends of the pipe are closed too
    if sent != signal.SIGKILL:
        assert process.returncode == 130, error
        assert "interrupted; what is computed is kept" in error
        assert "Traceback" not in error
    deadline = time.monotonic() + 40
    while process_group(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not process_group(process.pid)
    kept = {path.name: path.stat().st_size for path in cells.glob("*.checkpoint")}
    assert kept
    if sent == signal.SIGINT:
        again = monolib(*arguments, cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert not list(cells.glob("*.checkpoint"))
