"""`convbench table`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from convbench.cli.parts import errors, options, output
from convbench.common import untrusted
from convbench.common.selection import Selection, check_names, select
from convbench.common.untrusted import Unreadable

if TYPE_CHECKING:
    from convbench.asv.project import Project
    from convbench.stored.results import Run


@click.command("table")
@options.BENCH
@options.IMPLEMENTATION
@options.MACHINE
@click.option("--commit", help="The commit.  [default: the one measured last]")
@click.option("--baseline", help="Implementation that speed-ups are relative to.  [default: the suite's]")
@click.option(
    "--layout",
    type=click.Choice(["own", "compare"]),
    default="own",
    show_default=True,
    help="Layout; compare is that of torch.utils.benchmark.Compare.",
)
@click.option("--summary", "short", is_flag=True, help="Show the fastest implementation of each problem, on one screen.")
@options.WHY
@options.JSON_LINES
@options.CSV_LINES
@options.CONFIG
def command(bench, implementation, machine_name, commit, baseline, layout, short, why, as_json, as_csv, config) -> None:
    """Show stored results, the fastest implementations first.

    Without a selection, shows the fastest implementation of each problem, as --summary does.
    """
    import numpy as np

    from convbench.asv import project
    from convbench.stored import results, roofline, summary, table, torch_compare

    if layout == "compare" and (as_json or as_csv):
        raise click.UsageError("--layout cannot be combined with --json or --csv")
    here = project.find(config)
    known = errors.readable(results.benchmarks, here.results)
    check_names(known, (*implementation, *filter(None, [baseline])))
    stored, of_file = _latest(here, known, machine_name, commit)
    older = (
        {name for name, one in of_file.items() if one["version"] != known.get(name, {}).get("version")} if commit else set()
    )
    known = of_file
    cells = roofline.derive(stored.cells, roofline.from_cells(stored.cells, known), baseline)
    cells = cells.assign(machine=stored.machine, commit=stored.commit, environment=stored.environment)
    selected = set(select(known, Selection(bench, implementation)))
    cells = cells[np.array([(cell.benchmark, cell.params) in selected for cell in cells.itertuples()], dtype=bool)]
    if not as_json and not as_csv:
        cells = cells[cells.status != "not measured"]
    if cells.empty:
        raise click.ClickException(
            f"no results of {stored.commit[:8]} on {stored.machine} match (results of older benchmark versions are ignored)"
        )
    heading = f"{stored.machine}, commit {stored.commit[:8]}, {stored.environment}"
    if older.intersection(cells.benchmark):
        heading += f"; older benchmark versions: {', '.join(sorted(older.intersection(cells.benchmark)))}"
    if layout == "compare":
        click.echo(f"{heading}\n{torch_compare.compare(cells, known)}")
        return
    named = baseline or " or ".join(cells.baseline.dropna().unique()) or None
    notes = table.Notes(heading, named)
    everything = Selection(bench, implementation) == Selection() and not (baseline or as_json or as_csv)
    if (short or everything) and summary.is_meant_for(cells):
        brief = table.Notes(f"{stored.machine}, commit {stored.commit[:8]}", named)
        summary.show(cells, known, brief, output.console(output.SCREEN))
        click.echo("more: convbench table --bench REGEX (. for all); as a page: convbench dashboard")
        return
    output.print_cells(cells, notes, as_json, as_csv, why)


def _latest(here: Project, known: dict, machine_name: str | None, commit: str | None) -> tuple[Run, dict]:
    """The newest readable results that match, and their benchmarks; unreadable files are skipped with a warning.

    For a named commit, results of older benchmark versions are read, too.
    """
    from convbench.asv import machine
    from convbench.stored import compare, results, unbuilt

    files = results.result_files(here.results)
    there = results.machines(here.results)
    if machine_name is None:  # this machine if it has been measured: others' results may be in the repository
        own = machine.name()
        machine_name = own if own in there else None
    elif there and machine_name not in there:
        raise click.ClickException(compare.no_such_machine(machine_name, here.results, there))
    full = here.commit(commit) if commit else ""
    files = [path for path in files if machine_name in (None, path.parent.name) and path.name.startswith(full[:8])]
    for path in reversed(files):
        try:
            of_file = results.as_measured(path, known) if commit else known
            return results.load(path, of_file), of_file
        except Unreadable as error:
            untrusted.warn(error)
    for folder in sorted(path for path in here.results.glob("*") if machine_name in (None, path.name)):
        if line := unbuilt.read(folder).get(full):
            raise click.ClickException(f"commit {full[:8]} does not build on {folder.name}: {line['reason']}")
    asked = "".join(f" of {what}" for what in (machine_name, commit) if what)
    raise click.ClickException(f"no results yet{asked} in {here.results.name}/: measure with `convbench run --quick` first")
