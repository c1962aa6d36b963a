"""convbench profile: what each tool writes about real implementations, and what goes wrong."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import click
import psutil
import pytest
from click.testing import CliRunner

import impls
from benchmarks.commands import profile as suite_side
from benchmarks.harness import cell
from benchmarks.workloads.convolutions import Convolution
from convbench.cli import commands
from convbench.suite import call_tree, profiler

ROOT = Path(__file__).parents[3]
SMALL = "n1c1h7w7k1r3s3"
KINDS = ("im2col.naive", "cpu.numba_loops", "cpu.cython_direct", "cpu.torch")
TOOLS = {"graph": "svg", "native": "svg", "trace": "json"}


def convbench(*arguments, **environment):
    """The command; what it starts are processes of their own."""
    with contextlib.chdir(ROOT):
        words = ["profile", *map(str, arguments)]
        done = CliRunner(env=environment).invoke(commands.main, words, catch_exceptions=False)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def start(*arguments, **environment):
    """The same in a process of its own, at the head of a group as at a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "convbench", "profile", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process):
    said = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def sentence(done):
    lines = done.stderr.splitlines()
    assert done.returncode == 1, done.stdout
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("Error: ")


# Real implementations


def need(*options):
    for option in options:
        try:
            profiler.require_tools(profiler.Outputs(**{option: Path("any")}))
        except click.ClickException as error:
            pytest.skip(error.message)


def profile_to(folder, name, problem, *options):
    """Files of all tools, by one command."""
    files = {option: folder / f"{option}.{kind}" for option, kind in TOOLS.items()}
    done = convbench(name, problem, *(f"--{option}={file}" for option, file in files.items()), *options)
    if profiler.REFUSED in done.stderr:
        pytest.skip(profiler.REFUSED)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(folder.iterdir()) == sorted(files.values())
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert len(lines) == len(TOOLS)
    assert all(re.match(rf"\w+ by {name} on {problem}, float32, 1 thread: \d+ ", line) for line in lines)
    return files, done.stdout


def texts(path):
    return "\n".join(element.text or "" for element in ElementTree.parse(path).iter())


@pytest.mark.parametrize(
    ("operation", "name", "stages"),
    [
        (
            "preprocess",
            "cpu.numpy",
            "numpy.to_patch numpy.convolve numpy.finish pillow_images.decode stages.resize stages.paste",
        ),
        (
            "train_step",
            "cpu.auto",
            "networks.loss layers.forward cython_direct.conv2d_backward cython_fused.adam_step",
        ),
    ],
)
def test_a_trace_shows_stages_where_no_torch_is(tmp_path, operation, name, stages):
    need("trace")
    file = tmp_path / "a.json"
    done = convbench(name, PROBLEMS[operation], "--operation", operation, f"--trace={file}", "--calls=3")
    assert (done.returncode, done.stderr) == (0, "")
    events = [each for each in json.loads(file.read_text())["traceEvents"] if each.get("cat") == "user_annotation"]
    calls = [each for each in events if each["name"].startswith(f"{name} on ")]
    assert len(calls) == 3
    for call in calls:
        start, end = call["ts"], call["ts"] + call["dur"]
        inside = {each["name"] for each in events if start <= each["ts"] and each["ts"] + each["dur"] <= end}
        assert inside >= set(stages.split())


INSIDE = {  # of the call graph and the flame graph: Python's frames and, where there are some, compiled ones
    "im2col.naive": (r"naive:\d+:im2col", "_unravel (impls/conv2d/im2col/naive.py"),
    "cpu.numba_loops": (r"numba_loops:\d+:_loops", "_loops (impls.conv2d.cpu.numba_loops, by Numba)"),
    "cpu.cython_direct": (r"cython_direct:\d+:conv2d", "_cython_direct.cpython-"),
    "cpu.torch": (r"torch\.conv2d", "at::_ops::conv2d::call (libtorch_cpu.so)"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_tool_writes_a_file_that_opens(tmp_path, name):
    need(*TOOLS)
    problem = "n1c1h20w20k1r3s3" if name == "im2col.naive" else "n1c64h28w28k64r3s3p1"
    files, said = profile_to(tmp_path, name, problem, "--calls=5", "--seconds=1")
    title = f"conv2d by {name} on {problem}, float32, 1 thread"
    graph, flames = texts(files["graph"]), texts(files["native"])
    in_graph, in_flames = INSIDE[name]
    assert re.search(in_graph, graph)
    assert in_flames in flames
    assert f"{title}: 5 calls under cProfile" in graph
    assert re.search(rf"{re.escape(title)}: \d+ stacks by py-spy\n", flames)
    trace = json.loads(files["trace"].read_text())
    assert trace["convbench"]["title"] == f"{title}: 5 calls under torch's profiler"
    named = Counter(event.get("name") for event in trace["traceEvents"])
    assert named[f"{name} on {problem}"] == 5
    assert bool(named["aten::conv2d"]) == (name == "cpu.torch") == ("no operator of torch" not in said)
    module = name.partition(".")[2]
    assert named[f"{module}.conv2d"] == 5
    for file in files.values():
        content = file.read_text()
        assert str(ROOT) not in content
        assert str(Path(sys.prefix).resolve()) not in content


@pytest.mark.parametrize("name", KINDS)
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


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["im2col.naiv", SMALL], ["'im2col.naiv'", "did you mean im2col.naive"]),
        (["cpu.scipy_fft", f"{SMALL}t2"], ["cpu.scipy_fft on n1c1h7w7k1r3s3t2: unsupported: "]),
        (["cpu.loops", SMALL, "--threads", psutil.cpu_count() + 1], [" cores"]),
        (["cpu.loops", "cat", "--operation", "conv3d"], ["no operation is called 'conv3d'"]),
        (["cpu.loops", "cat"], ["no problem is called 'cat'", "n1c64h56w56k64r3s3p1"]),
        (["cpu.numpy", "cat", "--operation", "adam_step"], ["'cat' is not a step's label", "n1000000"]),
    ],
)
def test_what_nobody_can_profile(arguments, words):
    said = sentence(convbench(*arguments))
    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resnet50/n1c64h56w56k64r3s3", ["no problem", "'resnet50/n1c64h56w56k64r3s3'", "did you mean resnet50/n1c64h56w5"]),
        ("sharpe-n1c1h1080w1920k1r3s3p1", ["did you mean sharpen-n1c1h1080w1920k1r3s3p1"]),
        ("", ["no problem is called ''"]),
        ("n1c1h2w2k1r3s3", ["kernel is larger"]),
        ("n1c3h9w9k4r3s3g2", ["multiples of groups"]),
    ],
)
def test_no_such_problem(text, words):
    with pytest.raises((LookupError, ValueError)) as caught:
        Convolution.find(text)
    assert [word for word in words if word not in str(caught.value)] == []


