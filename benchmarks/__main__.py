"""python -m benchmarks VERB [REQUEST]: what runs in the measured environment; the request is JSON.

try: check and time a shape; prints one JSON event a line, the last of them {"error": ...} where it cannot be done.
speed: the same for one problem of docs/speed.md, with torch, OpenCV and a copy called as they are.
profile: one implementation on one problem for a profiler to look at; prints JSON events as well.
doctor: which implementations can run here, what the others lack, versions and thread pools; JSON events as well.
gallery: the photograph through the filters by every implementation, as a picture; {"names": [...], "path": "..."} to choose.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXPECTED = (ValueError, TypeError, LookupError, ImportError, MemoryError)


def main() -> None:
    verbs = {"try": attempt, "speed": speed, "profile": profile, "doctor": doctor, "gallery": gallery}
    verb, *rest = sys.argv[1:] or [""]
    if verb not in verbs:
        sys.exit(f"no verb is called {verb!r}; there are {', '.join(verbs)}")
    try:
        request = json.loads(rest[0]) if rest else {}
    except ValueError as error:
        sys.exit(f"the request is not JSON: {error}")
    if not isinstance(request, dict):
        sys.exit(f"the request is no JSON object: {rest[0]}")
    verbs[verb](request)


def attempt(request: dict[str, Any]) -> None:
    from benchmarks import trial

    _print(trial.run(request))


def speed(request: dict[str, Any]) -> None:
    from benchmarks import speed

    _print(speed.run(request))


def profile(request: dict[str, Any]) -> None:
    from benchmarks import profiling

    _print(profiling.run(request))


def doctor(request: dict[str, Any]) -> None:
    from benchmarks import doctor

    _print(doctor.run())


def _print(found: Iterator[dict[str, Any]]) -> None:
    # Events alone go where they are read: whatever an implementation prints goes to standard error.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        for event in found:
            print(json.dumps(event), file=events, flush=True)
    except EXPECTED as error:
        print(json.dumps({"error": _words(error)}), file=events, flush=True)


def gallery(request: dict[str, Any]) -> None:
    from benchmarks import cell
    from benchmarks import gallery as pictures

    if unknown := set(request) - {"names", "path"}:
        sys.exit(f"no gallery: a request has names and path, not {', '.join(sorted(unknown))}")
    names = request.get("names") or cell.implementations()
    if not isinstance(names, list):
        sys.exit(f"no gallery: names is a list, not {names!r}")
    path = Path(request.get("path") or Path(__file__).parents[1] / ".convbench" / "gallery.png")
    rows = []
    try:
        for row in pictures.rows(names):
            said = sorted({str(picture) for picture in row.pictures.values() if isinstance(picture, str)})
            print(f"{row.name}: {'; '.join(said) or 'drawn'}", flush=True)
            rows.append(row)
        path.parent.mkdir(parents=True, exist_ok=True)
        pictures.draw(rows, path)
    except (*EXPECTED, OSError) as error:
        sys.exit(f"no gallery: {_words(error)}")
    except KeyboardInterrupt:
        sys.exit("interrupted: no gallery was drawn")
    print(f"the gallery is {path}")


def _words(error: BaseException) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
    return text or type(error).__name__


if __name__ == "__main__":
    main()
