"""What goes wrong is one sentence that says what to do; and `convbench try`, which stores nothing."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import click
import filelock
import psutil
import pytest
from command_line import inside, sentence, settings

from convbench.asv import machine
from convbench.common import load
from convbench.run import classes
from convbench.stored import results
from convbench.suite import one_shape

ROOT = Path(__file__).parents[3]
CONFIGURATION = '{"version": 1, "project": "other", "repo": "."}'


def convbench(folder, *arguments, **environment):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "convbench", *arguments]
    environment = {**os.environ, **settings(folder), **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", folder, *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path):
    """A project of one commit, without results and without a suite."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "asv.conf.json").write_text(CONFIGURATION)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def store(project, text=None):
    """One results file of a suite with one benchmark."""
    known = {"lists.time_sort": {"params": [["1"]], "param_names": ["n"], "version": "1", "unit": "seconds"}}
    content = {
        "commit_hash": "0" * 40,
        "env_name": "env",
        "date": 0,
        "params": {"machine": "box"},
        "result_columns": ["result", "params", "version"],
        "results": {"lists.time_sort": [[1.0], [["1"]], "1"]},
    }
    (project / "results" / "box").mkdir(parents=True)
    (project / "results" / "benchmarks.json").write_text(json.dumps(known) if text is None else text)
    (project / "results" / "box" / "00000000-env.json").write_text(json.dumps(content))


# The project


@pytest.mark.parametrize(
    "arguments", [["run"], ["table"], ["speed"], ["try", "1x1x5x5", "1x1x3x3"]], ids=lambda words: words[0]
)
def test_no_configuration(tmp_path, arguments):
    said = sentence(convbench(tmp_path, *arguments))
    assert "no asv.conf.json in" in said
    assert "or above it" in said


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"version": 1, "project": "x"',
        "not JSON",
        "[]",
        "3",
        "null",
        '{"project": "x", "repo": "."}',
        '{"version": 1, "project": "x"}',
        '{"version": 1, "repo": ""}',
        '{"version": 99, "repo": "."}',
        '{"version": 1, "repo": ".", "results_dir": 3}',
    ],
)
def test_a_broken_configuration(tmp_path, content):
    (tmp_path / "asv.conf.json").write_text(content)
    assert sentence(inside(tmp_path, "table")).startswith("Error: asv.conf.json")


def test_a_broken_configuration_in_a_process(tmp_path):
    (tmp_path / "asv.conf.json").write_text('{"version": 1, ')
    assert sentence(convbench(tmp_path, "table")).startswith("Error: asv.conf.json")


def test_a_configuration_above_is_found(project):
    (project / "deep" / "er").mkdir(parents=True)
    assert "no results yet" in sentence(inside(project / "deep" / "er", "table"))


def test_no_repository(tmp_path):
    (tmp_path / "asv.conf.json").write_text(CONFIGURATION)
    assert "not a git repository" in sentence(convbench(tmp_path, "run"))


def test_no_commit_yet(tmp_path):
    (tmp_path / "asv.conf.json").write_text(CONFIGURATION)
    git(tmp_path, "init", "--quiet")
    assert "HEAD" in sentence(convbench(tmp_path, "run"))


