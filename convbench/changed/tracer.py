"""Runs the gate's worker.py and traces which of the differing files it loads and runs.

    python tracer.py WORKER QUESTION cache SUITE NAME      run a setup_cache in the current folder, as worker.py does
    python tracer.py WORKER QUESTION cells SUITE           prepare and call cells, as worker.py does

QUESTION is a file of JSON: {"answers": a file that gets a line of JSON for each process, "roots": folders of the side's own,
"marks": {path: [[line, column]] of its plain functions that differ}, "whole": [path of other files that differ],
"data": [package that has data that differs], "alone": {folder: [name of a file that one side alone has there]}, and for
cells "spawn": whether each loads the suite anew, "requests": as worker.py takes them, "calls": "one", "round" for as many as
in a round of a gate, or "claimed" for a round's where this process is the first to make a file for the cell in the folder
"claims", else one}.

The functions of "marks" are compiled with a call at their start that notes that they ran. No profiler is needed for that: it
costs nothing where nothing differs, and no benchmark, thread or generator escapes it.
"""

import sys

sys.path.pop(0)  # this file's folder, whose neighbours must not be found as modules

import ast
import builtins
import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

MARK, CLASS = "__convbench_ran__", "__convbench_class__"
STARTING = {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}
LISTING = {"os.listdir", "os.scandir"}
STARTING |= {"cpython.PyInterpreterState_New"}  # a sub-interpreter, which lacks the marks
COMPILERS = ("numba", "jax", "torch", "tensorflow", "triton", "cupyx", "taichi")  # of functions that Python has loaded
POLL_SECONDS = 0.002
ENDED_SECONDS = 5  # beyond a cell's own timeouts
# As convbench.gate.workers has them.
BLOCK_SHARE, LONG_SECONDS, MIN_BLOCKS, MAX_BLOCKS = 0.2, 0.3, 3, 15


