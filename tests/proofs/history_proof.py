"""Rates of found changes and false alarms, of our detection and asv's, on series with known changes.

python tests/proofs/history_proof.py [RECORDS] prints the table of docs/history.md; each record is a hundred series (10
unless given).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from asv.step_detect import detect_regressions, detect_steps
from tabulate import tabulate

from convbench.stored import change_points

COMMITS, NOISE, SERIES = 100, 0.02, 100
REGRESSION = 0.05  # what `asv publish` calls a regression, unless asv.conf.json says otherwise


@dataclass
class Made:
    """A series in seconds, NaN where a commit has none, and the first commits of its steps."""

    values: np.ndarray
    steps: tuple[int, ...] = ()


def flat(random: np.random.Generator, commits: int = COMMITS) -> Made:
    return Made(1e-3 * np.exp(random.normal(0, NOISE, commits)))


def step(size: float, commits: int = COMMITS, margin: int = 5) -> Callable[[np.random.Generator], Made]:
    """A slow-down at any commit, but for the first and the last few."""

    def make(random: np.random.Generator) -> Made:
        made, place = flat(random, commits), int(random.integers(margin, commits - margin + 1))
        made.values[place:] *= 1 + size
        return Made(made.values, (place,))

    return make


def two_steps(random: np.random.Generator) -> Made:
    """Slower by a tenth, and back again."""
    made, (start, end) = flat(random), np.sort(random.choice(np.arange(5, COMMITS - 4, 5), 2, replace=False))
    made.values[start:end] *= 1.1
    return Made(made.values, (int(start), int(end)))


def heavy(size: float) -> Callable[[np.random.Generator], Made]:
    """Noise with the tails of Student's t of three degrees of freedom, of the same median size."""

    def make(random: np.random.Generator) -> Made:
        noise = random.standard_t(3, COMMITS) * NOISE * 0.6745 / 0.7649
        place = int(random.integers(5, COMMITS - 4))
        values = 1e-3 * np.exp(noise)
        values[place:] *= 1 + size
        return Made(values, (place,) if size else ())

    return make


def drift(size: float) -> Callable[[np.random.Generator], Made]:
    """Slower a little with every commit, none of which is to blame."""
    return lambda random: Made(flat(random).values * np.exp(np.linspace(0, math.log1p(size), COMMITS)))


def outliers(make: Callable[[np.random.Generator], Made]) -> Callable[[np.random.Generator], Made]:
    """Five single commits are measured half as slow again."""

    def made(random: np.random.Generator) -> Made:
        one = make(random)
        places = random.choice(np.arange(2, COMMITS - 2, 4), 5, replace=False)
        one.values[places] *= 1.5
        return one

    return made


