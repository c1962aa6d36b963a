"""Contenders in one process: sampled in turn, and whoever is wrong has no time."""

import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_clock import Fake
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.commands import interleaved
from benchmarks.commands import speed as suite
from benchmarks.harness.asv_types import Skip
from benchmarks.timing import clock, stopping
from benchmarks.timing.threads import cores
from benchmarks.workloads import inputs
from benchmarks.workloads.problems import Problem

ROOT = Path(__file__).parents[3]
SMALL = "n1c1h9w12k1r3s3p1"


# Turns


@given(st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=6), st.floats(0.001, 0.5), st.integers(1, 9))
def test_everybody_is_sampled_often_enough_and_over_the_whole_time(calls, seconds, least):
    blocks, measured = {f"{i}": Fake(call) for i, call in enumerate(calls)}, {}
    made, shares = [], []
    for share in clock.in_turn(blocks, seconds, least, measured):
        made.append({name: len(block.blocks) for name, block in blocks.items()})
        shares.append(share)
    assert shares == [(i + 1) / len(shares) for i in range(len(shares))]
    for name, block in blocks.items():
        samples, number = measured[name].samples, measured[name].number
        assert len(samples) == max(least, math.ceil(seconds / (block.seconds * number)))
        assert samples == pytest.approx([block.seconds] * len(samples))
        assert measured[name].called == pytest.approx(sum(block.blocks) * block.seconds)
        assert block.blocks[-2 * len(samples) :] == [1, number] * len(samples)  # a call that is not counted, then the block
        before = len(block.blocks) - 2 * len(samples)
        assert [count[name] - before for count in made] == [
            2 * ((i + 1) * len(samples) // len(made)) for i in range(len(made))
        ]


def test_the_order_changes_from_turn_to_turn():
    order = []

    class Named(Fake):
        def __call__(self, number):
            order.append(self.name)
            return super().__call__(number)

    blocks = {name: Named(0.02) for name in "abc"}
    for name, block in blocks.items():
        block.name = name
    turns = len(list(clock.in_turn(blocks, 0.4, 1, {})))
    pairs = order[-6 * turns :]
    assert pairs[::2] == pairs[1::2]
    rounds = ["".join(pairs[i : i + 6 : 2]) for i in range(0, 6 * turns, 6)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    assert len(set(rounds)) > 3


def test_nobody_is_sampled_in_no_time():
    assert list(clock.in_turn({}, 1.0, 7, {})) == []


@given(st.integers(1, 4), st.integers(0, 5), st.integers(1, 5))
def test_as_long_as_something_is_undecided_all_are_sampled_on(contenders, rounds, most):
    """rounds: how many of them leave it open."""
    blocks, measured = {f"{i}": Fake(0.02) for i in range(contenders)}, {}
    asked = []

    def undecided():
        asked.append({len(each.samples) for each in measured.values()})
        return len(asked) <= rounds

    shares = list(clock.in_turn(blocks, 0.1, 3, measured, undecided, most))
    made = min(most, 1 + rounds)
    assert [len(each.samples) for each in measured.values()] == [5 * made] * contenders
    assert asked == [{5 * (i + 1)} for i in range(min(made, most - 1))]
    assert shares == [(5 * i + turn) / (5 * i + 5) for i in range(made) for turn in range(1, 6)]


noisy = st.lists(st.floats(0.9, 1.1), min_size=5, max_size=30)


@settings(max_examples=50, deadline=None)  # the first call imports SciPy
@given(noisy, noisy, st.floats(0.5, 2.0))
def test_a_comparison_is_decided_where_its_interval_leaves_the_least_out(ours, than, least):
    low, high = stopping.interval(ours, than)
    assert 0.9 / 1.1 - 1e-9 <= low <= statistics.median(than) / statistics.median(ours) <= high <= 1.1 / 0.9 + 1e-9
    samples = {"ours": ours, "than": than}
    comparisons = [stopping.Comparison("ours", "than", least), stopping.Comparison("ours", "gone", 1.0)]
    assert stopping.undecided(comparisons, samples) == (low < least < high)


@pytest.mark.parametrize("count", [7, 14])
def test_what_is_just_as_fast_as_wanted_is_rarely_decided(count):
    """However often it is looked at: of 100 such comparisons five are to be decided, and by chance a few more or less."""
    generator, decided = np.random.default_rng(1), 0
    for _ in range(200):
        every = generator.lognormal(0, 0.1, (2, stopping.MOST * count))
        looks = ({"ours": every[0, :n], "than": 1.3 * every[1, :n]} for n in range(count, stopping.MOST * count + 1, count))
        decided += not all(stopping.undecided([stopping.Comparison("ours", "than", 1.3)], look) for look in looks)
    assert 1 <= decided <= 24
    assert stopping.interval([1.0], [1.0, 2.0]) == (0.0, math.inf)


class Scripted:
    """A contender whose calls take so long, the last of them ever after."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)
        self.block = lambda number: self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


def test_nobody_is_left_out_for_a_few_calls():
    contenders = {
        "fast": Scripted(0.01),
        "slow at first": Scripted(0.3, 0.3, 0.3, 0.011),
        "slow too long": Scripted(0.3, 0.3, 0.3, 0.3, 0.011),
        "slow": Scripted(0.3),
        "slow, not a rival": Scripted(0.3),
    }
    ready = interleaved.Contest.__new__(interleaved.Contest)
    ready.ready, ready._results = dict(contenders), {name: {"name": name} for name in contenders}
    ready.leave_out(["slow at first", "slow too long", "slow", "not there"], 3.0)
    assert list(ready.ready) == ["fast", "slow at first", "slow, not a rival"]
    assert ready._results["slow"]["reason"] == "left out: a call takes 30 times as long as the fastest's"


def test_what_has_to_be_known_of_times_stands_beside_them():
    """On a device, launches that could not be left out of the time, or a clock that was held back."""
    entered = interleaved.Contest.__new__(interleaved.Contest)
    entered.ready, entered._results = {}, {}
    said = {"quiet": {}, "late": {"remark": "launches"}, "hot": {"remark": "launches", "held_back": "its temperature"}}
    for name, reservations in said.items():
        entered.ready[name] = SimpleNamespace(block=clock.Block(), verify=lambda output: {})
        vars(entered.ready[name].block).update(reservations)
        entered._results[name] = {"name": name}
    entered.measured = dict.fromkeys(said, clock.Measurement([1.0], 1, 1.0))
    assert [(each["status"], each.get("reason")) for each in entered.results()] == [
        ("ok", None),
        ("ok", "launches"),
        ("ok", "its temperature held the device's clock back while this was measured"),
    ]


# The calls themselves


def test_torch_is_called_without_a_line_of_ours():
    torch = pytest.importorskip("torch")
    problem = Problem.parse("n2c4h9w7k6r3s2t2p1x0d2g2")
    input, weight = inputs.make(problem)
    call, to_numpy = suite.BARE["torch"](problem, input, weight)
    assert call.func is torch.nn.functional.conv2d
    assert call.keywords == {}
    image, taps, bias, *settings = call.args
    assert (image.data_ptr(), taps.data_ptr(), bias) == (input.ctypes.data, weight.ctypes.data, None)
    assert settings == [2, (1, 0), 2, 2]
    assert to_numpy(call()).shape == problem.output_shape


def test_opencv_and_a_copy_are_called_without_a_line_of_ours():
    cv2 = pytest.importorskip("cv2")
    problem = Problem.parse(SMALL)
    input, weight = inputs.make(problem)
    call, _ = suite.BARE["opencv"](problem, input, weight)
    assert (call.func, call.keywords) == (cv2.filter2D, {"borderType": cv2.BORDER_CONSTANT})
    image, depth, taps = call.args
    assert (image.ctypes.data, depth, taps.ctypes.data) == (input.ctypes.data, -1, weight.ctypes.data)
    call, _ = suite.BARE["copy"](problem, input, weight)
    assert call.__self__ is input
    assert call.__name__ == "copy"


@pytest.mark.parametrize("name", ["opencv", "copy"])
@pytest.mark.parametrize(
    "label",
    [
        *("n2c1h9w9k1r3s3p1", "n1c2h9w9k1r3s3p1", "n1c1h9w9k2r3s3p1", "n1c2h9w9k2r3s3p1g2"),
        *("n1c1h9w9k1r3s3", "n1c1h9w9k1r3s3t2p5", "n1c1h9w9k1r3s3p2d2"),
    ],
)
def test_what_is_no_filter_of_one_image_is_left_out(name, label):
    problem = Problem.parse(label)
    with pytest.raises(Skip, match="only one image of one channel"):
        suite.BARE[name](problem, *inputs.make(problem))


# One problem


def ask(question, code=""):
    """The events of one question, in a process of its own as threads and cores are set in it; code comes first."""
    script = (
        "import json, sys; sys.path.append('.'); from benchmarks.commands import speed; from benchmarks.harness import cell\n"
        + code
    )
    script += "\nfor event in speed.run(json.loads(sys.argv[1])): print(json.dumps(event))"
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps({"operation": "conv2d", "threads": 1, "seconds": 0.02, **question})],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.skipif(len(cores()) < 2, reason="one core"))])
def test_a_problem_is_measured_by_everybody(count):
    names = ["torch", "opencv", "copy", "cpu.shift", "cpu.gone"]
    events, _ = ask({"problem": SMALL, "names": names, "threads": count})
    assert [event["preparing"] for event in events if "preparing" in event] == names
    assert [event["sampled"] for event in events if "sampled" in event][-1] == 1.0
    *cells, gone = (event["cell"] for event in events if "cell" in event)
    assert gone == {"name": "cpu.gone", "status": "skipped", "reason": "not in this commit"}
    assert [(cell["name"], cell["status"]) for cell in cells] == [(name, "ok") for name in names[:-1]]
    for cell in cells:
        assert len(cell["samples"]) >= suite.LEAST
        assert min(cell["samples"]) > 0
        assert cell["relative_l2"] < 1e-6
    assert cells[2]["relative_l2"] == 0
    facts = events[-1]["facts"]
    assert set(facts["pools"].values()) == {count}
    assert {"torch", "opencv"} < set(facts["pools"])
    assert {"numpy", "torch", "Cython"} <= set(facts["versions"])


def test_what_is_compared_is_sampled_until_it_is_decided():
    """Whether somebody is as fast as himself is hardly ever decided; whether a thousand times as fast as a copy at once."""
    comparisons = [["twin", "cpu.shift", 1.0], ["cpu.shift", "copy", 1000.0], ["cpu.shift", "gone", 1.0]]
    twin = "known = cell.load; cell.load = lambda name, operation: known(name.replace('twin', 'cpu.shift'), operation)\n"
    names = ["cpu.shift", "twin", "copy"]
    events, said = ask({"problem": SMALL, "names": names, "seconds": 0.1, "comparisons": comparisons}, twin)
    counts = [len(event["cell"]["samples"]) for event in events if "cell" in event]
    first, second = events[-1]["facts"]["intervals"]
    assert (first[:2], second[:2]) == (["twin", "cpu.shift"], ["cpu.shift", "copy"]), said
    assert first[2] < first[3]
    assert second[2] < second[3] < 1000
    assert not first[2] < 1.0 < first[3] or min(counts) >= suite.stopping.MOST * suite.LEAST


def test_another_operation_with_its_limit():
    names = ["cpu.torch_fused", "cpu.numpy", "limit"]
    events, _ = ask({"operation": "adam_step", "problem": "n100000", "names": names})
    cells = [event["cell"] for event in events if "cell" in event]
    assert [(cell["name"], cell["status"]) for cell in cells] == [(name, "ok") for name in names]
    assert max(cell["relative_l2"] for cell in cells[:2]) < 1e-6
    assert statistics.median(cells[2]["samples"]) < statistics.median(cells[1]["samples"])


def test_who_is_far_too_slow_is_left_out_where_that_judges_nothing():
    names = ["torch", "cpu.cython_packed", "cpu.loops", "cpu.sliced_loops"]
    within = {"rivals": ["cpu.loops", "cpu.cython_packed"], "factor": 5.0}
    events, _ = ask({"problem": SMALL, "names": names, "within": within})
    cells = {event["cell"]["name"]: event["cell"] for event in events if "cell" in event}
    assert [*cells] == names  # nor are a rival's weights packed once
    assert [name for name, cell in cells.items() if cell["status"] == "ok"] == [
        "torch",
        "cpu.cython_packed",
        "cpu.sliced_loops",
    ]
    assert re.fullmatch(r"left out: a call takes \S+ times as long as the fastest's", cells["cpu.loops"]["reason"])
    within = {"rivals": ["cpu.opencv"], "factor": 1e9}
    events, _ = ask({"problem": "n1c256h8w8k128r1s1", "names": ["torch", "cpu.opencv"], "within": within})
    (reason,) = (event["cell"].get("reason") for event in events if event.get("cell", {}).get("name") == "cpu.opencv")
    assert reason.startswith("too slow here: ")


def test_what_nobody_can_measure_is_an_error():
    command = [sys.executable, "-m", "benchmarks", "speed"]
    for question, word in (({"problem": "x"}, "'x' is not a problem's label"), ({"problem": SMALL, "threads": 999}, "cores")):
        question = {"operation": "conv2d", "threads": 1, "names": [], "seconds": 0.1, **question}
        done = subprocess.run([*command, json.dumps(question)], cwd=ROOT, capture_output=True, text=True, check=False)
        assert word in json.loads(done.stdout)["error"]


def test_a_kept_process_answers_one_question_after_another():
    good = {"operation": "conv2d", "problem": SMALL, "threads": 1, "names": ["torch", "cpu.shift"], "seconds": 0.01}
    questions = [good, {**good, "problem": "x"}, good]
    command = [sys.executable, "-m", "benchmarks", "speed"]
    given = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, timeout=120, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [i for i, event in enumerate(events) if "ended" in event]
    assert [events[i]["ended"] for i in ends] == [0, 0, 0]
    answers = [events[start:end] for start, end in zip([0, *(i + 1 for i in ends)], ends, strict=False)]
    for answer in (answers[0], answers[2]):
        assert [event["cell"]["status"] for event in answer if "cell" in event] == ["ok", "ok"]
    (error,) = answers[1]
    assert "'x' is not a problem's label" in error["error"]


FAULTS = """
import dataclasses
import cv2, functools, impls, numpy as np
right = impls.load("cpu.shift")
kept = []

def border(output, *_):
    output[..., -1, :] = 0
    return output

def nan(output, *_):
    output[0, 0, 3, 4] = np.nan
    return output

def later(output, input, calls):
    return output * (1.001 if calls > 1 else 1)

def remembered(output, input, calls):
    kept.append(output)
    return kept[0]

def greedy(output, input, calls):
    input *= 0.5
    return output

def unwell(output, *_):
    raise RuntimeError("not today")

def made(fault):
    calls = []
    def function(input, *arguments, **settings):
        calls.append(1)
        return fault(right(input, *arguments, **settings), input, len(calls))
    return dataclasses.replace(right, function=function)

def packs(fault):
    function = lambda weight, **settings: lambda input: fault(right(input, weight, **settings))
    return dataclasses.replace(right, prepare=function)

def refuses(weight, **settings):
    raise RuntimeError("not today")

faults = {each.__name__: made(each) for each in (border, nan, later, remembered, greedy, unwell)}
faults |= {"right": right, "packs": packs(lambda output: output), "packs_wrong": packs(lambda output: 2 * output)}
faults |= {"refuses": dataclasses.replace(right, prepare=refuses)}
cell.load = lambda name, operation: faults[name]
"""


def test_whoever_is_wrong_has_no_time():
    names = ["torch", "border", "nan", "later", "remembered", "greedy", "unwell", "packs", "packs_wrong", "refuses", "right"]
    events, said = ask({"problem": SMALL, "names": names}, FAULTS)
    cells = {event["cell"]["name"]: event["cell"] for event in events if "cell" in event}
    assert cells, said
    packed = ["packs packed once", "packs_wrong packed once", "refuses packed once"]
    assert set(cells) == {*names, *packed}
    right = {"torch", "packs", "packs packed once", "packs_wrong", "refuses", "right"}
    assert {name for name, cell in cells.items() if cell["status"] == "ok"} == right
    assert all(("samples" in cell) == (cell["status"] == "ok") for cell in cells.values())
    for name, words in {
        "border": "WrongAnswer: relative L2 error",
        "nan": "WrongAnswer: the output is nan at n=0, k=0, p=3, q=4",
        "later": "WrongAnswer: after timing: relative L2 error",
        "remembered": "WrongAnswer: after timing: with the input negated",
        "greedy": "WrongAnswer: it changed what it was given",
        "unwell": "RuntimeError: not today",
        "packs_wrong packed once": "WrongAnswer: relative L2 error",
        "refuses packed once": "RuntimeError: not today",
    }.items():
        assert cells[name]["reason"].startswith(words), name


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("copy", "lambda problem, input, weight: (lambda: input * 1.00001, lambda output: output)"),
        ("copy", "lambda problem, input, weight: (lambda: input[:, :, :-1].copy(), lambda output: output)"),
        (
            "opencv",
            "lambda problem, input, weight: (functools.partial(cv2.filter2D, input[0, 0], -1, weight[0, 0]),"
            " lambda output: output.reshape(problem.output_shape))",  # mirrored at the border
        ),
    ],
)
def test_the_others_are_judged_as_ours_are(name, call):
    events, said = ask({"problem": SMALL, "names": [name, "right"]}, FAULTS + f"speed.BARE[{name!r}] = {call}")
    statuses = [(event["cell"]["name"], event["cell"]["status"]) for event in events if "cell" in event]
    assert statuses == [(name, "failed"), ("right", "ok")], said


def test_a_pool_that_is_changed_and_left_so_spoils_all_times():
    greed = """
import threadpoolctl
def threaded(output, input, calls):
    threadpoolctl.ThreadpoolController().limit(limits=2)
    return output
faults["threaded"] = made(threaded)
"""
    events, said = ask({"problem": SMALL, "names": ["right", "threaded"]}, FAULTS + greed)
    assert not [event for event in events if "cell" in event]
    assert "PoolError: asked for 1 threads, but " in said.splitlines()[-1]