class Eye:
    """Traces which differing files and functions this process loads and runs."""

    def __init__(self, question):
        self.roots = {f"{form}/" for root in question["roots"] for form in (os.path.realpath(root), Path(root).absolute())}
        self.marks = {os.path.realpath(path): set(map(tuple, at)) for path, at in question["marks"].items()}
        self.data = set(question["data"])
        self.watched = self.marks.keys() | set(map(os.path.realpath, question["whole"]))
        self.alone = {os.path.realpath(folder): names for folder, names in question["alone"].items()}
        self.mapped: set = set()
        self.loaded: set = set()
        self.packages: set = set()
        self.ran: set = set()
        self.classes: set = set()
        self.opened: set = set()
        self.listed: set = set()
        self.started = None
        self.own = threading.local()
        for module in list(sys.modules.values()):
            self.load(getattr(module, "__file__", None))
        self.opened |= self.loaded & self.watched  # what was loaded before has no marks

    def open(self):
        """Start tracing: whatever the process loads from here on is recorded."""
        setattr(builtins, MARK, lambda *place: self.ran.add(place))
        setattr(builtins, CLASS, self.see_class)
        loader, compiled = importlib.machinery.SourceFileLoader, importlib.machinery.SourceFileLoader.get_code

        def get_code(loader, name):
            self.load(loader.get_filename(name))
            path = os.path.realpath(loader.get_filename(name))
            with self.itself():
                return self.marked(path) if path in self.marks else compiled(loader, name)

        setattr(loader, "get_code", get_code)  # noqa: B010 of every module that is loaded from here on
        find = importlib.util.find_spec

        def find_spec(name, package=None):
            spec = find(name, package)
            path = os.path.realpath(getattr(spec, "origin", None) or "")
            self.opened |= {path} & self.watched
            return spec

        importlib.util.find_spec = find_spec
        sys.addaudithook(self.audit)

    @contextlib.contextmanager
    def itself(self):
        """Exclude from the trace what this program does itself."""
        self.own.depth = getattr(self.own, "depth", 0) + 1
        try:
            yield
        finally:
            self.own.depth -= 1

    def load(self, path):
        if not path:
            return
        real = os.path.realpath(path)  # a file may be a link to a cache of an installer's
        forms = {real, str(Path(path).absolute())}
        packages = {form[len(root) :].partition("/")[0] for form in forms for root in self.roots if form.startswith(root)}
        if packages or real in self.watched:
            self.loaded.add(real)
            self.packages |= packages

    def marked(self, path):
        """The code of a file, with marks at the start of functions and after each class that holds one of them."""
        tree = ast.parse(Path(path).read_bytes(), path)
        wanted = self.marks[path]

        class Marking(ast.NodeTransformer):
            def visit_FunctionDef(self, node):
                if (node.lineno, node.col_offset) in wanted:
                    at = 1 if ast.get_docstring(node, clean=False) is not None else 0
                    node.body.insert(at, call(MARK, node, ast.Constant(path), ast.Constant(node.lineno)))
                return node

            visit_AsyncFunctionDef = visit_FunctionDef

            def visit_ClassDef(self, node):
                inside = {(n.lineno, n.col_offset) for n in ast.walk(node) if isinstance(n, ast.stmt)}
                if not inside & wanted:
                    return node
                self.generic_visit(node)
                return [node, call(CLASS, node, ast.Name(node.name, ast.Load()), ast.Constant(path))]

        def call(name, where, *arguments):
            function = ast.Name(name, ast.Load())
            return ast.copy_location(ast.Expr(ast.Call(function, list(arguments), [])), where)

        tree = ast.fix_missing_locations(Marking().visit(tree))
        return compile(tree, path, "exec", dont_inherit=True)

    def see_class(self, found, path):
        """Note a file of which a class is not made as classes usually are: what makes it may change its functions."""
        if type(found) is not type or getattr(found.__init_subclass__, "__func__", None):
            self.classes.add(path)

    def audit(self, event, arguments):
        if not getattr(self.own, "depth", 0):
            with contextlib.suppress(Exception):  # it would be raised in the benchmark
                self._audit(event, arguments)

    def _audit(self, event, arguments):
        if event in STARTING:
            self.started = self.started or event
        elif event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            with self.itself():
                path = os.path.realpath(os.fsdecode(arguments[0]))
                if path in self.watched:
                    self.opened.add(path)
        elif event == "object.__getattr__" and arguments[1] == "__code__" and callable(arguments[0]):
            with self.itself():  # what reads the code of a function may compile it, or send it elsewhere
                code = arguments[0].__code__
                path = os.path.realpath(code.co_filename)
                if any(line == code.co_firstlineno for line, _ in self.marks.get(path, ())):
                    self.ran.add((path, code.co_firstlineno))
        elif event in LISTING and self.alone and not isinstance(arguments[0], int):
            with self.itself():
                if not sys._getframe(2).f_code.co_filename.startswith("<frozen importlib"):  # which lists every folder
                    self.listed.update(self.alone.get(os.path.realpath(os.fsdecode(arguments[0] or ".")), ()))

    def look(self):
        """Note shared objects and children that this process has."""
        with self.itself():
            with Path("/proc/self/maps").open() as maps:
                for path in {line.split(None, 5)[5].strip() for line in maps if "/" in line} - self.mapped:
                    self.mapped.add(path)
                    self.load(path)
            left = []
            for children in Path("/proc/self/task").glob("*/children"):
                with contextlib.suppress(OSError):  # a thread that has ended meanwhile
                    left += children.read_text().split()
            if left or resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt:
                self.started = self.started or "a child"

    def report(self):
        """The trace as JSON."""
        return {
            "loaded": sorted(self.loaded & self.watched),
            "packages": sorted(self.packages),
            "ran": sorted(self.ran),
            "classes": sorted(self.classes),
            "opened": sorted(self.opened),
            "listed": sorted(self.listed),
            "started": self.started,
            "compilers": [name for name in COMPILERS if name in sys.modules],
        }

    @property
    def decided(self):
        """Whether a cell of this process has to be measured, whatever it does from here on."""
        seen = self.ran | self.classes | self.opened | self.listed | self.loaded & (self.watched - self.marks.keys())
        compiled = self.loaded & self.watched and any(name in sys.modules for name in COMPILERS)
        return bool(seen or self.started or compiled or self.data & self.packages)


