"""A worker of a gate: prepares the cells of one commit's code, and times blocks of their calls or takes their values.

Runs in the measured environment as a program of its own, with the standard library and asv_runner alone:

    python worker.py list SUITE FILE            write what benchmarks the suite has
    python worker.py cache SUITE NAME           run the setup_cache of a benchmark in the current folder
    python worker.py serve SUITE IN OUT CORES START SEED METHOD
                                              answer requests, a line of JSON each, on two pipes
    python worker.py one SUITE IN OUT CORES START SEED METHOD
                                              answer the request on standard input, for which an argument may be too short

As in asv, each cell has a process and a folder of its own: "serve" has loaded the suite and forks or, where METHOD is spawn
or its own threads would be lost, starts "one" for each.
"""

import sys

sys.path.pop(0)  # this file's folder, whose neighbours must not be found as modules

import contextlib
import ctypes
import gc
import importlib
import inspect
import itertools
import json
import math
import mmap
import numbers
import os
import pickle
import pkgutil
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

ANSWERED = 86  # exit status of a process that has given its last answer: a benchmark may end its process with any other
MAX_COPIED_BYTES = 64 << 20  # of what setup_cache leaves, beyond which all cells share one folder, as in asv
MAX_STANDING_SECONDS = 5  # of calls for which a coarse clock may say 0
WARMUP_SECONDS = 0.01  # of calls before the first block, for benchmarks that do not say how long
MAX_ANSWER_BYTES = 32 << 20  # of an array that is kept for comparison
MAX_TRACE = 4000  # characters of a traceback, from its end
ADDRESS = re.compile(r" at 0x[\da-fA-F]+(?=>)")  # in a repr
ADDR_NO_RANDOMIZE = 0x0040000  # of sys/personality.h
MAX_SHIFT_PAGES = 1024  # two huge ones, so that every place in one is as likely

# How the pools that most libraries share tell their number of threads.
POOLS = {
    "openblas": ("openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads64_"),
    **dict.fromkeys(("gomp", "iomp", "libomp"), ("omp_get_max_threads",)),
    "mkl_rt": ("MKL_Get_Max_Threads",),
}


def main(verb, suite, *rest):
    from asv_runner._aux import update_sys_path
    from asv_runner.benchmarks import _base

    _base._repr_no_address = lambda value: ADDRESS.sub("", repr(value))  # its own leaves those of what lies within
    update_sys_path(suite)
    if verb in ("list", "cache"):
        sys.exit({"list": _list, "cache": _cache}[verb](suite, *rest))
    incoming, outgoing, cores, start, seed, method = rest
    _kept = _place_memory(int(seed))
    _die_with_parent()
    with os.fdopen(int(incoming)) as requests, os.fdopen(int(outgoing), "w") as answers:
        channel = Channel(requests, answers)
        if verb == "one":
            _pin(cores.split(","))
            _answer_one(suite, channel, json.load(sys.stdin))
            sys.exit(ANSWERED)
        spawned = [sys.executable, __file__, "one", suite, *rest]
        if method != "spawn":
            sys.argv.append("run_server")  # a suite may load for asv's server what its cells need
            # The two workers import at the same time, each on one core of its own, and are measured on the same.
            _pin([start])
            list(_modules(Path(suite).name, {}))  # what fails is told by the first benchmark that needs it
            spawned = spawned if _running_threads() else []
        _pin(cores.split(","))
        _serve(suite, channel, spawned)


