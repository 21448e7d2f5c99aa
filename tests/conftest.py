"""Shared fixtures: folders of the project, and the smallest useful parameters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from monolib.fig1.parameters import Fig1Parameters
from monolib.parameter_files import read_yaml
from monolib.project_paths import project_root


@pytest.fixture(scope="session")
def root() -> Path:
    return project_root()


@pytest.fixture
def smoke(tmp_path: Path, root: Path) -> Callable[..., Fig1Parameters]:
    """Parameters of the smoke profile that write below tmp_path, with changes."""

    def make(**changes: object) -> Fig1Parameters:
        values = read_yaml(root / "parameters" / "smoke" / "fig1.yaml")
        folders = {"results_folder": str(tmp_path / "results"), "cache_folder": str(tmp_path / "cells")}
        return Fig1Parameters(**(values | folders | changes))

    return make