class Script:
    """In place of a gate's channel: asks for one call, or as many as in a gate's round while they can change anything."""

    def __init__(self, eye, request, whole):
        self.eye, self.request, self.whole = eye, request, whole
        self.outcome = {}
        self.requests = self.ask()

    def send(self, **answer):
        self.outcome = answer

    def __iter__(self):
        return self.requests

    def ask(self):
        yield {"warm": True}
        if not self.whole or self.eye.decided or self.outcome.get("single", True):
            return
        sample_time, wall = self.request["sample_time"], max(1e-9, self.outcome["wall"])
        units = math.ceil(BLOCK_SHARE * sample_time / max(1e-9, self.outcome["seconds"]))
        units = max(1, min(units, int(max(2 * sample_time, 0.02) / wall)))
        for _ in range(max(MIN_BLOCKS, min(MAX_BLOCKS, int(LONG_SECONDS / (2 * units * wall))))):
            if self.eye.decided:
                return
            yield {"units": units}


def main(program, file, verb, suite, *rest):
    question = json.loads(Path(file).read_text())
    eye = Eye(question)
    eye.open()
    worker = _worker(program)
    from asv_runner._aux import update_sys_path

    update_sys_path(suite)
    if verb == "cache":
        worker._cache(suite, *rest)
        eye.look()
        _answer(question, eye, cache=rest[0])
    elif rest:
        _trace(worker, suite, question, eye, question["requests"][int(rest[0])])
    else:
        worker._die_with_parent()
        _serve(worker, suite, question, eye, [sys.executable, __file__, program, file, verb, suite])


def _worker(program):
    """worker.py as a module; it takes a folder from the front of the search path, as if it were run."""
    sys.path.insert(0, str(Path(program).parent))
    found = importlib.import_module(Path(program).stem)
    del sys.modules[found.__name__]  # a suite may have a module of that name
    return found


def _serve(worker, suite, question, eye, command):
    spawn = question["spawn"]
    if not spawn:
        sys.argv.append("run_server")  # a suite may load for asv's server what its cells need
        list(worker._modules(Path(suite).name, {}))
        inspect.getsource(main)  # compiles patterns that each fork needs for its benchmark's source
        spawn = worker._running_threads() > 0
        eye.look()
        if not spawn and eye.decided:  # so every cell is measured
            _answer(question, eye, every=True)
            return
    for number, request in enumerate(question["requests"]):
        with eye.itself():
            child = subprocess.Popen([*command, str(number)]).pid if spawn else os.fork()
        if not child:
            try:
                worker._die_with_parent()
                _trace(worker, suite, question, eye, request)
            finally:
                os._exit(0)
        _wait(child, 3 * request["timeout"] + ENDED_SECONDS)


def _wait(child, seconds):
    """Wait for a process, and end it where it takes too long: what it did not answer is not known."""
    until = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _trace(worker, suite, question, eye, request):
    folder, shared = worker._own_folder(Path(request["folder"]))
    script = Script(eye, request, _makes_round(question, request["name"]))
    if not script.whole:
        sample = worker._sample
        worker._sample = lambda channel, block, warm, _, *more: sample(channel, block, warm, True, *more)
    worker._answer_one(suite, script, {**request, "folder": folder, "shared": shared})
    eye.look()
    _answer(question, eye, name=request["name"], **script.outcome)
    if not shared:
        shutil.rmtree(folder, ignore_errors=True)


def _makes_round(question, name):
    """Whether this process makes a round's calls of a cell."""
    if question["calls"] != "claimed":
        return question["calls"] == "round"
    claim = Path(question["claims"], hashlib.sha256(name.encode()).hexdigest())
    with contextlib.suppress(FileExistsError):
        claim.touch(exist_ok=False)
        return True
    return False


def _answer(question, eye, **more):
    line = json.dumps({**eye.report(), **more}) + "\n"
    with eye.itself(), Path(question["answers"]).open("a") as answers:
        answers.write(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
