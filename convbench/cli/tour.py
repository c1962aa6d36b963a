"""`convbench tour`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from convbench.cli.parts import options
from convbench.common.terminal import SafeConsole


@click.command("tour")
@click.argument("story", required=False)
@click.option("--fast", is_flag=True, help="Measure each story in about a minute instead of up to five.")
@click.option("--html", "page", type=options.FILE, metavar="FILE", help="Write the tour as one page with pictures, too.")
@click.option("--keep", is_flag=True, help="Store the numbers in results/, for docs/seeds.md.")
def command(story: str | None, fast: bool, page: Path | None, keep: bool) -> None:
    """Repeat the experiments that this suite grew out of, step by step.

    \b
    Each STORY is measured here and now, all without one:
    loops     four loops to im2col to SciPy, and what a profiler says of them
    readers   reading satellite tiles, and training on them
    adam      what to compile in a training script
    vision    a program for computer vision: less work, batches, fusion
    shifts    your own convolution by shifted images
    """
    from convbench.asv import project
    from convbench.common import interrupts
    from convbench.suite import profiler, tour

    found = project.find()
    if keep:
        tour.require_committed(found)
    say = tour.echo()
    told: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(interrupts.interruptible(lambda: f"{page} was not written" if page else "the tour ended early"))
        beside = stack.enter_context(profiler.whole(page)) if page else None
        question = {"story": story, "fast": fast, "page": bool(page)}
        for kind, event in tour.run(found, question, SafeConsole(stderr=True)):
            if kind == "told":
                if not told or told[-1]["story"] != event["story"]:
                    say(f"{event['story'].upper()}\n")
                say(f"{tour.text(event)}\n")
                told.append(event)
            elif beside:
                beside.write_text(event["page"], encoding="utf-8")
    if page:
        click.echo(f"the page is {page}")
    if keep:
        click.echo(f"the numbers are in {tour.keep(found, told, fast).relative_to(found.root)}")