def _place_memory(seed):
    """Give this process's memory the addresses of the other worker's: the same in one round, others in every round.

    An array's place decides its cache sets and huge pages: the same call on 4 MB varied by 20 % between processes, and by 4 %
    with the same addresses. Where the kernel refuses, as in some containers, they stay random. Returns what has to be kept.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    now = libc.personality(0xFFFFFFFF)  # asks and changes nothing: personality(2)
    if now != -1 and not now & ADDR_NO_RANDOMIZE and libc.personality(now | ADDR_NO_RANDOMIZE) != -1:
        os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:]])  # is as it is set from the next program on
    if now == -1 or not now & ADDR_NO_RANDOMIZE:
        return None
    generator = random.Random(seed)
    libc.sbrk.argtypes, libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p
    libc.sbrk(generator.randrange(MAX_SHIFT_PAGES) * mmap.PAGESIZE)
    gaps = [bytearray(generator.randrange(512, 8192)) for _ in range(generator.randrange(512))]  # what malloc has had by now
    return gaps, mmap.mmap(-1, (1 + generator.randrange(MAX_SHIFT_PAGES)) * mmap.PAGESIZE)  # untouched, it takes no memory


def _pin(cores):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, map(int, cores))


def _modules(name, failed):
    """Import a package and all below it; yields modules. failed: by name, why one cannot be imported."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # SystemExit too: no module of a suite ends this process
        failed[name] = _last_lines(error)
        return
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        yield from _modules(found.name, failed)


def _list(suite, file):
    from asv_runner.discovery import disc_benchmarks

    failed: dict = {}
    list(_modules(Path(suite).name, failed))
    found = []
    for benchmark in disc_benchmarks(suite, ignore_import_errors=True):
        simple = {k: v for k, v in vars(benchmark).items() if isinstance(v, (str, int, float, list, dict, bool))}
        found.append(simple | {"timed": hasattr(benchmark, "benchmark_timing")})
    Path(file).write_text(json.dumps({"benchmarks": found, "failed": failed}, skipkeys=True, default=repr))


def _cache(suite, name):
    from asv_runner.discovery import get_benchmark_from_name

    cache = get_benchmark_from_name(suite, name).do_setup_cache()
    with Path("cache.pickle").open("wb") as output:
        pickle.dump(cache, output)


class Channel:
    """Requests in, answers out."""

    def __init__(self, requests, answers):
        self.requests, self.answers = requests, answers
        self.descriptors = requests.fileno(), answers.fileno()

    def __iter__(self):
        return map(json.loads, iter(self.requests.readline, ""))

    def send(self, **answer):
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()


class End(BaseException):
    """Ends a benchmark that has been sampled, past every `except Exception` of its own."""


def _serve(suite, channel, spawned):
    """Have a process answer each request. spawned: the command of one that loads the suite anew, none to fork."""
    inspect.getsource(_serve)  # compiles the patterns with which asv_runner reads a benchmark's source, or each fork does
    gc.freeze()  # or the first collection in each fork copies all that the suite has loaded
    channel.send(started=True, spawned=bool(spawned))
    for number, request in enumerate(channel):
        if number == 1 and "numba" in sys.modules:  # or each fork that comes loads its registries anew, in half a second
            with contextlib.suppress(Exception):
                sys.modules["numba"].core.registry.cpu_target.target_context.refresh()
        with contextlib.suppress(OSError):
            os.ftruncate(2, 0)  # what the last benchmark printed
        request["folder"], request["shared"] = _own_folder(Path(request["folder"]))
        if spawned:
            status = subprocess.run(spawned, input=json.dumps(request), text=True, pass_fds=channel.descriptors).returncode
        else:
            status = _fork(suite, channel, request)
        if not request["shared"]:
            shutil.rmtree(request["folder"], ignore_errors=True)
        if status != ANSWERED:
            channel.send(failed=_ended(status))


def _fork(suite, channel, request):
    """Answer a request in a fork of this process; returns its exit status, or the number of a signal below zero."""
    child = os.fork()
    if not child:
        try:
            _die_with_parent()
            _answer_one(suite, channel, request)
            os._exit(ANSWERED)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _own_folder(home):
    """A new folder beside a cell's home with a copy of what lies there, and whether it is the home itself, for its size."""
    if sum(path.lstat().st_size for path in home.rglob("*")) > MAX_COPIED_BYTES:
        return str(home), True
    return shutil.copytree(home, tempfile.mkdtemp(dir=home.parent), symlinks=True, dirs_exist_ok=True), False


