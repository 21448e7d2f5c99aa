"""Parameter files and the notebooks' parameters: read without surprises, checked before anything is computed."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from monolib.devices import resolve_device
from monolib.errors import UserError

# They say where and how fast, not what: a rerun that differs in them continues the same results.
EXECUTION = ("device", "n_jobs", "stack", "results_folder", "cache_folder")


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
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=1)
        return f"{name}={value!r}: unknown parameter" + (f"; did you mean {near[0]}?" if near else "")
    if details["type"] == "missing":
        return f"{name}: has no value"
    if details["type"] == "value_error" and not name:
        return message
    if isinstance(value, str) and details["type"] in ("int_type", "float_type") and _is_number(value):
        return f"{name}={value!r}: is text, not a number; YAML reads 1e-6 as text, write 1.0e-6"
    return f"{name}={value!r}: {message[0].lower()}{message[1:]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def notebook_parameters(model: type[Parameters], namespace: Mapping[str, Any]) -> Parameters:
    """Checked parameters from a notebook's `globals()`: every public name that holds a plain value.

    Called right after the parameters cell, it also sees names that papermill injected by mistake (`-p widht 5`), of
    which papermill only warns. Raises UserError like `check_parameters`.
    """
    plain = (bool, int, float, str, list, dict, type(None))
    machinery = {"In", "Out"}  # IPython's own lists
    values = {
        name: value
        for name, value in namespace.items()
        if isinstance(value, plain) and not name.startswith("_") and name not in machinery
    }
    return check_parameters(model, values)
