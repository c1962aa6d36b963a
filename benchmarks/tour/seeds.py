"""docs/seeds.md: where the project came from, from the stored results of the tour."""

from __future__ import annotations

from benchmarks.tour import kept
from benchmarks.tour.kept import Kept
from benchmarks.tour.stories import STORIES
from benchmarks.tour.systems import SYSTEMS

HEADING = """# Where the project came from, and what does it here

Each row is something that these texts about fast numerical Python built or measured, on other machines in other years.
`convbench tour` repeats it on yours, step by step; `pytest tests/test_seeds.py` runs a short form of each command.

`python -m benchmarks seeds` prints this page from what `convbench tour --keep` stored, and a test compares the two. A
story's figures are from one run of its command, medians on one thread unless said otherwise. `cpu.rasterio` of `read_batch`
is the file `impls/read_batch/cpu/rasterio.py`.
"""
TITLES = "| there | here | step | measured here | theirs |\n|---|---|---|---|---|"
# What a figure of a table is of.
UNITS = {
    "loops": "An image of 7x7 through a 3x3 filter, 100 calls.",
    "readers": "Ten batches of 32 tiles, which are in the system's file cache.",
    "adam": "The perceptron 784-1000-1000-10 trained by NumPy alone: 12,000 steps, the post's twenty epochs.",
    "vision": "JPEGs of 480x640 pixels, of which 120x160 are wanted, to masks; the time of an image.",
    "shifts": "An RGB photograph of 427x640 pixels through a weight of 3x3x3x3.",
}
PICTURES = {
    "adam": "![Each rung's time, and of it update, products and fill](ladder.png)",
    "vision": "![Stages of preprocess by implementation and images at a time](stages.png)",
    "shifts": "![Loss and accuracy over time and over steps](training.png)",
}
# The steps whose sentences stand below the table.
TOLD = {
    "loops": ("times",),
    "readers": ("times",),
    "adam": ("script", "move", "ladder"),
    "vision": ("region", "batches", "stages"),
    "shifts": ("ways", "training"),
}


def markdown() -> str:
    """The page. Raises LookupError where a story has no stored results."""
    results = kept.newest()
    return "\n".join([HEADING, *(_section(name, results[name]) for name in STORIES)])


def _section(name: str, results: Kept) -> str:
    story = STORIES[name]
    numbers = {step: each["numbers"] for step, each in results.steps.items()}
    rows = []
    for system in SYSTEMS[name]:
        figure = system.figure(numbers) if system.figure and (numbers[system.step] or system.step == "device") else ""
        rows.append(f"| {system.there} | {system.here} | {system.step} | {figure} | {system.theirs} |")
    steps = {step.name: step for step in story.steps}
    told = [sentence for step in TOLD[name] if numbers[step] for sentence in steps[step].look(numbers[step])]
    where = f"`convbench tour {name}` on `{results.machine}` at {results.commit}, {results.date}."
    parts = [f"## {story.source} ({story.number})", f"{UNITS[name]} {where}", "\n".join([TITLES, *rows]), " ".join(told)]
    return "\n\n".join([*parts, *([PICTURES[name]] if name in PICTURES else [])]) + "\n"
