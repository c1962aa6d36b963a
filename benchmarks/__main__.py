"""python -m benchmarks VERB [REQUEST]: what runs in the measured environment; the request is JSON.

try: check and time a shape; prints one JSON event a line, the last of them {"error": ...} where it cannot be done.
speed: the same for a problem of docs/speed.md, with torch, OpenCV and a copy called as they are; without a request each
line of standard input is one, and its events end with {"ended": status}.
profile: one implementation on one problem for a profiler to look at; prints JSON events as well.
problems, doubtful, table: what cpu.auto is tuned on, which measurements one process does not settle, and the table that they
become; JSON events as well.
doctor: which implementations can run here, what the others lack, versions and thread pools; JSON events as well.
gallery, curves, stages: pictures of the photograph through the filters by every implementation, of loss and accuracy while
training, of where the time of preprocess goes; a request chooses "names", "path" and the settings in
benchmarks/pictures/request.py.
"""

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

EXPECTED = (ValueError, TypeError, LookupError, ImportError, MemoryError)


def main() -> None:
    verbs: dict[str, Callable[[dict[str, Any]], None]] = {
        "try": attempt,
        "speed": speed,
        "problems": problems,
        "doubtful": doubtful,
        "table": table,
        "profile": profile,
        "doctor": doctor,
        **{name: functools.partial(picture, name) for name in ("gallery", "curves", "stages")},
    }
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
    from benchmarks.commands import try_shape

    _print(try_shape.run(request))


def speed(request: dict[str, Any]) -> None:
    import scipy.stats  # noqa: F401  once, where otherwise each answer's process would take a second for it

    from benchmarks.commands import fork_server, speed

    _print(speed.run(request) if request else fork_server.serve(speed.run))


def problems(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.problems(request))


def doubtful(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.doubtful(request))


def table(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.table(request))


def profile(request: dict[str, Any]) -> None:
    from benchmarks.commands import profile

    _print(profile.run(request))


def doctor(request: dict[str, Any]) -> None:
    from benchmarks.commands import doctor

    _print(doctor.run())


def picture(name: str, request: dict[str, Any]) -> None:
    from benchmarks.pictures import request as pictures

    pictures.draw(name, request)


def _print(found: Iterator[dict[str, Any]]) -> None:
    # Events alone go where they are read: whatever an implementation prints goes to standard error.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        for event in found:
            print(json.dumps(event), file=events, flush=True)
    except EXPECTED as error:
        print(json.dumps({"error": _words(error)}), file=events, flush=True)


def _words(error: BaseException) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
    return text or type(error).__name__


if __name__ == "__main__":
    main()
