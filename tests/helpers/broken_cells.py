"""Breaks every implementation in every way and lets the suite judge it. Run by test_suite.py in a process of its own.

Is given {operation: [implementation]} as JSON, and prints {operation: {implementation: {fault: [status, reason, whether a
time was stored]}}}. A process of its own because a cell confines the process that measures it to one core and one thread.
"""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from asv_runner.run import _run  # noqa: E402  (the function asv itself calls in each cell's process)

import impls  # noqa: E402
from benchmarks import conv2d, conv2d_backward, conv_transpose2d  # noqa: E402
from benchmarks.harness import cell  # noqa: E402
from benchmarks.workloads.problems import Problem  # noqa: E402

CLASSES = {
    "conv2d": (conv2d.ImageSize, "7x7"),
    "conv2d_backward": (conv2d_backward.Layers, "n1c64h56w56k64r3s3p1"),
    "conv_transpose2d": (conv_transpose2d.Layers, "n1c64h56w56k64r3s3p1"),
}


def with_part(output, part, change):
    """The result of an operation, with a changed copy of one of its arrays."""
    parts = list(output) if isinstance(output, tuple) else [output]
    parts[part] = parts[part].copy()
    change(parts[part])
    return tuple(parts) if isinstance(output, tuple) else parts[0]


def put(place, value):
    return lambda array: array.__setitem__(place, value)


def tap_off_by_one(function, *arrays, **arguments):
    *others, weight = arrays
    weight = weight.copy()
    weight[1, 0, 2, 0] += 1
    return function(*others, weight, **arguments)


def border_row(function, *arrays, **arguments):
    return with_part(function(*arrays, **arguments), 0, put(np.s_[:, :, -1], 0))


def wrong_group(function, first, *others, **arguments):
    return function(np.roll(first, first.shape[1] // arguments["groups"], axis=1), *others, **arguments)


def nan(function, *arrays, **arguments):
    return with_part(function(*arrays, **arguments), 0, put((0, 1, 3, 4), np.nan))


def wrong_later(function, *arrays, **arguments):
    """Right when it is checked, wrong when it is timed, in the last array it returns."""
    wrong_later.calls += 1
    output = function(*arrays, **arguments)
    return output if wrong_later.calls == 1 else with_part(output, -1, lambda array: np.multiply(array, 1.001, out=array))


def remembered(function, *arrays, **arguments):
    """Compute once and return that ever after: right until the input changes."""
    if not wrong_later.calls:
        remembered.output = function(*arrays, **arguments)
    wrong_later.calls += 1
    return remembered.output


def changes_its_input(function, *arrays, **arguments):
    output = function(*arrays, **arguments)
    arrays[0][:] *= 0.5
    return output


def changes_its_weight(function, *arrays, **arguments):
    output = function(*arrays, **arguments)
    arrays[-1][:] *= 0.5
    return output


def unbroken(function, *arrays, **arguments):
    return function(*arrays, **arguments)


def tap_of_the_weight(function, *arrays, **arguments):
    return with_part(function(*arrays, **arguments), 1, put(np.s_[:, :, -1, -1], 0))


def nan_in_the_weight(function, *arrays, **arguments):
    return with_part(function(*arrays, **arguments), 1, put((3, 1, 2, 0), np.nan))


def value_of_the_bias(function, *arrays, **arguments):
    return with_part(function(*arrays, **arguments), 2, put(-1, 0))


def no_bias(function, *arrays, **arguments):
    return function(*arrays, **arguments)[:2]


FAULTS = [
    *(unbroken, tap_off_by_one, border_row, wrong_group, nan, wrong_later, remembered),
    *(changes_its_input, changes_its_weight),
]
OF_GRADIENTS = [tap_of_the_weight, nan_in_the_weight, value_of_the_bias, no_bias]


def judge(operation, name, fault, folder):
    kind, value = CLASSES[operation]
    index = kind.params[0].index(name) * len(kind.problems) + list(kind.problems).index(value)
    lines, stored = Path(folder, "cells.jsonl"), Path(folder, "result.json")
    lines.unlink(missing_ok=True)
    stored.unlink(missing_ok=True)
    os.environ["CONVBENCH_CELLS"] = str(lines)
    right = impls.contract.load(name, operation)
    wrong_later.calls = 0
    broken = dataclasses.replace(right, function=lambda *args, **kwargs: fault(right, *args, **kwargs))
    impls.load = lambda *_: broken
    try:
        benchmark = f"{operation}.{kind.__name__}.time_{operation}-{index}"
        _run((str(ROOT / "benchmarks"), benchmark, "{}", "None", str(stored)))
    except Exception as error:
        print(f"{operation} {name} {fault.__name__}: {error}", file=sys.stderr)
    line = json.loads(lines.read_text().splitlines()[-1])
    return line["status"], line["reason"], stored.exists()


if __name__ == "__main__":
    cell.too_slow = lambda *_: None  # what is measured of named layers alone is judged like the others
    # Small enough for nested Python loops, with groups to mix up, and called once.
    for kind, value in CLASSES.values():
        kind.repeat, kind.number, kind.warmup_time = 1, 1, 0
        kind.problems[value] = Problem.parse("n2c4h7w7k4r3s3p1g2")
    with tempfile.TemporaryDirectory() as folder:
        verdicts = {}
        for operation, names in json.loads(sys.argv[1]).items():
            faults = FAULTS + OF_GRADIENTS * (operation == "conv2d_backward")
            verdicts[operation] = {
                name: {fault.__name__: judge(operation, name, fault, folder) for fault in faults} for name in names
            }
        print(json.dumps(verdicts))
