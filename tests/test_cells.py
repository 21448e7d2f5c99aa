"""Cells: atomic files, damage, locks, resume after kill -9, independence of the number of workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from monolib.atomic_files import read_arrays, write_arrays, write_text
from monolib.cells import Cell, CellRecord, CellStore
from monolib.devices import resolve_device
from monolib.errors import UserError
from monolib.fig1.runs import planned_runs
from monolib.sweep import grouped_cells, run_cells


def some_record():
    return CellRecord({"mse": 0.5}, {"parameters": np.arange(3.0)}, {"seconds": 1.0})


def test_a_cell_is_found_again_by_its_configuration(tmp_path):
    store, cell = CellStore(tmp_path), Cell("network", {"a": 1, "b": [1, 2]})
    assert store.read(cell) is None
    store.write(cell, some_record())
    same = Cell("network", {"b": [1, 2], "a": 1})
    assert same.key == cell.key
    record = store.read(same)
    assert record.result == {"mse": 0.5}
    np.testing.assert_array_equal(record.arrays["parameters"], np.arange(3.0))
    assert store.read(Cell("network", {"a": 2, "b": [1, 2]})) is None


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_a_truncated_cell_is_reported_and_missing(tmp_path, suffix, caplog):
    store, cell = CellStore(tmp_path), Cell("network", {"a": 1})
    store.write(cell, some_record())
    path = store.file(cell, suffix)
    path.write_bytes(path.read_bytes()[:-20])
    assert store.read(cell) is None
    assert "is damaged" in caplog.text


def test_a_cell_of_another_configuration_under_the_same_name_is_not_used(tmp_path, caplog):
    store, cell, other = CellStore(tmp_path), Cell("network", {"a": 1}), Cell("network", {"a": 2})
    store.write(other, some_record())
    for suffix in ("json", "npz"):
        os.rename(store.file(other, suffix), store.file(cell, suffix))
    assert store.read(cell) is None
    assert "another configuration" in caplog.text


def test_arrays_that_could_run_code_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, parameters=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="not a readable array file"):
        read_arrays(path)
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "absent.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, x=np.zeros(2))
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(path, x=np.array([object()]))
    np.testing.assert_array_equal(read_arrays(path)["x"], np.zeros(2))
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


KILL_DURING_WRITE = """
from pathlib import Path
import sys
from monolib.atomic_files import write_text
path = Path(sys.argv[1])
while True:
    for letter in "ab":
        write_text(path, letter * 2_000_000)
"""


def test_kill_during_a_write_leaves_a_whole_file(tmp_path):
    path = tmp_path / "text"
    write_text(path, "a" * 2_000_000)
    for delay in (0.05, 0.11, 0.17):
        process = subprocess.Popen([sys.executable, "-c", KILL_DURING_WRITE, str(path)])
        before = path.stat().st_mtime_ns
        deadline = time.monotonic() + 60
        while path.stat().st_mtime_ns == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        text = path.read_text()
        assert len(text) == 2_000_000
        assert len(set(text)) == 1


def test_results_do_not_depend_on_workers_or_stacking(tmp_path, smoke):
    cells = [run.cell for run in planned_runs(smoke())]
    plain = run_cells(cells, CellStore(tmp_path / "1"), n_jobs=1)
    other = run_cells(cells, CellStore(tmp_path / "2"), n_jobs=2, stack=3)
    for a, b in zip(plain, other, strict=True):
        assert a.result == b.result
        np.testing.assert_array_equal(a.arrays["parameters"], b.arrays["parameters"])


def test_finished_cells_are_not_computed_again_and_a_damaged_one_is(tmp_path, smoke):
    cells = [run.cell for run in planned_runs(smoke(architectures=["relu"]))]
    store = CellStore(tmp_path)
    first = run_cells(cells, store, n_jobs=1)
    times = {cell.key: store.file(cell, "json").stat().st_mtime_ns for cell in cells}
    damaged = store.file(cells[0], "json")
    damaged.write_text(damaged.read_text()[:100])
    second = run_cells(cells, store, n_jobs=1)
    assert [r.result for r in first] == [r.result for r in second]
    again = {cell.key for cell in cells if store.file(cell, "json").stat().st_mtime_ns != times[cell.key]}
    assert again == {cells[0].key}


def test_groups_keep_unlike_networks_apart_and_respect_the_stack(smoke):
    parameters = smoke(seeds=[0, 1, 2])
    cells = [run.cell for run in planned_runs(parameters)]
    groups = grouped_cells(cells, stack=4)
    assert sorted(c.key for g in groups for c in g) == sorted(c.key for c in cells)
    assert max(map(len, groups)) == 4
    for group in groups:
        assert len({cell.config["training"]["architecture"] for cell in group}) == 1


SWEEP = """
import sys, logging
from pathlib import Path
from monolib.cells import CellStore
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig1.runs import planned_runs
from monolib.parameter_files import read_yaml
from monolib.sweep import run_cells
logging.basicConfig(format="%(message)s")
if __name__ == "__main__":
    values = read_yaml(Path(sys.argv[1])) | {"steps_relu": 3000, "architectures": ["relu"]}
    cells = [run.cell for run in planned_runs(Fig1Parameters(**values))]
    print(len(run_cells(cells, CellStore(Path(sys.argv[2])), n_jobs=2)), flush=True)
