"""Candidates on one problem: the calls themselves, sampled in turn; a wrong candidate is not timed."""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.commands import speed
from benchmarks.errors import Skip
from benchmarks.timing import stopping
from benchmarks.timing.threads import cores
from benchmarks.workloads import inputs
from benchmarks.workloads.problems import Problem

ROOT = Path(__file__).parents[3]
SMALL = "n1c1h9w12k1r3s3p1"


# The calls themselves


def test_torch_is_called_without_a_line_of_ours():
    torch = pytest.importorskip("torch")
    problem = Problem.parse("n2c4h9w7k6r3s2t2p1x0d2g2")
    input, weight = inputs.make(problem)
    call, to_numpy = speed.BARE["torch"](problem, input, weight)
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
    call, _ = speed.BARE["opencv"](problem, input, weight)
    assert (call.func, call.keywords) == (cv2.filter2D, {"borderType": cv2.BORDER_CONSTANT})
    image, depth, taps = call.args
    assert (image.ctypes.data, depth, taps.ctypes.data) == (input.ctypes.data, -1, weight.ctypes.data)
    call, _ = speed.BARE["copy"](problem, input, weight)
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
        speed.BARE[name](problem, *inputs.make(problem))


# One problem


# `python -m benchmarks speed`, but that the code of a question comes first.
SERVER = """
import sys
sys.path.append(".")
sys.argv[1:] = ["speed"]
from benchmarks import __main__ as suite
from benchmarks.commands import speed
from benchmarks.harness import cell

def answer(question, run=speed.run):
    exec(question.pop("code"), globals())
    yield from run(question)

speed.run = answer
suite.main()
"""
THREADS = min(2, len(cores()))


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """A function that asks a question; it returns the events, the last {"ended": status}, and what was printed beside them.

    The suite answers each in a process of its own, where threads and cores are set, forked from one that has loaded the
    libraries.
    """
    with (tmp_path_factory.mktemp("server") / "stderr").open("a+") as errors:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, text=True, **streams) as server:

            def ask(question, code=""):
                asked = {"operation": "conv2d", "threads": THREADS, "seconds": 0.02, "code": code, **question}
                errors.truncate(0)
                server.stdin.write(json.dumps(asked) + "\n")
                server.stdin.flush()
                events = []
                for line in server.stdout:
                    events.append(json.loads(line))
                    if "ended" in events[-1]:
                        break
                errors.seek(0)
                return events, errors.read()

            yield ask
            server.kill()


@pytest.mark.slow
def test_a_problem_is_measured_by_everybody(ask):
    names = ["torch", "opencv", "copy", "cpu.shift", "cpu.gone"]
    events, _ = ask({"problem": SMALL, "names": names})
    assert [event["preparing"] for event in events if "preparing" in event] == names
    assert [event["sampled"] for event in events if "sampled" in event][-1] == 1.0
    *cells, gone = (event["cell"] for event in events if "cell" in event)
    assert gone == {"name": "cpu.gone", "status": "skipped", "reason": "not in this commit"}
    assert [(cell["name"], cell["status"]) for cell in cells] == [(name, "ok") for name in names[:-1]]
    for cell in cells:
        assert len(cell["samples"]) >= speed.MIN_SAMPLES
        assert min(cell["samples"]) > 0
        assert cell["relative_l2"] < 1e-6
    assert cells[2]["relative_l2"] == 0
    facts = events[-2]["facts"]
    assert set(facts["pools"].values()) == {THREADS}
    assert {"torch", "opencv"} < set(facts["pools"])
    assert {"numpy", "torch", "Cython"} <= set(facts["versions"])


@pytest.mark.slow
def test_what_is_compared_is_sampled_until_it_is_decided(ask):
    """A comparison with itself is hardly ever decided; one with a copy a thousand times slower is decided at once."""
    comparisons = [["twin", "cpu.shift", 1.0], ["cpu.shift", "copy", 1000.0], ["cpu.shift", "gone", 1.0]]
    twin = "known = cell.load; cell.load = lambda name, operation: known(name.replace('twin', 'cpu.shift'), operation)\n"
    names = ["cpu.shift", "twin", "copy"]
    events, said = ask({"problem": SMALL, "names": names, "comparisons": comparisons}, twin)
    counts = [len(event["cell"]["samples"]) for event in events if "cell" in event]
    first, second = events[-2]["facts"]["intervals"]
    assert (first[:2], second[:2]) == (["twin", "cpu.shift"], ["cpu.shift", "copy"]), said
    assert first[2] < first[3]
    assert second[2] < second[3] < 1000
    assert not first[2] < 1.0 < first[3] or min(counts) >= stopping.MAX_LOOKS * speed.MIN_SAMPLES


@pytest.mark.slow
def test_another_operation_with_its_limit(ask):
    names = ["cpu.torch_fused", "cpu.numpy", "limit"]
    events, _ = ask({"operation": "adam_step", "problem": "n100000", "names": names})
    cells = [event["cell"] for event in events if "cell" in event]
    assert [(cell["name"], cell["status"]) for cell in cells] == [(name, "ok") for name in names]
    assert max(cell["relative_l2"] for cell in cells[:2]) < 1e-6
    assert statistics.median(cells[2]["samples"]) < statistics.median(cells[1]["samples"])


def test_candidates_that_are_far_too_slow_are_skipped_where_they_judge_nothing(ask):
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


@pytest.mark.slow
def test_a_kept_process_answers_one_question_after_another(ask):
    """A question that cannot be measured is answered with an error, and the process answers the next one."""
    good = {"problem": SMALL, "names": ["torch", "cpu.shift"], "seconds": 0.01}
    bad = {"problem": "x", "names": []}, {"problem": SMALL, "names": [], "threads": 999}
    answers = [ask(question)[0] for question in (good, *bad, good)]
    assert [answer[-1] for answer in answers] == [{"ended": 0}] * 4
    for answer in (answers[0], answers[3]):
        assert [event["cell"]["status"] for event in answer if "cell" in event] == ["ok", "ok"]
    for answer, word in zip(answers[1:3], ("'x' is not a problem's label", "cores"), strict=True):
        (error, _) = answer
        assert word in error["error"]


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


def test_wrong_candidates_are_not_timed(ask):
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
def test_the_others_are_judged_as_ours_are(ask, name, call):
    events, said = ask({"problem": SMALL, "names": [name, "right"]}, FAULTS + f"speed.BARE[{name!r}] = {call}")
    statuses = [(event["cell"]["name"], event["cell"]["status"]) for event in events if "cell" in event]
    assert statuses == [(name, "failed"), ("right", "ok")], said


def test_a_pool_that_is_changed_and_left_so_spoils_all_times(ask):
    greed = """
import threadpoolctl
def threaded(output, input, calls):
    threadpoolctl.ThreadpoolController().limit(limits=3)
    return output
faults["threaded"] = made(threaded)
"""
    events, said = ask({"problem": SMALL, "names": ["right", "threaded"]}, FAULTS + greed)
    assert not [event for event in events if "cell" in event]
    assert f"PoolError: {THREADS} threads were set, but " in said.splitlines()[-1]
