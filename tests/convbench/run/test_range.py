"""A range of commits, each built and measured as itself, with real processes: in which order, what is kept, what it tells."""

import itertools
import json
import platform
import re
import signal
import subprocess
import sys
import time

import click
import pytest
from command_line import inside, sentence
from gate_projects import BACKEND, Sample
from runs import convbench, left_running, start, use_preinstalled, wait_for_line

from convbench.asv import commits, project
from convbench.common import redact
from convbench.stored import results, unbuilt

pytestmark = [pytest.mark.first, pytest.mark.timeout(600)]

# Time is counted and not taken: what else runs on this machine makes no commit slower.
CODE = """
SECONDS = {{"steady": 0.2, "hasty": {hasty}}}
passed = 0


def work(implementation):
    global passed
    passed += SECONDS[implementation]


def clock():
    return passed
"""
SUITE = """
from sample import clock, work


class Work:
    params = ["steady", "hasty"]
    param_names = ["implementation"]
    rounds, repeat, number, warmup_time = 1, 3, 1, 0
    timer = staticmethod(clock)

    def time_work(self, implementation):
        work(implementation)
"""
HASTY, SLOWED = 0.2, 0.24  # seconds that pass: 20 % slower
# What a build that fails does first: it counts, and says what a compiler may, with its own folders and its host.
FAILS = """import platform; open({tries!r}, "a").write("x")
        print(f"error in {{os.getcwd()}}/kernel.c on {{platform.node()}}, see /usr/include/stdio.h")
        """


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Five commits of which the third does not build and the fifth is 20 % slower in one implementation, and their run.

    It is interrupted while the second commit is being built, and goes on.
    """
    folder = tmp_path_factory.mktemp("story") / "project"
    made = Sample(folder)
    tries = folder.parent / "tries"
    broken = BACKEND.replace("raise SystemExit", FAILS.format(tries=str(tries)) + "raise SystemExit")
    made.write(
        {"backend.py": broken, "benchmarks/speed.py": SUITE, "home/.keep": "", "asv.conf.json": use_preinstalled(made)}
    )
    good = CODE.format(hasty=HASTY)
    made.hashes = [made.commit({"sample/__init__.py": good}, "first"), made.commit({}, "second")]
    made.hashes.append(made.commit({"sample/__init__.py": "# does not build"}, "third"))
    made.hashes.append(made.commit({"sample/__init__.py": good}, "fourth"))
    made.hashes.append(made.commit({"sample/__init__.py": CODE.format(hasty=SLOWED)}, "fifth"))
    made.tries = tries
    made.interrupted = interrupted(made)
    made.early, made.left = stored(made), left_running(folder)
    made.ran = convbench(folder, "run", "ALL", "--busy")
    return made


def interrupted(made):
    """The output and exit status of a run that gets Ctrl-C while it builds the oldest commit."""
    process = start(made.folder, "run", "ALL", "--busy")
    wait_for_line(process, f"building commit {made.hashes[0][:8]}")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def stored(made):
    """Seconds by implementation, by commit."""
    known = results.benchmarks(made.folder / "results")
    found = {}
    for path in made.folder.glob("results/*/*-*.json"):
        run = results.load(path, known)
        found[run.commit] = {cell.implementation: cell.value for cell in run.cells.itertuples()}
    return found


@pytest.mark.slow
def test_each_commit_is_measured_as_itself_and_one_that_does_not_build_is_kept_as_such(story):
    status, out, err = story.ran
    first, second, third, fourth, fifth = story.hashes
    assert status == 1, out + err
    assert err.strip() == f"Error: 1 of 5 commits does not build: {third[:8]}; see the reasons above"
    found = stored(story)
    assert found.keys() == {first, second, fourth, fifth}
    for commit, seconds in found.items():
        assert seconds["steady"] == pytest.approx(0.2)
        assert seconds["hasty"] == pytest.approx(SLOWED if commit == fifth else HASTY)
    built = re.findall(r"building commit (\w{8})", out)
    assert built == [commit[:8] for commit in (fifth, first, third, fourth, second)]  # both ends, then the middles
    assert re.search(r"4 more commits after this one: about \d+ (s|minutes) for all", out)


@pytest.mark.slow
def test_an_interrupted_range_goes_on_where_it_stopped(story):
    status, err = story.interrupted
    assert status == 1
    assert err.strip() == "Error: interrupted: 1 of 5 commits are done; the same command resumes there"
    assert story.left == []
    assert story.early.keys() == {story.hashes[4]}  # the newest was measured first
    assert f"all 2 cells of {story.hashes[4][:8]} have results" in story.ran[1]
    assert stored(story)[story.hashes[4]] == story.early[story.hashes[4]]


@pytest.mark.slow
def test_the_reason_is_told_and_names_no_place_of_this_machine(story):
    (machine,) = (story.folder / "results").glob("*/")
    (line,) = unbuilt.read(machine).values()
    assert line["commit"] == story.hashes[2]
    assert "the compiler says no" in line["reason"]
    assert "error in kernel.c on this machine, see stdio.h" in line["reason"]
    text = unbuilt.path(machine).read_text()
    assert platform.node() not in text
    assert not re.search(r"/(tmp|usr|root|home)\b", text)
    said = sentence(inside(story.folder, "table", "--commit", story.hashes[2]))
    assert said == f"Error: commit {story.hashes[2][:8]} does not build on {machine.name}: {line['reason']}"


@pytest.mark.slow
def test_the_next_call_builds_neither_what_is_measured_nor_what_does_not_build(story):
    before, tries = stored(story), story.tries.read_text()
    done = inside(story.folder, "run", "main~4..main", "--busy")
    assert sentence(done).startswith("Error: 1 of 4 commits does not build")
    assert f"{story.hashes[2][:8]} did not build before and is skipped (--again builds it again): " in done.stdout
    assert len(re.findall("building commit", done.stdout)) == 1  # the newest, to ask what there is
    assert stored(story) == before
    assert story.tries.read_text() == tries
    done = inside(story.folder, "run", f"{story.hashes[2]}^!", "--busy", "--again")
    assert sentence(done).startswith(f"Error: commit {story.hashes[2][:8]} does not build: ")
    assert len(story.tries.read_text()) == len(tries) + 1


@pytest.mark.slow
def test_the_dashboard_names_what_became_slower(story):
    publish = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    done = subprocess.run(publish, cwd=story.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((story.folder / "html" / "regressions.json").read_text())["regressions"]
    assert sorted(name for name, *_ in found) == ["speed.Work.time_work('hasty')"]
    place = {commit: int(revision) for revision, commit in index(story)["revision_to_hash"].items()}
    for _, _, _, _, last, best, jumps in found:
        assert last / best == pytest.approx(1.2)
        ((before, after, *_),) = jumps
        assert after == place[story.hashes[4]]
        assert before is None  # asv's way to say that the commit before has a time as well


@pytest.mark.slow
def test_the_history_tells_the_story(story):
    done = inside(story.folder, "history")
    assert (done.returncode, done.stderr) == (0, "")
    told = " ".join(done.stdout.split())
    third = story.hashes[2][:8]
    assert f"does not build: {third} third: error in kernel.c on this machine, see stdio.h / sample does not build" in told
    assert re.search(r"speed\.Work\.time_work\('hasty'\) .* 1\.20x .* fifth", told)
    assert "'steady'" not in told


def index(made):
    return json.loads((made.folder / "html" / "index.json").read_text())


# What a range means


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Six commits, of which one is tagged, two have results and two are on another branch; none is ever built."""
    made = Sample(tmp_path_factory.mktemp("history") / "project")
    made.hashes = [made.commit({"number": str(i)}, f"commit {i}") for i in range(6)]
    made.git("tag", "v1", made.hashes[2])
    made.git("branch", "aside", made.hashes[1])
    for i in (1, 3):
        content = {"params": {"machine": "box"}, "commit_hash": made.hashes[i], "env_name": "e", "date": 0}
        content |= {"result_columns": [], "results": {}}
        path = made.folder / "results" / "box" / f"{made.hashes[i][:8]}-e.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (path.parent / "00000000-e.json").write_text("{")
    (made.folder / "list").write_text(f"{made.hashes[0]}\n\nv1\nmain\n")
    made.here = project.load(made.folder / "asv.conf.json")
    return made


def resolve(project, words):
    return commits.resolve(project, words, lambda: results.measured_commits(project.results))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("HEAD", [5]),
        ("main", [5, 4, 3, 2, 1, 0]),
        ("ALL", [5, 4, 3, 2, 1, 0]),
        ("NEW", [5, 4]),
        ("EXISTING", [3, 1]),
        ("TAGS", [2]),
        ("main~3..main", [5, 4, 3]),
        ("v1..main", [5, 4, 3]),
        ("main~2^!", [3]),
        ("main --grep='commit [14]'", [4, 1]),
        ("aside", [1, 0]),
    ],
)
def test_ranges_are_asv_s(history, words, expected):
    assert [history.hashes.index(commit) for commit in resolve(history.here, words)] == expected


