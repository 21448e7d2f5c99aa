"""Selecting some of a figure's cells by their labels: `--only K=10,n=20000,seed=0`."""

from collections.abc import Mapping, Sequence

from monolib.cells import Cell
from monolib.errors import UserError

Labels = Mapping[str, str | int | float]
LabelledCell = tuple[Labels, Cell]


def select_cells(cells: Sequence[LabelledCell], only: Sequence[str]) -> list[Cell]:
    """The cells whose labels have the values asked for.

    only: texts "name=value,name=value"; a name given again allows one more value; different names must all match.
    Raises UserError, one line with what is allowed, for a text of another form, an unknown name, and a value that no
    cell has (with the values of the names before it).
    """
    selected, text = list(cells), ",".join(only)
    known = list(dict.fromkeys(name for labels, _ in cells for name in labels))
    for name, values in _conditions(text).items():
        if name not in known:
            raise UserError(f"only={text}: {name} is unknown; names are {', '.join(known)}")
        there = list(dict.fromkeys(labels[name] for labels, _ in selected if name in labels))
        for value in values:
            if not any(_equal(label, value) for label in there):
                allowed = f"{name} is one of {', '.join(map(str, there))}" if there else f"these cells have no {name}"
                raise UserError(f"only={text}: {name}={value} matches no cell; {allowed}")
        matches = [label for label in there if any(_equal(label, value) for value in values)]
        selected = [(labels, cell) for labels, cell in selected if labels.get(name) in matches]
    return [cell for _, cell in selected]


def _conditions(text: str) -> dict[str, list[str]]:
    """Values allowed for each name, in the order given."""
    conditions: dict[str, list[str]] = {}
    for part in text.split(","):
        name, separator, value = (piece.strip() for piece in part.partition("="))
        if not (name and separator and value):
            raise UserError(f"only={text!r}: must be name=value,name=value")
        conditions.setdefault(name, []).append(value)
    return conditions


def _equal(label: str | int | float, value: str) -> bool:
    if isinstance(label, str):
        return label == value
    try:
        return float(value) == label
    except ValueError:
        return False
