"""The command `monolib`: list, run, claims, compare."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import monolib
from monolib.claims import collect_claims, format_claims, read_claims
from monolib.errors import UserError
from monolib.project_paths import project_root


def parser() -> argparse.ArgumentParser:
    """The command line and its help."""
    top = argparse.ArgumentParser(prog="monolib", description="Reproduction of 'Revenge of Monosemanticity'.")
    top.add_argument("--version", action="version", version=monolib.__version__)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="figures, their profiles, and how much of each is computed")

    run = commands.add_parser("run", help="compute a figure: cells, tables, pictures, verdicts, executed notebook")
    _add_figure(run)
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="name=value",
        help="change a parameter (may be repeated); changed results go to results/<profile>+name=value/",
    )
    run.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="name=value,...",
        help="compute only the cells with these labels, such as K=10,n=20000,seed=0, and no notebook; "
        "a name given again (K=10,K=50) allows both values",
    )
    run.add_argument(
        "--scheduler",
        metavar="tcp://host:port",
        help="compute on the workers of this Dask scheduler, one cell at a time on each (needs monolib[dask])",
    )
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="check the parameters, measure a few steps here, and print cells, hours and memory; nothing is written",
    )

    claims = commands.add_parser("claims", help="verdict table of the results at hand")
    claims.add_argument("--format", choices=("text", "markdown", "json"), default="text")

    compare = commands.add_parser("compare", help="largest deviation of a rerun from the committed tables")
    _add_figure(compare)
    return top


def _add_figure(command: argparse.ArgumentParser) -> None:
    command.add_argument("figure", metavar="FIGURE", help="a figure of `monolib list`, such as fig1")
    command.add_argument("--profile", default="small", help="size: smoke, small (default) or paper")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when it completed, 1 for a problem told in one line each, 130 after Ctrl-C or SIGTERM."""
    options = parser().parse_args(arguments)
    logging.basicConfig(format="monolib: %(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, _interrupt)  # a batch system's notice ends a run like Ctrl-C
    try:
        return _COMMANDS[options.command](options)
    except UserError as error:
        for line in str(error).splitlines():
            print(f"monolib: {line}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmonolib: interrupted; what is computed is kept, the same command goes on from there", file=sys.stderr)
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _list(options: argparse.Namespace) -> int:
    from monolib.figures import DRAWN_BY, FIGURES, profiles
    from monolib.run_figure import computed_cells, figure_parameters, results_path

    for entry in FIGURES.values():
        also = "".join(f", also as {alias}" for alias, name in DRAWN_BY.items() if name == entry.name)
        print(f"{entry.name}{also}: {entry.title}")
        for profile in profiles(entry.name):
            parameters = figure_parameters(entry, profile)
            done, total = computed_cells(entry, parameters)
            there = (results_path(entry, parameters) / "claims.json").exists()
            print(f"  {profile:8s} {done}/{total} cells computed, results {'there' if there else 'not there'}")
    return 0


def _run(options: argparse.Namespace) -> int:
    from monolib.dry_run import dry_run
    from monolib.run_figure import run_figure, run_part

    request = (options.figure, options.profile, options.set)
    if options.dry_run:
        print(dry_run(*request, options.only, options.scheduler))
        return 0
    if options.only:
        print(run_part(*request, options.only, options.scheduler))
        return 0
    folder = run_figure(*request, options.scheduler)
    claims = [(folder.parent.name, claim) for claim in read_claims(folder / "claims.json")]
    print(format_claims(claims, "text"))
    print(f"\nresults: {folder}")
    return 0


def _claims(options: argparse.Namespace) -> int:
    rows = collect_claims(project_root() / "results")
    if not rows:
        raise UserError("results: no figure has been run yet; try `monolib run fig1`")
    print(format_claims(rows, options.format))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from monolib.compare_results import compare_figure
    from monolib.figures import figure_entry
    from monolib.run_figure import computed_cells, figure_parameters, results_path

    entry = figure_entry(options.figure)
    parameters = figure_parameters(entry, options.profile)
    lines = compare_figure(results_path(entry, parameters))
    done, total = computed_cells(entry, parameters)
    if done < total:
        print(f"monolib: only {done} of {total} cells are computed here: these may be the committed tables themselves")
    print("\n".join(lines))
    return 0


_COMMANDS = {"list": _list, "run": _run, "claims": _claims, "compare": _compare}
