"""convbench profile: what each tool writes about real implementations."""

import json
import os
import pstats
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
import stand_in_perf
from profiles import ROOT, SMALL, TOOLS, convbench, need

import impls
from convbench.suite import call_tree, profiler

KINDS = ("im2col.naive", "cpu.numba_loops", "cpu.cython_direct", "cpu.torch")


def profile_to(folder, name, problem, *options, tools=TOOLS):
    """Files of these tools, by one command."""
    files = {option: folder / f"{option}.{TOOLS[option]}" for option in tools}
    done = convbench(name, problem, *(f"--{option}={file}" for option, file in files.items()), *options)
    if profiler.REFUSED in done.stderr:
        pytest.skip(profiler.REFUSED)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(folder.iterdir()) == sorted(files.values())
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert len(lines) == len(tools)
    assert all(re.match(rf"\w+ by {name} on {problem}, float32, 1 thread: \d+ ", line) for line in lines)
    return files, done.stdout


def texts(path):
    return "\n".join(element.text or "" for element in ElementTree.parse(path).iter())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "name", "stages"),
    [
        (
            "preprocess",
            "cpu.numpy",
            "numpy.to_patch numpy.convolve numpy.finish pillow_images.decode stages.resize stages.paste",
        ),
        pytest.param(
            "train_step",
            "cpu.auto",
            "networks.loss layers.forward cython_direct.conv2d_backward cython_fused.adam_step",
            marks=pytest.mark.proof,
        ),
    ],
)
def test_a_trace_shows_stages_where_no_torch_is(tmp_path, operation, name, stages):
    need("trace")
    file = tmp_path / "a.json"
    done = convbench(name, PROBLEMS[operation], "--operation", operation, f"--trace={file}", "--calls=3")
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads(file.read_text())["traceEvents"]
    named = [each for each in events if each.get("cat") == "user_annotation"]
    calls = [each for each in named if each["name"].startswith(f"{name} on ")]
    assert len(calls) == 3
    for call in calls:
        start, end = call["ts"], call["ts"] + call["dur"]
        inside = {each["name"] for each in named if start <= each["ts"] and each["ts"] + each["dur"] <= end}
        assert inside >= set(stages.split())
    if operation == "preprocess":
        assert "no operator of torch is in it" in done.stdout
        assert not any(each.get("name", "").startswith("aten::") for each in events)


INSIDE = {  # of the call graph and the flame graph: Python's frames and, where there are some, compiled ones
    "im2col.naive": (r"naive:\d+:im2col", "_unravel (impls/conv2d/im2col/naive.py"),
    "cpu.numba_loops": (r"numba_loops:\d+:_loops", "_loops (impls.conv2d.cpu.numba_loops, by Numba)"),
    "cpu.cython_direct": (r"cython_direct:\d+:conv2d", "_cython_direct.cpython-"),
    "cpu.torch": (r"torch\.conv2d", "at::_ops::conv2d::call (libtorch_cpu.so)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_tool_writes_a_file_that_opens(tmp_path, name):
    """A trace of torch alone, since loading it takes seconds; one of other kernels is looked at above."""
    tools = list(TOOLS) if name == "cpu.torch" else ["graph", "native", "output"]
    need(*tools)
    problem = {"im2col.naive": SMALL, "cpu.torch": "n1c64h28w28k64r3s3p1"}.get(name, "n1c16h28w28k16r3s3p1")
    files, said = profile_to(tmp_path, name, problem, "--calls=5", "--seconds=1", tools=tools)
    title = f"conv2d by {name} on {problem}, float32, 1 thread"
    graph, flames = texts(files["graph"]), texts(files["native"])
    in_graph, in_flames = INSIDE[name]
    assert re.search(in_graph, graph)
    assert in_flames in flames
    assert f"{title}: 5 calls under cProfile" in graph
    assert re.search(rf"{re.escape(title)}: \d+ stacks by py-spy\n", flames)
    if "trace" in tools:
        trace = json.loads(files["trace"].read_text())
        assert trace["convbench"]["title"] == f"{title}: 5 calls under torch's profiler"
        named = Counter(event.get("name") for event in trace["traceEvents"])
        assert named[f"{name} on {problem}"] == named["torch.conv2d"] == 5
        assert named["aten::conv2d"]
        assert "no operator of torch" not in said
    for file in files.values():
        content = file.read_bytes().decode(errors="replace")
        assert str(ROOT) not in content
        assert str(Path(sys.prefix).resolve()) not in content


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS[:-1], pytest.param(KINDS[-1], marks=pytest.mark.proof)])
def test_the_tree_names_what_is_inside(name):
    done = convbench(name, SMALL, "--calls", 20)
    assert (done.returncode, done.stderr) == (0, "")
    title, cost, empty, heading, first, *_ = done.stdout.splitlines()
    assert title == f"conv2d by {name} on {SMALL}, float32, 1 thread: 20 calls under cProfile"
    assert re.match(r"[\d.]+ [mun]?s a call under the profiler, [\d.]+ [mun]?s without it: ", cost)
    assert (empty, heading.split()) == ("", list(call_tree.TITLES))
    checked = r"checker\.<locals>\.conv2d \(impls/conv2d/arguments"  # in Python where nothing is compiled
    assert re.match(rf" +20 .* 100 %  ({checked}|conv2d \(impls/conv2d/[a-z0-9]+/\w+)\.py:\d+\)", first)
    assert " conv2d (impls/conv2d/" in done.stdout
    assert str(ROOT) not in done.stdout
    if name == "im2col.naive":  # 9 taps and 25 pixels, two indices unraveled for each pair
        assert re.search(r" 9,000 .* _unravel \(impls/conv2d/im2col/naive\.py:\d+\)", done.stdout)


