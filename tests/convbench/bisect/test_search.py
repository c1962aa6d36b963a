"""Bisections with real workers: the commits built and measured, the answer, and what an interrupted one keeps."""

import json
import re
import signal

import gate_commits
import pytest
from command_line import inside
from gate_projects import FAST, PACKAGE, SLOW, SUITE, Sample

from convbench.asv import project as projects
from convbench.bisect import kept, search
from convbench.bisect.kept import Measured
from convbench.gate import build
from convbench.gate.build import Wanted
from convbench.gate.failures import HeadBroken

CELL = "b.time_work"
UNBUILT = "# does not build\n"


def project(folder, count, slow, unbuilt=(), merged=None, log=None):
    """A project whose commit at the place `slow` made it three times slower; `hashes` are its first parents, oldest first.

    unbuilt: the places of those that do not build. merged: the place of one that is a merge. log: a file to which every build
    adds a line.
    """
    made = Sample(folder)
    made.hashes = []
    backend = (folder / "backend.py").read_text()
    if log:
        first = "    name ="
        backend = backend.replace(first, f"    open({str(log)!r}, 'a').write('built\\n')\n{first}", 1)
    for place in range(count):
        code = UNBUILT if place in unbuilt else PACKAGE.format(SLOW if place >= slow else FAST)
        files = {"benchmarks/b.py": SUITE, "sample/__init__.py": f"{code}\nplace = {place}\n", "backend.py": backend}
        if place == merged:
            made.git("checkout", "--quiet", "-b", "topic")
            made.commit({"topic.txt": ""}, "beside")
            made.commit(files, "topic")
            made.git("checkout", "--quiet", "main")
            made.git("merge", "--quiet", "--no-ff", "--message", f"commit {place}", "topic")
            made.hashes.append(made.git("rev-parse", "HEAD"))
        else:
            made.hashes.append(made.commit(files, f"commit {place}"))
    return made


def bisect(made, *arguments):
    done = inside(made.folder, "bisect", *arguments)
    assert "Traceback" not in done.stdout + done.stderr
    assert gate_commits.left_behind(made.folder) == []
    return done


def named(made, place):
    return f"{made.hashes[place][:10]} commit {place}"


def again(made, good, bad):
    return f"again: convbench gate {made.hashes[good][:10]} {made.hashes[bad][:10]} --bench '^b\\.time_work$'"


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_64_commits_of_which_five_do_not_build_and_one_is_a_merge(tmp_path, package_index):
    log = tmp_path / "builds"
    made = project(tmp_path / "project", 64, 37, {30, 31, 32, 44, 50}, 40, log)
    done = bisect(made, CELL, made.hashes[0])
    *steps, answer, repeated = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(rf"{named(made, 37)} made b\.time_work slower: (2\.[89]|3\.[01])\dx \(.* to .*\)", answer)
    assert repeated == again(made, 36, 37)
    skips = sum(line.endswith("skipped") for line in steps)
    builds = len(log.read_text().splitlines())
    assert 0 < skips <= 5
    assert builds <= 2 + 6 + skips
    # Nothing is built for a second call in the range.
    assert bisect(made, CELL, *made.hashes[36:38]).stdout.splitlines()[-1] == repeated
    assert len(log.read_text().splitlines()) == builds