def test_no_git(project, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "git is not installed" in sentence(convbench(project, "run", PATH=str(tmp_path / "empty")))


# convbench table


def test_no_results_yet(project):
    assert sentence(convbench(project, "table")) == (
        "Error: no results yet in results/: measure with `convbench run --quick` first"
    )


def test_no_results_of_that_machine_or_commit(project):
    store(project)
    said = "Error: no results of the machine 'den' in results/; there are those of box"
    assert sentence(inside(project, "table", "--machine", "den")) == said
    assert "no results yet of HEAD in results/" in sentence(inside(project, "table", "--commit", "HEAD"))


@pytest.mark.parametrize("commit", ["0123456789", "HEAD~5", "asv.conf.json", "--all"])
def test_a_commit_nobody_knows(project, commit):
    store(project)
    assert repr(commit) in sentence(inside(project, "table", f"--commit={commit}"))


@pytest.mark.parametrize("arguments", [["-b", "nothing"], ["-b", "TIME"], ["-b", r"\(2\)$"]])
def test_filters_that_leave_nothing(project, arguments):
    store(project)
    assert "passes these filters" in sentence(inside(project, "table", *arguments))


@pytest.mark.parametrize("command", ["table", "run"])
@pytest.mark.parametrize("pattern", ["(", "*", "[a-"])
def test_a_broken_regular_expression(project, command, pattern):
    store(project)
    assert repr(pattern) in sentence(inside(project, command, "--bench", pattern))


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_broken_list_of_benchmarks(project, content):
    store(project, content)
    assert sentence(inside(project, "table")).startswith("Error: results/benchmarks.json ")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--commit", "nonsense"], "'nonsense'"),
        (["--bench", "nothing"], "filters"),
        (["--implementation", "nothing", "--bench", "find"], "filters"),
        (["--bench", "("], "'('"),
        (["--machine", "den"], "den"),
    ],
)
def test_the_same_in_a_process(project, arguments, word):
    store(project)
    assert word in sentence(convbench(project, "table", *arguments))


@pytest.mark.parametrize("arguments", [["tabel"], ["table", "--jsn"], ["run", "--bench"], ["try", "1x1x5x5"]])
def test_mistyped(project, arguments):
    sentence(inside(project, *arguments))


# convbench run


def test_two_runs_at_once(project):
    (project / ".convbench").mkdir()
    with filelock.FileLock(project / ".convbench" / "lock"):
        said = sentence(convbench(project, "run"))
    assert said == "Error: another `convbench run`, `gate` or `speed` is measuring here; two at once would disturb each other"


@pytest.mark.parametrize("name", ["results", ".convbench"])
def test_a_folder_that_cannot_be_made(project, name):
    (project / name).write_text("a file")
    said = sentence(convbench(project, "run"))
    assert f"cannot write to {project / name}: " in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(project):
    project.chmod(0o555)
    try:
        said = sentence(convbench(project, "run"))
    finally:
        project.chmod(0o755)
    assert "cannot write to" in said


def test_a_results_file_of_this_commit_that_is_broken(project, monkeypatch):
    """It can be neither gone on from nor added to; asv would stop at it, too."""
    commit = subprocess.check_output(["git", "-C", project, "rev-parse", "HEAD"], text=True)
    store(project)
    (project / "results" / "box" / f"{commit[:8]}-env.json").write_text("{")

    def build(place, commit):
        (place.work / "benchmarks.json").write_text((project / "results" / "benchmarks.json").read_text())
        (place.private / "machine.json").write_text("{}")
        return classes.Built(commit, results.benchmarks(place.work), [{"env_name": "env"}])

    monkeypatch.setattr(classes, "build", build)
    monkeypatch.setattr(machine, "facts", lambda: {"machine": "box"})
    assert sentence(inside(project, "run", "--busy")).startswith(f"Error: box/{commit[:8]}-env.json ")