def _running_threads():
    """How many threads run beside this one, without those that OpenBLAS ends at a fork and starts anew."""
    others = sum(1 for _ in Path("/proc/self/task").iterdir()) - 1
    return others - sum(count - 1 for pool, count in _threads().items() if "openblas" in pool)


def _ended(status):
    """How a process ended that gave no answer, with the last words that it printed."""
    printed = os.pread(2, 4000, max(0, os.fstat(2).st_size - 4000)).decode(errors="replace").strip("\0\n ")
    words = f": {printed.splitlines()[-1][:300]}" if printed else ""
    if status >= 0:
        return f"its process ended with status {status}{words}"
    cause = ", probably out of memory" if -status == signal.SIGKILL else ""
    return f"its process was killed by {signal.Signals(-status).name}{cause}{words}"


def _answer_one(suite, channel, request):
    try:
        outcome = _cell(suite, channel, request)
    except End:
        outcome = {"ended": True}
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        outcome = {"failed": _last_lines(error), "trace": traceback.format_exc()[-MAX_TRACE:]}
    channel.send(**outcome)


def _cell(suite, channel, request):
    """Prepare a benchmark as asv_runner does and hand its timer over to _sample(), or take its value; else say why not."""
    from asv_runner.benchmarks.mark import SkipNotImplemented
    from asv_runner.discovery import get_benchmark_from_name

    os.chdir(request["folder"])
    benchmark = get_benchmark_from_name(suite, request["id"])
    params = list(next(itertools.islice(itertools.product(*benchmark.params), request["place"], None), ()))
    if params != request["params"]:
        return {"failed": f"its parameters are not those that were listed: {', '.join(params)}"}
    cache = None
    if benchmark.setup_cache_key is not None:
        with Path("cache.pickle").open("rb") as file:
            cache = pickle.load(file)
    if hasattr(benchmark, "set_cache"):
        benchmark.set_cache(cache)
    elif benchmark.setup_cache_key is not None:  # asv_runner before 0.3
        benchmark.insert_param(cache)
    given: list = []
    run = benchmark.run

    def remember(*params):
        given.extend(params)
        return run(*params)

    def sampled(timer, warmup_time=0.0, number=0, max_repeat=0, **_more):
        warm = WARMUP_SECONDS if benchmark.warmup_time < 0 else warmup_time
        _await_turn(channel)
        block = Block(timer, number, request["slower"])
        single = (number, max_repeat, warm) == (1, 1, 0)  # asv calls it once in a process, too
        _sample(channel, block, warm, single, lambda: _answer(benchmark, timer, given), request["shared"])
        raise End

    is_timed = hasattr(benchmark, "benchmark_timing")
    if is_timed:
        benchmark.run = remember
        signature = inspect.signature(benchmark.benchmark_timing)
        # Types of other suites may call it by position or by name.
        benchmark.benchmark_timing = lambda *a, **k: sampled(**signature.bind(*a, **k).arguments)
    try:
        if benchmark.do_setup():
            return {"skipped": "the suite skips it"}
        if not is_timed:
            _await_turn(channel)
            value = benchmark.do_run()
            if not isinstance(value, numbers.Real) or math.isinf(value):
                raise ValueError(f"its value is not a finite number: {value!r:.200}")
            return {"skipped": "its value is NaN"} if math.isnan(value) else {"value": float(value)}
        benchmark.do_run()
    except SkipNotImplemented as skip:
        return {"skipped": str(skip) or "the suite skips it"}
    finally:
        benchmark.do_teardown()
    return {"failed": "its type takes its samples by itself, and cannot be sampled in turn"}


def _await_turn(channel):
    channel.send(prepared=True)
    if "warm" not in next(iter(channel), ()):
        raise End


