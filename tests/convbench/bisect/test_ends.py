"""The range of a bisection: given, or from stored results; and what is refused before anything is built."""

import contextlib

import pytest
from command_line import inside, sentence
from gate_projects import SUITE, Sample
from published import Published, benchmark

from convbench.asv import project as projects
from convbench.bisect import ends
from convbench.common import lock

NAME = "speed.time_it"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Three commits, and one beside them that a merge has brought in."""
    made = Sample(tmp_path_factory.mktemp("ends") / "project")
    made.hashes = [made.commit({"benchmarks/b.py": SUITE, "sample/__init__.py": f"x = {i}\n"}, f"c{i}") for i in range(3)]
    made.git("checkout", "--quiet", "-b", "topic", made.hashes[1])
    made.topic = made.commit({"topic": ""}, "topic")
    made.git("checkout", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "--message", "merge", "topic")
    return made


def refused(folder, *arguments):
    done = inside(folder, "bisect", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not (folder / ".convbench").exists()
    return sentence(done)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'CELL'"),
        (["b.time_work", "nonsense"], "git knows no commit 'nonsense'"),
        (["b.time_work", "HEAD~1", "nonsense"], "git knows no commit 'nonsense'"),
        (["b.time_work", "HEAD", "main"], "GOOD and BAD are the same commit"),
        (["b.time_work", "HEAD", "HEAD~2"], "is not in the history of BAD"),
        (["b.time_work", "topic"], "by first parents: name one that is"),
        (["b.time_work", "HEAD~2", "HEAD", "HEAD~1"], "unexpected extra argument (HEAD~1)"),
        (["b.time_work"], "stored results do not show when b.time_work became slower (no results yet in results/"),
    ],
)
def test_a_wrong_call(sample, arguments, said):
    assert said in refused(sample.folder, *arguments)


def test_without_good_or_results_good_is_asked_for(sample):
    assert refused(sample.folder, "b.time_work").endswith("name GOOD, as convbench bisect CELL GOOD")


def test_another_command_measures_here(tmp_path):
    made = Sample(tmp_path / "project")
    first, _ = made.commit({"benchmarks/b.py": SUITE}), made.commit({})
    with lock.lock(made.folder / ".convbench", made.folder / "results"):
        done = inside(made.folder, "bisect", "b.time_work", first)
    assert done.returncode == 2
    assert sentence(done).startswith("Error: another `convbench` command is measuring here")


def test_first_parents_from_good_to_bad(sample):
    with contextlib.chdir(sample.folder):
        found = ends.commits(projects.find(), "b.time_work", "HEAD~2", None)
    assert [commit.subject for commit in found] == ["c1", "c2", "merge"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Commits with results: slower at the fifth, faster at the tenth, and slower again at the fifteenth."""
    made = Published(tmp_path_factory.mktemp("stored") / "p", {NAME: benchmark(NAME, ["cpu.a", "cpu.b"], [])})
    made.hashes = []
    for i in range(20):
        time = (1 if i < 5 else 2 if i < 10 else 1.2 if i < 15 else 1.8) * (1 + i % 3 / 1000)
        rows = [time, 1 + i % 3 / 1000]
        near = [[value * by for value in rows] for by in (0.999, 1.001)]
        made.hashes.append(made.add({NAME: rows}, {NAME: near}, message=f"commit {i}"))
    return made


@pytest.mark.parametrize(("bad", "good", "last"), [(None, 14, 19), ("HEAD~3", 14, 16), ("HEAD~10", 4, 9)])
def test_good_is_the_last_commit_before_the_newest_step_in_the_stored_results(stored, bad, good, last):
    with contextlib.chdir(stored.folder):
        found = ends.commits(projects.find(), f"{NAME}('cpu.a')", None, bad)
    assert [commit.hash for commit in found] == stored.hashes[good : last + 1]


def test_stored_results_without_a_step(stored):
    said = refused(stored.folder, f"{NAME}('cpu.b')")
    assert said.startswith(f"Error: stored results do not show when {NAME}('cpu.b') became slower: name GOOD")


def test_a_cell_that_no_result_has(stored):
    assert "(no series of box matches these filters): name GOOD" in refused(stored.folder, "speed.time_nothing")
