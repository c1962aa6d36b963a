"""Prepares one cell: the implementation loaded, the threads set, the first output compared with the reference."""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import clock, inputs, memory, operations, oracle, threads
from benchmarks.problems import Problem
from benchmarks.types import Skip

CHECKOUT = Path(__file__).parents[1]


@dataclass
class Cell:
    """One thing to time: a call, blocks of it, and the judge of its last output.

    verify judges the last timed output: it returns what it found (errors, and "called", the seconds of a call it made
    itself) for the side file, or raises WrongAnswer.
    threads: what each pool said it has. called: seconds spent in calls while preparing.
    """

    call: Callable[[], Any]
    block: clock.Block
    verify: Callable[[Any], dict[str, Any]]
    threads: dict[str, int]
    called: float = 0.0
    device: str = "cpu"


def implementations(operation: str = "conv2d") -> list[str]:
    """The names of the newest checkout's implementations: its files, never what is installed.

    asv addresses cells by index, and every process builds the list anew: if it depended on what is installed, a time
    would be stored under another implementation's name.
    """
    files = (CHECKOUT / "impls" / operation).glob("*/[!_]*.py")
    return sorted(f"{path.parent.name}.{path.stem}" for path in files)


@functools.cache  # every class has them
def declarations(operation: str = "conv2d") -> dict[str, dict[str, Any]]:
    """What those files declare (device, family, summary), read without importing anything.

    With "on_request" for those that limits.toml leaves out of runs which do not name them.
    """
    found = {}
    for name in implementations(operation):
        try:
            tree = ast.parse((CHECKOUT / "impls" / operation / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):  # half a file in the working tree: its own cells will say so
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
        if on_request(name, operation):
            found[name]["on_request"] = True
    return found


def prepare(name: str, problem: Problem, count: int = 1, operation: str = "conv2d") -> Cell:
    """Prepare `name` for a problem on `count` threads; its whole first output is checked.

    Raises Skip, with the reason, for a cell that has no time, and oracle.WrongAnswer for one that must not have one.
    """
    memory.keep_freed_memory()
    if reason := too_slow(name, problem, operation):
        raise Skip(f"too slow here: {reason}")
    function = load(name, operation)
    require_support(function, problem, operation)
    try:
        arrays = inputs.make(problem, operation)
    except inputs.Missing as error:
        raise Skip(f"no input: {error}") from error
    prints = tuple(map(inputs.fingerprint, arrays))
    tensors = dict(zip(operations.OPERATIONS[operation].given, arrays, strict=True))
    known = [
        inputs.cached_reference(problem, prints, functools.partial(oracle.reference, problem, **tensors, of=of), of)
        for of in operations.OPERATIONS[operation].returned
    ]
    threads.confine(count)
    pools = threads.set_pools(count)
    return check(function, problem, arrays, known, pools, operation)


def check(
    function: Any,
    problem: Problem,
    arrays: Sequence[np.ndarray],
    known: Sequence[oracle.Reference],
    pools: dict[str, int],
    operation: str = "conv2d",
    call: Callable[[], Any] | None = None,
) -> Cell:
    """Make the cell of a loaded implementation; raises oracle.WrongAnswer where its first output is wrong.

    After timing, the cell's verify looks at the last timed output, and at one more of the negated input: an
    implementation that remembers its answers is right only until its input changes. known: a reference for each array
    that the operation returns. call: what is timed, where that is not the implementation with the arrays as its arguments.
    """
    if call is None:
        given = map(function.to_device, arrays)
        call = functools.partial(function, *given, **operations.arguments(operation, problem))
    prints = tuple(map(inputs.fingerprint, arrays))
    start = perf_counter()
    output = call()
    function.synchronize()
    called = perf_counter() - start
    for reference, part in _parts(known, function.to_numpy(output)):
        oracle.compare(problem, function.family, reference, part)
    if prints != tuple(map(inputs.fingerprint, arrays)):
        raise oracle.WrongAnswer("it changed what it was given")

    def judge(references: Sequence[oracle.Reference], output: Any) -> dict[str, float]:
        found = [
            oracle.compare_at(problem, function.family, reference, part.reshape(-1)[reference.positions])
            for reference, part in _parts(references, output)
        ]
        return {name: max(getattr(errors, name) for errors in found) for name in ("relative_l2", "worst")}

    def verify(last: Any) -> dict[str, Any]:
        facts = {**judge(known, function.to_numpy(last)), "called": 0.0}
        if function.device == "cpu":  # a device has a copy of its own
            np.negative(arrays[0], out=arrays[0])
            start = perf_counter()
            output = call()
            facts["called"] = perf_counter() - start
            np.negative(arrays[0], out=arrays[0])
            try:
                judge([reference.negated() for reference in known], output)
            except oracle.WrongAnswer as error:
                raise oracle.WrongAnswer(f"with the input negated, {error}") from error
        return facts

    finish = None if function.device == "cpu" else function.synchronize
    return Cell(call, clock.Wall(call, finish), verify, pools, called, function.device)


def _parts(known: Sequence[oracle.Reference], output: Any) -> list[tuple[oracle.Reference, Any]]:
    """Each array that was returned, beside its reference."""
    parts = output if isinstance(output, tuple) else (output,)
    if len(parts) != len(known):
        raise oracle.WrongAnswer(f"it returned {len(parts)} arrays, not {len(known)}")
    return list(zip(known, parts, strict=True))


def too_slow(name: str, problem: Problem, operation: str = "conv2d") -> str | None:
    """Say in words by how much a problem is beyond an implementation's declared limit, or None."""
    _, _, p, q = problem.output_shape
    work = {
        "flops": (operations.flops(operation, problem), "FLOPs"),
        "patches": (problem.n * problem.c * p * q * problem.r * problem.s, "patch elements"),
        "pairs": (problem.n * problem.k * problem.c // problem.groups, "pairs of images"),
        "taps": (problem.k * problem.taps, "passes over an image"),
        "outputs": (problem.outputs, "outputs"),
    }
    for kind, limit in _limits(name, operation).items():
        if kind == "problems" and problem.label in limit:
            return "declared so for this problem"
        if kind == "only" and problem.label not in limit:
            return "declared so for all but named layers"
        if kind not in work:
            continue
        amount, unit = work[kind]
        if amount > limit:
            return f"{amount:.2g} {unit}, over its declared limit of {limit:.2g}"
    return None


def on_request(name: str, operation: str = "conv2d") -> bool:
    """Is an implementation measured by those runs alone that name it?"""
    return bool(_limits(name, operation).get("on_request"))


def preload() -> None:
    """Import what the CPU implementations of the installed commit import, and run nothing of it on several threads.

    The others stay out: a forked child cannot use a CUDA library that its parent has imported. A file that cannot be
    imported says so in its own cells.
    """
    with contextlib.suppress(Exception):
        import impls

        for operation in operations.OPERATIONS:
            with contextlib.suppress(LookupError):  # a commit from before the operation
                for name in impls.names(operation):
                    with contextlib.suppress(Exception):
                        if impls.contract.declaration(name, operation)["device"] == "cpu":
                            impls.load(name, operation)
        if numba := sys.modules.get("numba"):
            numba.njit(lambda value: value)(0)  # the first compilation takes 0.2 s, in every child if not here


def require_support(function: Any, problem: Problem, operation: str = "conv2d") -> None:
    """Raise Skip, with the reason, where an implementation cannot do the problem."""
    shapes = (operations.shape(problem, tensor) for tensor in operations.OPERATIONS[operation].given)
    if reason := function.unsupported(*shapes, **operations.arguments(operation, problem), dtype=problem.dtype):
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


def _limits(name: str, operation: str) -> dict[str, Any]:
    return _all_limits().get(name if operation == "conv2d" else f"{operation}/{name}", {})


@functools.cache
def _all_limits() -> dict[str, dict[str, Any]]:
    with Path(__file__).with_name("limits.toml").open("rb") as file:
        return tomllib.load(file)
