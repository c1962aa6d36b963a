"""conv2d's dispatcher: the plan of a call is reused for the same problem, and for no other."""

import numpy as np
import pytest

import impls
from impls.contract import implementation, wrap
from impls.conv2d import arguments

X, W = np.arange(50, dtype="float32").reshape(1, 2, 5, 5), np.arange(36, dtype="float32").reshape(2, 2, 3, 3)


class Subclass(np.ndarray):
    """Arrays that the compiled lookup leaves to Python."""


def test_a_problem_is_checked_and_picked_for_once():
    asked = []

    @implementation(device="cpu", family="auto", summary="what is picked")
    def conv2d(*arguments):
        return "itself"

    def no_room(*arguments):
        raise MemoryError

    def pick(*problem):
        asked.append(problem)
        return no_room if problem[2] == (2, 2) else lambda *arguments: ("picked", *arguments[3:])

    mine = wrap("mine.own", conv2d, pick=pick)
    for input in (X, X.view(Subclass), X[:, :, ::-1]):
        assert mine(input, W, padding=1) == ("picked", (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    threads = arguments.thread_count()
    assert asked == [(X.shape, W.shape, (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "float32", threads)]
    with pytest.raises(TypeError, match=r"^padding must be"):
        mine(X, W, padding=1.0)
    assert mine(X, W, stride=2) == mine(X.view(Subclass), W, stride=2) == "itself"
    assert len(asked) == 2


def test_so_many_problems_are_remembered(monkeypatch):
    monkeypatch.setattr(arguments, "MAX_PLANS", 3)
    for rows in range(5, 12):
        impls.load("cpu.shift")(np.ones((1, 2, rows, 5), np.float32), W)
        assert len(arguments.dispatcher) <= 3
