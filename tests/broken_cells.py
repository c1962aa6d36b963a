"""Breaks every implementation in every way and lets the suite judge it. Run by test_suite.py in a process of its own.

Prints one JSON object: {implementation: {fault: [status, reason, whether a time was stored]}}. A process of its own because
a cell confines the process that measures it to one core and one thread.
"""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from asv_runner.run import _run  # noqa: E402  (the function asv itself calls in each cell's process)

import impls  # noqa: E402
from benchmarks import conv2d  # noqa: E402
from benchmarks.problems import Problem  # noqa: E402

SHORT = json.dumps({"repeat": 1, "number": 1, "warmup_time": 0})


def tap_off_by_one(function, input, weight, **arguments):
    weight = weight.copy()
    weight[1, 0, 2, 0] += 1
    return function(input, weight, **arguments)


def border_row(function, input, weight, **arguments):
    output = function(input, weight, **arguments).copy()
    output[:, :, -1] = 0
    return output


def wrong_group(function, input, weight, **arguments):
    return function(np.roll(input, weight.shape[1], axis=1), weight, **arguments)


def nan(function, input, weight, **arguments):
    output = function(input, weight, **arguments).copy()
    output[0, 1, 3, 4] = np.nan
    return output


def wrong_later(function, input, weight, **arguments):
    """Right when it is checked, wrong when it is timed."""
    wrong_later.calls += 1
    output = function(input, weight, **arguments)
    return output if wrong_later.calls == 1 else output * 1.001


def remembered(function, input, weight, **arguments):
    """Computed once and handed out ever after: right until the input changes."""
    if not wrong_later.calls:
        remembered.output = function(input, weight, **arguments)
    wrong_later.calls += 1
    return remembered.output


def changes_its_input(function, input, weight, **arguments):
    output = function(input, weight, **arguments)
    input *= 0.5
    return output


def unbroken(function, input, weight, **arguments):
    return function(input, weight, **arguments)


FAULTS = [unbroken, tap_off_by_one, border_row, wrong_group, nan, wrong_later, remembered, changes_its_input]


def judge(name, fault, folder):
    index = list(conv2d.ImageSize.problems).index("7x7")
    cell = conv2d.IMPLEMENTATIONS.index(name) * len(conv2d.ImageSize.problems) + index
    lines, stored = Path(folder, "cells.jsonl"), Path(folder, "result.json")
    lines.unlink(missing_ok=True)
    stored.unlink(missing_ok=True)
    os.environ["CONVBENCH_CELLS"] = str(lines)
    right = impls.contract.load(name)
    wrong_later.calls = 0
    broken = dataclasses.replace(right, function=lambda *args, **kwargs: fault(right, *args, **kwargs))
    impls.load = lambda *_: broken
    try:
        _run((str(ROOT / "benchmarks"), f"conv2d.ImageSize.time_conv2d-{cell}", SHORT, "None", str(stored)))
    except Exception as error:
        print(f"{name} {fault.__name__}: {error}", file=sys.stderr)
    line = json.loads(lines.read_text().splitlines()[-1])
    return line["status"], line["reason"], stored.exists()


if __name__ == "__main__":
    # Small enough for nested Python loops, with groups to mix up.
    conv2d.ImageSize.problems["7x7"] = Problem.parse("n2c4h7w7k4r3s3p1g2")
    with tempfile.TemporaryDirectory() as folder:
        available = json.loads(sys.argv[1])
        print(json.dumps({name: {fault.__name__: judge(name, fault, folder) for fault in FAULTS} for name in available}))
