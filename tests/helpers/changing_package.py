"""A package of twenty files whose cost is counted, its suite, and single changes of it at random.

In all files a 1 is a cost in the body of a plain function, and a 2 one anywhere else.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PLAIN = """
from sample.work import work


def first(n):
    return second(n) + work(1)


def second(n):
    work(1)
    return n


def unused(n):
    return work(1)


class Holder:
    def __init__(self, n):
        self.n = n

    def method(self):
        def inner():
            return work(1)

        return inner()

    def never(self):
        return work(1)
"""
FILES = {f"plain{i:02}.py": PLAIN for i in range(9)} | {
    "__init__.py": "",
    "work.py": "TOTAL = 0\n\n\ndef work(cost):\n    global TOTAL\n    TOTAL += cost\n    return cost\n",
    "properties.py": """
from sample.work import work


class Shape:
    @property
    def area(self):
        return work(2)

    @staticmethod
    def made():
        return work(2)

    def __getattr__(self, name):
        return work(1)
""",
    "decorators.py": """
import functools
from sample.work import work


def traced(function):
    @functools.wraps(function)
    def inner(*arguments):
        work(1)
        return function(*arguments)

    return inner


@traced
def decorated():
    return work(2)


def assigned():
    return work(1)


assigned = traced(assigned)
""",
    "closures.py": """
from sample.work import work


def make(n):
    def add():
        return work(1) + n

    return add


def late():
    return make(3)()
""",
    "calls.py": """
import functools
import threading
from sample.work import work


def added(a, b):
    return a + b + work(1)


partial = functools.partial(added, 5)


def named():
    return work(1)


def by_name(name):
    return globals()[name]()


def steps():
    yield work(1)


def threaded():
    thread = threading.Thread(target=named)
    thread.start()
    thread.join()
""",
    "constants.py": "from sample.work import work\n\nCOST = 2\n\n\ndef use():\n    return work(COST) + work(1)\n",
    "defaults.py": "from sample.work import work\n\n\ndef use(cost=2):\n    return work(cost)\n",
    "metaclasses.py": """
from sample.work import work


class Wrapping(type):
    def __new__(cls, name, bases, members):
        for key in [key for key in members if key == "use"]:
            members[key] = staticmethod(members[key])
        return super().__new__(cls, name, bases, members)


class Base(metaclass=Wrapping):
    def use():
        return work(2)


class Derived(Base):
    def use():
        return work(1)
""",
    "tables.py": """
from pathlib import Path
from sample.work import work


def read():
    return work(int(Path(__file__).with_name("table.txt").read_text()))
""",
    "table.txt": "2\n",
    "jitted.py": """
import numba
from sample.work import work


@numba.njit
def kernel():
    return 2


def helper():
    return 1


compiled = numba.njit(helper)


def use():
    return work(kernel()) + work(compiled())
""",
}
PYX = "def cost():\n    return 2\n"
SUITE = """
import importlib
import sample.work
from sample import calls, closures, constants, decorators, defaults, metaclasses, properties

{}


def time_property():
    properties.Shape().area


def time_static():
    properties.Shape.made()


def time_getattr():
    getattr(properties.Shape(), "anything")


def time_decorated():
    decorators.decorated()


def time_assigned():
    decorators.assigned()


def time_closure():
    closures.late()


def time_partial():
    calls.partial(1)


def time_by_name():
    calls.by_name("named")


def time_generator():
    list(calls.steps())


def time_thread():
    calls.threaded()


def time_constant():
    constants.use()


def time_default():
    defaults.use()


def time_metaclass():
    metaclasses.Base.use()


def time_derived():
    metaclasses.Derived.use()


class Loaded:
    params = ["tables.read", "jitted.use"]

    def setup(self, name):
        module, _, function = name.partition(".")
        self.function = getattr(importlib.import_module("sample." + module), function)

    def time_loaded(self, name):
        self.function()


class Compiled:
    def setup(self):
        from sample import fast

        self.cost = fast.cost

    def time_compiled(self):
        sample.work.work(self.cost())


class Cached:
    def setup_cache(self):
        from sample import plain00

        return plain00.second(4)

    def time_cached(self, n):
        return n


for each in [value for name, value in globals().items() if name.startswith("time_")] + [Loaded, Compiled, Cached]:
    each.sample_time = 0.0002
"""
USES = """
def time_{0}_{1}():
    from sample import {0}
    {2}
"""
CALLS = {"first": "{0}.first(3)", "second": "{0}.second(3)", "method": "{0}.Holder(3).method()"}
# Prints what each benchmark costs, in a process of its own.
COSTS = """
import importlib, json, os, sys
sys.path[:0] = sys.argv[1:]
b = importlib.import_module("benchmarks.b")
from sample import work

def cost(call):
    out, into = os.pipe()
    if not os.fork():
        before = work.TOTAL
        call()
        os.write(into, str(work.TOTAL - before).encode())
        os._exit(0)
    os.wait()
    return os.read(out, 100).decode()

def method(kind, name, *given):
    one = kind()
    getattr(one, "setup", lambda *a: None)(*given)
    getattr(one, name)(*given)

found = {"b." + name: cost(value) for name, value in vars(b).items() if name.startswith("time_")}
for given in b.Loaded.params:
    found[f"b.Loaded.time_loaded({given!r})"] = cost(lambda: method(b.Loaded, "time_loaded", given))
found["b.Compiled.time_compiled"] = cost(lambda: method(b.Compiled, "time_compiled"))
found["b.Cached.time_cached"] = cost(lambda: b.Cached().time_cached(b.Cached().setup_cache()))
print(json.dumps(found))
"""


def suite():
    """The benchmark file."""
    plain = [name[:-3] for name in FILES if name.startswith("plain")]
    return SUITE.format("".join(USES.format(name, kind, call.format(name)) for name in plain for kind, call in CALLS.items()))


def shared_object(folder, python, pyx):
    """A Cython module, compiled."""
    folder.mkdir()
    (folder / "fast.pyx").write_text(pyx)
    include = [python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    headers = subprocess.run(include, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([sys.executable, "-m", "cython", "-3", "fast.pyx"], cwd=folder, check=True)
    options = ["-shared", "-fPIC", "-O0", f"-I{headers}", "fast.c", "-o", "fast.so"]
    subprocess.run(["gcc", *options], cwd=folder, check=True)
    return (folder / "fast.so").read_bytes()


def places():
    """Every cost: (file, where it is, whether it is in the body of a plain function)."""
    for name, text in FILES.items():
        for found in re.finditer(r"(?<![\w.])[12](?!\w)", text):
            yield name, found.start(), found.group() == "1"
    yield "fast.so", 0, False


def write(code: Path, shared, change=None):
    """Write the package, with one of its costs changed. shared: the two versions of the Cython module."""
    (code / "sample").mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        if change and change[0] == name:
            text = f"{text[: change[1]]}7{text[change[1] + 1 :]}"
        (code / "sample" / name).write_text(text)
    (code / "sample" / "fast.so").unlink(missing_ok=True)  # a process that has loaded the old one keeps it
    (code / "sample" / "fast.so").write_bytes(shared[bool(change) and change[0] == "fast.so"])


def costs(python, code, benchmarks):
    """What each benchmark costs, by its name."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-c", COSTS, str(code), str(benchmarks.parent)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)
