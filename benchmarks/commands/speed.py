"""One problem of docs/speed.md: torch, OpenCV, a copy and our implementations, checked and timed in turn. Stores nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from benchmarks import ceilings
from benchmarks.commands.interleaved import Contest
from benchmarks.harness import cell, side_file
from benchmarks.harness.asv_types import Skip
from benchmarks.timing import memory, stopping, threads
from benchmarks.workloads.convolutions import Convolution
from benchmarks.workloads.problems import Problem
from benchmarks.workloads.tasks import Cell

BY_RULE = "cpu.auto by rule"
PACKED = " packed once"  # behind a name: its weights packed beforehand
LEAST = 7  # samples of each contender, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, a {"cell": result} for each contender, and {"facts": ...}.

    request: operation; problem, as a label; threads; names of contenders: "torch", "opencv" and "copy" are the calls
    themselves, without a line of ours around them, "limit" is a copy that moves as many bytes as the problem must,
    "cpu.auto by rule" is cpu.auto without its measurements, and the others are implementations; seconds of timed blocks
    for each; within: rivals, and by which factor they may be slower than the fastest, or they are left out, as they are where
    cutoffs.toml has them too slow; comparisons: [ours, than, least] where a goal wants ours to be `least` times as fast: all
    are sampled until that is decided, up to doubt.MOST times as much. Who can pack weights beforehand, and is no mere rival,
    is a second contender with them packed, as inference has it: "<name> packed once". Raises ValueError for a label that is
    none, or more threads than cores.
    """
    memory.keep_freed_memory()
    operation = request["operation"]
    contest = Contest(cell.kind(operation).parse(request["problem"]), request["threads"], operation)
    within = request.get("within", {"rivals": []})
    for name in request["names"]:
        yield {"preparing": name}
        make = _rival if name in within["rivals"] else OTHERS.get(name, _ours)
        contest.enter(name, functools.partial(make, contest, name))
        if name in contest.ready and name not in (*OTHERS, *within["rivals"]) and cell.load(name, operation).prepare:
            contest.enter(f"{name}{PACKED}", functools.partial(_packed, contest, name))
    threads.set_pools(contest.count)
    if rivals := [name for name in contest.ready if name in within["rivals"]]:
        contest.leave_out(rivals, within["factor"])
    comparisons = [stopping.Comparison(*each) for each in request.get("comparisons", ())]
    for share in contest.in_turn(request["seconds"], LEAST, comparisons=comparisons):
        yield {"sampled": share}
    pools = threads.require_pools(contest.count)  # a contender that changes a pool and leaves it so changes the others' times
    results = contest.results()
    yield from ({"cell": result} for result in results)
    samples = {result["name"]: result["samples"] for result in results if "samples" in result}
    intervals = [[*pair, *bounds] for pair, bounds in stopping.intervals(comparisons, samples).items()]
    yield {"facts": {"pools": pools, "intervals": intervals, "versions": side_file.versions()}}


def _ours(contest: Contest, name: str) -> Cell:
    return contest.check(name, cell.load(name, contest.task.operation))


def _rival(contest: Contest, name: str) -> Cell:
    if reason := cell.too_slow(name, contest.task):
        raise Skip(f"too slow here: {reason}")
    return OTHERS.get(name, _ours)(contest, name)


def _packed(contest: Contest, name: str) -> Cell:
    function, (input, weight) = cell.load(name, "conv2d"), contest.arrays
    convolve = function.prepare(weight, **contest.problem.arguments)
    return contest.check(f"{name}{PACKED}", function, call=functools.partial(convolve, input))


def _by_rule(contest: Contest, name: str) -> Cell:
    """What cpu.auto does on a machine that was never tuned."""
    from impls.conv2d.cpu import auto

    call = functools.partial(auto.convolve, *contest.arrays, **contest.problem.arguments, by_rule=True)
    return contest.check(name, cell.load("cpu.auto", "conv2d"), call=call)


def _limit(contest: Contest, name: str) -> Cell:
    return ceilings.copying(contest.task.describe()["bytes"], contest.count)


@dataclass(frozen=True)
class Bare:
    """What the check needs to know of a call that is not an implementation's."""

    to_numpy: Callable[[Any], np.ndarray]
    device: str = "cpu"
    arrays: str = "numpy"
    family: str = "library"

    def unsupported(self, *shapes: tuple[int, ...], **arguments: Any) -> None:
        """Nothing: who makes the call has looked."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


def _bare(contest: Contest, name: str) -> Cell:
    try:
        call, to_numpy = BARE[name](contest.problem, *contest.arrays)
    except ImportError as error:
        raise Skip(f"unavailable: {error}") from error
    (known,) = cast(Convolution, contest.task).known
    if name == "copy":
        pixels = contest.arrays[0].reshape(-1)[known.positions].astype(np.float64)
        known = replace(known, values=pixels, magnitudes=abs(pixels))
    return contest.check(name, Bare(to_numpy), call=call, known=[known])


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