class Builds:
    """Stands in for build.build: notes the commits that it builds, and refuses those whose package does not build."""

    def __init__(self, python):
        self.python, self.commits, self.after = python, [], lambda: None

    def __call__(self, project, commits, work, wanted):
        self.commits += commits.values()
        self.after()
        built = gate_commits.stand_in(self.python, project, commits, work, wanted)
        if (built["head"].code / "sample" / "__init__.py").read_text().startswith(UNBUILT):
            raise HeadBroken("the head does not build: the compiler says no")
        return built


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter that measures where nothing is built."""
    return gate_commits.interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture
def builds(monkeypatch, python):
    made = Builds(python)
    monkeypatch.setattr(build, "build", made)
    return made


@pytest.mark.slow
def test_a_stopped_one_goes_on(tmp_path, builds):
    made = project(tmp_path / "project", 6, 5, {2})
    builds.after = lambda: signal.raise_signal(signal.SIGINT) if len(builds.commits) == 5 else None
    done = bisect(made, CELL, made.hashes[0])
    assert done.returncode == 4
    assert done.stderr == "Error: interrupted: the same command resumes where it stopped\n"
    first = done.stdout.splitlines()
    assert len(first) == 4
    assert first[0] == f"GOOD {named(made, 0)}, BAD {named(made, 5)}, 5 commits after GOOD"
    assert first[1].startswith("both ends: ")
    assert first[2] == f"1 of about 3: {named(made, 2)}: does not build, skipped"
    assert re.fullmatch(rf"2 of about 3: {named(made, 3)}: (0\.9|1\.0)\dx \(.*\), good", first[3])
    done = bisect(made, CELL, made.hashes[0])
    assert done.returncode == 0
    assert done.stdout.splitlines()[:4] == first
    assert builds.commits == [made.hashes[place] for place in (0, 5, 2, 3, 4, 4)]
    skipped, answer, repeated = done.stdout.splitlines()[-3:]
    assert skipped == f"skipped: {named(made, 2)}: does not build: the compiler says no"
    assert answer.startswith(f"{named(made, 5)} made b.time_work slower: ")
    assert repeated == again(made, 4, 5)
    assert list((made.folder / ".convbench" / "bisect").glob("*/verdicts.json")) == []


@pytest.mark.slow
def test_suspects_where_those_around_the_answer_do_not_build(tmp_path, builds):
    made = project(tmp_path / "project", 5, 3, {1, 2, 3})
    done = bisect(made, CELL, made.hashes[0])
    assert done.returncode == 4
    lines = done.stdout.splitlines()[-6:]
    assert re.fullmatch(r"one of these made b.time_work slower, [23].*x .*; those before the last were skipped:", lines[0])
    assert lines[1:] == [*(f"    {named(made, place)}" for place in (1, 2, 3, 4)), again(made, 0, 4)]


@pytest.mark.parametrize(
    ("place", "status", "said"),
    [(0, 4, "Error: GOOD, {}, does not build: the compiler says no"), (1, 3, "Error: BAD, {}, does not build: the compiler")],
)
def test_an_end_that_does_not_build(tmp_path, builds, place, status, said):
    made = project(tmp_path / "project", 2, 1, {place})
    done = bisect(made, CELL, made.hashes[0])
    assert done.returncode == status
    assert done.stderr.startswith(said.format(made.hashes[place][:10]))


def test_a_cell_that_the_suite_lacks(tmp_path, builds):
    made = project(tmp_path / "project", 2, 1)
    done = bisect(made, "b.time_nothing", made.hashes[0])
    assert done.returncode == 2
    assert done.stderr.startswith("Error: no cell is called b.time_nothing: use a name from convbench gate's reports")


# Without workers

FAST_ONE = Measured("same", 1.01, 0.99, 1.03)
SLOW_ONE = Measured("regressed", 3.0, 2.9, 3.1)
DOUBTFUL = Measured("ambiguous", 1.7, 1.2, 2.4)


@pytest.fixture
def told(tmp_path, builds, monkeypatch):
    """A bisection of five commits with given verdicts by place, the last fast one's at the end."""
    made = project(tmp_path / "project", 5, 3)

    def run(said, last=SLOW_ONE):
        def measured(_search, base, head, smallest=None):
            asked.append((base, head, smallest))
            return said[head] if smallest or (not base and head == 4) else last

        asked = []
        monkeypatch.setattr(search._Search, "_measure", measured)
        done = bisect(made, CELL, made.hashes[0])
        return made, done, asked

    return run


