"""How much Cython speeds up the training of a perceptron: the rungs of a post on Chainer beside the post's own, as a picture.

Each rung is an implementation of train_step and makes whole steps. Its update, products and fill are functions of Python that
every rung calls, compiled or not, so that cProfile sees when each begins and ends; what lies between them is "rest".
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import cell
from benchmarks.pictures import watched
from benchmarks.pictures.watched import Watched
from benchmarks.workloads.training import Training

PROBLEM = Training("perceptron", 100)
STEPS = 12_000  # of the post's training: twenty epochs of 60,000 images
# Steps by each rung, in turn. A call repeats the first step on the same images; after about 600 of them the moments of units
# that have died are subnormal, with which arithmetic is slower.
ROUNDS = 60
# The file and the function of each part. adam_step is counted with its checks, dot with all products.
PARTS = {
    "update": ("adam_step/arguments.py", "adam_step"),
    "products": ("train_step/numpy_calls.py", "dot"),
    "fill": ("train_step/numpy_calls.py", "fill"),
}
REST, ALL = "rest", "in all"
COLOURS = {"update": "C0", "products": "C1", "fill": "C2", REST: "C3", ALL: "0.7"}
WHOLE = ("train_step/arguments.py", "train_step")


@dataclass(frozen=True)
class Rung:
    """What is compiled, and the post's seconds: in all, and of its parts if it has them."""

    what: str
    seconds: float | None = None
    parts: Mapping[str, float] | None = None


RUNGS = {
    "cpu.numpy": Rung("nothing compiled", 755, {"update": 448, "products": 187, "fill": 32, REST: 88}),
    "cpu.cython_untyped": Rung("the script\nas it is", 800),
    "cpu.cython_typed": Rung("the script\nwith types", 777),
    "cpu.cython_update": Rung("the update", 727),
    "cpu.cython_fused": Rung("all that the\nprofile names"),
}


def prepare(name: str) -> dict[str, Callable[[], Any]]:
    """The call of a rung, whose first step has been checked. Raises LookupError and Skip."""
    return {name: cell.prepare(name, PROBLEM, operation="train_step").call}


def measure(calls: Mapping[str, Callable[[], Any]]) -> Iterator[dict[str, Watched]]:
    """Seconds of a step by rung, on one thread, so far after each round."""
    return watched.measure(calls, _parts, ROUNDS)


def _parts(profile: cProfile.Profile) -> dict[str, float]:
    """Seconds of one step by part; none of them is called by another."""
    found = dict.fromkeys((*PARTS, REST), 0.0)
    for entry in profile.getstats():
        code: Any = entry.code
        if isinstance(code, str):
            continue
        place = "/".join(Path(code.co_filename).parts[-2:]), code.co_name
        if place == WHOLE:
            found[REST] += entry.totaltime
        for part, function in PARTS.items():
            if place == function:
                found[part] += entry.totaltime
                found[REST] -= entry.totaltime
    return found


def draw(found: Mapping[str, Watched], title: str, path: Path) -> None:
    """A bar for each rung, of its parts in as many steps as the post made, and the post's bars beside them. Raises OSError.

    The bars are times under the profiler, the figures on them those without it.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(11, 5), layout="constrained")
    here, there = figure.subplots(1, 2, width_ratios=(max(len(found), 2), 4))
    for name, each in found.items():
        label = f"{name}\n{RUNGS[name].what}" if name in RUNGS else name
        _stack(here, label, {part: STEPS * seconds for part, seconds in each.parts.items()}, STEPS * each.seconds)
    for rung in RUNGS.values():
        if rung.seconds:
            _stack(there, rung.what, rung.parts or {ALL: rung.seconds}, rung.seconds)
    here.set_title(f"here: {STEPS:,} times the median step", fontsize=10)
    there.set_title("the post: its twenty epochs", fontsize=10)
    here.set_ylabel("seconds")
    for axes in (here, there):
        axes.tick_params(axis="x", labelsize=7)
    here.legend(handles=[Patch(color=colour, label=part) for part, colour in COLOURS.items()], fontsize=8, loc="upper right")
    figure.suptitle(title)
    figure.savefig(path, dpi=110)


def _stack(axes: Any, label: str, parts: Mapping[str, float], seconds_in_all: float) -> None:
    bottom = 0.0
    for part, seconds in parts.items():
        axes.bar([label], [seconds], bottom=[bottom], color=COLOURS[part])
        bottom += seconds
    axes.annotate(f"{seconds_in_all:.0f}", (label, bottom), ha="center", va="bottom", fontsize=8)
