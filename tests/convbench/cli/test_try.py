"""`convbench try` says what is wrong with a question in one sentence, times the rest, and stores nothing."""

import csv
import io
import json
import os
import re
import subprocess
from pathlib import Path

import psutil
import pytest
from command_line import inside, process, sentence

ROOT = Path(__file__).parents[3]


SHAPES = ["1x3x16x16", "4x3x3x3"]
CORES = psutil.cpu_count()
# Arguments, and words of the sentence.
MISTAKES = {
    "no shape": (["1x3x16", "4x3x3x3"], ["INPUT", "'1x3x16'", "1x64x56x56"]),
    "channels": (["1x3x16x16", "4x2x3x3", "cpu.loops"], ["(1, 3, 16, 16)", "(4, 2, 3, 3)", "groups=1"]),
    "a kernel larger than the image": (["1x3x16x16", "4x3x31x3", "cpu.loops"], ["larger than", "image"]),
    "an unknown implementation": ([*SHAPES, "cpu.lops"], ["'cpu.lops'", "cpu.loops"]),
    "more than fits in memory": (["1x1x1000000x1000000", "1x1x3x3"], ["n1c1h1000000", "7,999,984,000,052 bytes", " free"]),
    "more threads than cores": ([*SHAPES, "cpu.loops", "--threads", str(CORES + 1)], [f"threads={CORES + 1}", " cores"]),
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
    "a label of no problem": (["n1c3h16", "cpu.loops"], ["'n1c3h16'", "n1c64h56w56k64r3s3p1"]),
    "a label without an output": (["n1c3h16w16k4r31s3", "cpu.loops"], ["n1c3h16w16k4r31s3", "larger than"]),
    "a label without channels": (["n1c0h16w16k4r3s3", "cpu.loops"], ["dimension of zero", "(1, 0, 16, 16)"]),
    "a label without dilation": (["n1c3h16w16k4r3s3d0", "cpu.loops"], ["dilation"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MISTAKES)
def test_what_cannot_be_tried(case):
    arguments, words = MISTAKES[case]
    done = (process if case == "an unknown implementation" else inside)(ROOT, "try", *arguments)
    said = sentence(done)
    assert [word for word in words if word not in said] == []
    assert done.stdout == ""


def status():
    return subprocess.run(["git", "-C", ROOT, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_try_times_what_it_is_asked_for_and_stores_nothing():
    before = status()
    done = process(ROOT, "try", "n1c3h16w16k4r3s3", "cpu.loops", "cpu.shift", "--seconds", "0.05", "--json")
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
    """A package that provides kernels, installed where PYTHONPATH points."""
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
    return process(ROOT, "try", *SHAPES, *names, "--seconds", "0.02", PYTHONPATH=package)


@pytest.mark.slow
def test_offered_implementations_are_checked_and_timed(package):
    """Also an implementation that prints: its output is not part of the answer."""
    done = offered(package, "right", "talking", "--csv")
    assert done.returncode == 0, done.stderr
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(line["implementation"], line["status"]) for line in lines] == [("other.right", "ok"), ("other.talking", "ok")]
    assert all(float(line["value"]) > 0 and 0 < float(line["relative_l2"]) < 1e-5 for line in lines)


@pytest.mark.slow
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
    assert re.search(r"other\.right +[\d.]+ [num]?s", done.stdout)


@pytest.mark.slow
def test_one_that_ends_the_process_is_named(package):
    said = sentence(offered(package, "right", "leaving"))
    assert "other.leaving ended the process with status 3" in said


@pytest.mark.slow
def test_a_users_files_and_committed_ones(tmp_path):
    (tmp_path / "mine.py").write_text(KERNELS + "\nconv2d = right\n")
    (tmp_path / "bare.py").write_text("import numpy\n")
    given = ["cpu.shift", "cpu.shift@HEAD", "--file", tmp_path / "mine.py", "--seconds", "0.02"]
    done = process(ROOT, "try", *SHAPES, *given, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    cells = json.loads(done.stdout)
    assert [(cell["implementation"], cell["status"]) for cell in cells] == [
        (name, "ok") for name in ("cpu.shift", "cpu.shift@HEAD", "mine")
    ]
    done = process(ROOT, "try", *SHAPES, *given, "--file", tmp_path / "bare.py")
    assert "bare failed" in sentence(done)
    assert "its file has no function conv2d()" in " ".join(done.stdout.split())