"""


def start_sweep(root, folder, script):
    script.write_text(SWEEP)
    command = [sys.executable, str(script), str(root / "parameters/smoke/fig1.yaml"), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(folder, pattern):
    deadline = time.monotonic() + 60
    while not list(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"no {pattern} in time"
        time.sleep(0.01)


def test_kill_during_a_cell_loses_nothing(tmp_path, root):
    interrupted, straight = tmp_path / "interrupted", tmp_path / "straight"
    process = start_sweep(root, interrupted, tmp_path / "sweep.py")
    wait_for(interrupted, "*.checkpoint")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    unfinished = {p.stem for p in interrupted.glob("*.checkpoint")}
    assert unfinished
    for folder in (interrupted, straight):
        out, err = start_sweep(root, folder, tmp_path / "sweep.py").communicate(timeout=120)
        assert out.strip() == "3", err
    for file in straight.glob("*.json"):
        one, other = (json.loads((folder / file.name).read_text()) for folder in (interrupted, straight))
        assert one["result"] == other["result"]
        assert one["arrays_sha256"] == other["arrays_sha256"]
    assert not list(interrupted.glob("*.checkpoint"))


def test_two_runs_at_once_share_the_work(tmp_path, root):
    folder = tmp_path / "cells"
    processes = [start_sweep(root, folder, tmp_path / "sweep.py") for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in outputs] == ["3", "3"], outputs
    assert len(list(folder.glob("*.json"))) == 3


def test_a_run_waits_for_a_cell_that_another_run_computes_and_says_so(tmp_path, root, smoke):
    folder = tmp_path / "waiting"
    store, cells = CellStore(folder), [run.cell for run in planned_runs(smoke(steps_relu=3000, architectures=["relu"]))]
    with contextlib.ExitStack() as held:
        for cell in cells:
            held.enter_context(store.lock(cell))
            assert not CellStore(tmp_path).is_running(cell)
        process = start_sweep(root, folder, tmp_path / "sweep.py")
        for line in process.stderr:
            if "is being computed by another run; waiting for it" in line:
                break
        assert not list(folder.glob("*.json"))
    out, _ = process.communicate(timeout=120)
    assert out.strip() == "3"


def test_a_cache_that_cannot_be_used_is_named_before_any_work(tmp_path, smoke):
    cells = [run.cell for run in planned_runs(smoke())]
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: cannot be written"):
        run_cells(cells, CellStore(tmp_path / "file"), n_jobs=1)
    store = CellStore(tmp_path / "odd")
    store.file(cells[0], "json").mkdir(parents=True)
    with pytest.raises(UserError, match=r"\.json: cannot be read"):
        run_cells(cells, store, n_jobs=1)


def test_cells_of_another_version_are_computed_again(tmp_path, caplog, monkeypatch):
    store, cell = CellStore(tmp_path), Cell("network", {"a": 1})
    store.write(cell, some_record())
    monkeypatch.setattr("monolib.cells.CELL_VERSION", 2)
    assert store.read(cell) is None
    assert "another version" in caplog.text


def test_a_damaged_checkpoint_in_a_sweep_starts_that_cell_again(tmp_path, smoke, caplog):
    cells = [run.cell for run in planned_runs(smoke(architectures=["relu"], variations=[]))]
    store = CellStore(tmp_path)
    store.folder.mkdir(exist_ok=True)
    with open(store.file(cells[0], "checkpoint"), "wb") as stream:
        np.savez(stream, flat=np.zeros(3))
    damaged = run_cells(cells, store, n_jobs=1)
    assert "is damaged" in caplog.text
    assert [r.result for r in damaged] == [r.result for r in run_cells(cells, CellStore(tmp_path / "new"), n_jobs=1)]


def test_devices():
    assert resolve_device("cpu") == "cpu"
    with pytest.raises(UserError, match="device='tpu'"):
        resolve_device("tpu")
