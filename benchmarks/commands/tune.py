"""The problems that cpu.auto is tuned on, and what becomes of their measurements. Times nothing itself."""

from __future__ import annotations

import gzip
import json
import math
import statistics
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.workloads import random_problems
from benchmarks.workloads.problems import Problem, load_set

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).with_name("tune.toml")
ABOUT = "cpu.auto's measurements, written by `python -m benchmarks tables`: see impls/conv2d/measurements.py"
Late = dict[str, list[float]]  # by implementation, logarithms of times over the fastest's


def problems(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield {"problem": label} for the shapes of all sets and as many others as are to be drawn, once each.

    request: sets, random, seed. Raises ImportError if the kernels that measurements are of are not built.
    """
    from impls.conv2d import choice

    if choice.instruction_set() is None:
        raise ImportError(
            "the compiled kernels are not built, and measurements are of what they were compiled for: pip install ."
        )
    named = [problem.label for name in request["sets"] for problem in load_set(name).values()]
    drawn = [problem.label for problem in random_problems.generate(request["random"], request["seed"])]
    yield from ({"problem": label} for label in dict.fromkeys([*named, *drawn]))


def remember(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make measurements this machine's wisdom. request: threads; times, a JSON file {label: {name: seconds}}.

    Yields {"problems": how many there are}, and this machine's "instruction_set" and "processor".
    """
    from impls.conv2d import choice, measurements, wisdom

    times = json.loads(Path(request["times"]).read_text(encoding="utf-8"))
    known = {(_asked(Problem.parse(label)), request["threads"]): found for label, found in times.items()}
    instructions = choice.instruction_set()
    wisdom.remember(known, instructions)
    yield {"problems": len(known), "instruction_set": instructions, "processor": measurements.processor()}


def tables(_request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the tables that come with the package from the times of the machines of tune.toml.

    Of each problem that all of them measured, the mean over processes and numbers of threads. Yields {"table", "bytes"}.
    """
    from impls.conv2d import measurements

    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    machines = [(one, read(ROOT / "results" / one["times"])) for one in settings["machine"]]
    lines = []
    for label in machines[0][1]:
        if all(label in found for _, found in machines):
            words = ["".join(_letter(found[label].get(name)) for name in settings["shipped"]) for _, found in machines]
            lines.append(json.dumps([_numbers(Problem.parse(label)), *words]))
    about = [
        {**one, "machine": one["times"].split("/")[0], "commit": Path(one["times"]).name[:8]} for one in settings["machine"]
    ]
    head = json.dumps({"about": ABOUT, "names": settings["shipped"], "machines": about}, indent=1).removesuffix("\n}")
    text = f'{head},\n "problems": [\n' + ",\n".join(lines) + "\n]}\n"
    measurements.FILE.write_text(text, encoding="utf-8")
    yield {"table": str(measurements.FILE.relative_to(ROOT)), "bytes": len(text)}


def read(path: Path) -> dict[str, Late]:
    """What was measured of each problem, in the order of the file; nothing of implementations that did not support it."""
    from impls.conv2d.measurements import LATE

    found: dict[str, Late] = {}
    for line in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()):
        seconds = {cell["name"]: _seconds(cell) for cell in line["cells"]}
        fastest = min(each for each in seconds.values() if each)
        for name, each in seconds.items():
            if each:
                late = math.log(min(each / fastest, LATE))
                found.setdefault(line["problem"], {}).setdefault(name, []).append(late)
    return found


def _seconds(cell: Mapping[str, Any]) -> float | None:
    """The median of a candidate; infinite if it was left out as too slow, None if it could not compute the problem."""
    if cell["status"] == "ok":
        return statistics.median(cell["samples"])
    return math.inf if cell.get("reason", "").startswith(("left out", "too slow")) else None


def _letter(late: Sequence[float] | None) -> str:
    from impls.conv2d.measurements import LATE, LETTERS

    return "-" if late is None else LETTERS[round(statistics.fmean(late) / math.log(LATE) * (len(LETTERS) - 1))]


def _numbers(problem: Problem) -> list[int]:
    """The problem as impls/conv2d/measurements.py reads it."""
    shape = *problem.input_shape, problem.k, problem.r, problem.s
    return [*shape, problem.stride, *problem.padding, problem.dilation, problem.groups]


def _asked(problem: Problem) -> Any:
    from impls.conv2d import measurements

    return measurements.problem(problem.input_shape, problem.weight_shape, **problem.arguments)
