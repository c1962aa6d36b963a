"""Untrusted files with any content: the bad file is named and skipped, and all others are read."""

import json
import math
import os
import shutil
import subprocess
import sys

import compressed
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_suites import COLUMNS, SUITE, content, measured

from convbench.asv import files, project
from convbench.cli.main import main
from convbench.common import untrusted
from convbench.common.cells import plain
from convbench.common.untrusted import Unreadable
from convbench.stored import results


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return measured(tmp_path_factory.mktemp("project"))


def text(**changes):
    return json.dumps(content("a" * 40, **changes))


def rows(*found):
    """A file with the newest benchmarks, so that each command reads it."""
    late = [[*row, *[None] * (len(COLUMNS) - len(row))] for row in found]
    for row in late:
        row[2:4] = "1", 1.8e12
    return json.dumps(content("a" * 40) | {"results": {"b.T.time_x": late[0]} | {f"b{i}": row for i, row in enumerate(late)}})


PARAMS = SUITE["b.T.time_x"]["params"]
BAD = {
    "deep": "[" * 200_000,
    "deep objects": '{"a":' * 200_000,
    "a number without end": rows([[1, 2], PARAMS, None, None, None, [1, 10**400], [1, 2]]),
    "a date without end": text(date=10**400),
    "a date in the year 300,000": text(date=10**16),
    "a billion cells": rows([None, [["'x'"] * 10] * 9]),
    "more cells than bytes": rows([None, [["'x'"] * 10] * 5]),
    "an integer that no file of data holds": rows([[1, 2], PARAMS, None, None, None, [10**300, 1], [1, 2]]),
    "many benchmarks of many cells": rows(*[[None, [["1"] * 300] * 2]] * 9),
    "a parameter that is not text": rows([[1, 2], [[1, 2]]]),
    "an environment that is not text": text(env_name=5),
    "a commit that is a list": text(commit_hash=["a"]),
    "a machine that is not text": text().replace('{"machine": "m"}', '{"machine": {}}'),
    "samples that are texts": rows([[1, 2], PARAMS, None, None, None, None, None, [["x"], [1]]]),
    "quartiles that are texts": rows([[1, 2], PARAMS, None, None, None, ["1", "2"], [1, 2]]),
    "no text": b"\xff\xfe" * 100,
    "too large": " " * (untrusted.LARGEST + 1),
}
BAD = {case: each if isinstance(each, bytes) else each.encode() for case, each in BAD.items()}
LINKED = {"a link to nothing": "/nonexistent", "a device": "/dev/zero", "a link to another's secret": "/etc/passwd"}
# How each command ends with the two good commits, whatever lies beside them; compare says 1 where something is slower.
COMMANDS = {("table",): 0, ("export", "out.csv"): 0, ("history",): 0, ("compare", "HEAD~1", "HEAD"): 4}
SCRIPT = """
import json, resource, sys
from click.testing import CliRunner
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from convbench.cli.main import main
for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, command)
    print(json.dumps([done.exit_code, repr(done.exception), done.stdout, done.stderr]))
"""


