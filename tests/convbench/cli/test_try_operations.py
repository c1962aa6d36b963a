"""`convbench try --operation`: a user's own sizes and files, each operation checked and timed; mistakes are one sentence."""

import json
from pathlib import Path

import pytest
from command_line import process, sentence
from jpegs import GOOD
from tile_batches import some

ROOT = Path(__file__).parents[3]
# Arguments, the label of the problem, and implementations.
ASKED = {
    "conv2d_backward": (["1x3x9x9", "4x3x3x3", "--padding", "1"], "n1c3h9w9k4r3s3p1", ["cpu.shift"]),
    "conv_transpose2d": (["1x4x4x4", "4x3x4x4", "--stride", "2", "--padding", "1"], "n1c3h8w8k4r4s4t2p1", ["cpu.shift"]),
    "im2col": (["7x7", "3x3", "--padding", "1", "--fill", "-1"], "i7x7k3x3p1f-1", ["cpu.naive", "cpu.strided"]),
    "read_batch": (["tiles", "--bands", "1,12"], "n3b13h64w64", ["cpu.tifffile", "cpu.raw_numba"]),
    "preprocess": (["a b.jpg", "--region", "1x2x6x5", "--size", "8"], "n1h8w10y6x5s8", ["cpu.numpy"]),
    "adam_step": (["1796", "--dtype", "float64"], "n1796", ["cpu.numpy", "cpu.numpy_inplace"]),
    "train_step": (["convolutional-n10"], "convolutional-n10", ["cpu.torch"]),
}
# What Numba compiles for a quarter of a minute, and what differs from others in its numbers alone.
LONG = ("adam_step", "conv2d_backward", "conv_transpose2d", "im2col", "train_step")


def attempt(folder, operation, *arguments):
    """The command at the root of the checkout, with files of another folder."""
    given = [str(folder / text) if text in ("tiles", "a b.jpg", "none") else text for text in arguments]
    return process(ROOT, "try", "--operation", operation, *given, "--seconds", "0.02")


@pytest.mark.slow
@pytest.mark.parametrize("operation", [pytest.param(one, marks=[pytest.mark.proof] * (one in LONG)) for one in ASKED])
def test_every_operation_is_checked_and_timed(tmp_path, operation):
    arguments, label, names = ASKED[operation]
    (tmp_path / "a b.jpg").write_bytes(GOOD)
    (tmp_path / "tiles").mkdir()
    if "tiles" in arguments:
        some(tmp_path / "tiles")
    done = attempt(tmp_path, operation, *arguments, *names, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    cells = json.loads(done.stdout)
    assert [(cell["implementation"], cell["status"], cell["label"]) for cell in cells] == [(n, "ok", label) for n in names]
    assert all(cell["q25"] <= cell["value"] <= cell["q75"] and cell["percent_of_limit"] > 0 for cell in cells)


MISTAKES = {
    "no folder": (["read_batch", "none"], "none does not exist"),
    "no picture": (["preprocess", "none"], "none does not exist"),
    "a picture that is none": (["preprocess", "tiles"], "tiles is not a file"),
    "an unknown operation": (["adam", "5"], "no operation is called 'adam'; there are conv2d"),
    "another operation's name": (["adam_step", "5", "cpu.shift"], "no implementation of adam_step is called 'cpu.shift'"),
    "another operation's option": (["adam_step", "5", "--groups", "2"], "--groups is not an option of adam_step"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(tmp_path, mistake):
    (tmp_path / "tiles").mkdir()
    arguments, words = MISTAKES[mistake]
    done = attempt(tmp_path, *arguments)
    assert words in sentence(done)
    assert done.stdout == ""


@pytest.mark.slow
def test_a_folder_is_that_of_where_one_stands(tmp_path):
    """Given as a relative path, from below the checkout."""
    done = process(ROOT / "docs", "try", "--operation", "read_batch", "nothing")
    assert f"folder {ROOT}/docs/nothing does not exist" in sentence(done)
