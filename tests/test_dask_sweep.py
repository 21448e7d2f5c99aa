"""Sweeps on a Dask cluster: a real scheduler and worker processes on loopback, some of them killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from monolib.cells import CellStore
from monolib.command_line import main
from monolib.errors import UserError
from monolib.fig1.runs import planned_runs
from monolib.kernel_cells import kernel_cell
from monolib.mixed_link_data import MixedLinkData
from monolib.provenance import code_version
from monolib.rfm import RFMConfig
from monolib.sweep import run_cells

PATIENCE = 120.0  # seconds; a busy machine starts a worker slowly
STEPS = 8000  # of a ReLU network of the smoke profile: some seconds


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"no {what} in time"
        time.sleep(0.02)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LocalCluster:
    """Scheduler and workers as processes of their own, as on a cluster; workers write their files below `folder`."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.address = f"tcp://127.0.0.1:{free_port()}"
        port = self.address.rsplit(":", 1)[1]
        self.start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")

    def start(self, role, *arguments, **environment):
        log = open(self.folder / f"{role}-{len(self.processes)}.log", "w")  # noqa: SIM115
        command = [sys.executable, "-m", "distributed.cli." + f"dask_{role}", *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self.processes.append(process)
        return process

    def worker(self, *arguments, **environment):
        own = self.folder / f"worker-{len(self.processes)}"
        options = ("--host", "127.0.0.1", "--no-dashboard", "--memory-limit", "0", "--local-directory", str(own))
        return self.start("worker", self.address, *options, *arguments, **environment)

    def close(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    started = LocalCluster(tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory):
    """Two workers that outlive a test: one of one thread, one of several."""
    started = LocalCluster(tmp_path_factory.mktemp("lasting"))
    for threads in ("1", "3"):
        started.worker("--nthreads", threads, "--no-nanny")
    yield started
    started.close()


@pytest.fixture
def cells(smoke):
    return [run.cell for run in planned_runs(smoke(steps_relu=STEPS, architectures=["relu", "reglu"]))]


def bytes_of(store, cells):
    return [(json.loads(store.file(cell, "json").read_text())["result"], store.read(cell).arrays) for cell in cells]


def assert_same(one, other):
    for (result, arrays), (other_result, other_arrays) in zip(one, other, strict=True):
        assert result == other_result
        assert arrays.keys() == other_arrays.keys()
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], other_arrays[name])


CLIENT = """
import sys, logging
from pathlib import Path
from monolib.cells import CellStore
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig1.runs import planned_runs
from monolib.parameter_files import read_yaml
from monolib.sweep import run_cells
logging.basicConfig(format="%(message)s")
values = read_yaml(Path(sys.argv[1])) | {"steps_relu": int(sys.argv[4]), "architectures": ["relu", "reglu"]}
cells = [run.cell for run in planned_runs(Fig1Parameters(**values))]
print(len(run_cells(cells, CellStore(Path(sys.argv[2])), device="auto", scheduler=sys.argv[3])), flush=True)
"""


