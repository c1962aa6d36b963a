"""convbench profile where something goes wrong: one sentence, no file, and no process that is left."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import click
import psutil
import pytest
import stand_in_perf
from profiles import SMALL, TOOLS, convbench, finish, need, sentence, start

from benchmarks.commands import profile as suite_side
from benchmarks.harness import cell
from benchmarks.workloads.convolutions import Convolution
from convbench.suite import counters, profiler


@pytest.mark.slow
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
def test_what_cannot_be_profiled(arguments, words):
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
        ("graph", "gprof2dot", "pip install 'convbench[profile]'"),
        ("graph", "Graphviz's dot", "apt-get install graphviz"),
        ("native", "py-spy", "pip install 'convbench[profile]'"),
        ("trace", "torch", "pip install torch"),
        ("counters", "perf", "apt-get install linux-perf"),
    ],
)
def test_a_missing_tool_is_named_with_its_cure(monkeypatch, tmp_path, option, tool, cure):
    there = "gprof2dot" if tool == "Graphviz's dot" else ""
    monkeypatch.setattr(profiler.importlib.util, "find_spec", lambda name: name == there or None)
    monkeypatch.setattr(profiler.shutil, "which", lambda *_, **__: None)
    value = [] if option == "counters" else [tmp_path / "file"]
    said = sentence(convbench("cpu.loops", SMALL, f"--{option}", *value))
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
        ("echo '<svg></svg>' > $2", "py-spy took no sample of the running process in 1 s"),
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


@pytest.mark.parametrize(("seconds", "asked", "largest"), [(1, 901, 900), (5.0, 181, 180), (4.1, 1000, 180), (5000, 2, 1)])
def test_a_rate_that_cannot_be_drawn(tmp_path, seconds, asked, largest):
    need("native")
    words = ["--native", tmp_path / "a.svg", "--seconds", seconds, "--rate"]
    said = sentence(convbench("cpu.loops", SMALL, *words, asked))
    assert said.startswith(f"--rate {asked} makes too many stacks in ")
    assert said.endswith(f" at most --rate {largest}")
    assert profiler.stack_rate(seconds, largest) == largest


def test_a_machine_whose_perf_counts_nothing(tmp_path):
    stand_in_perf.install(tmp_path, "<not supported>;;cycles:u;0;100.00;;\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    assert sentence(convbench("cpu.shift", SMALL, "--counters", PATH=path)) == counters.NONE


@pytest.mark.parametrize("option", TOOLS)
@pytest.mark.parametrize("path", ["/proc/none/a", "missing/folder/a"])
def test_a_file_that_cannot_be_written(monkeypatch, option, path):
    monkeypatch.setattr(profiler, "require_tools", lambda outputs: None)
    assert sentence(convbench("cpu.loops", SMALL, f"--{option}", path)).startswith(f"cannot write to {path}: ")


def test_a_file_for_each():
    need("graph")
    said = sentence(convbench("cpu.loops", SMALL, "--graph=a", "--output=./a"))
    assert said == "--graph, --native, --trace and --output need a file each"


def test_a_file_that_was_there_stays_where_there_is_no_profile(tmp_path):
    need("trace")
    (tmp_path / "a.json").write_text("old")
    sentence(convbench("cpu.none", SMALL, "--trace", tmp_path / "a.json"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def all_with(tool, parent):
    """The processes below one, once a tool is among them."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = parent.children(recursive=True)
        if any(tool in child.name() for child in children):
            return children
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "send", "name", "option", "tool"),
    [
        (signal.SIGINT, os.killpg, "cpu.torch", "native", "py-spy"),
        (signal.SIGTERM, os.kill, "cpu.shift", "native", "py-spy"),
        (signal.SIGTERM, os.kill, "cpu.shift", "counters", "perf"),
    ],
    ids=["Ctrl-C", "kill", "kill perf's"],
)
def test_interrupted_nothing_is_left(tmp_path, number, send, name, option, tool):
    """Ctrl-C reaches all processes at a terminal; with torch, whose kernels are listed in a file meanwhile."""
    need(option)
    file = [tmp_path / "a.svg"] if option == "native" else []
    process = start(name, "n1c64h28w28k64r3s3p1", f"--{option}", *file, "--seconds", "60", "--calls", 10**9)
    parent = psutil.Process(process.pid)
    end = time.monotonic() + 60
    while not (children := all_with(tool, parent)) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.3)  # the tool begins, or is refused
    if process.poll() is not None and re.search("may not (look|count)", said := finish(process).stderr):
        pytest.skip(said)
    assert children
    send(process.pid, number)
    assert sentence(finish(process)) == "interrupted: no profile was written"
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list(tmp_path.iterdir()) == []
    assert [child.pid for child in children if Path(f"/tmp/perf-{child.pid}.map").exists()] == []
