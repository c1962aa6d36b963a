"""python -m benchmarks VERB [REQUEST]: what runs in the measured environment. REQUEST is a JSON object.

All verbs but the pictures print one JSON event a line; the last is {"error": ...} if the verb fails.

try: checks and times implementations on one shape.
speed: checks and times candidates on one problem of docs/speed.md, in turn. Without REQUEST, each line of standard input is a
request, and its events end with {"ended": exit status}.
profile: calls one implementation on one problem for a profiler.
problems: lists the problems that cpu.auto is tuned on.
outliers: lists the measurements that all others contradict.
write_choice: writes the measurements that cpu.auto picks by.
doctor: lists the implementations and what each lacks, the versions of libraries, and the thread pools.
gallery, curves, stages: draw a photograph filtered by each implementation, loss and accuracy during training, and the time of
preprocess by stage; benchmarks/pictures/request.py has the settings of a request.
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
        "outliers": outliers,
        "write_choice": write_choice,
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


def outliers(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.outliers(request))


def write_choice(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.write_choice(request))


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
