"""What bounds a call: parts that add up, gains that follow from them, and a decoder that is seen."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.commands import bound
from benchmarks.commands.bound import Parts

ROOT = Path(__file__).parents[3]
SECONDS = st.floats(0, 10)


@given(st.floats(0.001, 10), SECONDS, st.floats(0, 1), SECONDS, SECONDS)
def test_parts_add_up_and_a_faster_part_never_costs(seconds, extra, decoding, arithmetic, memory):
    parts = bound.split(seconds, seconds + extra, decoding, arithmetic, memory)
    assert parts.total == pytest.approx(seconds + extra)
    assert min(parts.all().values()) >= 0
    assert 0 in (parts.arithmetic, parts.memory)  # the larger of two that overlap
    for name in parts.all():
        assert 1 <= parts.gain(name) <= 2 + 1e-9
    assert parts.gain(*parts.all()) == pytest.approx(2)
    assert parts.most_by_device >= 1


def test_what_is_said_of_a_call():
    assert bound.words(Parts(0, 0.009, 0.0006, 0, 0.0004)) == (
        "10 ms a call (disk 0, decoding 9, arithmetic 0.6, memory 0, rest 0.4), bound by decoding. "
        "Twice as fast: disk 1.00x, decoding 1.82x, arithmetic 1.03x, memory 1.00x; "
        "a core twice as fast in all it does 2.00x, a device for all but disk and decoding at most 1.11x"
    )
    assert "bound by none of the four" in bound.words(Parts(0, 0, 0, 0.001, 0.002))
    assert bound.words(Parts(0, 0, 0, 0.001, 0)).endswith("a device for all but disk and decoding without a bound")
    assert Parts(0, 0, 0, 1, 0).most_by_device == math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "problem", "name"),
    [
        ("decode_jpeg", "n1h240w320y240x320r1", "cpu.pillow"),
        ("preprocess", "n1h240w320y60x80s32", "cpu.numpy"),
        ("read_batch", "n2b13h64w64", "cpu.tifffile"),
    ],
)
def test_decoding_is_most_of_what_decodes(operation, problem, name):
    pytest.importorskip("numba", reason="the machine's limits are measured in native loops: pip install numba")
    request = {"operation": operation, "problem": problem, "names": [name]}
    command = [sys.executable, "-m", "benchmarks", "bound", json.dumps(request)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    heading, line = done.stdout.splitlines()
    assert heading == f"{operation} {problem}, one thread"
    parts = dict(re.findall(r"(disk|decoding|arithmetic|memory|rest) ([\d.e-]+)[,)]", line))
    assert line.startswith(f"{name}: ")
    assert float(parts["decoding"]) > float(parts["arithmetic"]) + float(parts["memory"])
    assert (float(parts["disk"]) > 0) <= (operation == "read_batch")


def test_what_cannot_be_bound_is_refused():
    with pytest.raises(LookupError, match="no bound of 'conv2d' is measured; there are decode_jpeg, preprocess, read_batch"):
        list(bound.run({"operation": "conv2d"}))
