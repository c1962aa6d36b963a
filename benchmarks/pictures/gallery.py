"""Draws the photograph through the filters by every available implementation, so that wrong results are visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.workloads import inputs, oracle
from benchmarks.workloads.problems import Problem

SHOWN = ("identity", "emboss", "sharpen", "edges", "box")
STEP = 4  # every fourth pixel of the photograph: enough to see, and nested Python loops take seconds, not minutes


@dataclass(frozen=True, eq=False)
class Row:
    """One implementation's pictures (H, W, 3) in [0, 1] by filter, or in their place the reason in words."""

    name: str
    pictures: dict[str, np.ndarray | str]


def rows(names: Iterable[str]) -> Iterator[Row]:
    """Filter the photograph by each implementation, with "same" borders; pictures that differ from the reference are marked.

    Raises LookupError for an unknown name and Missing if there is no photograph.
    """
    photo = photograph()
    height, width = photo.shape[2:]
    problems = {
        shown: Problem(1, 3, height, width, 3, 3, 3, padding=(1, 1), groups=3, data="photo", filter=shown) for shown in SHOWN
    }
    weights = {shown: inputs.make(problem)[1] for shown, problem in problems.items()}
    known = {shown: oracle.reference(problem, photo, weights[shown]) for shown, problem in problems.items()}
    import impls  # imported here, because asv imports every file of the suite, also with a commit that has no impls

    known_names = cell.implementations()
    for name in names:
        if name not in known_names:
            impls.load(name)  # raises, with near matches
        try:
            function = cell.load(name, "conv2d")
        except Skip as reason:
            yield Row(name, dict.fromkeys(SHOWN, str(reason)))
            continue
        pictures: dict[str, np.ndarray | str] = {}
        for shown, problem in problems.items():
            try:
                cell.require_support(function, cell.task("conv2d", problem))
                given = function.to_device(photo.copy()), function.to_device(weights[shown].copy())
                output = function.to_numpy(function(*given, padding="same", groups=3))
                oracle.compare(problem, function.family, known[shown], output)
            except Exception as error:  # any error: the other pictures are still drawn
                pictures[shown] = str(error) if isinstance(error, Skip) else f"{type(error).__name__}: {error}"
            else:
                pictures[shown] = visible(output)
        yield Row(name, pictures)


def photograph() -> np.ndarray:
    """The photograph (1, 3, H, W) in [-1, 1], every fourth pixel of it. Raises Missing if it is not there."""
    whole, _ = inputs.make(Problem(1, 3, 427, 640, 3, 3, 3, groups=3, data="photo", filter="identity"))
    return np.ascontiguousarray(whole[:, :, ::STEP, ::STEP])


def visible(output: np.ndarray) -> np.ndarray:
    """The first image of an output as a picture (H, W, 3), clipped to [0, 1]."""
    return np.clip((output[0].transpose(1, 2, 0) + 1) / 2, 0, 1)


def draw(gallery: list[Row], path: Path) -> None:
    """Draw the rows as one picture; its format is that of the path's ending. Raises OSError if it cannot be written, and
    LookupError where there is none.
    """
    from matplotlib.figure import Figure

    drawn = [row for row in gallery if not all(isinstance(picture, str) for picture in row.pictures.values())]
    if not drawn:
        raise LookupError("none of the implementations has a picture to show")
    notes = [f"{row.name}: {row.pictures[SHOWN[0]]}" for row in gallery if row not in drawn]
    height = 1.15 * len(drawn) + 0.5 + 0.16 * len(notes)
    figure = Figure(figsize=(10.5, height), layout="constrained")
    ratios = [height - 0.16 * len(notes), 0.16 * len(notes) + 0.01]
    (pictures,), (words,) = figure.subfigures(2, 1, squeeze=False, height_ratios=ratios)
    axes = pictures.subplots(len(drawn), len(SHOWN), squeeze=False)
    for line, row in zip(axes, drawn, strict=True):
        line[0].set_ylabel(row.name, rotation=0, ha="right", va="center", fontsize=8)
        for axis, shown in zip(line, SHOWN, strict=True):
            axis.set(xticks=[], yticks=[], frame_on=False)
            picture = row.pictures[shown]
            if isinstance(picture, str):
                axis.text(0.5, 0.5, picture[:120], wrap=True, fontsize=6, ha="center", va="center", transform=axis.transAxes)
            else:
                axis.imshow(picture, interpolation="nearest")
    for axis, shown in zip(axes[0], SHOWN, strict=True):
        axis.set_title(shown, fontsize=9)
    words.text(0.01, 0.98, "\n".join(notes), fontsize=6, va="top")
    figure.savefig(path, dpi=110)
