"""perf's counters as a table: each event per call, and its share of another."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import click

from convbench.common import numbers

# value; unit; a processor's kind of core if it has several; event; nanoseconds counted; percent of the time counted
LINE = re.compile(r"(?P<value>\d+\.?\d*);[^;]*;(?:\w+/)?(?P<event>[\w-]+)[^;]*;\d+;(?P<percent>\d+\.?\d*)(?:;.*)?")
CLOCK, CYCLES, INSTRUCTIONS = "task-clock", "cycles", "instructions"
NONE = (
    "no hardware counters here: perf counts neither cycles nor instructions of this machine, as in most virtual ones; "
    "docs/profile.md says what else tells arithmetic from memory"
)
SHARES = {
    "branches": INSTRUCTIONS,
    "branch-misses": "branches",
    "L1-dcache-loads": INSTRUCTIONS,
    "L1-dcache-load-misses": "L1-dcache-loads",
    "cache-misses": "cache-references",
}
TITLES = ("a call", "event", "")


@dataclass(frozen=True)
class Counter:
    """How often an event happened (the clock: milliseconds), estimated from the share of the time in which it was counted."""

    value: float
    counted: float = 1.0


def read(report: str) -> dict[str, Counter]:
    """Counters by event, from the lines of `perf stat --field-separator ';'`; events that were not counted are left out.

    Each kind of core counts its own part of the time, and perf takes each for the whole: together they are the mean, by time.
    Raises ClickException if the machine counts neither cycles nor instructions.
    """
    parts: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for match in filter(None, map(LINE.fullmatch, report.splitlines())):
        parts[match["event"]].append((float(match["value"]), float(match["percent"]) / 100))
    counters = {}
    for event, values in parts.items():
        if counted := sum(share for _, share in values):
            counters[event] = Counter(sum(value * share for value, share in values) / counted, min(1.0, counted))
    if not {CYCLES, INSTRUCTIONS} & counters.keys():
        raise click.ClickException(NONE)
    return counters


def render(counters: dict[str, Counter], calls: int) -> str:
    """The table as text, for one call of several that were counted together."""
    rows = [
        TITLES,
        *((_value(event, counter, calls), event, _relation(event, counters)) for event, counter in counters.items()),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [f"{value:>{widths[0]}}  {event:<{widths[1]}}  {relation}".rstrip() for value, event, relation in rows]
    least = min(counter.counted for counter in counters.values())
    note = f"the processor counts a few events at a time: each was counted for at least {numbers.percent(least)} of the time"
    return "\n".join([*text, *(["", f"{note}, and scaled up"] if least < 1 else [])])


def _value(event: str, counter: Counter, calls: int) -> str:
    value = counter.value / calls
    if event == CLOCK:
        return numbers.quantity(value / 1000, "seconds")
    text = numbers.significant(value, 3)
    return f"{int(text):,}" if text.isdigit() else text


def _relation(event: str, counters: dict[str, Counter]) -> str:
    """An event in relation to another: cycles a second, instructions a cycle, misses of loads."""
    value = counters[event].value
    whole = {CYCLES: CLOCK, INSTRUCTIONS: CYCLES, **SHARES}.get(event, "")
    if whole not in counters or not counters[whole].value:
        return ""
    part = value / counters[whole].value
    if event == CYCLES:
        return f"{numbers.significant(part / 1e6, 3)} GHz"
    return f"{numbers.significant(part, 3)} a cycle" if event == INSTRUCTIONS else f"{numbers.percent(part)} of {whole}"
