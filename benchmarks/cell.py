"""Prepares one cell: the implementation loaded, the threads set, the first output compared with the reference."""

from __future__ import annotations

import ast
import contextlib
import functools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import clock, inputs, oracle, threads
from benchmarks.problems import Problem
from benchmarks.types import Skip

CHECKOUT = Path(__file__).parents[1]


@dataclass
class Cell:
    """One thing to time: a call, blocks of it, and the judge of its last output.

    verify returns what it found (errors) for the side file, and raises WrongAnswer. threads: what each pool said it has.
    called: seconds spent in calls while preparing.
    """

    call: Callable[[], Any]
    block: clock.Block
    verify: Callable[[Any], dict[str, Any]] = lambda output: {}
    threads: dict[str, int] = field(default_factory=dict)
    called: float = 0.0


def implementations(operation: str = "conv2d") -> list[str]:
    """The names of the newest checkout's implementations: its files, never what is installed.

    asv addresses cells by index, and every process builds the list anew: if it depended on what is installed, a time
    would be stored under another implementation's name.
    """
    files = (CHECKOUT / "impls" / operation).glob("*/[!_]*.py")
    return sorted(f"{path.parent.name}.{path.stem}" for path in files)


def declarations(operation: str = "conv2d") -> dict[str, dict[str, Any]]:
    """What those files declare (device, family, summary), read without importing anything."""
    found = {}
    for name in implementations(operation):
        tree = ast.parse((CHECKOUT / "impls" / operation / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
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
    return found


def prepare(name: str, problem: Problem, count: int = 1, operation: str = "conv2d") -> Cell:
    """Prepare `name` for a problem on `count` threads; its whole first output is checked.

    Raises Skip, with the reason, for a cell that has no time, and oracle.WrongAnswer for one that must not have one.
    """
    if reason := too_slow(name, problem):
        raise Skip(f"too slow here: {reason}")
    function = _load(name, operation)
    if reason := function.unsupported(problem.input_shape, problem.weight_shape, **problem.arguments, dtype=problem.dtype):
        raise Skip(f"unsupported: {reason}")
    try:
        input, weight = inputs.make(problem)
    except inputs.Missing as error:
        raise Skip(f"no input: {error}") from error
    known = inputs.cached_reference(problem, lambda: oracle.reference(problem, input, weight))
    threads.confine(count)
    pools = threads.set_pools(count)
    return check(function, problem, input, weight, known, pools)


def check(
    function: Any,
    problem: Problem,
    input: np.ndarray,
    weight: np.ndarray,
    known: oracle.Reference,
    pools: dict[str, int],
) -> Cell:
    """Make the cell of a loaded implementation; raises oracle.WrongAnswer where its first output is wrong."""
    call = functools.partial(function, function.to_device(input), function.to_device(weight), **problem.arguments)
    start = perf_counter()
    output = call()
    function.synchronize()
    called = perf_counter() - start
    errors = oracle.compare(problem, function.family, known, function.to_numpy(output))

    def verify(last: Any) -> dict[str, Any]:
        """Judge the last timed output at the reference's positions; None where nothing was timed."""
        if last is None:
            return vars(errors)
        values = function.to_numpy(last).reshape(-1)[known.positions]
        return vars(oracle.compare_at(problem, function.family, known, values))

    return Cell(call, clock.Wall(call), verify, pools, called)


def too_slow(name: str, problem: Problem) -> str | None:
    """Say in words by how much a problem is beyond an implementation's declared limit, or None."""
    _, _, p, q = problem.output_shape
    work = {
        "flops": (problem.flops, "FLOPs"),
        "patches": (problem.n * problem.c * p * q * problem.r * problem.s, "patch elements"),
        "pairs": (problem.n * problem.k * problem.c // problem.groups, "pairs of images"),
        "taps": (problem.k * problem.taps, "passes over an image"),
    }
    for kind, limit in _limits().get(name, {}).items():
        if kind == "problems":
            if problem.label in limit:
                return "declared so for this problem"
            continue
        amount, unit = work[kind]
        if amount > limit:
            return f"{amount:.2g} {unit}, over its declared limit of {limit:.2g}"
    return None


def preload() -> None:
    """Import what the CPU implementations of the installed commit import, and run nothing of it.

    The others stay out: a forked child cannot use a CUDA library that its parent has imported. A file that cannot be
    imported says so in its own cells.
    """
    with contextlib.suppress(Exception):
        import impls

        for name in impls.names(device="cpu"):
            with contextlib.suppress(Exception):
                impls.load(name)


def _load(name: str, operation: str) -> Any:
    """Load from the installed commit, which may lack the name, the operation or the contract."""
    try:
        import impls

        return impls.load(name, operation)
    except LookupError as error:
        raise Skip("not in this commit") from error
    except ImportError as error:
        kind = "unavailable" if type(error).__name__ == "Unavailable" else "not in this commit"
        raise Skip(f"{kind}: {error}") from error


@functools.cache
def _limits() -> dict[str, dict[str, Any]]:
    with Path(__file__).with_name("limits.toml").open("rb") as file:
        return tomllib.load(file)
