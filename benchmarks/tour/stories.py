"""The five stories, told one after the other, each in a process of its own."""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.commands import fork_server
from benchmarks.harness import cell
from benchmarks.timing import threads
from benchmarks.tour import page
from benchmarks.tour.steps import Event, Setting, Step, tell
from benchmarks.tour.story_adam import STEPS as ADAM
from benchmarks.tour.story_loops import STEPS as LOOPS
from benchmarks.tour.story_readers import STEPS as READERS
from benchmarks.tour.story_shifts import STEPS as SHIFTS
from benchmarks.tour.story_vision import STEPS as VISION

LIBRARIES = ("numba", "torch", "cv2")  # their pools are made for the cores that the process has when they are imported
FOLDER = cell.CHECKOUT / ".convbench" / "tour"


@dataclass(frozen=True)
class Story:
    """A story: its number among the texts, its title, and where it comes from."""

    number: str
    title: str
    source: str
    steps: tuple[Step, ...]


STORIES = {
    "loops": Story("S0", "Four loops, and what a profiler says of them", "A French course page on profiling", LOOPS),
    "readers": Story("S1", "Reading tiles, and training on them", "A Spanish post on benchmarking with PyTorch", READERS),
    "adam": Story("S2", "What to compile", "A Japanese post on Cython and Chainer's MNIST example", ADAM),
    "vision": Story("S3", "Less work, batches, fusion", "Notes on speeding up a program for computer vision", VISION),
    "shifts": Story("S4", "Your own convolution", "An English post on convolution in PyTorch", SHIFTS),
}


def run(request: dict[str, Any]) -> Iterator[Event]:
    """Yield progress, {"step": where the tour is}, {"told": a step, as steps.told() has it} and, if asked, {"page": HTML}.

    request: story, one of STORIES, or None for all; fast; page, whether one is wanted. Raises LookupError and ValueError.
    """
    settings = {"story": None, "fast": False, "page": False}
    if unknown := set(request) - set(settings):
        raise ValueError(f"a request has {', '.join(settings)}, not {', '.join(sorted(unknown))}")
    settings |= request
    name, fast = settings["story"], bool(settings["fast"])
    if name is not None and name not in STORIES:
        raise LookupError(f"no story is called {name!r}; there are {', '.join(STORIES)}")
    every: list[Event] = []
    for event in one(name, fast) if name else _each_apart(fast):
        if "told" in event:
            every.append(event["told"])
        yield event
    if settings["page"]:
        yield {"page": page.html(every, {name: _named(story) for name, story in STORIES.items()})}


def one(name: str, fast: bool) -> Generator[Event, None, None]:
    """Tell one story in this process."""
    cores = ready()
    steps = STORIES[name].steps
    for count, step in enumerate(steps, 1):
        yield {"step": {"story": name, "count": count, "of": len(steps), "title": step.title}}
        yield {"told": (yield from tell(name, step, Setting(fast, FOLDER), cores))}


def ready() -> list[int]:
    """Import what makes thread pools, before a step confines this process to one core; return all its cores."""
    cores = threads.cores()
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    return cores


def _each_apart(fast: bool) -> Iterator[Event]:
    """Tell all, each in a process of its own, so that what one leaves behind meets no other."""
    for name in STORIES:
        request = json.dumps({"story": name, "fast": fast})
        command = [sys.executable, "-m", "benchmarks", "tour", request]
        with subprocess.Popen(
            command, cwd=cell.CHECKOUT, stdout=subprocess.PIPE, text=True, preexec_fn=fork_server.end_with_parent
        ) as process:
            for line in process.stdout or ():
                event = json.loads(line)
                if "error" in event:
                    raise ValueError(f"{name}: {event['error']}")
                yield event
        if process.returncode:
            raise ValueError(f"the story {name} ended with status {process.returncode}")


def _named(story: Story) -> dict[str, str]:
    return {"number": story.number, "title": story.title, "source": story.source}