def test_problems_by_name_have_their_set_s_data():
    assert Convolution.find("n1c64h56w56k64r3s3p1").data == "random"
    for name in ("filters/box-n1c1h1080w1920k1r3s3p1", "box-n1c1h1080w1920k1r3s3p1"):
        assert (Convolution.find(name).data, Convolution.find(name).filter) == ("photo", "box")


def test_what_fits_no_memory_or_operation(monkeypatch):
    monkeypatch.setattr(suite_side.threads, "confine", lambda count: None)
    with pytest.raises(MemoryError, match="bytes of memory are free"):
        suite_side._prepare("cpu.loops", Convolution("conv2d", Convolution.find("n1c1h1000000w1000000k1r3s3")), 1)
    with pytest.raises(LookupError, match=r"no operation is called 'conv3d'; there are conv2d"):
        cell.kind("conv3d")


def test_a_wrong_answer_has_no_profile(tmp_path):
    """Of an implementation that an installed package offers; one that fails is named."""
    (tmp_path / "other_kernels.py").write_text(
        "import numpy as np\n"
        "from impls.contract import implementation\n"
        "def offer(change):\n"
        "    @implementation(device='cpu', family='direct', summary='From elsewhere.')\n"
        "    def conv2d(input, weight, bias, stride, padding, dilation, groups):\n"
        "        return change(input, weight)\n"
        "    return conv2d\n"
        "wrong = offer(lambda input, weight: np.zeros((1, 1, 5, 5), 'f4'))\n"
        "failing = offer(lambda input, weight: 1 / 0)\n"
    )
    about = tmp_path / "other_kernels-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-kernels\nVersion: 1.0\n")
    lines = [f"other.{name} = other_kernels:{name}\n" for name in ("wrong", "failing")]
    (about / "entry_points.txt").write_text("[convbench.implementations]\n" + "".join(lines))
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    said = sentence(convbench("other.wrong", SMALL, PYTHONPATH=path))
    assert said.startswith(f"other.wrong is wrong on {SMALL}, and a wrong answer has no profile: ")
    assert "other.failing ended the process with status 1: ZeroDivisionError" in sentence(
        convbench("other.failing", SMALL, PYTHONPATH=path)
    )


@pytest.mark.parametrize(
    ("option", "tool", "cure"),
    [
        ("graph", "gprof2dot", "pip install gprof2dot"),
        ("graph", "Graphviz's dot", "apt-get install graphviz"),
        ("native", "py-spy", "pip install py-spy"),
        ("trace", "torch", "pip install torch"),
    ],
)
def test_a_missing_tool_is_named_with_its_cure(monkeypatch, tmp_path, option, tool, cure):
    there = "gprof2dot" if tool == "Graphviz's dot" else ""
    monkeypatch.setattr(profiler.importlib.util, "find_spec", lambda name: name == there or None)
    monkeypatch.setattr(profiler.shutil, "which", lambda *_, **__: None)
    said = sentence(convbench("cpu.loops", SMALL, f"--{option}", tmp_path / "file"))
    assert said.startswith(f"--{option} needs {tool}, which is not installed: {cure}")
    assert list(tmp_path.iterdir()) == []


def test_graphviz_is_missing_from_an_empty_path(tmp_path):
    pytest.importorskip("gprof2dot")
    said = sentence(finish(start("cpu.loops", SMALL, "--graph", tmp_path / "a.svg", PATH=str(tmp_path))))
    assert "Graphviz's dot" in said


