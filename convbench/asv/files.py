"""Reads and checks asv's two kinds of files, lists of benchmarks and results, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.results import Results, get_filename

from convbench.common import untrusted
from convbench.common.untrusted import Malformed

MAX_CELLS = 100_000  # combinations of parameters: lists of ten values, nine times over, take no more than a line
FEW_CELLS = 10_000  # cells of a file without a byte for each, as of a benchmark that failed in all of them
FORMAT = Results.api_version  # of results, and of the list of benchmarks
LONGEST_VALUE = 60  # characters of such a value that are shown
MAX_INTEGER = 1 << 63  # the range of integers in data frames and their files
LAST_DATE = 1 << 43  # milliseconds, in the year 2248: the limit of pandas and the system's calendar


@dataclass(frozen=True)
class Stored:
    """A results file. entries: its columns, by benchmark and name; a column has a value for each cell, or is None."""

    machine: str
    commit: str
    environment: str
    date: float
    facts: dict[str, Any]
    entries: dict[str, dict[str, Any]]


def stored(content: Any, size: int) -> Stored:
    """Check the content of a results file of so many bytes.

    Raises Malformed, or what Python raises for a value of another kind.
    """
    _check_format(content)
    facts, columns = content["params"], content["result_columns"]
    entries = {name: dict(zip(columns, row, strict=False)) for name, row in content["results"].items()}
    count = sum(map(_check_entry, entries.values()))
    most = min(MAX_CELLS, FEW_CELLS + size)
    if count > most:
        raise Malformed(f"it has {count} cells in {size} bytes, and up to {most} are read")
    date = _number(content["date"])
    if not 0 <= date < LAST_DATE:
        raise Malformed(f"its date is {date:g}")
    machine, commit, environment = map(_text, (facts["machine"], content["commit_hash"], content["env_name"]))
    return Stored(machine, commit, environment, date, facts, entries)


def _check_entry(entry: dict[str, Any]) -> int:
    """How many cells a benchmark has. Samples become floats; a column that is not a list of as many values is refused."""
    count = combinations(entry.get("params") or [])
    for name, column in entry.items():
        if (name not in ("result", "samples") and not name.startswith("stats_")) or not column:
            continue
        if not isinstance(column, list) or len(column) != count:
            raise Malformed(f"its column {name} is not a list of {count} values")
        if name == "samples":
            entry[name] = [None if samples is None else list(map(_number, samples)) for samples in column]
        elif name != "result":
            for value in column:
                if value is not None:
                    _number(value)
    return count


def _check_format(content: Any) -> None:
    """Raise Malformed if a file has another version of asv's format than the one that is read here."""
    if isinstance(content, dict) and isinstance(found := content.get("version", FORMAT), int) and found != FORMAT:
        cure = "run `asv update`" if found < FORMAT else "it is newer than this asv: upgrade asv"
        raise Malformed(f"it has format {found} of asv's files: {cure}")


def no_number(value: Any) -> str | None:
    """Why a benchmark's value cannot be shown as a number. None if it can, or if there is no value."""
    if value is None or (isinstance(value, float) and not math.isinf(value)):
        return None
    if isinstance(value, float):
        return "its value is infinite"
    if isinstance(value, int):
        return f"its value has {len(f'{abs(value):x}') * 4} bits, too many to show" if abs(value) >= MAX_INTEGER else None
    kind = "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
    return f"its value is {kind}, not a number: {' '.join(str(value).split())[:LONGEST_VALUE]}"


def combinations(params: Any) -> int:
    """How many combinations lists of parameters have, each of them text. Raises Malformed for others, or for too many."""
    if not isinstance(params, list) or not all(isinstance(values, list) for values in params):
        raise Malformed("its parameters are not lists")
    if not all(isinstance(value, str) for values in params for value in values):
        raise Malformed("its parameters are not strings")
    count = math.prod(map(len, params))
    if count > MAX_CELLS:
        raise Malformed(f"its parameters have {count} combinations, and up to {MAX_CELLS} are read")
    return count


def benchmarks(content: Any) -> dict[str, dict[str, Any]]:
    """Check asv's list of benchmarks; attributes that this suite declares and another uses for something else are left out.

    Raises Malformed.
    """
    if not isinstance(content, dict):
        raise Malformed("it is not asv's list of benchmarks")
    _check_format(content)
    found = {}
    for name, entry in content.items():
        if not isinstance(entry, dict):
            continue  # the version of asv's format
        try:
            combinations(entry.get("params", []))
            names = entry.get("param_names", [])
            if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
                raise Malformed("its parameters' names are not strings")
            _text(entry.get("unit", ""))
        except (Malformed, TypeError) as error:
            raise Malformed(f"{name}: {error}") from None
        found[name] = {key: value for key, value in entry.items() if key not in DECLARED or DECLARED[key](value)}
    return found


def file_name(commit: str, environment: str) -> str:
    """What asv calls the results of a commit in an environment, in the folder of a machine."""
    return get_filename("", commit, environment)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 < value < 1000


def _facts(texts: tuple[str, ...], amounts: tuple[str, ...] = ()) -> Callable[[Any], bool]:
    """A check for a dictionary of dictionaries, in which these have to be text, and those positive numbers."""

    def sound(value: Any) -> bool:
        return isinstance(value, dict) and all(isinstance(facts, dict) and each(facts) for facts in value.values())

    def each(facts: dict[str, Any]) -> bool:
        words = [facts[key] for key in texts if facts.get(key) is not None]
        numbers = [facts[key] for key in amounts if facts.get(key) is not None]
        return all(map(_is_text, words)) and all(isinstance(one, (int, float)) and 0 < one < MAX_INTEGER for one in numbers)

    return sound


# The attributes that this suite declares for its benchmarks, and their types.
DECLARED: dict[str, Callable[[Any], bool]] = {
    "axis": _is_text,
    "baseline": _is_text,
    "device": _is_text,
    "quick": _is_texts,
    "rounds": _is_count,
    "problems": _facts(("label", "dtype"), ("flops", "bytes")),
    "implementations": _facts(("device", "family", "summary")),
    "ceilings": _facts(("device", "dtype"), ("flops", "bytes")),
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{value!r:.40} is not text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes)) or (isinstance(value, int) and abs(value) >= MAX_INTEGER):
        raise Malformed(f"{value!r:.40} is not a number in the supported range")
    return float(value)


def read(path: Path) -> Stored:
    """The content of one results file. Raises Unreadable."""
    with untrusted.understanding(path):
        return stored(untrusted.read_json(path), path.lstat().st_size)