def missing(make: Callable[[np.random.Generator], Made]) -> Callable[[np.random.Generator], Made]:
    """A third of the commits have no value."""

    def made(random: np.random.Generator) -> Made:
        one = make(random)
        one.values[random.choice(COMMITS, COMMITS // 3, replace=False)] = math.nan
        return one

    return made


def one_of_two_machines(make: Callable[[np.random.Generator], Made]) -> Callable[[np.random.Generator], Made]:
    """Two machines measured every other commit each; both ways of looking read the series of one alone."""

    def made(random: np.random.Generator) -> Made:
        one = make(random)
        one.values[int(random.integers(2)) :: 2] = math.nan
        return one

    return made


KINDS: dict[str, Callable[[np.random.Generator], Made]] = {
    "no step": flat,
    "no step, heavy tails": heavy(0),
    "no step, 5 outliers of 50 %": outliers(flat),
    "no step, a third missing": missing(flat),
    "no step, one of two machines": one_of_two_machines(flat),
    "no step, 20 commits": lambda random: flat(random, 20),
    "no step, 5 commits": lambda random: flat(random, 5),
    "drift of 5 %": drift(0.05),
    "drift of 20 %": drift(0.2),
    "step of 2 %": step(0.02),
    "step of 5 %": step(0.05),
    "step of 10 %": step(0.1),
    "step of 50 %": step(0.5),
    "10 %, heavy tails": heavy(0.1),
    "10 %, 5 outliers of 50 %": outliers(step(0.1)),
    "10 %, a third missing": missing(step(0.1)),
    "10 %, one of two machines": one_of_two_machines(step(0.1)),
    "10 % and back": two_steps,
    "10 %, 20 commits": step(0.1, 20),
    "20 %, 5 commits": step(0.2, 5, 2),
}


def ours(record: list[Made]) -> list[list[int]]:
    """First commits of the steps found in each series of a record."""
    findings = change_points.judge([change_points.Series(made.values) for made in record])
    return [[change.first for change in finding.changes if change.kind == change_points.STEP] for finding in findings]


def asv_steps(record: list[Made]) -> list[list[int]]:
    """The same by the detection behind asv's dashboard."""
    return [[piece[0] for piece in detect_steps(made.values.tolist())[1:]] for made in record]


def asv_regressions(record: list[Made]) -> list[list[int]]:
    """The same by what asv's page of regressions shows: slow-downs that lasted, of 5 % or more."""
    found = []
    for made in record:
        _, _, places = detect_regressions(detect_steps(made.values.tolist()), REGRESSION)
        found.append([after for _, after, _, _ in places or []])
    return found


METHODS = {"history": ours, "asv steps": asv_steps, "asv regressions": asv_regressions}


@dataclass
class Score:
    """steps: how many there are. hits: those found within one measured commit. off: those found further away.

    wrong: series in which more is called a step than there are.
    """

    steps: int = 0
    hits: int = 0
    off: int = 0
    wrong: int = 0


def score(record: list[Made], found: list[list[int]]) -> Score:
    total = Score(sum(len(made.steps) for made in record))
    for made, calls in zip(record, found, strict=True):
        rank = np.cumsum(np.isfinite(made.values))  # commits without a value have no place in between
        # The first commit with a value from the step on, and how far from it the nearest of the calls is.
        places = [int(rank[place - 1]) + 1 for place in made.steps]
        left = [rank[call] for call in calls]
        hits = [place for place in places if any(abs(call - place) <= 1 for call in left)]
        total.hits += len(hits)
        more = max(0, len(calls) - len(hits))
        total.off += min(more, len(places) - len(hits))
        total.wrong += len(calls) > len(places)
    return total


def records(kind: str, count: int) -> list[list[Made]]:
    """The same for ever: seeded by the kind and the record's number."""
    seed = list(KINDS).index(kind)
    generators = [np.random.default_rng([seed, number]) for number in range(count)]
    return [[KINDS[kind](random) for _ in range(SERIES)] for random in generators]


def run(kind: str, count: int) -> dict[str, Score]:
    """The scores of every method over all series of a kind."""
    made = records(kind, count)
    found = {}
    for name, method in METHODS.items():
        parts = [score(record, method(record)) for record in made]
        found[name] = Score(*(sum(getattr(part, field) for part in parts) for field in ("steps", "hits", "off", "wrong")))
    return found


def coverage(kind: str, count: int) -> tuple[float, float]:
    """Of the steps that were found: how many lie in the range of commits given, and how many ratios in the interval."""
    places, ratios = [], []
    for record in records(kind, count):
        for made, finding in zip(
            record, change_points.judge([change_points.Series(one.values) for one in record]), strict=True
        ):
            for change in finding.changes:
                if len(made.steps) == 1 and change.kind == change_points.STEP:
                    places.append(change.good < made.steps[0] <= change.changed)
                    ratios.append(change.low <= 1 + float(kind.split()[2]) / 100 <= change.high)
    return float(np.mean(places)), float(np.mean(ratios))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}"


def main(count: int) -> None:
    rows = []
    for kind in KINDS:
        scores = run(kind, count)
        hits = [
            f"{_share(one.hits, one.steps)} ({_share(one.off, one.steps)})" if one.steps else "" for one in scores.values()
        ]
        rows.append([kind, *hits, *(_share(one.wrong, count * SERIES) for one in scores.values())])
    head = ["series", *(f"found: {name}" for name in METHODS), *(f"false: {name}" for name in METHODS)]
    print(tabulate(rows, head, tablefmt="github", disable_numparse=True))
    print()
    rows = [
        [kind, *(f"{100 * share:.1f} %" for share in coverage(kind, count))] for kind in KINDS if kind.startswith("step of")
    ]
    print(tabulate(rows, ["found", "in the range of commits", "ratio in the interval"], tablefmt="github"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
