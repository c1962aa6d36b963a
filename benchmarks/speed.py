"""One problem of docs/speed.md: torch, OpenCV, a copy and our implementations, checked and timed in turn. Stores nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import cell, memory, record, threads
from benchmarks.contest import Contest
from benchmarks.problems import Problem
from benchmarks.types import Skip

LEAST = 7  # samples of each contender, however slow it is


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield events: {"preparing": name}, {"sampled": share}, a {"cell": result} for each contender, and {"facts": ...}.

    request: problem, as a label; threads; names of contenders: "torch", "opencv" and "copy" are the calls themselves,
    without a line of ours around them, and the others implementations; seconds of timed blocks for each. One that can pack
    its weights beforehand is a second contender with its weights packed, as inference has it: "<name> packed once".
    Raises ValueError for a label that is none, or more threads than cores.
    """
    memory.keep_freed_memory()
    contest = Contest(Problem.parse(request["problem"]), request["threads"])
    for name in request["names"]:
        yield {"preparing": name}
        contest.enter(name, functools.partial(_bare if name in BARE else _ours, contest, name))
        if name in contest.ready and name not in BARE and cell.load(name, "conv2d").prepare:
            contest.enter(f"{name} packed once", functools.partial(_packed, contest, name))
    threads.set_pools(contest.count)
    for share in contest.in_turn(request["seconds"], LEAST):
        yield {"sampled": share}
    pools = threads.require_pools(contest.count)  # a contender that changes a pool and leaves it so changes the others' times
    for result in contest.results():
        yield {"cell": result}
    yield {"facts": {"pools": pools, "versions": record.versions()}}


def _ours(contest: Contest, name: str) -> cell.Cell:
    return contest.check(name, cell.load(name, "conv2d"))


def _packed(contest: Contest, name: str) -> cell.Cell:
    function, (input, weight) = cell.load(name, "conv2d"), contest.arrays
    convolve = function.prepare(weight, **contest.problem.arguments)
    return contest.check(f"{name} packed once", function, functools.partial(convolve, input))


@dataclass(frozen=True)
class Bare:
    """What the check needs to know of a call that is not an implementation's."""

    to_numpy: Callable[[Any], np.ndarray]
    device: str = "cpu"
    family: str = "library"

    def unsupported(self, *shapes: tuple[int, ...], **arguments: Any) -> None:
        """Nothing: who makes the call has looked."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


def _bare(contest: Contest, name: str) -> cell.Cell:
    try:
        call, to_numpy = BARE[name](contest.problem, *contest.arrays)
    except ImportError as error:
        raise Skip(f"unavailable: {error}") from error
    known = contest.known
    if name == "copy":
        pixels = contest.arrays[0].reshape(-1)[known.positions].astype(np.float64)
        known = replace(known, values=pixels, magnitudes=abs(pixels))
    return contest.check(name, Bare(to_numpy), call, known)


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
