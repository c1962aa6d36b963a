"""The report on stored results: which series changed, and where."""

import contextlib
import dataclasses
import json
import math
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner
from published import Published, benchmark
from shown_reports import event, history_report

from convbench.cli.main import main
from convbench.stored import change_points, history_formats

NAN = math.nan


# Stored results

NAMES = ["cpu.shift", "cpu.torch", "im2col.strided"]
TIMES = "conv2d.Layers.time_conv2d"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Twelve commits, the seventh 20 % slower in one implementation; the fourth does not build; den is another machine."""
    made = Published(tmp_path_factory.mktemp("history") / "p", {TIMES: benchmark(TIMES, NAMES, [("size", ["'a'", "'b'"])])})
    random = np.random.default_rng(3)
    made.hashes = []
    for i in range(12):
        times = 1e-3 * np.exp(random.normal(0, 0.01, 6))
        times[:2] *= 1.2 if i >= 6 else 1
        times[3] *= 2 if i == 2 else 1
        if i == 5:
            times[4] = NAN
        rows = [None if math.isnan(value) else float(value) for value in times]
        near = [[value and value * by for value in rows] for by in (0.99, 1.01)]
        if i == 5:
            rows[4] = 10**400  # which is no time, as none would be
        made.hashes.append(made.add({TIMES: rows}, {TIMES: near}, message=f"commit {i}"))
        if i == 3:
            made.path.unlink()
            line = {"commit": made.hashes[-1], "environments": ["env-py3.11"], "reason": "the compiler says no"}
            (made.results / "box" / "unbuilt.jsonl").write_text(json.dumps(line) + "\n")
        elif i % 2:
            other = json.loads(made.path.read_text())
            other["params"]["machine"] = "den"
            other["results"][TIMES][0] = [value and value * 3 for value in rows]
            (made.results / "den").mkdir(exist_ok=True)
            (made.results / "den" / made.path.name).write_text(json.dumps(other))
    return made


def run(project, *arguments, machine="box"):
    with contextlib.chdir(project.folder):
        return CliRunner().invoke(main, ["history", "--machine", machine, *arguments], catch_exceptions=False)


def told(project, *arguments, **more):
    """The file for programs."""
    path = project.folder / "out.json"
    done = run(project, *arguments, "--json", str(path), **more)
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(path.read_text())


def sentence(done):
    (line,) = done.stderr.splitlines()
    assert done.exit_code
    assert line.startswith("Error: ")
    return line


def test_the_slow_commit_is_named(project):
    found = told(project)
    assert [one["likely"]["subject"] for one in found["changes"]] == ["commit 6", "commit 6"]
    for one in found["changes"]:
        assert (one["kind"], one["params"][0], one["commits_between"]) == ("step", "'cpu.shift'", 1)
        assert one["interval"][0] < 1.2 < one["interval"][1]
        assert (one["last_before"], one["first_after"]) == (project.hashes[5], project.hashes[6])
    assert (found["series"], found["too_short"], found["single_commits_passed_over"]) == (6, 0, 1)
    assert len(found["commits"]) == 11
    assert [(one["subject"], one["reason"]) for one in found["unbuilt"]] == [("commit 3", "the compiler says no")]


def test_a_machine_is_never_mixed_with_another(project):
    found = told(project, machine="den")
    assert len(found["commits"]) == 5
    assert {(one["commits_between"], one["likely"]["subject"]) for one in found["changes"]} == {(2, "commit 7")}
    assert all(one["before"] > 2e-3 for one in found["changes"])


@pytest.mark.parametrize(
    ("arguments", "series", "changes"),
    [
        (["-b", "'a'"], 3, 1),
        (["-i", "cpu.*"], 4, 2),
        (["-i", "cpu.torch"], 2, 0),
        (["-i", "im2col.*", "-b", "'b'"], 1, 0),
        (["--since", "HEAD~8"], 6, 2),
        (["--since", "HEAD~4"], 6, 0),
    ],
)
def test_filters(project, arguments, series, changes):
    found = told(project, *arguments)
    assert (found["series"], len(found["changes"])) == (series, changes)


def test_too_few_commits(project):
    assert "6 of them too short to tell" in run(project, "--since", "HEAD~1").stdout
    found = told(project, "--since", "HEAD~1")
    assert (found["too_short"], found["changes"], found["noise"]) == (6, [], None)


@pytest.mark.parametrize(
    ("slow", "kind", "likely", "between", "unbuilt"),
    [
        ((4,), "alone", "commit 4", 1, 0),
        ((3, 4), "step", "commit 3", 2, 1),
        ((1, 3, 4), "alone", "commit 1", 1, 0),
        ((), 0, 0, 0, 0),
    ],
)
def test_a_range_of_five_commits(tmp_path, slow, kind, likely, between, unbuilt):
    """The third does not build; one of two implementations is a fifth slower from some commit on."""
    made = Published(tmp_path / "p", {TIMES: benchmark(TIMES, NAMES[:2])})
    random = np.random.default_rng(5)
    for i in range(5):
        times = 0.05 * np.exp(random.normal(0, 0.005, 2)) * [1, 1.2 if i in slow else 1]
        commit = made.add({TIMES: times.tolist()}, message=f"commit {i}")
        if i == 2:
            made.path.unlink()
            line = {"commit": commit, "environments": [], "reason": "the compiler says no"}
            (made.results / "box" / "unbuilt.jsonl").write_text(json.dumps(line) + "\n")
    found = told(made)["changes"]
    if not slow:
        assert found == []
        return
    (one,) = found
    assert (one["kind"], one["likely"]["subject"], one["params"]) == (kind, likely, ["'cpu.torch'"])
    assert (one["commits_between"], one["unbuilt_between"]) == (between, unbuilt)
    assert one["ratio"] == pytest.approx(1.2, rel=0.03)
    said = run(made).stdout
    assert "does not build: " in said
    assert " commit 2: the compiler says no" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "nonsense"], "git knows no commit 'nonsense'"),
        (["--since", "side"], "side is not in the history of HEAD"),
        (["-b", "nothing"], "no series of box matches these filters"),
        (["-i", "cpu.tor"], "no implementation is called 'cpu.tor'; available: cpu.torch"),
        (["--json", "missing/out.json"], "cannot write to missing/out.json"),
        (["--machine", "attic"], "no results of machine 'attic' in results/, only of box, den"),
    ],
)
def test_mistakes(project, arguments, words):
    git = ["git", "-C", project.folder, "-c", "user.name=A", "-c", "user.email=a@b.c"]
    tree = subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True).stdout.strip()
    side = subprocess.run(
        [*git, "commit-tree", tree, "-m", "side"], check=True, capture_output=True, text=True
    ).stdout.strip()
    subprocess.run([*git, "branch", "--force", "side", side], check=True)
    assert words in sentence(run(project, *arguments))


@pytest.mark.parametrize("cut", ["at once", "in its middle"])
def test_a_corrupt_file_is_named_and_passed_over(project, cut):
    """The whole file is skipped, also the part before the damage."""
    broken = project.results / "box" / "00000000-env.json"
    content = json.loads(project.path.read_text())
    column = content["result_columns"].index("result")
    first = next(iter(content["results"].values()))
    slow = [*first[:column], [1e3 * value for value in first[column]], *first[column + 1 :]]
    content["results"] = dict.fromkeys(content["results"], slow) | {"z.last": 5}
    broken.write_text("{" if cut == "at once" else json.dumps(content))
    try:
        done = run(project)
    finally:
        broken.unlink()
    assert done.exit_code == 0
    assert done.stderr.startswith("skipped: box/00000000-env.json ")
    assert "2 changes (2 slower, 0 faster)" in done.stdout


def test_results_that_head_does_not_descend_from(project):
    content = json.loads(project.path.read_text()) | {"commit_hash": "f" * 40}
    strange = project.results / "box" / "ffffffff-env-py3.11.json"
    strange.write_text(json.dumps(content))
    try:
        assert "ignored: 1 commit with results, not in the history of HEAD" in run(project).stdout
    finally:
        strange.unlink()


# What fails, and what was measured differently


def measured(folder, factors, versions=(), own=(), facts=None):
    """A commit for each factor by which a cell was slower; versions, own: by place, of the environment and of the cell."""
    made = Published(folder / "p", {TIMES: benchmark(TIMES, NAMES[:2])})
    random = np.random.default_rng(5)
    for place, factor in enumerate(factors):
        times = 0.05 * np.exp(random.normal(0, 0.005, 2)) * [1, factor]
        lines = [{"versions": versions[place]}] if versions else []
        cell = {"benchmark": TIMES, "params": ["'cpu.torch'"], "status": "ok"}
        made.add(
            {TIMES: times.tolist()},
            lines=lines + ([cell | {"versions": own[place]}] if own else []),
            message=f"commit {place}",
        )
        if facts:
            content = json.loads(made.path.read_text())
            made.path.write_text(json.dumps(content | {"params": content["params"] | facts}))
    return made


SLOWED = [1, 1, 1, 1.2, 1.2, 1.2, 1.2]
BACK = [1, 1, 1, 1.2, 1.2, 1.2, 1.2, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("factors", "status"),
    [
        (SLOWED, 1),
        ([1.2] * 4 + [1] * 4, 0),
        (BACK, 0),
        ([1] * 4 + [1.5] * 4 + [1.2] * 4, 1),
        ([1.2] * 4 + [1] * 4 + [1.2] * 4, 0),
        ([1] * 6, 0),
        ([1] * 5 + [1.2], 0),  # one commit alone
    ],
)
def test_fail_asks_whether_a_cell_is_slower_now(tmp_path, factors, status):
    made = measured(tmp_path, factors)
    file = tmp_path / "issue.md"
    root = made.sample.git("rev-list", "--max-parents=0", "HEAD")
    done = run(made, "--since", root, "--fail", "--markdown", str(file))
    assert (done.exit_code, done.stderr) == (status, "")
    assert file.read_text().startswith(f"{status} cell{'s' * (status != 1)} slower on <code>box</code>")


def test_fail_looks_no_further_back_than_it_is_told(tmp_path):
    made = measured(tmp_path, [1] * 4 + [1.2] * 6)
    assert run(made, "--since", "HEAD~4", "--fail").exit_code == 0
    assert run(made, "--since", "HEAD~9").exit_code == 0
    assert run(made, "--since", "HEAD~9", "--fail").exit_code == 1


def test_a_mistake_does_not_pass_for_a_regression(project):
    assert run(project, "--since", "nonsense", "--fail").exit_code == 2


def by_place(name, *values):
    """The third commit is the last before the step."""
    return [{name: values[place > 2]} for place in range(len(SLOWED))]


@pytest.mark.parametrize(
    ("more", "versions"),
    [
        ({"versions": by_place("asv_runner", "0.2.1", "0.3.2")}, {"asv_runner": ["0.2.1", "0.3.2"]}),
        ({"versions": by_place("python", "3.11.7", "3.11.9")}, {"python": ["3.11.7", "3.11.9"]}),
        ({"versions": by_place("numpy", "2.3", "2.4")}, {"numpy": ["2.3", "2.4"]}),
        ({"own": by_place("numpy", "2.3", "2.4"), "facts": {"pip+numpy": ""}}, {"numpy": ["2.3", "2.4"]}),
        ({"own": by_place("asv_runner", "0.2.1", "0.3.2")}, {"asv_runner": ["0.2.1", "0.3.2"]}),
        ({"own": by_place("numpy", "2.3", "2.4")}, {}),  # not what the suite pins
        ({"versions": by_place("python", "3.11", "3.11")}, {}),
        ({"versions": [{"python": "3.11"}] * 3 + [{}] * 4}, {}),  # not known of both
    ],
)
def test_a_step_at_another_version_is_measured_differently_and_no_regression(tmp_path, more, versions):
    made = measured(tmp_path, SLOWED, **more)
    (one,) = told(made)["changes"]
    assert (one["kind"], one["versions"]) == ("differently" if versions else "step", versions)
    done = run(made, "--fail", "--markdown", str(tmp_path / "issue.md"))
    assert done.exit_code == (not versions)
    assert ("measured differently: with other versions" in done.stdout) == bool(versions)
    assert ("Measured differently: with other versions" in (tmp_path / "issue.md").read_text()) == bool(versions)


def test_what_an_issue_says_means_nothing_to_github():
    hostile = "a|b`@team #1 <b> https://x [y](z)"
    events = [event(change_points.STEP, (7, 6, 7, 1e-3, 1.2e-3), (f"{hostile}{number}",)) for number in range(60)]
    events.append(event(change_points.STEP, (9, 8, 9, 1.0, 1.5), ("n",), versions={hostile: (hostile, "2")}))
    found = dataclasses.replace(history_report(), events=tuple(events), machine=hostile)
    said = history_formats.as_markdown(found)
    for sign in ("@", " #", "<b>", "https:", "]("):
        assert sign not in said
    assert "and 10 more" in said
    rows = [line for line in said.splitlines() if line.startswith("| <code>")]
    assert len(rows) == 51
    assert {line.count("|") for line in rows} == {7}
    long = [event(change_points.STEP, (7, 6, 7, 1e-3, 1.2e-3), ("x" * 5000,)) for _ in range(60)]
    assert len(history_formats.as_markdown(dataclasses.replace(history_report(), events=tuple(long)))) < 65_536
