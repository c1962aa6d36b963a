"""One problem of docs/speed.md: torch, OpenCV, a copy and our implementations, checked and timed in turn. Stores nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from benchmarks.commands.interleaved import Candidates
from benchmarks.errors import Skip
from benchmarks.harness import cell, side_file
from benchmarks.timing import limits, memory, stopping, threads
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads.convolutions import Convolution
from benchmarks.workloads.problems import Problem

BY_RULE = "cpu.auto by rule"
PACKED = " packed once"  # behind a name: its weights packed beforehand
MIN_SAMPLES = 7  # of each candidate, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, a {"cell": result} for each candidate, and {"facts": ...}.

    request: operation; problem, as a label; threads; names of candidates: "torch", "opencv" and "copy" are the calls
    themselves, without a line of ours around them, "limit" is a copy that moves as many bytes as the problem must,
    "cpu.auto by rule" is cpu.auto without its measurements, and the others are implementations; seconds of timed blocks
    for each; within: rivals, and by which factor they may be slower than the fastest, or they are left out, as they are where
    cutoffs.toml has them too slow; comparisons: [ours, than, min_ratio] where a goal wants ours to be that many times as
    fast: all are sampled until that is decided, up to stopping.MAX_LOOKS times as much. An implementation that can pack
    weights beforehand, and is not only a rival, is a second candidate with them packed, as inference has it: "<name> packed
    once". Raises ValueError for a label that is none, or more threads than cores.
    """
    memory.keep_freed_memory()
    operation = request["operation"]
    candidates = Candidates(cell.kind(operation).parse(request["problem"]), request["threads"], operation)
    within = request.get("within", {"rivals": []})
    for name in request["names"]:
        yield {"preparing": name}
        make = _rival if name in within["rivals"] else OTHERS.get(name, _ours)
        candidates.add(name, functools.partial(make, candidates, name))
        if name in candidates.ready and name not in (*OTHERS, *within["rivals"]) and cell.load(name, operation).prepare:
            candidates.add(f"{name}{PACKED}", functools.partial(_packed, candidates, name))
    threads.set_pools(candidates.count)
    if rivals := [name for name in candidates.ready if name in within["rivals"]]:
        candidates.leave_out(rivals, within["factor"])
    comparisons = [stopping.Comparison(*each) for each in request.get("comparisons", ())]
    for share in candidates.in_turn(request["seconds"], MIN_SAMPLES, comparisons=comparisons):
        yield {"sampled": share}
    # A candidate that changes a pool and leaves it so changes the others' times.
    pools = threads.require_pools(candidates.count)
    results = candidates.results()
    yield from ({"cell": result} for result in results)
    samples = {result["name"]: result["samples"] for result in results if "samples" in result}
    intervals = [[*pair, *bounds] for pair, bounds in stopping.intervals(comparisons, samples).items()]
    yield {"facts": {"pools": pools, "intervals": intervals, "versions": side_file.versions()}}


def _ours(candidates: Candidates, name: str) -> PreparedCell:
    return candidates.check(name, cell.load(name, candidates.task.operation))


def _rival(candidates: Candidates, name: str) -> PreparedCell:
    if reason := cell.too_slow(name, candidates.task):
        raise Skip(f"too slow here: {reason}")
    return OTHERS.get(name, _ours)(candidates, name)


def _packed(candidates: Candidates, name: str) -> PreparedCell:
    function, (input, weight) = cell.load(name, "conv2d"), candidates.arrays
    convolve = function.prepare(weight, **candidates.problem.arguments)
    return candidates.check(f"{name}{PACKED}", function, call=functools.partial(convolve, input))


def _by_rule(candidates: Candidates, name: str) -> PreparedCell:
    """cpu.auto as on a machine that was never tuned."""
    from impls.conv2d.cpu import auto

    call = functools.partial(auto.convolve, *candidates.arrays, **candidates.problem.arguments, source="rules")
    return candidates.check(name, cell.load("cpu.auto", "conv2d"), call=call)


def _limit(candidates: Candidates, name: str) -> PreparedCell:
    return limits.copying(candidates.task.describe()["bytes"], candidates.count)


@dataclass(frozen=True)
class Bare:
    """The declarations that the check needs of a call that is not an implementation's."""

    to_numpy: Callable[[Any], np.ndarray]
    device: str = "cpu"
    arrays: str = "numpy"
    family: str = "library"

    def unsupported(self, *shapes: tuple[int, ...], **arguments: Any) -> None:
        """Return None: the caller selects supported problems."""

    def synchronize(self) -> None:
        """Do nothing: there is nothing to wait for."""


def _bare(candidates: Candidates, name: str) -> PreparedCell:
    try:
        call, to_numpy = BARE[name](candidates.problem, *candidates.arrays)
    except ImportError as error:
        raise Skip(f"unavailable: {error}") from error
    (known,) = cast(Convolution, candidates.task).known
    if name == "copy":
        pixels = candidates.arrays[0].reshape(-1)[known.positions].astype(np.float64)
        known = replace(known, values=pixels, magnitudes=abs(pixels))
    return candidates.check(name, Bare(to_numpy), call=call, known=[known])


def _torch(problem: Problem, input: np.ndarray, weight: np.ndarray) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    import torch

    tensors = torch.from_numpy(input), torch.from_numpy(weight)
    settings = problem.stride, problem.padding, problem.dilation, problem.groups
    return functools.partial(torch.nn.functional.conv2d, *tensors, None, *settings), lambda output: output.numpy()


def _opencv(problem: Problem, input: np.ndarray, weight: np.ndarray) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    import cv2

    _require_one_image(problem)
    # Its anchor is the kernel's middle unless told, and what lies beyond a constant border is zero.
    call = functools.partial(cv2.filter2D, input[0, 0], -1, weight[0, 0], borderType=cv2.BORDER_CONSTANT)
    return call, lambda output: output.reshape(problem.output_shape)


def _copy(problem: Problem, input: np.ndarray, weight: np.ndarray) -> tuple[Callable[[], Any], Callable[[Any], np.ndarray]]:
    _require_one_image(problem)
    return input.copy, lambda output: output


def _require_one_image(problem: Problem) -> None:
    keeps = problem.input_shape == problem.output_shape and problem.stride == problem.dilation == 1
    if problem.n != 1 or problem.weight_shape[:2] != (1, 1) or not keeps:
        raise Skip("unsupported: only one image of one channel, filtered to its own size")


BARE = {"torch": _torch, "opencv": _opencv, "copy": _copy}
OTHERS = {**dict.fromkeys(BARE, _bare), BY_RULE: _by_rule, "limit": _limit}