@contextlib.contextmanager
def busy_cores():
    """Every core kept busy by a process that does nothing else."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(psutil.cpu_count())]
    try:
        time.sleep(0.3)
        yield len(processes)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def test_a_machine_too_busy_to_measure_on(monkeypatch):
    monkeypatch.setattr(load, "PATIENCE", 1)
    with busy_cores() as cores, pytest.raises(click.ClickException) as caught:
        load.wait_until_quiet()
    said = re.fullmatch(
        r"this machine is too busy to measure on: other processes use (\d+\.\d) of (\d+) cores; "
        r"stop what runs beside it, or say --busy to measure anyway",
        caught.value.message,
    )
    assert said
    assert load.BUSY < float(said[1]) <= cores
    assert int(said[2]) == cores


# convbench try


@pytest.mark.parametrize(
    "text",
    [
        "1x3x16",
        "1x3x16x16x1",
        "1,3,16,16",
        "",
        "x",
        "xxx",
        "1x3x16x",
        "1x3x16x-16",
        "1X3X16X16",
        " 1x3x16x16",
        "1x3x16x16\n",
        "1x3x1e3x16",
        "1x3x16x16.0",
        "1x3x16xten",
    ],
)
@pytest.mark.parametrize("named", ["INPUT", "WEIGHT"])
def test_a_text_that_is_no_shape(text, named):
    shapes = (text, "4x3x3x3") if named == "INPUT" else ("1x3x16x16", text)
    with pytest.raises(click.BadParameter, match=r"is not 4 numbers joined by x, as in \d+x") as caught:
        one_shape.request(*shapes, (), {"padding": "0"})
    assert caught.value.param_hint == named
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("padding", "expected"), [("same", "same"), ("0", [0, 0]), ("3", [3, 3]), ("1x2", [1, 2]), ("10x0", [10, 0])]
)
def test_padding(padding, expected):
    question = one_shape.request("1x3x16x16", "4x3x3x3", ("a",), {"padding": padding, "stride": 2})
    assert question == {
        "input": [1, 3, 16, 16],
        "weight": [4, 3, 3, 3],
        "names": ["a"],
        "padding": expected,
        "stride": 2,
    }


@pytest.mark.parametrize("padding", ["valid", "-1", "1x2x3", "1.5", "", "x", "max"])
def test_a_text_that_is_no_padding(padding):
    with pytest.raises(click.BadParameter) as caught:
        one_shape.request("1x3x16x16", "4x3x3x3", (), {"padding": padding})
    assert caught.value.message.startswith(f"{padding!r} is ")


SHAPES = ["1x3x16x16", "4x3x3x3"]
CORES = psutil.cpu_count()
# Each of these in a process of its own: arguments, and words of the sentence.
MISTAKES = {
    "no shape": (["1x3x16", "4x3x3x3"], ["INPUT", "'1x3x16'", "1x64x56x56"]),
    "channels": (["1x3x16x16", "4x2x3x3", "cpu.loops"], ["(1, 3, 16, 16)", "(4, 2, 3, 3)", "groups=1"]),
    "a kernel larger than the image": (["1x3x16x16", "4x3x31x3", "cpu.loops"], ["larger than", "image"]),
    "an unknown implementation": ([*SHAPES, "cpu.lops"], ["'cpu.lops'", "cpu.loops"]),
    "more than fits in memory": (["1x1x1000000x1000000", "1x1x3x3"], ["n1c1h1000000", "7,999,984,000,052 bytes", " free"]),
    "more threads than cores": ([*SHAPES, "cpu.loops", "--threads", str(CORES + 1)], [f"threads={CORES + 1}", " cores"]),
}
MORE = {
    "a padding that is none": ([*SHAPES, "--padding", "abc"], ["--padding", "'abc'"]),
    "groups": ([*SHAPES, "cpu.loops", "--groups", "2"], ["groups"]),
    "dilated beyond the image": ([*SHAPES, "cpu.loops", "--dilation", "9"], ["larger than", "image"]),
    "an image without rows": (["1x3x0x16", "4x3x3x3", "cpu.loops"], []),
    "no channels": (["1x0x16x16", "4x0x3x3", "cpu.loops"], []),
    "same with a stride": ([*SHAPES, "--padding", "same", "--stride", "2"], ['"same"', "stride"]),
    "an unknown one beside a known one": ([*SHAPES, "cpu.loops", "cpu.shfit"], ["'cpu.shfit'", "cpu.shift"]),
    "half a name": ([*SHAPES, "torch_unfold"], ["'torch_unfold'", "im2col.torch_unfold"]),
    "no thread": ([*SHAPES, "--threads", "0"], ["--threads"]),
    "no time": ([*SHAPES, "--seconds", "0"], ["--seconds"]),
}


@pytest.mark.parametrize("case", [*MISTAKES, *MORE])
def test_what_nobody_can_try(case):
    arguments, words = (MISTAKES | MORE)[case]
    done = (convbench if case in MISTAKES else inside)(ROOT, "try", *arguments)
    said = sentence(done)
    assert [word for word in words if word not in said] == []
    assert done.stdout == ""


def test_a_suite_that_cannot_try(project):
    assert "python -m benchmarks try" in sentence(inside(project, "try", *SHAPES))


def status():
    return subprocess.run(["git", "-C", ROOT, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout


def test_try_times_what_it_is_asked_for_and_stores_nothing():
    before = status()
    done = convbench(ROOT, "try", *SHAPES, "cpu.loops", "cpu.shift", "--seconds", "0.05", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    cells = json.loads(done.stdout)
    assert [(cell["implementation"], cell["status"]) for cell in cells] == [("cpu.loops", "ok"), ("cpu.shift", "ok")]
    for cell in cells:
        assert cell["q25"] <= cell["value"] <= cell["q75"]
        assert cell["repeats"] >= 5
        assert (cell["label"], cell["device"], cell["threads"]) == ("n1c3h16w16k4r3s3", "cpu", 1)
        assert 0 < cell["relative_l2"] < 1e-5
        assert 0 < cell["percent_of_limit"] < 150
    assert status() == before


# Implementations of installed packages

KERNELS = """
import os
import numpy as np
from impls.contract import implementation

