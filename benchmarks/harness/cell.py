"""Prepares one cell: the implementation loaded, the threads set, the first output checked by its task."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.errors import Missing, Skip
from benchmarks.timing import memory, threads
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads.adam import AdamStep
from benchmarks.workloads.convolutions import Convolution
from benchmarks.workloads.decoding.jpeg_task import DecodeJpeg
from benchmarks.workloads.jpegs import Preprocess
from benchmarks.workloads.operations import OPERATIONS
from benchmarks.workloads.patches import Im2col
from benchmarks.workloads.tasks import Task
from benchmarks.workloads.tile_training import TrainTiles
from benchmarks.workloads.tiles import ReadBatch
from benchmarks.workloads.training import TrainStep

CHECKOUT = Path(__file__).parents[2]
DEVICE_LIBRARIES = ("torch", "cupy", "triton")
FLAGS = ("on_request", "full_only")  # of cutoffs.toml
TASKS: dict[str, type[Task]] = {
    **dict.fromkeys(OPERATIONS, Convolution),
    "adam_step": AdamStep,
    "decode_jpeg": DecodeJpeg,
    "im2col": Im2col,
    "preprocess": Preprocess,
    "read_batch": ReadBatch,
    "train_step": TrainStep,
    "train_tiles": TrainTiles,
}


def kind(operation: str) -> type[Task]:
    """The class of an operation's tasks. Raises LookupError for an operation that the suite does not measure."""
    try:
        return TASKS[operation]
    except KeyError:
        raise LookupError(f"no operation is called {operation!r}; there are {', '.join(TASKS)}") from None


def task(operation: str, problem: Any) -> Task:
    """An operation on a problem."""
    return kind(operation)(operation, problem)  # type: ignore[call-arg]


def implementations(operation: str = "conv2d") -> list[str]:
    """The names of the newest checkout's implementations: its files, never what is installed.

    asv addresses cells by index, and every process builds the list again: if it depended on what is installed, a time
    would be stored under another implementation's name.
    """
    files = (CHECKOUT / "impls" / operation).glob("*/[!_]*.py")
    return sorted(f"{path.parent.name}.{path.stem}" for path in files)


@functools.cache  # every class has them
def declarations(operation: str = "conv2d") -> dict[str, dict[str, Any]]:
    """The declarations of those files (device, family, summary), read without importing anything.

    With those of FLAGS by which cutoffs.toml leaves an implementation out of runs that do not name it.
    """
    found = {}
    for name in implementations(operation):
        try:
            tree = ast.parse((CHECKOUT / "impls" / operation / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # a broken file in the working tree, which its own cells report
            tree = ast.Module([], [])
        words = [
            word
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name == operation
            for decorator in node.decorator_list
            if isinstance(decorator, ast.Call)
            for word in decorator.keywords
        ]
        found[name] = {
            word.arg: ast.literal_eval(word.value) for word in words if word.arg in ("device", "family", "summary")
        }
        found[name] |= {flag: True for flag in FLAGS if _cutoffs(name, operation).get(flag)}
    return found


def prepare(name: str, problem: Any, count: int = 1, operation: str = "conv2d") -> PreparedCell:
    """Prepare `name` for a problem on `count` threads; its whole first output is checked.

    Raises Skip, with the reason, for a cell that has no time, and WrongAnswer for one that must not have one.
    """
    memory.keep_freed_memory()
    wanted = task(operation, problem)
    if reason := too_slow(name, wanted):
        raise Skip(f"too slow here: {reason}")
    function = load(name, operation)
    require_support(function, wanted)
    try:
        wanted.recall()
    except Missing as error:
        raise Skip(f"no input: {error}") from error
    threads.confine(count)
    pools = threads.set_pools(count)
    return wanted.check(function, pools)


def too_slow(name: str, wanted: Task) -> str | None:
    """Say in words by how much a task is beyond an implementation's cutoff, or None."""
    cutoffs, work, label = _cutoffs(name, wanted.operation), wanted.work(), wanted.problem.label
    for kind, cutoff in cutoffs.items():
        if kind == "problems" and label in cutoff:
            return "declared so for this problem"
        if kind == "only" and label not in cutoff:
            return "declared so for all but named layers"
        if kind not in work or label in cutoffs.get("also", ()):
            continue
        amount, unit = work[kind]
        if amount > cutoff:
            return f"{amount:.2g} {unit}, over its declared limit of {cutoff:.2g}"
    return None


def on_request(name: str, operation: str = "conv2d") -> bool:
    """Whether an implementation is measured only by runs that name it."""
    return bool(_cutoffs(name, operation).get("on_request"))


def preload() -> None:
    """Import what the implementations to be measured import, those of the installed commit, and run nothing of it on several
    threads. CONVBENCH_DEVICES says where they compute: "cpu", "cuda" or both.

    CUDA libraries are only imported: a forked child cannot use one that its parent has used. A file that cannot be imported
    says so in its own cells.
    """
    devices = os.environ.get("CONVBENCH_DEVICES", "cpu").split(",")
    if "cuda" in devices:
        for library in DEVICE_LIBRARIES:
            with contextlib.suppress(Exception):
                importlib.import_module(library)
    if "cpu" not in devices:
        return
    with contextlib.suppress(Exception):
        import impls

        for operation in TASKS:
            with contextlib.suppress(LookupError):  # a commit from before the operation
                for name in impls.names(operation):
                    with contextlib.suppress(Exception):
                        if impls.contract.declaration(name, operation)["device"] == "cpu":
                            impls.load(name, operation)
        if numba := sys.modules.get("numba"):
            numba.njit(lambda value: value)(0)  # the first compilation takes 0.2 s, in every child if not here


def require_support(function: Any, wanted: Task) -> None:
    """Raise Skip, with the reason, where an implementation cannot do a task."""
    if reason := wanted.unsupported(function):
        raise Skip(f"unsupported: {reason}")


def load(name: str, operation: str) -> Any:
    """Load from the installed commit, which may lack the package, the operation or the name: Skip says which.

    Whatever else goes wrong is the implementation's own fault and fails its cells.
    """
    try:
        import impls

        if name not in impls.names(operation):
            raise Skip("not in this commit")
    except (ImportError, LookupError) as error:
        raise Skip("not in this commit") from error
    try:
        return impls.load(name, operation)
    except impls.Unavailable as error:
        raise Skip(f"unavailable: {error}") from error


def _cutoffs(name: str, operation: str) -> dict[str, Any]:
    return _all_cutoffs().get(name if operation == "conv2d" else f"{operation}/{name}", {})


@functools.cache
def _all_cutoffs() -> dict[str, dict[str, Any]]:
    with Path(__file__).with_name("cutoffs.toml").open("rb") as file:
        return tomllib.load(file)
