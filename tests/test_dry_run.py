"""Dry runs: counts, estimates against what the same cells really take, memory, and nothing written."""

import re
import subprocess
import sys

import pytest

from monolib.cell_kinds import CELL_KINDS
from monolib.cells import CellStore
from monolib.command_line import main
from monolib.cost_probes import Cost
from monolib.dry_run import _Estimate, _makespan, dry_run
from monolib.eigenpro import EigenProConfig
from monolib.fig1.runs import planned_runs
from monolib.kernel_cells import kernel_cell
from monolib.mixed_link_data import MixedLinkData
from monolib.rfm import RFMConfig
from monolib.sweep import one_thread, run_cells


def folders(tmp_path):
    return [f"results_folder={tmp_path / 'results'}", f"cache_folder={tmp_path / 'cells'}"]


def test_counts_of_planned_distinct_and_finished_cells(tmp_path, smoke):
    lines = dry_run("kernels", "smoke", folders(tmp_path)).splitlines()
    planned = re.fullmatch(
        r"kernels, profile smoke: (\d+) cells, (\d+) of them distinct, 0 finished, (\d+) to compute", lines[0]
    )
    assert planned is not None
    total, distinct, missing = map(int, planned.groups())
    assert total > distinct == missing
    assert sum(int(row.split("×")[0]) for row in lines if re.match(r" +\d+ ×", row)) == distinct
    assert not list(tmp_path.iterdir())
    cells = [run.cell for run in planned_runs(smoke(architectures=["relu"]))]
    run_cells(cells, CellStore(tmp_path / "cells"), n_jobs=1)
    assert "9 cells, 9 of them distinct, 3 finished, 6 to compute" in dry_run("fig1", "smoke", folders(tmp_path))
    done = dry_run("fig1", "smoke", folders(tmp_path), ["architecture=relu"])
    assert done == "fig1, profile smoke: 3 cells, 3 of them distinct, 3 finished, 0 to compute"


def test_bad_parameters_end_a_dry_run_with_one_line(tmp_path, capsys):
    assert main(["run", "fig1", "--dry-run", "--set", "widht=3"]) == 1
    assert capsys.readouterr().err == "monolib: widht=3: unknown parameter; did you mean width?\n"


MEASURED = {  # cells that run to their limits, so that the estimate is no upper bound but the thing itself
    "network": lambda smoke: (
        planned_runs(
            smoke(architectures=["gelu"], variations=[], width=512, batch_size=512, n_train=4096, steps_gelu=300)
        )[0].cell
    ),
    "exact": lambda smoke: kernel_cell("global", MixedLinkData(10, 4000, 2000, 0), RFMConfig(n_updates=1)),
    "EigenPro": lambda smoke: kernel_cell(
        "global",
        MixedLinkData(10, 12000, 2000, 0),
        RFMConfig(n_updates=0, eigenpro=EigenProConfig(target_mse=None, max_epochs=20)),
    ),
}


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_estimates_are_near_what_a_cell_takes(name, smoke, tmp_path):
    """Within a factor of 4 of the seconds in the cell's provenance, on a machine that may be busy with other things."""
    cell = MEASURED[name](smoke)
    with one_thread("cpu"):
        cost = CELL_KINDS[cell.kind].cost([cell], "cpu")
    (record,) = run_cells([cell], CellStore(tmp_path), n_jobs=1)
    assert 0.25 < cost.seconds / record.provenance["seconds"] < 4.0
    assert not cost.problem


MEMORY = """
import sys
from pathlib import Path
from monolib.cell_kinds import CELL_KINDS
from monolib.cells import CellStore
from monolib.kernel_cells import kernel_cell
from monolib.mixed_link_data import MixedLinkData
from monolib.rfm import RFMConfig
def peak():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])
cell = kernel_cell("global", MixedLinkData(10, 7000, 2000, 0), RFMConfig(n_updates=0))
before = peak()
CELL_KINDS["kernel"].compute([cell], CellStore(Path(sys.argv[1])), "cpu")
print(peak() - before)
"""


def test_memory_is_near_the_peak_of_a_process(tmp_path):
    """Against the growth of the resident set of a process that computes the cell, as Linux counts it."""
    result = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=True)
    cell = kernel_cell("global", MixedLinkData(10, 7000, 2000, 0), RFMConfig(n_updates=0))
    cost = CELL_KINDS["kernel"].cost([cell], "cpu")
    assert 0.6 < cost.memory / float(result.stdout) < 1.7


def test_a_fit_that_does_not_fit_into_memory_is_named(tmp_path):
    cell = kernel_cell("global", MixedLinkData(1, 200_000, 10, 0), RFMConfig(solver="exact"))
    assert "an exact kernel fit of n=200000 points: needs about" in CELL_KINDS["kernel"].cost([cell], "cpu").problem


def test_hours_follow_the_order_of_the_sweep():
    estimates = [_Estimate([], Cost("", seconds, 0.0), seconds) for seconds in (5.0, 4.0, 3.0, 3.0, 3.0)]
    assert _makespan(estimates, 1) == 18.0
    assert _makespan(estimates, 2) == 10.0
    assert _makespan(estimates, 64) == 5.0