def answers(suite, timeout=60):
    """Exit status, exception, output and errors of each command, in a process that has 3 GiB."""
    process = [sys.executable, "-c", SCRIPT, json.dumps([list(command) for command in COMMANDS])]
    done = subprocess.run(process, cwd=suite.folder, capture_output=True, text=True, timeout=timeout, check=True)
    return dict(zip(COMMANDS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.fixture
def bad(suite):
    """Every bad file, beside the good ones: their names."""
    folder = suite.folder / "results" / "m"
    names = {case: folder / f"{number:08x}-env.json" for number, case in enumerate([*BAD, *LINKED, "a pipe", "a folder"])}
    for case, path in names.items():
        if case in BAD:
            path.write_bytes(BAD[case])
        elif case in LINKED:
            path.symlink_to(LINKED[case])
    os.mkfifo(names["a pipe"])
    names["a folder"].mkdir()
    yield names
    names.pop("a folder").rmdir()
    for path in names.values():
        path.unlink()


def test_bad_files_are_named_and_the_others_answer(suite, bad):
    for command, (status, exception, out, err) in answers(suite).items():
        assert status == COMMANDS[command], (command, exception, err)
        for case, path in bad.items():
            said = err.count(f"skipped: m/{path.name} is unreadable: ")
            assert said == (command[0] != "compare"), (case, command)  # which looks at its two files alone
        assert {"table": "cpu.a", "export": "4 cells of 2 commits", "history": "2 series", "compare": "cpu.a"}[
            command[0]
        ] in out


@pytest.mark.parametrize("case", BAD)
def test_compare_never_says_slower_for_a_bad_file(suite, case, monkeypatch):
    path = suite.good.with_name(f"{suite.hashes[1][:8]}-env.json")
    good = path.read_bytes()
    monkeypatch.chdir(suite.folder)
    try:
        path.write_bytes(BAD[case].replace(b"a" * 40, suite.hashes[1].encode()))
        done = CliRunner().invoke(main, ["compare", "HEAD~1", "HEAD"])
    finally:
        path.write_bytes(good)
    assert done.exit_code == 2, done.exception
    assert done.stderr.startswith(f"Error: m/{path.name} is unreadable: ")


# Good files whose values are as far apart as there are numbers.
EXTREMES = [(5e-324, 1.7e308), (1.7e308, 5e-324), (1e-320, 1e-320)]
EXTREMES += [(1.0, 10**400), (math.inf, -math.inf), ("text", [1.0]), ({}, True)]


@pytest.mark.parametrize("values", EXTREMES)
@pytest.mark.parametrize(
    "command", [*COMMANDS, ("export", "out.parquet"), ("history", "--json", "h.json"), ("table", "--csv")]
)
def test_values_of_any_size_are_shown(suite, values, command, monkeypatch, tmp_path):
    folder = tmp_path / "results" / "m"
    shutil.copytree(suite.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for i, commit in enumerate(suite.hashes):
        both = [values[i], values[1 - i]]
        text = json.dumps(content(commit) | {"params": {"machine": "m", "cpu": 10**400}})
        whole = json.loads(text)
        whole["results"]["b.T.time_x"] = [both, PARAMS, "1", 1.8e12, 1, [0.0, 5e-324], [1.7e308, 1.7e308], None]
        (folder / f"{commit[:8]}-env.json").write_text(json.dumps(whole))
    done = CliRunner().invoke(main, command)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    # A history of no numbers is none, which is said.
    assert done.exit_code in (0, 4) or (command[0] == "history" and done.stderr.startswith("Error: "))


def test_a_bad_machine_or_list_of_benchmarks_does_not_end_asv_publish(suite, tmp_path):
    """A pipe must not block it forever; asv itself does not say what is wrong with such files."""
    shutil.copytree(suite.folder, tmp_path, dirs_exist_ok=True)
    for number, text in enumerate(["[]", "{", "{}", '{"machine": 3}', "[" * 100_000]):
        (folder := tmp_path / "results" / f"x{number}").mkdir()
        (folder / "machine.json").write_text(text)
        (folder / "aaaaaaaa-env.json").write_text("{}")
    for name, make in {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero")}.items():
        (folder := tmp_path / "results" / name).mkdir()
        make(folder / "machine.json")
    publish = [sys.executable, "-P", "-c", "from convbench.asv import safe_pages; safe_pages.run()", "publish", "--no-pull"]
    done = subprocess.run(publish, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "b.T.time_x" in json.loads((tmp_path / "html" / "index.json").read_text())["benchmarks"]
    for name in ("x0", "x1", "x2", "x3", "x4", "device"):
        assert f"{name}/machine.json is unreadable" in done.stderr + done.stdout


def test_what_is_a_mistake_of_ours_does_not_end_with_1_either(suite, monkeypatch):
    monkeypatch.chdir(suite.folder)
    monkeypatch.setattr("convbench.stored.compare.show", lambda *_: [][0])
    done = CliRunner().invoke(main, ["compare", "HEAD~1", "HEAD"])
    assert (done.exit_code, "IndexError" in done.stderr) == (2, True)


def test_a_deep_line_of_a_side_file_is_passed_over(suite, monkeypatch):
    side = suite.good.with_name(f"{suite.hashes[1][:8]}-env.cells.jsonl.gz")
    good = {"benchmark": "b.T.time_x", "params": ["'cpu.a'"], "status": "failed", "reason": "wrong"}
    odd = [{**good, key: value} for key, value in [("params", 3), ("status", []), ("threads", {"a": "b"}), ("reason", {})]]
    odd += [{**good, "params": ["'cpu.c'"], "run": None}, {**good, "relative_l2": 10**400}, {**good, "samples": ["x"]}, [], 3]
    compressed.write_text(
        side, "\n".join(["[" * 200_000, *map(json.dumps, odd), json.dumps({**good, "params": ["'cpu.b'"]})])
    )
    monkeypatch.chdir(suite.folder)
    try:
        found = {command: CliRunner().invoke(main, command) for command in COMMANDS}
    finally:
        side.unlink()
    assert {command: done.exit_code for command, done in found.items()} == COMMANDS
    assert "FAILED: 1 cell;" in found["table",].stdout


@pytest.mark.parametrize("name", ["'" + "x" * 10_000 + "'", "-" * 3000 + "1", "(" * 5000, "9" * 5000, "0x" + "f" * 9000])
def test_a_parameter_of_any_length_is_a_name(name):
    assert plain(name) in (name, name.strip("'"))


@given(st.text(max_size=30) | st.from_regex(r"[-+~(\[{'\"0-9xjeE. ,lambda:]{0,40}", fullmatch=True))
@settings(deadline=None)
def test_a_parameter_is_some_text(text):
    assert isinstance(plain(text), str)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(files.DECLARED)), anything)
def test_what_another_suite_declares_otherwise_is_left_out(key, value):
    entry = {**SUITE["b.T.time_x"], key: value}
    (found,) = files.benchmarks({"b.T.time_x": entry}).values()
    assert key not in found or files.DECLARED[key](value)
    assert {name: one for name, one in found.items() if name != key} == {k: v for k, v in entry.items() if k != key}


@pytest.mark.parametrize(
    "entry", [{"params": 3}, {"params": [[1]]}, {"params": [["1"] * 100] * 3}, {"param_names": [3]}, {"unit": {}}]
)
def test_a_list_of_benchmarks_that_is_none_is_named_with_the_benchmark(tmp_path, entry):
    (tmp_path / "benchmarks.json").write_text(json.dumps({"b.T.time_x": {**SUITE["b.T.time_x"], **entry}}))
    with pytest.raises(Unreadable, match=rf"^{tmp_path.name}/benchmarks.json is unreadable: b.T.time_x: "):
        results.benchmarks(tmp_path)


CONFIGURATIONS = {
    "deep": "[" * 100_000,
    "large": "{" + " " * (1 << 20) + "}",
    "a list": "[]",
    "a number for a project": '{"repo": ".", "project": 3}',
    "a list for a folder": '{"repo": ".", "results_dir": ["r"]}',
    "no path": '{"repo": "a\\u0000b"}',
    "branches": '{"repo": ".", "branches": {"main": 1}}',
    "plugins": '{"repo": ".", "plugins": [3]}',
    "thresholds": '{"repo": ".", "regressions_thresholds": {"(": 1}}',
    "a threshold": '{"repo": ".", "regressions_thresholds": {"a": []}}',
    "a version": '{"repo": ".", "version": []}',
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_configuration_that_is_none_is_named(tmp_path, monkeypatch, case):
    (tmp_path / "asv.conf.json").write_text(CONFIGURATIONS[case])
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["table"])
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: asv.conf.json is not a valid asv configuration: ")
    assert done.stderr.count("\n") == 1


def test_a_configuration_may_be_a_link(suite, tmp_path):
    (tmp_path / "asv.conf.json").symlink_to(suite.folder / "asv.conf.json")
    assert project.load(tmp_path / "asv.conf.json").name == "sample"
