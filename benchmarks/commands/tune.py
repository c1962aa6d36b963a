"""The problems that cpu.auto is tuned on, and the table made from their measurements. Times nothing itself."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.workloads import random_problems
from benchmarks.workloads.problems import Problem, load_set

if TYPE_CHECKING:
    from impls.conv2d.measurements import Measured

SETTINGS = Path(__file__).with_name("tune.toml")
DEFAULTS = {"stride": 1, "padding": (0, 0), "dilation": 1, "groups": 1}
NEAR = 1.1  # times as long as the fastest: still a good pick
HEAD = """\
# The measurements of cpu.auto: the fast implementations of each problem. Written by `make tune`, not by hand.
# us: medians in microseconds, the fastest first; implementations that took over {late:g} times as long are left out.
"""


def problems(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield {"problem": label} for the shapes of all sets, as many others as are to be drawn, and those named, once each.

    request: sets, random, seed, problems. Raises ImportError if the kernels that a table is of are not built.
    """
    from impls.conv2d import choice

    if choice.instruction_set() is None:
        raise ImportError("the compiled kernels are not built, and a table is of what they were compiled for: pip install .")
    named = [problem.label for name in request["sets"] for problem in load_set(name).values()]
    drawn = [problem.label for problem in random_problems.generate(request["random"], request["seed"])]
    yield from ({"problem": label} for label in dict.fromkeys([*named, *drawn, *request["problems"]]))


def outliers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield {"problem": label} for measurements that all others contradict: they pick one over 10 % slower than the fastest.

    request: times, a JSON file {label: {name: seconds}}.
    """
    from impls.conv2d import measurements

    times = _read(request)
    late = _behind_others([measurements.measured(_entry(label, found)) for label, found in times.items()])
    yield from ({"problem": label} for label, each in zip(times, late, strict=True) if each > NEAR)


def write_choice(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Put measurements into the table of this instruction set and processor, in place of those with as many threads.

    request: times, a JSON file {label: {name: seconds}}; threads; machine, commit and date in words. Yields {"table": where,
    "problems": how many are in it, "near": for what share of them the others pick one within 10 % of the fastest, "rules": by
    rule that names another than cpu.torch, on how many of them, on how many cpu.torch is faster, and by more than 10 %}.
    """
    from impls.conv2d import choice, measurements

    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    path = Path(__file__).parents[2] / settings["table"]
    times = _read(request)
    entries = [_entry(label, found) for label, found in times.items()]
    key = {"instruction_set": choice.instruction_set(), "processor": measurements.processor(), "threads": request["threads"]}
    about = {name: request[name] for name in ("machine", "commit", "date")}
    there = tomllib.loads(path.read_text(encoding="utf-8"))["table"] if path.is_file() else []
    made = [one for one in there if any(one[name] != value for name, value in key.items())]
    made.append({**key, **about, "problems": entries})
    made.sort(key=lambda one: [one[name] for name in key])
    path.write_text(HEAD.format(late=measurements.LATE) + "".join(map(_text, made)), encoding="utf-8")
    known = [measurements.measured(entry) for entry in entries]
    near = sum(late <= NEAR for late in _behind_others(known))
    rules = _rules(known, times.values(), request["threads"])
    yield {"table": settings["table"], "problems": len(known), "near": near / len(known), "rules": rules}


def _read(request: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return json.loads(Path(request["times"]).read_text(encoding="utf-8"))


def _behind_others(known: Sequence[Measured]) -> list[float]:
    """How many times as long as the fastest the pick of all other problems takes on each."""
    return [_behind([*known[:i], *known[i + 1 :]], one) for i, one in enumerate(known)]


def _rules(known: Sequence[Measured], times: Iterable[Mapping[str, float]], threads: int) -> dict[str, list[int]]:
    """How cpu.torch compares where a rule picks another; an implementation without a time counts as measurements.LATE."""
    from impls.conv2d import choice, measurements

    ratios: dict[str, list[float]] = {}
    for one, found in zip(known, times, strict=True):
        picked = choice.choose(one.problem, threads, by_rule=True)
        if (name := picked.implementation.name) != "cpu.torch" and "cpu.torch" in found:
            ours = found.get(name, measurements.LATE * min(found.values()))
            ratios.setdefault(picked.rule, []).append(found["cpu.torch"] / ours)
    return {rule: [len(each), *(sum(ratio < least for ratio in each) for least in (1, 0.9))] for rule, each in ratios.items()}


def _behind(known: Sequence[Measured], one: Measured) -> float:
    """How many times as long as the fastest the pick of the known problems takes on another, at most measurements.LATE.

    A pick without a time there took longer, or something held up the calls for which it was left out.
    """
    from impls.conv2d import choice, measurements

    expected = measurements.Known(tuple(known)).expect(one.problem)[1] if known else ()
    return one.behind(next((name for name in expected if choice.computes(name, one.problem, exact=False)), ""))


def _entry(label: str, times: Mapping[str, float]) -> dict[str, Any]:
    """A problem's entry in the table."""
    from impls.conv2d import measurements

    problem, order = Problem.parse(label), sorted(times, key=times.__getitem__)
    settings = {name: value for name, value in problem.arguments.items() if value != DEFAULTS[name]}
    us = {name: float(f"{times[name] * 1e6:.4g}") for name in order if times[name] <= measurements.LATE * times[order[0]]}
    return {"input": problem.input_shape, "weight": problem.weight_shape, **settings, "us": us}


def _text(table: Mapping[str, Any]) -> str:
    """A table in TOML, a line a problem."""
    words = {name: value for name, value in table.items() if name != "problems"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in words.items()]
    for entry in table["problems"]:
        us = ", ".join(f'"{name}" = {time:g}' for name, time in entry["us"].items())
        shown = [f"{name} = {json.dumps(value)}" for name, value in entry.items() if name != "us"]
        lines.append(f"    {{ {', '.join(shown)}, us = {{ {us} }} }},")
    first = len(words)
    return "\n".join(["", "[[table]]", *lines[:first], "problems = [", *lines[first:], "]", ""])