def sums(input, weight, bias, stride, padding, dilation, groups):
    windows = np.lib.stride_tricks.sliding_window_view(input, weight.shape[2:], axis=(2, 3))
    return np.ascontiguousarray(np.einsum("nchwrs,kcrs->nkhw", windows, weight))

def offer(change):
    @implementation(device="cpu", family="direct", summary="From elsewhere.", limits={"stride": 1, "groups": 1})
    def conv2d(*arguments):
        return change(sums(*arguments))
    return conv2d

def blot(output):
    output[..., -1, -1] += 1
    return output

def talk(output):
    print("a line")
    os.write(1, b"{}\\n")
    return output

def refuse(output):
    raise RuntimeError("not today")

right, wrong, talking, leaving = offer(lambda output: output), offer(blot), offer(talk), offer(lambda output: os._exit(3))
refusing, short = offer(refuse), offer(lambda output: output[:, :1])
plain = sums
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package that offers kernels, installed where PYTHONPATH points."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "other_kernels.py").write_text(KERNELS)
    about = folder / "other_kernels-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-kernels\nVersion: 1.0\n")
    names = ("right", "wrong", "talking", "leaving", "refusing", "short", "plain")
    lines = [f"other.{name} = other_kernels:{name}\n" for name in names]
    (about / "entry_points.txt").write_text("[convbench.implementations]\n" + "".join(lines))
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def offered(package, *names):
    names = [name if name.startswith("--") else f"other.{name}" for name in names]
    return convbench(ROOT, "try", *SHAPES, *names, "--seconds", "0.02", PYTHONPATH=package)


def test_offered_implementations_are_checked_and_timed(package):
    """Also one that prints: that is no part of the answer."""
    done = offered(package, "right", "talking", "--csv")
    assert done.returncode == 0, done.stderr
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(line["implementation"], line["status"]) for line in lines] == [("other.right", "ok"), ("other.talking", "ok")]
    assert all(float(line["value"]) > 0 and 0 < float(line["relative_l2"]) < 1e-5 for line in lines)


def test_one_that_is_wrong_has_no_time_and_the_others_have(package):
    done = offered(package, "right", "wrong", "short", "refusing", "plain")
    said = sentence(done)
    bad = ("wrong", "short", "refusing", "plain")
    assert all(f"other.{name}" in said for name in bad)
    assert "other.right" not in said
    reasons = {line.split(" (")[0]: line for line in done.stdout.splitlines() if ": FAILED, " in line}
    assert set(reasons) == {f"other.{name}" for name in bad}
    for name, words in {
        "wrong": "WrongAnswer",
        "short": "(1, 1, 14, 14)",
        "refusing": "not today",
        "plain": "decorator",
    }.items():
        assert words in " ".join(done.stdout.split()), name
    assert re.search(r"n1c3h16w16k4r3s3 +[\d.]+ [num]?s", done.stdout)


def test_one_that_ends_the_process_is_named(package):
    said = sentence(offered(package, "right", "leaving"))
    assert "other.leaving ended the process with status 3" in said
