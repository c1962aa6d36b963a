"""Finds the cells for a gate to measure, and those that cannot be timed."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import click

from convbench.changed import builds, touched, trace
from convbench.changed.builds import Difference
from convbench.common import load
from convbench.common.cells import plain
from convbench.common.selection import Selection, check_names, select
from convbench.gate.build import SIDES, Built
from convbench.gate.failures import EmptyShard, Failure, Reason, Usage, caused_by
from convbench.gate.workers import PROGRAM, START_TIMEOUT, TimedCell, environment

CACHE_TIMEOUT = 600.0  # seconds for a setup_cache whose suite does not say; asv's own default is a minute for everything
UNSTABLE = "its parameters differ from process to process, as those of a set do: sort them"
SHARED_FOLDER = "run"  # the folder of cells without setup_cache

# By side, and then by the name of a cell: why it failed.
Reasons = dict[str, dict[str, Reason]]


@dataclass(frozen=True)
class Suite:
    """The cells to measure, and those that are not measured.

    listed: (name, reason) of what is not missing. broken: cells that failed before any round. unstable: by benchmark, why its
    cells cannot be told apart. smallest: a cell's smallest change worth reporting if it has one of its own. failure: why
    the gate cannot pass, whatever the cells' verdicts are. caches: of each folder that a setup_cache fills, a benchmark that
    has it. changed: benchmarks that are new in the head's suite, or differ from the base's. untouched: cells that nothing has
    changed; touched: by the name of a cell, what has. every: a digest of all cells' names, those of other shards, too.
    """

    cells: list[TimedCell]
    listed: list[tuple[str, str]] = field(default_factory=list)
    broken: Reasons = field(default_factory=dict)
    unstable: dict[str, str] = field(default_factory=dict)
    smallest: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    caches: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    untouched: list[TimedCell] = field(default_factory=list)
    touched: dict[str, str] = field(default_factory=dict)
    every: str = ""


class Listing(NamedTuple):
    """A suite's benchmarks by name, as asv_runner finds them, and its modules that cannot be imported, with the reason.

    unstable: the benchmarks whose parameters differ from process to process.
    """

    benchmarks: dict[str, dict[str, Any]]
    unread: dict[str, str]
    unstable: set[str]


def discover(
    built: Mapping[str, Built],
    work: Path,
    selection: Selection,
    conf: Any,
    shard: tuple[int, int] | None = None,
    is_identical: bool = False,
) -> Suite:
    """Ask the head's suite with each side's code, or with the base's alone where both sides have installed the same.

    shard: (2, 5) for every fifth cell from the second on, since cells that lie side by side cost alike. conf: asv's
    configuration, of which the thresholds of regressions and the default timeout are used. Raises Failure if a
    side cannot be listed, and Usage for an implementation that the suite lacks.
    """
    differing = _differing(built["head"].suite, built["base"].own_suite)
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        futures = {side: pool.submit(_list, built[side], side) for side in (SIDES[:1] if is_identical else SIDES)}
        own = pool.submit(_own_names, built["base"]) if differing else None
    base, head = (futures.get(side, futures["base"]).result() for side in SIDES)
    own_names = own.result() if own else base.benchmarks.keys()
    known = {**base.benchmarks, **head.benchmarks}
    try:
        check_names(known, selection.implementations)
    except click.ClickException as error:
        raise Usage(error.message) from None
    wanted = {*select(known, selection), *select(base.benchmarks, selection)}
    cells: list[TimedCell] = []
    listed = [(name, "is gone: only the suite of the base has it") for name in sorted(own_names - known.keys())]
    for name, found in _by_benchmark(known, {"base": base.benchmarks, "head": head.benchmarks}, work, conf):
        selected = [cell for cell in found if wanted & {(name, cell.spelled(side)) for side in SIDES}]
        if selected and (reason := _untimed(known[name], name in base.benchmarks)):
            listed.append((name, reason))
        else:
            cells += selected
    every = hashlib.sha256("\n".join(sorted(cell.name for cell in cells)).encode()).hexdigest()
    if shard and cells:
        # In an order that has nothing to do with cost, or one shard would have all the large sizes.
        cells = sorted(cells, key=lambda cell: hashlib.sha256(cell.name.encode()).digest())[shard[0] - 1 :: shard[1]]
        if not cells:
            raise EmptyShard(f"there are fewer cells than shards: none is left for {shard[0]}/{shard[1]}")
    gone = [cell for cell in cells if cell.benchmark not in head.benchmarks]
    broken: Reasons = {"base": {}, "head": {cell.name: Reason("it can no longer be imported") for cell in gone}}
    for side in SIDES:
        (work / side / SHARED_FOLDER).mkdir(exist_ok=True)
    caches = {cell.home.name: known[cell.benchmark] for cell in cells if cell.home.name != SHARED_FOLDER}
    reasons, failure = _unread(base.unread, head.unread, selection)
    if not cells and not failure:
        asked = " of that name" if selection != Selection() else ""
        failure = Failure(f"no benchmark{asked} can be timed on both sides")
    unstable = dict.fromkeys(base.unstable | head.unstable, UNSTABLE)
    return Suite(
        cells,
        listed + sorted(reasons.items()),
        broken,
        unstable,
        _smallest(cells, conf.regressions_thresholds or {}),
        failure,
        caches,
        _changed(built["head"].suite, differing, own_names, head.benchmarks),
        every=every,
    )


def _untimed(benchmark: dict[str, Any], in_base: bool) -> str | None:
    """Why a benchmark of the head's suite is listed instead of measured, None if it is measured."""
    if "ceilings" in benchmark:
        return "measures the machine, not the code"
    return None if in_base else "is new: it cannot be imported with the code of the base"