def test_a_flat_profile_and_its_file(tmp_path):
    """The file has what the text has, and gprof2dot reads it."""
    pytest.importorskip("gprof2dot")
    file = tmp_path / "a.prof"
    done = convbench("im2col.naive", SMALL, "--calls=3", "--flat", "--sort=calls", f"--output={file}")
    assert (done.returncode, done.stderr) == (0, "")
    title, _, empty, total, _, heading, first, *_, last = done.stdout.splitlines()
    stats = pstats.Stats(str(file))
    assert title == f"conv2d by im2col.naive on {SMALL}, float32, 1 thread: 3 calls under cProfile"
    assert total.startswith(f"{stats.total_calls:,} function calls, {stats.prim_calls:,} of them primitive, in ")
    assert (empty, heading.split()[:2], last) == ("", ["calls", "primitive"], f"{file}: {title}")
    assert re.match(r" *2,700 +2,700 .* method 'append' of 'list' objects$", first)  # 9 taps, 25 pixels, 4 indices, 3 calls
    assert re.search(r"\n *1,350 +1,350 .* _unravel \(impls/conv2d/im2col/naive\.py:\d+\)\n", done.stdout)
    drawn = subprocess.run([sys.executable, "-m", "gprof2dot", "-f", "pstats", file], capture_output=True, check=True)
    assert b":_unravel" in drawn.stdout


def test_counters_are_those_of_the_calls(tmp_path):
    stand_in_perf.install(tmp_path, "3000000;;cycles:u;1;100.00;;\n7500000;;instructions:u;1;100.00;;\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = convbench("cpu.shift", SMALL, "--calls=3", "--counters", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"conv2d by cpu.shift on {SMALL}, float32, 1 thread: 3 calls counted by perf, in user space alone",
        "",
        "   a call  event",
        "1,000,000  cycles",
        "2,500,000  instructions  2.50 a cycle",
    ]


@pytest.mark.parametrize(
    ("problem", "operation"),
    [("filters/box-n1c1h1080w1920k1r3s3p1", "conv2d"), (f"{SMALL}t2p1", "conv2d_backward")],
)
def test_problems_of_a_set_and_other_operations(problem, operation):
    done = convbench("cpu.shift", problem, "--operation", operation, "--calls", 2)
    assert (done.returncode, done.stderr) == (0, "")
    label = problem.rpartition("/")[2].removeprefix("box-")
    assert done.stdout.startswith(f"{operation} by cpu.shift on {label}, float32, 1 thread: 2 calls under cProfile\n")


def test_seconds_end_a_profile():
    done = convbench("cpu.loops", "n1c1h64w64k1r3s3", "--calls", 10**9, "--seconds", 0.1)
    assert (done.returncode, done.stderr) == (0, "")
    assert 1 <= int(re.search(r"1 thread: (\d+) calls?", done.stdout)[1]) < 100


CONVOLUTION = "n1c2h12w12k3r3s3p1"
PROBLEMS = {
    **dict.fromkeys(("conv2d", "conv_transpose2d", "conv2d_backward"), CONVOLUTION),
    "adam_step": "n100000",
    "read_batch": "n2b13h64w64",
    "preprocess": "n2h120w160y60x80s48",
    "train_step": "convolutional-n20",
    "im2col": "i9x9k3x3p1",
}


@pytest.mark.proof
@pytest.mark.parametrize(("operation", "name"), [(each, name) for each in PROBLEMS for name in impls.names(each, "cpu")])
def test_every_implementation(tmp_path, operation, name):
    need(*TOOLS)
    try:
        impls.load(name, operation)
    except impls.Unavailable as error:
        pytest.skip(str(error))
    network = impls.contract.declaration(name, operation)["limits"].get("network", "convolutional")
    problem = PROBLEMS[operation].replace("convolutional", network)
    files, _ = profile_to(tmp_path, name, problem, "--operation", operation, "--calls=3", "--seconds=1")
    place = f"impls/{operation}/{name.replace('.', '/')}.py"
    assert f"{name.rpartition('.')[2]}:" in texts(files["graph"])
    assert place in texts(files["native"])
    assert json.loads(files["trace"].read_text())["traceEvents"]
    done = convbench(name, problem, "--operation", operation, "--calls=3")
    assert done.returncode == 0, done.stderr
    assert f"{operation} ({place}:" in done.stdout