def start_client(root, store, address, steps):
    command = [sys.executable, "-c", CLIENT, str(root / "parameters/smoke/fig1.yaml"), str(store.folder), address]
    return subprocess.Popen([*command, str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_worker_killed_in_the_middle_loses_nothing(cluster, cells, tmp_path, root):
    """Two workers that share the cache; one that is busy with a cell is killed (no nanny restarts it); one joins."""
    store, local = CellStore(tmp_path / "shared"), CellStore(tmp_path / "local")
    run_cells(cells, local, n_jobs=1)
    for _ in range(2):
        cluster.worker("--nthreads", "1", "--no-nanny")
    with Client(cluster.address, set_as_default=False) as observer:
        observer.wait_for_workers(2, timeout=PATIENCE)
        processes = observer.run(os.getpid)
        client = start_client(root, store, cluster.address, STEPS)
        until(lambda: list(store.folder.glob("*.checkpoint")) or client.poll() is not None, "checkpoint")
        (unfinished,) = list(store.folder.glob("*.checkpoint"))[:1]
        key = unfinished.stem
        busy = [worker for worker, tasks in observer.processing().items() if any(key in str(task) for task in tasks)]
    (victim,) = [process for process in cluster.processes if process.pid == processes[busy[0]]]
    victim.kill()
    victim.wait()
    assert not (store.folder / f"{key}.json").exists()
    late = cluster.worker("--nthreads", "2", "--no-nanny")
    out, error = client.communicate(timeout=PATIENCE)
    assert client.returncode == 0, error
    assert f"worker {busy[0]} is gone; cell {key} goes to another one" in error
    assert out.splitlines()[-1] == str(len(cells))
    assert late.poll() is None
    assert_same(bytes_of(store, cells), bytes_of(local, cells))
    for suffix in ("json", "npz"):
        assert len(list(store.folder.glob(f"*.{suffix}"))) == len(cells)
    assert not list(store.folder.glob("*.checkpoint"))
    assert not list(store.folder.glob(".*.token"))


def test_workers_that_do_not_see_the_cache_return_their_records(lasting, cells, tmp_path, monkeypatch, capsys):
    """The cache's path is relative, and the workers have another working folder: there is no such folder for them."""
    monkeypatch.chdir(tmp_path)
    store, local = CellStore(Path("cells")), CellStore(tmp_path / "local")
    run_cells(cells, store, device="auto", scheduler=lasting.address)
    run_cells(cells, local, n_jobs=1)
    assert_same(bytes_of(CellStore(tmp_path / "cells"), cells), bytes_of(local, cells))
    assert "2 workers" in capsys.readouterr().out
    theirs = {path.name for path in lasting.folder.glob("worker-*/**/monolib-cells/*.json")}
    assert theirs == {f"{cell.key}.json" for cell in cells}
    assert not list(tmp_path.glob("cells/*.lock"))


def test_an_error_in_a_cell_is_the_clients_error(lasting, tmp_path):
    """An exact fit that needs 640 GB is refused on the worker."""
    cell = kernel_cell("global", MixedLinkData(1, 200_000, 10, 0), RFMConfig(solver="exact"))
    with pytest.raises(UserError, match=r"an exact kernel fit of n=200000 points: needs about"):
        run_cells([cell], CellStore(tmp_path), device="cpu", scheduler=lasting.address)
    assert not list(tmp_path.glob("*.json"))


def test_workers_with_other_code_are_named_before_any_work(lasting, cells, tmp_path, monkeypatch):
    here = code_version() | {"monolib": "9.9.9"}
    monkeypatch.setattr("monolib.dask_sweep.code_version", lambda: here)
    with pytest.raises(UserError) as caught:
        run_cells(cells, CellStore(tmp_path), device="cpu", scheduler=lasting.address)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("worker tcp://127.0.0.1:")
        assert f"has monolib {code_version()['monolib']}, commit" in line
        assert "this machine has monolib 9.9.9, commit" in line


def test_an_edit_since_a_worker_started_is_a_warning(lasting, tmp_path, monkeypatch, caplog, smoke):
    here = code_version() | {"uncommitted_changes": not code_version()["uncommitted_changes"]}
    monkeypatch.setattr("monolib.dask_sweep.code_version", lambda: here)
    (run,) = planned_runs(smoke(architectures=["reglu"], variations=[], steps_reglu=10))
    run_cells([run.cell], CellStore(tmp_path), device="cpu", scheduler=lasting.address)
    assert "with uncommitted changes" in caplog.text


def test_ctrl_c_ends_the_tasks_keeps_the_checkpoints_and_goes_on_later(lasting, tmp_path, root):
    store = CellStore(tmp_path / "cells")
    client = start_client(root, store, lasting.address, 200_000)
    until(lambda: len(list(store.folder.glob("*.checkpoint"))) >= 2 or client.poll() is not None, "checkpoints")
    client.send_signal(signal.SIGINT)
    _, error = client.communicate(timeout=PATIENCE)
    assert client.returncode != 0
    assert error.rstrip().endswith("KeyboardInterrupt")
    with Client(lasting.address, set_as_default=False) as observer:
        until(lambda: not any(observer.processing().values()), "idle workers")
        until(
            lambda: not any(observer.run(lambda dask_worker: len(dask_worker.active_threads)).values()),
            "end of the computations",
        )
    unfinished = {path.stem for path in store.folder.glob("*.checkpoint")}
    assert unfinished
    shares = {key: float((store.folder / f"{key}.progress").read_text()) for key in unfinished}
    assert all(0.0 < share < 0.5 for share in shares.values())


DEADLY = """
import os, signal
from monolib.cell_kinds import CELL_KINDS
from monolib.network_cells import compute_network_cells
def compute(cells, store, device):
    if cells[0].config["training"]["architecture"] == "reglu":
        os.kill(os.getpid(), signal.SIGKILL)
    compute_network_cells(cells, store, device)
CELL_KINDS["network"] = CELL_KINDS["network"]._replace(compute=compute)
"""


def test_a_cell_that_kills_its_workers_is_given_up_by_name(cluster, smoke, tmp_path):
    """As a system short of memory would end them, on three workers that a preloaded file prepares."""
    preload = tmp_path / "deadly.py"
    preload.write_text(DEADLY)
    for _ in range(3):
        cluster.worker("--nthreads", "1", "--no-nanny", "--preload", str(preload))
    runs = planned_runs(smoke(architectures=["relu", "reglu"], variations=[], steps_relu=100))
    (deadly,) = [run.cell for run in runs if run.architecture == "reglu"]
    store = CellStore(tmp_path / "cells")
    with Client(cluster.address, set_as_default=False) as observer:
        observer.wait_for_workers(3, timeout=PATIENCE)
    with pytest.raises(UserError, match=f"cell {deadly.key}: 3 workers died while they computed it"):
        run_cells([run.cell for run in runs], store, device="cpu", scheduler=cluster.address)
    assert store.read(deadly) is None


def test_an_unreachable_scheduler_and_a_missing_dask_are_one_line(capsys, tmp_path):
    folders = ["--set", f"cache_folder={tmp_path / 'cells'}", "--set", f"results_folder={tmp_path / 'results'}"]
    address = f"tcp://127.0.0.1:{free_port()}"
    command = ["run", "fig1", "--profile", "smoke", "--scheduler", address, "--only", "seed=0", *folders]
    started = time.monotonic()
    assert main(command) == 1
    assert time.monotonic() - started < PATIENCE
    error = capsys.readouterr().err
    assert error.startswith(f"monolib: scheduler='{address}': cannot be reached")
    assert error.count("\n") == 1
    without = "import sys; sys.modules['distributed'] = None\nfrom monolib.command_line import main\nsys.exit(main())"
    result = subprocess.run([sys.executable, "-c", without, *command], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 1
    assert result.stderr == "monolib: scheduler: needs Dask, which is not installed here; install monolib[dask]\n"