def test_commits_are_judged_by_half_of_the_whole_change(told):
    made, done, asked = told([None, FAST_ONE, FAST_ONE, SLOW_ONE, SLOW_ONE])
    assert done.returncode == 0
    assert asked == [(0, 4, None), (0, 2, 3**0.5 - 1), (0, 3, 3**0.5 - 1), (2, 3, None)]
    assert done.stdout.splitlines() == [
        f"GOOD {named(made, 0)}, BAD {named(made, 4)}, 4 commits after GOOD",
        "both ends: 3.00x (2.90 to 3.10), regressed",
        f"1 of about 2: {named(made, 2)}: 1.01x (0.99 to 1.03), good",
        f"2 of about 2: {named(made, 3)}: 3.00x (2.90 to 3.10), bad",
        f"{named(made, 3)} made b.time_work slower: 3.00x (2.90 to 3.10)",
        again(made, 2, 3),
    ]


def test_a_doubtful_commit_is_skipped(told):
    made, done, _ = told([None, FAST_ONE, DOUBTFUL, SLOW_ONE, SLOW_ONE])
    assert done.returncode == 4
    lines = done.stdout.splitlines()
    assert lines[2] == f"1 of about 2: {named(made, 2)}: 1.70x (1.20 to 2.40), skipped"
    assert f"skipped: {named(made, 2)}: 1.70x (1.20 to 2.40), ambiguous" in lines


def test_a_change_by_degrees_is_no_commits(told):
    made, done, _ = told([None, FAST_ONE, FAST_ONE, SLOW_ONE, SLOW_ONE], FAST_ONE)
    assert done.returncode == 4
    assert done.stdout.splitlines()[-2] == (
        f"no commit alone made b.time_work slower: {made.hashes[3][:10]} is not slower than {made.hashes[2][:10]}, "
        "the last fast one: 1.01x (0.99 to 1.03), same"
    )


def test_ends_that_do_not_differ(told):
    _, done, _ = told([None, None, None, None, FAST_ONE])
    assert done.returncode == 2
    assert done.stderr == ("Error: b.time_work is not slower at BAD than at GOOD: 1.01x (0.99 to 1.03); name another GOOD\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [(DOUBTFUL, 4), (Measured("not measured", reason="no"), 4), (Measured("broken", reason="no"), 3)],
)
def test_ends_without_a_verdict(told, said, status):
    _, done, _ = told([None, None, None, None, said])
    assert done.returncode == status
    assert done.stderr.startswith(f"Error: the gate of both ends gives no verdict, but {said.verdict}: ")


def test_a_commit_is_built_once_until_the_range_or_the_configuration_is_another(tmp_path, builds):
    made = project(tmp_path / "project", 3, 3)
    here = projects.find(made.folder / "asv.conf.json")
    ours, first = kept.Builds.of(here, Wanted()), made.hashes[0]
    assert ours.get(first) == ours.get(first) == kept.Builds.of(here, Wanted()).get(first)
    sides = ours.pair(first, made.hashes[1], made.hashes[2])
    assert {sides[side].folder.resolve().parent.name for side in sides} == {one[:10] for one in made.hashes[:2]}
    assert len({len(str(sides[side].folder.resolve())) for side in sides}) == 1  # paths of one length
    assert {sides[side].suite for side in sides} == {ours.get(made.hashes[2]).suite}
    assert builds.commits == [made.hashes[place] for place in (0, 2, 1)]
    ours.keep_only(made.hashes[1:])
    assert [ours.get(one).folder.is_dir() for one in made.hashes] == [True] * 3
    assert builds.commits[3:] == [first]
    kept.Builds.of(here, Wanted(launch_method="spawn")).get(first)
    assert builds.commits[4:] == [first]
    assert not ours.folder.exists()


def test_what_another_question_has_measured_is_not_used(tmp_path):
    file = tmp_path / "verdicts.json"
    kept.Verdicts(file, ["a"]).add("x..y", SLOW_ONE)
    assert kept.Verdicts(file, ["a"]).found == {"x..y": SLOW_ONE}
    assert kept.Verdicts(file, ["b"]).found == {}
    assert json.loads(file.read_text())["question"] == ["a"]