class Block:
    """Times units of a benchmark: as many calls as it says belong together, one where it does not say."""

    def __init__(self, timer, number, slower):
        self.timer, self.number, self.slower = timer, number, slower

    def __call__(self, units):
        """Seconds for so many units."""
        number, timeit = self.number, self.timer.timeit
        seconds = sum(timeit(number) for _ in range(units)) if number else timeit(units)
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"its timer returned {seconds} seconds")
        if self.slower:  # an artificial slow-down, to see whether it is found
            start = time.perf_counter()
            while time.perf_counter() - start < seconds * self.slower:
                pass
            seconds += time.perf_counter() - start
        return seconds


def _sample(channel, block, warm, single, answer, shared):
    """Warm up (single: by one call), say how long a unit takes, then time blocks as asked for. shared: what its folder is."""
    units, start, calls = 1, time.perf_counter(), 0
    while True:
        before, apart = time.perf_counter(), time.thread_time() - time.process_time()
        seconds = block(units)
        wall = time.perf_counter() - before
        calls += units
        if single or (time.perf_counter() - start >= warm and calls > 1 and seconds > 0):
            break
        if not seconds and wall > MAX_STANDING_SECONDS:
            raise ValueError(f"its timer does not advance: 0 seconds for {calls * max(1, block.number)} calls")
        # The first call may have compiled something: it says nothing of the next.
        more = 10 * units if not seconds else min(10 * units, int(warm / 2 / max(wall / units, 1e-9)))
        units = 1 if calls == 1 else max(units + 1, more)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    apart += time.process_time() - time.thread_time()  # CPU seconds of other threads in the last block
    facts = {"single": single, "threads": _threads(), "apart": apart / units, "cores": cores, "shared": shared}
    channel.send(ready=True, seconds=seconds / units, wall=wall / units, **facts)
    for request in channel:
        if "units" in request:
            channel.send(seconds=block(request["units"]) / request["units"] / max(1, block.number))
        elif "answer" in request:
            channel.send(**_keep(answer, request["answer"]))
        else:
            return


def _answer(benchmark, timer, given):
    """What the benchmark returns: what its clock has kept of the last call, else of one call more."""
    if hasattr(timer, "output"):
        return timer.output
    benchmark.redo_setup()
    return benchmark.func(*given)


def _keep(answer, file):
    """Put an array into a file as it lies in memory; of what is no array there is nothing to keep."""
    try:
        value = answer()
        view = memoryview(value)
        shape, kind = list(view.shape or ()), view.format
        if view.nbytes > MAX_ANSWER_BYTES or not view.nbytes or isinstance(value, (bytes, str)):
            return {"array": None}
        with Path(file).open("wb") as output:
            output.write(view.tobytes())
    except (TypeError, ValueError, NotImplementedError):
        return {"array": None}
    except Exception as error:  # a disk that is full, or a benchmark that takes no call more: no reason to lose its times
        return {"array": None, "lost": _last_lines(error)}
    return {"array": [kind, shape]}


def _threads():
    """What the shared pools in this process say they have."""
    maps, found = Path("/proc/self/maps"), {}
    lines = maps.read_text().splitlines() if maps.is_file() else []
    paths = {line.split(None, 5)[5] for line in lines if ".so" in line}
    for path, (pool, symbols) in itertools.product(sorted(paths), POOLS.items()):
        if pool in Path(path).name:
            with contextlib.suppress(OSError):
                library = ctypes.CDLL(path)
                if symbol := next((symbol for symbol in symbols if hasattr(library, symbol)), None):
                    found[Path(path).name.split("-")[0].split(".")[0]] = getattr(library, symbol)()
    return found


def _last_lines(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *filter(None, [" / ".join(lines[-3:])[-500:]])])


def _die_with_parent():
    """Have the kernel end this process when the one that started it is gone, whatever a benchmark is doing then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, sys/prctl.h


if __name__ == "__main__":
    main(*sys.argv[1:])
