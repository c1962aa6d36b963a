"""`convbench table` on a suite that is not ours, and which of the files it shows."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from stored_documents import BROKEN, COMMIT, NAN, OURS, SIZE, SIZE_PARAMS, benchmark, document, line, load, put, stored, write

from convbench.cli.main import main
from convbench.common.selection import Selection, select
from convbench.pages.document import document as document_of
from convbench.run import plan

# A suite that is not ours

OTHER = {
    "lists.time_append": benchmark(),
    "lists.time_broken": benchmark(),
    "lists.time_left_out": benchmark(),
    "lists.time_sort": benchmark(["10", "1000"], names=["n"]),
    "lists.time_grid": benchmark(["10", "20"], ["'up'", "'down'"], names=["n", "order"]),
    "lists.track_length": benchmark(unit="items"),
    "lists.peakmem_copy": benchmark(["<list>"], names=["kind"], unit="bytes"),
}
OTHER_ROWS = {
    "lists.time_append": stored([1.5e-3], q25=[1.4e-3], q75=[1.6e-3]),
    "lists.time_broken": stored(None),
    "lists.time_left_out": stored([NAN]),
    "lists.time_sort": stored([2e-6, 3e-4], [["10", "1000"]]),
    "lists.time_grid": stored([1.0, 2.0, 3.0, None], [["10", "20"], ["'up'", "'down'"]]),
    "lists.track_length": stored([42]),
    "lists.peakmem_copy": stored([4096], [["<list>"]]),
}


def test_another_suite_loads(tmp_path):
    cells = load(tmp_path, OTHER_ROWS, OTHER)
    assert cells.implementation.isna().all()
    got = {(cell.benchmark, cell.row): cell.status for cell in cells.itertuples()}
    assert got == {
        ("lists.time_append", ()): "ok",
        ("lists.time_broken", ()): "failed",
        ("lists.time_left_out", ()): "not measured",
        ("lists.time_sort", ("10",)): "ok",
        ("lists.time_sort", ("1000",)): "ok",
        ("lists.time_grid", ("10", "up")): "ok",
        ("lists.time_grid", ("10", "down")): "ok",
        ("lists.time_grid", ("20", "up")): "ok",
        ("lists.time_grid", ("20", "down")): "failed",
        ("lists.track_length", ()): "ok",
        ("lists.peakmem_copy", ("<list>",)): "ok",
    }


def test_another_suite_is_selected_and_stepped(tmp_path):
    cells = select(OTHER, Selection())
    assert ("lists.time_append", ()) in cells
    assert len(cells) == 11
    assert [one.name for one in plan.classes(cells, OTHER, {})] == ["lists"]
    path = write(tmp_path, document(OTHER_ROWS))
    assert plan.missing(cells, OTHER, path) == [
        ("lists.time_broken", ()),
        ("lists.time_left_out", ()),
        ("lists.time_grid", ("20", "'down'")),
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An asv project in a git repository, and the current folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    git = ["git", "-C", tmp_path, "-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def head(project: Path) -> str:
    return subprocess.check_output(["git", "-C", project, "rev-parse", "HEAD"], text=True).strip()


def store(project, rows, known, **more):
    (project / "results" / "benchmarks.json").write_text(json.dumps({**known, "version": 2}))
    return write(project / "results", document(rows), **more)


def show(*arguments):
    return CliRunner().invoke(main, ["table", *arguments], catch_exceptions=False)


def test_another_suite_is_shown(project):
    store(project, OTHER_ROWS, OTHER)
    done = show()
    assert (done.exit_code, done.stderr) == (0, "")
    for text in (
        *("box, commit 01234567, env", "lists.time_append", "1.5 ms ±6.7 %", "42.0 items", "4.00 KiB", "300 us"),
        *("no time (asv gives no reason)", "20, down", "up"),
    ):
        assert text in done.stdout
    assert "time_left_out" not in done.stdout
    assert "nan" not in done.stdout


def test_ours_and_another_are_shown_together(project):
    """Cells with an implementation beside cells without, each with and without a reason."""
    ours = stored([1.0, NAN, None, NAN], SIZE_PARAMS)
    side = [
        line(SIZE, "'cpu.loops'", "'64x64'", status="skipped"),
        line("lists.time_left_out", status="skipped", reason="too old"),
        line("lists.time_grid", "20", "'up'", status="failed"),
        line("lists.time_grid", "10", "'up'", status="skipped"),
    ]
    grid = stored([NAN, 2.0, NAN, None], [["10", "20"], ["'up'", "'down'"]])
    store(project, {SIZE: ours, **OTHER_ROWS, "lists.time_grid": grid}, OURS | OTHER, side=side)
    done = show("--bench", ".", "--why")
    assert (done.exit_code, done.stderr) == (0, "")
    for text in (
        *("cpu.loops (64x64): no reason recorded", "cpu.torch (7x7): FAILED, no time (asv gives no reason)", "too old"),
        *("10, up: no reason recorded", "20, up"),
    ):
        assert text in done.stdout
    assert "nan" not in done.stdout
    assert "()" not in done.stdout
    assert len(json.loads(show("--json").stdout)) == 15


@pytest.mark.parametrize("some", OTHER)
def test_another_suite_is_shown_one_benchmark_at_a_time(project, some):
    store(project, {some: OTHER_ROWS[some]}, {some: OTHER[some]})
    done = show()
    if some == "lists.time_left_out":
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    else:
        assert done.exit_code == 0
        assert some in done.stdout


def test_another_suite_as_records(project):
    store(project, OTHER_ROWS, OTHER)
    cells = json.loads(show("--json").stdout)
    lines = list(csv.DictReader(io.StringIO(show("--csv").stdout)))
    assert len(cells) == len(lines) == 11
    assert [cell["value"] for cell in cells if cell["benchmark"] == "lists.time_append"] == [1.5e-3]
    assert [cell["value"] for cell in lines if cell["benchmark"] == "lists.track_length"] == ["42.0"]
    assert {cell["implementation"] for cell in cells} == {None}


def test_parameters_that_look_alike_stay_apart(project):
    """In table, export and page."""
    params = [["None", "'None'"], ["1", "'1'"]]
    known = benchmark(*params, names=["implementation", "limit"])
    store(project, {"fill.time_it": stored([1.0, 2.0, 3.0, 4.0], params)}, {"fill.time_it": known})
    cells = {(cell["implementation"], cell["row"]): cell["value"] for cell in json.loads(show("--json").stdout)}
    assert cells == {("None", "1"): 1, ("None", "'1'"): 2, ("'None'", "1"): 3, ("'None'", "'1'"): 4}
    page = document_of("other", project / "results", {"rows": [], "left_out": 0}, Path("none.png"))
    assert all(json.dumps(name) in json.dumps(page) for name in ("None", "'None'", "1", "'1'"))
    words = show("--bench", ".").stdout.split()
    assert {"None", "'None'", "1", "'1'"} <= set(words)


# `convbench table` and the files it finds


def aged(path, seconds):
    os.utime(path, (seconds, seconds))


@pytest.mark.parametrize("case", ["empty", "half a file", "not text", "a list", "fewer values than cells"])
def test_a_bad_file_is_passed_over_for_the_next_good_one(project, case):
    aged(store(project, {SIZE: stored([9.0] * 4, SIZE_PARAMS)}, OURS, name="00000000-env"), 1000)
    aged(store(project, {SIZE: stored([1.0] * 4, SIZE_PARAMS)}, OURS, name="11111111-env"), 2000)
    aged(put(project / "results" / "box" / "22222222-env.json", BROKEN[case]), 3000)
    done = show()
    assert done.exit_code == 0
    assert done.stderr.startswith("skipped: box/22222222-env.json ")
    assert done.stderr.count("\n") == 1
    assert "1.00 s" in done.stdout
    assert "9.00 s" not in done.stdout


def test_a_file_cut_short_is_named_though_its_date_is_unknown(project):
    row = [[9.0] * 4, SIZE_PARAMS, "1", 1_700_000_000_000]
    store(project, {SIZE: row}, OURS, name="00000000-env")
    aged(put(project / "results" / "box" / "22222222-env.json", BROKEN["half a file"]), 1000)
    done = show()
    assert done.exit_code == 0
    assert done.stderr.startswith("skipped: box/22222222-env.json ")
    assert "9.00 s" in done.stdout


def test_a_bad_file_that_is_not_needed_is_not_mentioned(project):
    store(project, {SIZE: stored([1.0] * 4, SIZE_PARAMS)}, OURS)
    put(project / "results" / "other" / "22222222-env.json", "")
    done = show("--machine", "box")
    assert (done.exit_code, done.stderr) == (0, "")


def test_bad_files_alone_are_no_results(project):
    for name in ("a", "b"):
        put(project / "results" / "box" / f"{name}.json", "")
    done = show()
    assert done.exit_code == 1
    first, second, last = done.stderr.splitlines()
    assert {first.split()[1], second.split()[1]} == {"box/a.json", "box/b.json"}
    assert last.startswith("Error: no results yet in results/")


def test_the_machine_and_the_commit_asked_for(project):
    commit = head(project)
    at = {"name": f"{commit[:8]}-env"}
    (project / "results" / "benchmarks.json").write_text(json.dumps(OURS))
    for machine, name, value, time in (("box", commit, 1.0, 1), ("box", COMMIT, 2.0, 2), ("den", COMMIT, 3.0, 3)):
        content = document({SIZE: stored([value] * 4, SIZE_PARAMS)}, machine, name)
        aged(write(project / "results", content, machine=machine, **(at if name == commit else {})), time)
    for arguments, expected in (
        ((), ("den, commit 01234567", "3.00 s")),
        (("--machine", "box"), ("box, commit 01234567", "2.00 s")),
        (("--commit", "HEAD"), (f"box, commit {commit[:8]}", "1.00 s")),
        (("--commit", commit[:10]), (f"box, commit {commit[:8]}", "1.00 s")),
    ):
        done = show(*arguments)
        assert done.exit_code == 0
        assert all(text in done.stdout for text in expected), arguments
    assert show("--commit", "HEAD", "--machine", "den").exit_code == 1


NOTHING = {
    "every version differs": ({SIZE: stored([1.0] * 4, SIZE_PARAMS, version="2")}, OURS),
    "no benchmarks.json": ({SIZE: stored([1.0] * 4, SIZE_PARAMS)}, None),
    "no benchmark": ({}, OURS),
    "nothing measured": ({SIZE: stored([NAN] * 4, SIZE_PARAMS)}, OURS),
}


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)], ids=["table", "json", "csv"])
@pytest.mark.parametrize("case", NOTHING)
def test_a_file_with_nothing_to_show(project, case, form):
    rows, known = NOTHING[case]
    store(project, rows, known or {})
    if known is None:
        (project / "results" / "benchmarks.json").unlink()
    done = show(*form)
    if case == "nothing measured" and form:
        assert done.exit_code == 0
    else:
        assert done.exit_code == 1
        assert done.stderr.startswith("Error: no results of 01234567 on box match")