def test_a_list_of_commits_is_read_from_where_the_user_is(history, monkeypatch):
    monkeypatch.chdir(history.folder)
    assert [history.hashes.index(commit) for commit in resolve(history.here, "HASHFILE:list")] == [5, 2, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nobody..main", "no range of commits is called 'nobody..main': "),
        ("main..main", "there is no commit in main..main"),
        ("main 'unclosed", 'no range of commits is called "main \'unclosed": No closing quotation'),
        ("HASHFILE:missing", "the list of commits 'missing' cannot be read: "),
        ("HASHFILE:wrong", "git knows no commit 'nobody', which HASHFILE:wrong names"),
    ],
)
def test_a_range_that_makes_no_sense_is_one_sentence(history, words, said, monkeypatch, capfd):
    monkeypatch.chdir(history.folder)
    (history.folder / "wrong").write_text("nobody\n")
    with pytest.raises(click.ClickException) as caught:
        resolve(history.here, words)
    assert caught.value.message.startswith(said)
    assert "\n" not in caught.value.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100])
def test_the_first_few_commits_show_the_shape_of_the_whole(count):
    found = commits.order(list(map(str, range(count))))
    assert sorted(found, key=int) == list(map(str, range(count)))
    for length in range(3, count):
        places = sorted(map(int, found[:length]))
        gaps = [after - before for before, after in itertools.pairwise(places)]
        assert (places[0], places[-1]) == (0, count - 1)
        assert max(gaps) <= 2 * min(gaps) + 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("/opt/some where/cc: no", "some where/cc: no"),
        ("in '/root/a-b/c.py' (/x)", "in 'c.py' (x)"),
        ("from https://example.com:80/simple/numpy/ and file:///data/x.whl", "from numpy/ and x.whl"),
        ("src/kernel.c and ../x, 1 / 2 and/or", "src/kernel.c and ../x, 1 / 2 and/or"),
        ("two\n  lines", "two lines"),
        ("x" * 600, "x" * 500),
    ],
)
def test_a_reason_is_kept_without_its_places(said, kept):
    assert redact.redact(said) == kept
