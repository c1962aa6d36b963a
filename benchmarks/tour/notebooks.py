"""The stories as notebooks in docs/tour: the words and calls of each step, and below a call what was last stored of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import cell
from benchmarks.tour import kept, page, stories, systems
from benchmarks.tour.kept import Kept
from benchmarks.tour.steps import Found, Setting, Step, tell, told
from benchmarks.tour.stories import STORIES

FOLDER = cell.CHECKOUT / "docs" / "tour"
START = """import sys

sys.path.insert(0, "../..")  # the checkout, seen from the folder of this notebook
from benchmarks.tour.notebooks import measure
"""


class Shown:
    """A step that was measured, which a notebook shows as a page does."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step = step

    def _repr_html_(self) -> str:
        return page.step_html(self.step)


def measure(story: str, name: str, fast: bool = True) -> Shown:
    """Measure a step of a story in the process of a notebook."""
    (step,) = (step for step in STORIES[story].steps if step.name == name)
    telling = tell(story, step, Setting(fast, stories.FOLDER), _cores())
    while True:
        try:
            event = next(telling)
        except StopIteration as stop:
            print()
            return Shown(stop.value)
        if "preparing" in event:
            print(event["preparing"], end=" ", flush=True)


@functools.cache
def _cores() -> list[int]:
    return stories.ready()


def write() -> Iterator[Path]:
    """Write all; yield the path of each. Raises LookupError without stored results, and OSError."""
    results = kept.newest()
    FOLDER.mkdir(exist_ok=True)
    for name in STORIES:
        path = FOLDER / f"{name}.ipynb"
        path.write_text(notebook(name, results[name]), encoding="utf-8")
        yield path.relative_to(cell.CHECKOUT)


def notebook(name: str, results: Kept) -> str:
    """A story as the text of a notebook."""
    story = STORIES[name]
    where = f"What you see was measured on `{results.machine}` on {results.date}."
    cells = [
        _words(f"# {story.number}. {story.title}\n\n{story.source}. {where} Run the cells to measure it on your machine."),
        _code(START, None),
    ]
    for count, step in enumerate(story.steps, 1):
        cells.append(_words(f"## {count}. {step.title}\n\n**Guess.** {step.guess}\n\n**Measure.** `{step.command}`"))
        cells.append(_code(f'measure("{name}", "{step.name}")', _shown(name, step, results)))
        rows = [f"* {there}: {page.without_links(here)}\n" for there, here in systems.of(name, step.name)]
        cells.append(_words(f"**Why.** {step.why}" + "\n\n**From the text.**\n\n" * bool(rows) + "".join(rows)))
    for number, each in enumerate(cells):
        each["id"] = f"{name}-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _shown(name: str, step: Step, results: Kept) -> str:
    """A step's stored numbers as a page has them; what tools printed and drew is not stored."""
    stored = results.steps[step.name]
    found = Found(stored["numbers"]) if stored["numbers"] else None
    return page.step_html(told(name, step, found, stored["missing"]))


def _words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str, shown: str | None) -> dict[str, Any]:
    output = {"data": {"text/html": (shown or "").splitlines(keepends=True)}, "metadata": {}, "output_type": "display_data"}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [output] if shown else [],
        "source": text.splitlines(keepends=True),
    }