def tool(monkeypatch, tmp_path, script):
    """A py-spy of our own."""
    path = tmp_path / "py-spy"
    path.write_text(f'#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done\n{script}\n')
    path.chmod(0o755)
    monkeypatch.setattr(profiler, "_py_spy", lambda: str(path))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo Permission Denied: Try again with sudo >&2; exit 1", profiler.REFUSED),
        ("echo 'Error: Operation not permitted (os error 1)' >&2; exit 1", profiler.REFUSED),
        (
            "echo; echo 'Error: it broke' >&2; echo 'Stack backtrace:' >&2; exit 7",
            "py-spy ended with status 7: Error: it broke",
        ),
        ("exit 9", "py-spy ended with status 9: it printed nothing"),
        ("echo '<svg></svg>' > $2", "py-spy never saw the process at work in 1 s"),
    ],
)
def test_what_py_spy_cannot_do(monkeypatch, tmp_path, script, words):
    tool(monkeypatch, tmp_path, script)
    with pytest.raises(click.ClickException) as caught:
        profiler.sample(1, 0.1, tmp_path / "a.svg")
    assert caught.value.message.startswith(words)


@pytest.mark.parametrize(("seconds", "rate"), [(0.1, 100), (9, 100), (10, 90), (100, 9), (5000, 1)])
def test_no_more_stacks_than_can_be_drawn(monkeypatch, tmp_path, seconds, rate):
    commands = []
    monkeypatch.setattr(profiler, "_tool", lambda command: commands.append(command))
    (tmp_path / "a.svg").write_text('total_samples="7"')
    assert profiler.sample(1, seconds, tmp_path / "a.svg") == 7
    assert commands[0][commands[0].index("--rate") + 1] == str(rate)


@pytest.mark.parametrize("option", TOOLS)
@pytest.mark.parametrize("path", ["/proc/none/a", "missing/folder/a"])
def test_a_file_that_cannot_be_written(monkeypatch, option, path):
    monkeypatch.setattr(profiler, "require_tools", lambda outputs: None)
    assert sentence(convbench("cpu.loops", SMALL, f"--{option}", path)).startswith(f"cannot write to {path}: ")


def test_a_file_for_each():
    need("graph", "trace")
    assert (
        sentence(convbench("cpu.loops", SMALL, "--graph=a", "--trace=./a"))
        == "--graph, --native and --trace need a file each"
    )


def test_a_file_that_was_there_stays_where_there_is_no_profile(tmp_path):
    need("trace")
    (tmp_path / "a.json").write_text("old")
    sentence(convbench("cpu.none", SMALL, "--trace", tmp_path / "a.json"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize(("number", "whom"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)], ids=["Ctrl-C", "kill"])
def test_interrupted_nothing_is_left(tmp_path, number, whom):
    """Ctrl-C reaches everybody at a terminal; with torch, whose kernels are listed in a file meanwhile."""
    need("native")
    process = start("cpu.torch", "n1c64h28w28k64r3s3p1", "--native", tmp_path / "a.svg", "--seconds", "60")
    parent = psutil.Process(process.pid)
    end = time.monotonic() + 60
    while process.poll() is None and len(parent.children()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    children = parent.children(recursive=True) if process.poll() is None else []
    time.sleep(1)  # by now py-spy is sampling, or has been refused
    if process.poll() is not None and profiler.REFUSED in (said := finish(process).stderr):
        pytest.skip(said)
    assert any("py-spy" in child.name() for child in children)
    whom(process.pid, number)
    assert sentence(finish(process)) == "interrupted: no profile was written"
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list(tmp_path.iterdir()) == []
    assert [child.pid for child in children if Path(f"/tmp/perf-{child.pid}.map").exists()] == []


CONVOLUTION = "n1c2h12w12k3r3s3p1"
PROBLEMS = {
    **dict.fromkeys(("conv2d", "conv_transpose2d", "conv2d_backward"), CONVOLUTION),
    "adam_step": "n100000",
    "read_batch": "n2b13h64w64",
    "preprocess": "n2h120w160y60x80s48",
    "train_step": "convolutional-n20",
}


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "name"), [(each, name) for each in PROBLEMS for name in impls.names(each, "cpu")])
def test_every_implementation(tmp_path, operation, name):
    need(*TOOLS)
    try:
        impls.load(name, operation)
    except impls.Unavailable as error:
        pytest.skip(str(error))
    problem = PROBLEMS[operation]
    files, _ = profile_to(tmp_path, name, problem, "--operation", operation, "--calls=3", "--seconds=1")
    place = f"impls/{operation}/{name.replace('.', '/')}.py"
    assert f"{name.rpartition('.')[2]}:" in texts(files["graph"])
    assert place in texts(files["native"])
    assert json.loads(files["trace"].read_text())["traceEvents"]
    done = convbench(name, problem, "--operation", operation, "--calls=3")
    assert done.returncode == 0, done.stderr
    assert f"{operation} ({place}:" in done.stdout
