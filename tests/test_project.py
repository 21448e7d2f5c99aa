"""The project's own promises: one set of dependencies, small files, no traces of a machine, an up-to-date README."""

import re
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from monolib.claims import collect_claims, format_claims


def git_files(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    return [root / name for name in names.split("\0") if name and (root / name).exists()]


def locked(root):
    lines = (root / "requirements.lock").read_text().splitlines()
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


def declared(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [Requirement(text) for text in project["dependencies"] + extras["test"] + extras["bench"] + extras["dask"]]


def test_lock_pins_every_declared_dependency_at_an_allowed_version(root):
    pins = locked(root)
    assert all(len(r.specifier) == 1 and str(r.specifier).startswith("==") for r in pins.values())
    for requirement in declared(root):
        pin = pins[canonicalize_name(requirement.name)]
        version = str(pin.specifier).removeprefix("==")
        assert requirement.specifier.contains(version), requirement
    assert str(pins["torch"].specifier) == "==2.13.0"
    assert "setuptools" in pins  # the build runs without isolation


def test_environment_file_lists_the_same_dependencies(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    listed = {canonicalize_name(r.name): r for r in map(Requirement, pip)}
    pins = locked(root)
    assert set(listed) == {canonicalize_name(r.name) for r in declared(root)}
    for name, requirement in listed.items():
        assert requirement.specifier == pins[name].specifier, name
    python = next(entry for entry in environment["dependencies"] if str(entry).startswith("python"))
    requires = tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"]
    assert python == f"python{requires}"


def test_readme_shows_the_verdicts_of_the_committed_results(root, tmp_path):
    for file in (path for path in git_files(root) if path.name == "claims.json"):
        copy = tmp_path / file.relative_to(root)
        copy.parent.mkdir(parents=True)
        copy.write_text(file.read_text())
    expected = format_claims(collect_claims(tmp_path / "results"), "markdown")
    shown = re.search(r"<!-- monolib claims -->\n(.*?)\n<!-- end -->", (root / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert shown.group(1) == expected, "renew it with `monolib claims --format markdown`"


def test_readme_names_only_files_and_targets_that_exist(root):
    text = (root / "README.md").read_text()
    targets = re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"make ([a-z]+)", text):
        assert target in targets
    for path in re.findall(r"`((?:monolib|notebooks|parameters|results|tests|benchmarks)/[\w./-]*)`", text):
        assert (root / path).exists(), path


def test_no_traces_of_a_machine_in_tracked_text(root):
    trace = re.compile(
        r"(?<![\w.])/(?:home|root|work|tmp|Users)/\w|pypi\.org|files\.pythonhosted|@[a-z0-9-]+\.(?:com|org)"
    )
    for path in git_files(root):
        if path.suffix in {".png", ".pdf"}:
            continue
        found = trace.search(path.read_text(encoding="utf-8"))
        assert found is None or path.name == "test_project.py", f"{path}: {found and found.group()}"


def test_tracked_files_are_small(root):
    sizes = {path: path.stat().st_size for path in git_files(root)}
    assert sum(sizes.values()) < 50e6
    for path, size in sizes.items():
        assert size < (3e6 if path.suffix == ".ipynb" else 1e6), path


@pytest.mark.parametrize("command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]])
def test_linters_are_content(root, command):
    import sys

    result = subprocess.run([sys.executable, "-m", *command], cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
