"""The photograph after every step of a convolution by shifted images, as a post on writing one's own shows it: a picture.

Nine scaled images added without a shift give the photograph times the filter's sum, which is wrong. Each rolled until its
tap's pixel lies where the output's does, and what wrapped round cut off, they give the filtered photograph (cpu.roll).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.pictures import gallery
from benchmarks.workloads import inputs, oracle
from benchmarks.workloads.problems import Problem

COLUMNS = 4  # of the picture


def pictures(filter: str) -> dict[str, np.ndarray]:
    """The photograph, and what it is after each step, each (H, W, 3) in [0, 1], by the words for the step.

    Raises LookupError for an unknown filter, Missing if there is no photograph, and WrongAnswer where the last picture is
    not the filtered photograph.
    """
    if filter not in inputs.FILTERS:
        raise LookupError(f"no filter is called {filter!r}; there are {', '.join(inputs.FILTERS)}")
    photo = gallery.photograph()
    height, width = photo.shape[2:]
    problem = Problem(1, 3, height, width, 3, 3, 3, groups=3, data="photo", filter=filter)
    weight = inputs.make(problem)[1]
    found = {"the photograph": photo, "nine scaled images added": sum(tap * photo for tap in weight[0, 0].flat)}
    output = np.zeros_like(photo)
    for count, (r, s) in enumerate(np.ndindex(3, 3), 1):
        output = output + np.roll(weight[0, 0, r, s] * photo, (-r, -s), axis=(2, 3))
        found[f"{count} rolled and added"] = output
    found["what wrapped round cut off"] = inside = output[:, :, : height - 2, : width - 2]
    oracle.compare(problem, "shift", oracle.reference(problem, photo, weight), inside)
    return {step: gallery.visible(picture) for step, picture in found.items()}


def draw(steps: Mapping[str, np.ndarray], title: str, path: Path) -> None:
    """Draw the steps one after the other; the format is that of the path's ending. Raises OSError."""
    from matplotlib.figure import Figure

    lines = -(-len(steps) // COLUMNS)
    figure = Figure(figsize=(2.6 * COLUMNS, 2 * lines + 0.4), layout="constrained")
    for axis, (step, picture) in zip(figure.subplots(lines, COLUMNS).flat, steps.items(), strict=True):
        axis.set(xticks=[], yticks=[], frame_on=False)
        axis.imshow(picture, interpolation="nearest")
        axis.set_title(step, fontsize=9)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)