def _unread(base: dict[str, str], head: dict[str, str], selection: Selection) -> tuple[dict[str, str], Failure | None]:
    """The reasons of modules that the head cannot import, and the failure that ends the gate unless cells were selected."""
    told = {
        name: f"cannot be imported with the code of {'either side' if name in base else 'the head'}: {reason}"
        for name, reason in head.items()
    }
    if not told or selection != Selection():
        return told, None
    worst = min(told, key=lambda name: (name in base, name))
    return told, caused_by("both" if worst in base else "head", f"{worst} {told.pop(worst)}")


def _smallest(cells: list[TimedCell], thresholds: Mapping[str, float]) -> dict[str, float]:
    return {
        cell.name: float(value) for pattern, value in thresholds.items() for cell in cells if re.match(pattern, cell.name)
    }


def _by_benchmark(
    known: dict[str, dict[str, Any]], sides: Mapping[str, dict[str, dict[str, Any]]], work: Path, conf: Any
) -> Iterator[tuple[str, list[TimedCell]]]:
    """The cells of each benchmark; benchmarks of one setup_cache share a folder."""
    keys = dict.fromkeys(benchmark.get("setup_cache_key") for benchmark in known.values())
    homes = {key: f"cache{i}" if key else SHARED_FOLDER for i, key in enumerate(keys)}
    for name, benchmark in known.items():
        places: dict[tuple[str, ...], dict[str, int]] = {}
        base, head = (sides[side].get(name, benchmark)["params"] for side in SIDES)
        pairs = itertools.zip_longest(base, head[: len(base)], fillvalue=())
        renamed = [[_named_by_head(value, own, others) for value in own] for own, others in pairs]
        for side, values in (("head", head), ("base", renamed)):  # in the order of the head, then what the base alone has
            for place, params in enumerate(itertools.product(*values)):
                places.setdefault(params, {})[side] = place
        in_base = dict(zip(itertools.product(*renamed), itertools.product(*base), strict=True))
        home = work / homes[benchmark.get("setup_cache_key")]
        timeout = float(benchmark.get("timeout") or conf.default_benchmark_timeout)
        yield name, [_cell(benchmark, params, in_base.get(params), place, home, timeout) for params, place in places.items()]


def _named_by_head(value: str, base: Sequence[str], head: Sequence[str]) -> str:
    """The head's name of a base's parameter: asv_runner names the first of equal ones `x (0)`, but a single one `x`."""
    single = value.removesuffix(" (0)")
    first, second = f"{single} (0)", f"{single} (1)"
    alone, several, other = (base, head, first) if value == single else (head, base, single)
    becomes = single in alone and first not in alone and single not in several and first in several and second in several
    return other if becomes else value


def _cell(
    benchmark: dict[str, Any],
    params: tuple[str, ...],
    base_params: tuple[str, ...] | None,
    places: dict[str, int],
    home: Path,
    timeout: float,
) -> TimedCell:
    named = dict(zip(benchmark["param_names"], params, strict=False))
    return TimedCell(
        benchmark["name"],
        params,
        places,
        timeout,
        float(benchmark.get("sample_time", 0.01)),
        _cores(plain(named.get("threads", "1")).strip("'")),
        home,
        None if benchmark["timed"] else str(benchmark.get("unit") or "unit"),
        base_params,
    )


