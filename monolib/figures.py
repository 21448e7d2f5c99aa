"""The figures that can be run: notebook, parameters and cells of each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monolib.cell_selection import LabelledCell
from monolib.cells import Cell
from monolib.errors import UserError
from monolib.fig1.parameters import Fig1Parameters
from monolib.fig1.runs import planned_runs
from monolib.fig2.parameters import Fig2Parameters
from monolib.fig2.runs import labelled_cells as fig2_labelled_cells
from monolib.fig4.parameters import Fig4Parameters
from monolib.fig4.runs import labelled_cells as fig4_labelled_cells
from monolib.kernel_path.parameters import KernelsParameters
from monolib.kernel_path.runs import planned_fits
from monolib.parameter_files import FigureParameters
from monolib.project_paths import project_root
from monolib.theorem1.parameters import Theorem1Parameters
from monolib.theorem1.runs import planned_cells as theorem1_cells
from monolib.theorem2.parameters import Theorem2Parameters
from monolib.theorem2.runs import planned_cells as theorem2_cells


@dataclass(frozen=True)
class FigureEntry:
    """One notebook: name on the command line and of its results folder, title, parameters' model, cells it needs.

    labelled_cells(parameters): every planned cell with its labels, by which `--only` selects (K, n, seed, method, ...).
    """

    name: str
    title: str
    notebook: str
    model: type[FigureParameters]
    labelled_cells: Callable[[Any], list[LabelledCell]]

    def cells(self, parameters: FigureParameters) -> list[Cell]:
        """Every planned cell, in the order of the plan."""
        return [cell for _, cell in self.labelled_cells(parameters)]

    @property
    def notebook_path(self) -> Path:
        """The notebook without outputs that papermill executes."""
        return project_root() / "notebooks" / f"{self.notebook}.ipynb"


FIGURES = {
    "fig1": FigureEntry(
        name="fig1",
        title="Figures 1 and 5: specialised first-layer neurons",
        notebook="01_specialized_neurons",
        model=Fig1Parameters,
        labelled_cells=lambda parameters: [(run.labels, run.cell) for run in planned_runs(parameters)],
    ),
    "kernels": FigureEntry(
        name="kernels",
        title="Kernels and RFM (A.2): the metric, EigenPro, per-cluster oracles",
        notebook="02_kernels_and_rfm",
        model=KernelsParameters,
        labelled_cells=lambda parameters: [(fit.labels, fit.cell) for fit in planned_fits(parameters)],
    ),
    "fig2": FigureEntry(
        name="fig2",
        title="Figures 2 and 6: networks jointly learn clusters and local rules",
        notebook="03_joint_learning",
        model=Fig2Parameters,
        labelled_cells=fig2_labelled_cells,
    ),
    "fig4": FigureEntry(
        name="fig4",
        title="Figures 3 and 4: the trained network's clusters, extracted and reused",
        notebook="04_encoded_clusters",
        model=Fig4Parameters,
        labelled_cells=fig4_labelled_cells,
    ),
    "theorem1": FigureEntry(
        name="theorem1",
        title="Theorem 1 and Figure 7 (§4.1, B.1): neurons specialise, lemma by lemma",
        notebook="05_theorem1_specialization",
        model=Theorem1Parameters,
        labelled_cells=lambda parameters: [
            ({"part": name}, cell) for name, part in theorem1_cells(parameters).items() for cell in part
        ],
    ),
    "theorem2": FigureEntry(
        name="theorem2",
        title="Theorem 2 (§4.2, B.2): networks against kernels and RFM, lemma by lemma",
        notebook="06_theorem2_separation",
        model=Theorem2Parameters,
        labelled_cells=lambda parameters: [
            ({"part": name}, cell) for name, part in theorem2_cells(parameters).items() for cell in part
        ],
    ),
}
# figures without a notebook of their own
DRAWN_BY = {"fig3": "fig4", "fig5": "fig1", "fig6": "fig2", "fig7": "theorem1"}


def figure_entry(name: str) -> FigureEntry:
    """Entry of a figure by its name. Raises UserError for an unknown one."""
    known = FIGURES | {alias: FIGURES[name] for alias, name in DRAWN_BY.items()}
    if name not in known:
        raise UserError(f"figure={name!r}: must be one of {', '.join(known)}")
    return known[name]


def profiles(figure: str) -> list[str]:
    """Profiles that have a parameter file for the figure, smallest first where known."""
    order = {"smoke": 0, "small": 1, "paper": 2}
    found = [path.parent.name for path in (project_root() / "parameters").glob(f"*/{figure}.yaml")]
    return sorted(found, key=lambda name: (order.get(name, 3), name))


def parameter_file(figure: str, profile: str) -> Path:
    """Parameter file of a figure and profile. Raises UserError when there is none."""
    if profile not in profiles(figure):
        raise UserError(f"profile={profile!r}: must be one of {', '.join(profiles(figure))} for {figure}")
    return project_root() / "parameters" / profile / f"{figure}.yaml"
