"""Decides which difference can have changed a cell, from a trace of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from convbench.changed.builds import SIDES, Change, Difference, Kind
from convbench.changed.trace import Facts

ENDED = "ended"  # of a cell that was called to its end


def everywhere(difference: Difference) -> str | None:
    """The difference that touches every cell, None if there is none."""
    alone = next((change for change in difference.changes if change.kind is Kind.DATA and not change.package), None)
    return difference.everything or (f"{alone.name} differs, and belongs to no package" if alone else None)


def reason(difference: Difference, traced: Mapping[str, Sequence[Facts]]) -> str | None:
    """The difference that touches a cell, None where none does.

    traced: by side, what its own process and that of its setup_cache saw; of a side without its own nothing is known.
    """
    all_alike = any("every" in facts for facts in _all(traced))
    for side in SIDES:
        own = traced[side][-1] if traced[side] else {}
        if not all_alike and ENDED not in own:
            said = own.get("failed") or own.get("skipped") or "its process gave no answer"
            return f"it could not be traced on the {side}: {said}"
        if started := next(filter(None, (facts["started"] for facts in traced[side])), None):
            return f"it starts a process ({started})"
    return next(filter(None, (_by(change, traced) for change in difference.changes)), None)


def _by(change: Change, traced: Mapping[str, Sequence[Facts]]) -> str | None:
    """How a change touches a cell."""
    if change.kind is Kind.DATA and any(change.package in facts["packages"] for facts in _all(traced)):
        return f"{change.name} differs, which is data of a package that it loads"
    for side, path in change.files.items():
        found = _seen(change, side, str(path.resolve()), traced[side])
        if found:
            return found
    return None


def _seen(change: Change, side: str, path: str, processes: Iterable[Facts]) -> str | None:
    for facts in processes:
        if path in facts["opened"]:
            return f"{change.name} differs, which it reads"
        if path not in facts["loaded"]:
            continue
        if change.functions is None:
            what = "differs" if len(change.files) == len(SIDES) else f"is there on the {side} alone"
            return f"{change.name} {what}{' beyond the bodies of functions' if change.kind is Kind.SOURCE else ''}"
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