def _cores(threads: str) -> int:
    """Cores for a value of the parameter `threads`: that many, or all cores if it is not a number."""
    have = load.cores()
    return min(int(threads), have) if threads.isdigit() and int(threads) else have


def _own_names(base: Built) -> Set[str]:
    """The benchmarks of the base's own suite: the report names those that the head's suite has lost."""
    try:
        return _list(dataclasses.replace(base, suite=base.own_suite), "own").benchmarks.keys()
    except Failure:  # it is the head's suite that counts
        return set()


def _differing(*suites: Path) -> set[Path]:
    """The files that two suites do not have alike."""
    texts = [
        {path.relative_to(suite): path.read_bytes() for path in suite.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        for suite in suites
    ]
    return {path for path in texts[0].keys() | texts[1].keys() if texts[0].get(path) != texts[1].get(path)}


def _changed(suite: Path, differing: set[Path], own: Set[str], known: dict[str, dict[str, Any]]) -> frozenset[str]:
    """The benchmarks of the head's suite that are new, or of a file that differs; all, where another file differs."""
    modules = {name: _module(suite, name) for name in known}
    everywhere = differing - {path for path in modules.values() if path}
    return frozenset(name for name in known if everywhere or name not in own or modules[name] in differing)


def _module(suite: Path, benchmark: str) -> Path | None:
    """The file of a benchmark, relative to its suite."""
    parts = benchmark.split(".")
    candidates = (Path(*parts[:count]).with_suffix(".py") for count in range(len(parts), 0, -1))
    return next((path for path in candidates if (suite / path).is_file()), None)


def _list(built: Built, label: str) -> Listing:
    """List a suite with a side's code, twice, since parameters may come from a set. label: the side. Raises Failure."""
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda seed: _listed(built, label, seed), (0, 1))
    found = [{benchmark["name"]: benchmark for benchmark in content["benchmarks"]} for content in (first, second)]
    names = found[0].keys() | found[1].keys()
    params = [{name: benchmarks.get(name, {}).get("params") for name in names} for benchmarks in found]
    return Listing(found[0], first["failed"], {name for name in names if params[0][name] != params[1][name]})


def _listed(built: Built, label: str, seed: int) -> dict[str, Any]:
    """The list by worker.py with the order of sets and dictionaries set by a seed."""
    file = built.folder / f"benchmarks-{label}-{seed}.json"
    if reason := _ask(built, [str(PROGRAM), "list", str(built.suite), str(file)], built.folder, START_TIMEOUT, file, seed):
        raise caused_by(label, f"the suite cannot be listed with the code of the {label}: {reason.words}", reason.trace)
    return json.loads(file.read_text(encoding="utf-8"))


def with_caches(built: Mapping[str, Built], suite: Suite, programs: Mapping[str, Sequence[str]] | None = None) -> Suite:
    """Run each setup_cache on both sides. programs: by side, what is run in place of worker.py."""
    broken = {
        side: suite.broken.get(side, {}) | _make_caches(built[side], suite, programs[side] if programs else [str(PROGRAM)])
        for side in SIDES
    }
    return dataclasses.replace(suite, broken=broken)


def differences(built: Mapping[str, Built], commits: Mapping[str, str]) -> Difference:
    """What differs between the sides as they are installed. commits: by side, empty where none is known."""
    return builds.compare({side: _install(built[side], commits.get(side, "")) for side in SIDES})


def _install(built: Built, commit: str = "") -> builds.Install:
    return builds.Install(built.python, environment(built, 1, 0), built.folder, commit)


