"""Which difference touches a cell, as `convbench gate --why` says it; real gates of a package with one difference each."""

import os
from pathlib import Path

import pytest
from command_line import inside, sentence
from gate_commits import built_by, interpreter
from gate_projects import Sample

pytestmark = pytest.mark.slow
CODE = """
import subprocess, sys
from pathlib import Path


def plain():
    return 1


def other():
    return 1


def late():
    from sample import lazy


def source():
    return Path(__file__).read_text()


def read():
    return Path(__file__).with_name("data.txt").read_text()


def starts():
    subprocess.run([sys.executable, "-c", ""])


def forks():
    import os

    if not os.fork():
        os._exit(0)
    os.wait()


def code():
    return plain.__code__
"""
SUITE = "import sample\n" + "".join(
    f"\n\ndef time_{name}():\n    sample.{name}()\n\n\ntime_{name}.sample_time = 0.0002\n"
    for name in ("plain", "other", "late", "source", "read", "starts", "forks", "code")
)
BODY = CODE.replace("def plain():\n    return 1", "def plain():\n    return 2")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture
def why(tmp_path, python):
    """The difference that touches a benchmark, by the last word of its name."""

    def ask(changed, *arguments, cell="*", before=None, prefix="b.time_"):
        made = Sample(tmp_path / "project")
        files = {"benchmarks/b.py": SUITE, "sample/__init__.py": CODE, "sample/lazy.py": "", "sample/data.txt": ""}
        base, head = made.commit(files | (before or {})), made.commit(changed)
        with built_by(python):
            done = inside(made.folder, "gate", base, head, "--why", cell, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [line.partition(": ") for line in done.stdout.splitlines() if line.startswith(prefix)]
        return {name.removeprefix(prefix): reason for name, _, reason in lines}

    return ask


PLAIN = "plain differs, in sample/__init__.py"
READ = "sample/__init__.py differs, which it reads"
STARTS = {"starts": "it starts a process (subprocess.Popen)", "forks": "it starts a process (os.fork)"}


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_function_touches_what_runs_or_reads_it(why, method):
    found = why({"sample/__init__.py": BODY}, "--launch-method", method)
    assert found == STARTS | {"plain": PLAIN, "code": PLAIN, "source": READ} | dict.fromkeys(
        ("other", "late", "read"), "untouched"
    )


def test_a_module_touches_what_loads_it(why):
    found = why({"sample/lazy.py": "LIMIT = 3\n"})
    lazy = "sample/lazy.py differs beyond the bodies of functions"
    assert found == STARTS | {"late": lazy} | dict.fromkeys(("plain", "other", "source", "read", "code"), "untouched")


def test_what_asv_calls_once_in_a_process_is_called_once(why):
    """Another call would fail."""
    once = "import os\nimport sample\n\n\ndef time_once():\n    os.mkdir('once')\n    sample.other()\n\n\n"
    once += "time_once.number = time_once.repeat = 1\ntime_once.warmup_time = 0\n"
    assert why({"sample/__init__.py": BODY, "benchmarks/b.py": once}) == {"once": "untouched"}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sample/__init__.py": CODE + "\nLIMIT = 3\n"}, "sample/__init__.py differs beyond the bodies of functions"),
        ({"sample/data.txt": "more"}, "sample/data.txt differs, which is data of a package that it loads"),
    ],
    ids=["a constant", "data"],
)
def test_what_touches_all(why, changed, reason):
    assert set(why(changed).values()) == {reason}


FINDS = """
import importlib.util, pkgutil
import inspect
import sample


def checked(function):
    inspect.signature(function)
    return function


@checked
def api():
    return 1


def finds():
    return importlib.util.find_spec("sample.more") is not None


def lists():
    return [module.name for module in pkgutil.iter_modules(sample.__path__)]


def neither():
    return 1
"""


def suite_of(*names):
    benchmarks = (f"\n\ndef time_{name}():\n    found.{name}()\n\n\ntime_{name}.sample_time = 0.0002\n" for name in names)
    return "from sample import found\n" + "".join(benchmarks)


def test_a_file_that_is_new_touches_what_looks_for_it(why):
    files = {"benchmarks/b.py": suite_of("finds", "lists", "neither"), "sample/found.py": FINDS}
    assert why({"sample/more.py": ""}, before=files) == {
        "finds": "sample/more.py differs, which it reads",
        "lists": "sample/more.py is there on the head alone, and the files of its folder are listed",
        "neither": "untouched",
    }


LATE = """
import contextlib, time

calls = 0


def fourth():
    global calls
    time.sleep(0.02)
    calls += 1
    if calls == 4:
        with contextlib.suppress(ImportError):
            import sample.more
"""


def test_a_file_of_one_side_is_loaded_by_a_later_call(why):
    """The other side does not show it."""
    found = why({"sample/more.py": ""}, before={"benchmarks/b.py": suite_of("fourth"), "sample/found.py": LATE})
    assert found == {"fourth": "sample/more.py is there on the head alone"}


def test_code_that_is_read_while_the_suite_is_loaded_hides_no_other(why):
    files = {"benchmarks/b.py": suite_of("api", "neither"), "sample/found.py": FINDS}
    slower = FINDS.replace("def neither():\n    return 1", "def neither():\n    return 2")
    found = why({"sample/found.py": slower}, before=files)
    assert found == {"api": "untouched", "neither": "neither differs, in sample/found.py"}


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_that_is_a_link_is_loaded_all_the_same(tmp_path, monkeypatch, python, linked):
    """As some installers make them, into a cache of their own."""
    monkeypatch.setenv("PATH", str(Path(python).parent), prepend=os.pathsep)
    made = Sample(tmp_path / "project")
    made.commit({"benchmarks/b.py": SUITE})
    for side, code in (("base", CODE), ("head", BODY)):
        (package := tmp_path / side / "sample").mkdir(parents=True)
        file = tmp_path / f"cache-{side}.py" if linked else package / "__init__.py"
        file.write_text(code)
        if linked:
            (package / "__init__.py").symlink_to(file)
    sides = str(tmp_path / "base"), str(tmp_path / "head")
    done = inside(made.folder, "gate", "--installed", *sides, "--why", "b.time_plain")
    assert done.stdout.endswith(f"b.time_plain: {PLAIN}\n"), done.stdout + done.stderr


VALUES = """
import sample


def track_plain():
    return sample.plain()


def track_other():
    return sample.other()


def peakmem_other():
    return sample.other()
"""


def test_values_are_touched_by_what_runs_and_memory_by_what_is_loaded(why):
    found = why({"sample/__init__.py": BODY}, before={"benchmarks/b.py": VALUES}, prefix="b.")
    memory = "sample/__init__.py differs, which it loads into the memory that it measures"
    assert found == {"track_plain": PLAIN, "track_other": "untouched", "peakmem_other": memory}


def test_one_cell_is_asked_for(why):
    assert why({"sample/__init__.py": CODE + "# more\n"}, cell="b.time_other") == {"other": "untouched"}


def test_it_measures_nothing(tmp_path):
    made = Sample(tmp_path / "project")
    made.commit({"benchmarks/b.py": SUITE})
    assert "--why cannot be combined" in sentence(inside(made.folder, "gate", "--why", "*", "--all"))
