"""Parameter files and the notebooks' parameters: read without surprises, checked before anything is computed."""

import ast
import difflib
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from monolib.devices import resolve_device
from monolib.errors import UserError

# They say where and how fast, not what: a rerun that differs in them continues the same results.
EXECUTION = ("device", "n_jobs", "stack", "results_folder", "cache_folder", "only_finished")


class FigureParameters(BaseModel):
    """Base of each figure's parameters: frozen, no unknown names, no conversions (true is not 1).

    profile: name of the results' folder.  device: auto, cpu or cuda.  n_jobs: worker processes (0: one per core on a
    CPU, one on CUDA).  stack: networks that train in one call.  results_folder, cache_folder: relative to the project.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    profile: str
    device: Literal["auto", "cpu", "cuda"]
    n_jobs: Annotated[int, Field(ge=0, le=10_000)]
    stack: Annotated[int, Field(ge=1, le=10_000)]
    results_folder: Annotated[str, Field(min_length=1)]
    cache_folder: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _check_execution(self) -> Self:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+=,-]*", self.profile):
            raise ValueError(f"profile={self.profile!r}: must be a folder name of letters, digits and _ . + = , -")
        resolve_device(self.device)
        return self

    @property
    def computes_missing_cells(self) -> bool:
        """Whether a run computes what the cache lacks."""
        return True

    def identity(self) -> dict[str, object]:
        """The parameters that fix the results."""
        return {name: value for name, value in self.model_dump().items() if name not in EXECUTION}


Parameters = TypeVar("Parameters", bound=FigureParameters)


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML in which a key may appear once; plain PyYAML keeps the last of several without a word."""


def _mapping_without_repeats(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    repeated = sorted({str(key) for key in keys if keys.count(key) > 1})
    if repeated:
        raise UserError(f"{', '.join(repeated)}: given more than once")
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_repeats)


def read_yaml(path: Path) -> dict[str, Any]:
    """Mapping of a YAML file. Raises UserError that names the file: absent, not YAML, a repeated key, no mapping."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError, UserError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: must hold `name: value` lines")
    return content


def read_assignment(text: str) -> tuple[str, Any]:
    """`name=value` of the command line, the value read as YAML, so that files and command line agree."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UserError(f"{text!r}: must be name=value")
    try:
        return name.strip(), yaml.load(value, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise UserError(f"{name}={value!r}: is not YAML") from error
    except UserError as error:
        raise UserError(f"{name}={value!r}: {error}") from error


def check_parameters(model: type[Parameters], values: Mapping[str, Any]) -> Parameters:
    """`values` as a checked `model`. Raises UserError with one line per problem: name, value, what is allowed."""
    try:
        return model(**values)
    except ValidationError as error:
        lines = [_problem(model, dict(details)) for details in error.errors(include_url=False)]
        raise UserError("\n".join(lines)) from None


def _problem(model: type[FigureParameters], details: dict[str, Any]) -> str:
    """One line for one of pydantic's errors."""
    name = ".".join(str(part) for part in details["loc"])
    value, message = details.get("input"), details["msg"].removeprefix("Value error, ")
    shown = textwrap.shorten(repr(value), 120)
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=1)
        return f"{name}={shown}: unknown parameter" + (f"; did you mean {near[0]}?" if near else "")
    if details["type"] == "missing":
        return f"{name}: has no value"
    if details["type"] == "value_error" and not name:
        return message
    if isinstance(value, str) and details["type"] in ("int_type", "float_type") and _is_number(value):
        return f"{name}={value!r}: is text, not a number; YAML reads 1e-6 as text, write 1.0e-6"
    return f"{name}={shown}: {message[0].lower()}{message[1:]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def notebook_parameters(model: type[Parameters], namespace: Mapping[str, Any]) -> Parameters:
    """Checked parameters from a notebook's `globals()`: the names that its parameters cells assign.

    A parameters cell holds nothing but `name = literal` lines and assigns a parameter, or is papermill's. So names that
    papermill injected by mistake (`-p widht 5`), of which it only warns, are seen, and names of the notebook's own
    code are not, also when cells run again. Raises UserError like `check_parameters`.
    """
    assigned = [_literal_assignments(source) for source in namespace.get("In", [])]
    fields = set(model.model_fields)
    names = {name for names, injected in assigned if injected or names & fields for name in names}
    return check_parameters(model, {name: namespace[name] for name in names if name in namespace})


def _literal_assignments(source: str) -> tuple[set[str], bool]:
    """Names that a cell of nothing but `name = literal` lines assigns (none for another cell); is it papermill's?"""
    try:
        statements = ast.parse(source).body
        names = {_assigned_name(statement) for statement in statements}
    except (SyntaxError, ValueError):
        return set(), False
    return names, source.lstrip().startswith("# Parameters")


def _assigned_name(statement: ast.stmt) -> str:
    """Name of a `name = literal` line; ValueError for any other statement."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        raise ValueError("not an assignment to a name")
    ast.literal_eval(statement.value)
    return statement.targets[0].id