def narrowed(
    built: Mapping[str, Built], suite: Suite, difference: Difference, tell: Callable[[int, int], None] = lambda done, of: None
) -> Suite:
    """Remove the cells that no difference touches, and run each setup_cache of the others.

    Where nothing differs, a benchmark of the head's suite that is new or changed is called once, and measured if that fails.
    tell: is told how many cells have been traced, of how many.
    """
    doubtful = {name for reasons in suite.broken.values() for name in reasons}
    sound = [cell for cell in suite.cells if cell.name not in doubtful]
    known = [cell for cell in sound if len(cell.places) == len(SIDES) and cell.benchmark not in suite.unstable]
    if everything := touched.everywhere(difference):
        return dataclasses.replace(
            with_caches(built, suite), touched=dict.fromkeys((cell.name for cell in known), everything)
        )
    asked = known
    if difference.is_none:
        firsts = {cell.benchmark: cell for cell in reversed(known) if cell.benchmark in suite.changed}
        asked = [cell for cell in known if firsts.get(cell.benchmark) is cell]
    sides = {side: trace.Side(_install(one), one.suite, PROGRAM, one.spawns) for side, one in built.items()}
    tracing = trace.Trace(sides, difference)
    programs = {side: tracing.program(side) for side in SIDES}
    found = with_caches(built, dataclasses.replace(suite, cells=asked), programs)
    failing = {name for reasons in found.broken.values() for name in reasons}
    traceable = [cell for cell in asked if cell.name not in failing]
    done = 0
    for cores in sorted({cell.cores for cell in traceable}):
        group = [cell for cell in traceable if cell.cores == cores]
        requests = {side: [_request(cell, side) for cell in group] for side in SIDES}
        before = done
        tracing.run(
            requests,
            {side: environment(built[side], cores, seed) for seed, side in enumerate(SIDES)},  # two orders of sets
            lambda count: tell(before + count, len(traceable)),  # noqa: B023 called before the next group
        )
        done += len(group)
    facts = {side: tracing.facts(side) for side in SIDES}
    reasons = {
        cell.name: touched.reason(difference, _of(cell, found.caches, facts), in_bytes=cell.value_unit == "bytes")
        for cell in traceable
    }
    judged = sound if difference.is_none else known  # if nothing differs, unordered parameters do no harm
    untouched = [cell for cell in judged if cell.name not in failing and not reasons.get(cell.name)]
    kept = {cell.name for cell in suite.cells} - {cell.name for cell in untouched}
    return dataclasses.replace(
        found,
        cells=[cell for cell in suite.cells if cell.name in kept],
        untouched=untouched,
        touched={name: reason for name, reason in reasons.items() if reason},
    )


def _request(cell: TimedCell, side: str) -> trace.Request:
    how = cell.folder(side), cell.sample_time, cell.timeout
    return trace.Request(cell.name, cell.id(side), cell.spelled(side), cell.places[side], *how)


def _of(
    cell: TimedCell, caches: Mapping[str, dict[str, Any]], facts: Mapping[str, list[trace.Facts]]
) -> dict[str, list[trace.Facts]]:
    """By side, the traces that concern a cell: that of its setup_cache, and last its own."""
    cache = caches.get(cell.home.name, {}).get("name")
    return {
        side: [one for one in seen if cache and one.get("cache") == cache]
        + [one for one in seen if "every" in one or one.get("name") == cell.name]
        for side, seen in facts.items()
    }


def _make_caches(built: Built, suite: Suite, program: Sequence[str]) -> dict[str, Reason]:
    """Run each setup_cache of this side; return by cell why one failed."""
    side = built.folder.name
    sound = [cell for cell in suite.cells if side in cell.places and cell.name not in suite.broken.get(side, {})]
    wanted = {cell.home.name: suite.caches[cell.home.name] for cell in sound if cell.home.name in suite.caches}
    failed: dict[str, Reason] = {}
    for home, benchmark in wanted.items():
        folder = built.folder / home
        folder.mkdir(exist_ok=True)
        verb = [*program, "cache", str(built.suite), benchmark["name"]]
        timeout = benchmark.get("setup_cache_timeout") or CACHE_TIMEOUT
        if reason := _ask(built, verb, folder, timeout, folder / "cache.pickle"):
            reason = dataclasses.replace(reason, words=f"setup_cache: {reason.words}")
            failed |= {cell.name: reason for cell in sound if cell.home.name == home}
    return failed


def _ask(built: Built, program: Sequence[str], folder: Path, timeout: float, file: Path, seed: int = 0) -> Reason | None:
    """Run a program in a folder; None, or why it failed. file: what it writes at its end. seed: of the order of sets."""
    command = [built.python, *program]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(built, 1, seed),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Reason(f"it took more than {timeout:.0f} seconds")
    if done.returncode:
        return Reason.printed(done.stderr, f"it ended with status {done.returncode}")
    return None if file.exists() else Reason("it ended its process, with status 0, before it was done")
