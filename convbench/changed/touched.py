"""Decides which difference can have changed a cell, from a trace of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from convbench.changed.builds import SIDES, Change, Difference, Kind
from convbench.changed.trace import Facts

ENDED = {"ended", "value"}  # of a cell that was called to its end


def everywhere(difference: Difference) -> str | None:
    """The difference that touches every cell, None if there is none."""
    alone = next((change for change in difference.changes if change.kind is Kind.DATA and change.package is None), None)
    return difference.everything or (f"{alone.name} differs, and belongs to no package" if alone else None)


def reason(difference: Difference, traced: Mapping[str, Sequence[Facts]], in_bytes: bool = False) -> str | None:
    """The difference that touches a cell, None where none does.

    traced: by side, what its own process and that of its setup_cache saw; of a side without its own nothing is known.
    in_bytes: whether its value is memory, of which a function has a part that has not run.
    """
    all_alike = any("every" in facts for facts in _all(traced))
    for side in SIDES:
        own = traced[side][-1] if traced[side] else {}
        if not all_alike and ENDED.isdisjoint(own):
            said = own.get("failed") or own.get("skipped") or "its process gave no answer"
            return f"it could not be traced on the {side}: {said}"
        if started := next(filter(None, (facts["started"] for facts in traced[side])), None):
            return f"it starts a process ({started})"
    found = next(filter(None, (_by(change, traced, in_bytes) for change in difference.changes)), None)
    return found or ("it could not be traced: only loading the suite was" if all_alike else None)


def _by(change: Change, traced: Mapping[str, Sequence[Facts]], in_bytes: bool) -> str | None:
    """How a change touches a cell."""
    if any(change.name in facts["listed"] for facts in _all(traced)):
        return f"{change.name} is there on the {next(iter(change.files))} alone, and the files of its folder are listed"
    if change.kind is Kind.DATA and any(change.package in facts["packages"] for facts in _all(traced)):
        return f"{change.name} differs, which is data of a package that it loads"
    for side, path in change.files.items():
        found = _seen(change, side, str(path.resolve()), traced[side], in_bytes)
        if found:
            return found
    return None


def _seen(change: Change, side: str, path: str, processes: Iterable[Facts], in_bytes: bool) -> str | None:
    for facts in processes:
        if path in facts["opened"]:
            return f"{change.name} differs, which it reads"
        if path not in facts["loaded"]:
            continue
        if change.functions is None:
            if len(change.files) < len(SIDES):
                return f"{change.name} is there on the {side} alone"
            return f"{change.name} differs{' beyond the bodies of functions' if change.kind is Kind.SOURCE else ''}"
        if in_bytes:
            return f"{change.name} differs, which it loads into the memory that it measures"
        if facts["compilers"]:
            return f"{change.name} differs, and {facts['compilers'][0]}, which compiles functions, is loaded"
        if path in facts["classes"]:
            return f"{change.name} differs, and has a class that a metaclass or __init_subclass__ makes"
        for function in getattr(change.functions, side):
            if [path, function.line] in facts["ran"]:
                return f"{function.name} differs, in {change.name}"
    return None


def _all(traced: Mapping[str, Sequence[Facts]]) -> Iterable[Facts]:
    return (facts for processes in traced.values() for facts in processes)
