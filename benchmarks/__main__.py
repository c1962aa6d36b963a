"""python -m benchmarks VERB [REQUEST]: commands that run in the measured environment.

REQUEST is a JSON object, or settings such as --seeds 5. All verbs except implementations, seeds, notebooks, bound and the
pictures print one JSON event per line; after a failure the last is {"error": ...}.

try: checks and times implementations on one problem.
speed: checks and times candidates on one problem of docs/speed.md, in turn. Without REQUEST, each line of standard input is a
request, and its events end with {"ended": exit status}.
profile: calls one implementation on one problem for a profiler.
problems: lists the problems that cpu.auto is tuned on.
remember: makes measurements this machine's wisdom, which impls.conv2d asks.
tables: writes the measurements that cpu.auto has from results/.
tour: measures the steps of the guided tour, of one story or all; "page" asks for them as HTML.
tile_traces: trains on tiles by several readers under torch's profiler, and writes a trace of each.
bound: prints what bounds preprocess, read_batch or decode_jpeg, and the gain of a machine twice as fast in one part.
doctor: lists the implementations, their missing requirements, the versions of libraries, and the thread pools.
notebooks: writes docs/tour/*.ipynb, the tour as notebooks with what was measured.
implementations, seeds: print docs/implementations.md, the list of all implementations, and docs/seeds.md, the texts that the
project grew out of with what the tour measured.
gallery, shifts, curves, ladder, stages: draw a photograph filtered by each implementation, one filtered step by step by
images that are shifted, loss and accuracy during training, the time of train_step by what is compiled, and the time of
preprocess by stage; benchmarks/pictures/request.py has the settings of a request.
tile_sheet, tile_curves: draw satellite tiles with their classes, and loss and accuracy while ResNet-18 is trained on tiles.
"""

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

PICTURES = ("gallery", "shifts", "curves", "ladder", "stages", "tile_sheet", "tile_curves")
EXPECTED = (ValueError, TypeError, LookupError, ImportError, MemoryError)


def main() -> None:
    verbs: dict[str, Callable[[dict[str, Any]], None]] = {
        "try": attempt,
        "speed": speed,
        "problems": problems,
        "remember": remember,
        "tables": tables,
        "profile": profile,
        "doctor": doctor,
        "implementations": implementations,
        "tile_traces": tile_traces,
        "tour": tour,
        "seeds": seeds,
        "notebooks": notebooks,
        **{name: functools.partial(picture, name) for name in PICTURES},
        "bound": bound,
    }
    verb, *rest = sys.argv[1:] or [""]
    if verb not in verbs:
        sys.exit(f"no verb is called {verb!r}; there are {', '.join(verbs)}")
    verbs[verb](_settings(rest) if rest and rest[0].startswith("--") else _object(rest))


def _object(rest: list[str]) -> dict[str, Any]:
    try:
        request = json.loads(rest[0]) if rest else {}
    except ValueError as error:
        sys.exit(f"the request is not JSON: {error}")
    if not isinstance(request, dict):
        sys.exit(f"the request is not a JSON object: {rest[0]}")
    return request


def _settings(rest: list[str]) -> dict[str, Any]:
    """A request from --name value pairs; a value that is not JSON is text."""
    if len(rest) % 2 or not all(name.startswith("--") for name in rest[::2]):
        sys.exit(f"a request has a value for each setting, as in --seeds 5, not {' '.join(rest)}")
    found: dict[str, Any] = {}
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        try:
            found[name.removeprefix("--")] = json.loads(text)
        except ValueError:
            found[name.removeprefix("--")] = text
    return found


def attempt(request: dict[str, Any]) -> None:
    from benchmarks.commands import try_problem

    _print(try_problem.run(request))


def speed(request: dict[str, Any]) -> None:
    import scipy.stats  # noqa: F401  once, where otherwise each answer's process would take a second for it

    from benchmarks.commands import fork_server, speed

    _print(speed.run(request) if request else fork_server.serve(speed.run))


def problems(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.problems(request))


def remember(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.remember(request))


def tables(request: dict[str, Any]) -> None:
    from benchmarks.commands import tune

    _print(tune.tables(request))


def profile(request: dict[str, Any]) -> None:
    from benchmarks.commands import profile

    _print(profile.run(request))


def tile_traces(request: dict[str, Any]) -> None:
    from benchmarks.commands import tile_traces

    _print(tile_traces.run(request))


def tour(request: dict[str, Any]) -> None:
    from benchmarks.tour import stories

    _print(stories.run(request))


def doctor(request: dict[str, Any]) -> None:
    from benchmarks.commands import doctor

    _print(doctor.run())


def implementations(request: dict[str, Any]) -> None:
    from benchmarks.commands import implementation_list

    print(implementation_list.markdown(), end="")


def seeds(request: dict[str, Any]) -> None:
    from benchmarks.tour import seeds

    try:
        print(seeds.markdown(), end="")
    except EXPECTED as error:
        sys.exit(f"no page: {_words(error)}")


def notebooks(request: dict[str, Any]) -> None:
    from benchmarks.tour import notebooks

    try:
        for path in notebooks.write():
            print(path)
    except (*EXPECTED, OSError) as error:
        sys.exit(f"no notebooks: {_words(error)}")


def bound(request: dict[str, Any]) -> None:
    from benchmarks.commands import bound

    try:
        for line in bound.run(request):
            print(line, flush=True)
    except EXPECTED as error:
        sys.exit(f"no bound: {_words(error)}")


def picture(name: str, request: dict[str, Any]) -> None:
    from benchmarks.pictures import request as pictures

    pictures.draw(name, request)


def _print(found: Iterator[dict[str, Any]]) -> None:
    # Only events go there: whatever an implementation prints goes to standard error.
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
