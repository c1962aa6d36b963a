"""convbench speed: finished measurements are kept, uncommitted code gives no results, and the report shows what is stored."""

import contextlib
import json
import subprocess
from datetime import datetime, timedelta

import compressed
import filelock
import pytest
from click.testing import CliRunner
from command_line import sentence, settings
from goal_lines import line
from repositories import commit, git
from speed_suites import DOCS, FIRST, GOALS, SECOND, stored

from convbench.cli.main import main
from convbench.common import load
from convbench.speed import measure, times_file


@pytest.fixture
def fake(project, monkeypatch):
    """The command in this process with a suite that answers at once: fake(arguments), and what it was asked."""

    class Fake:
        asked, times, cores = [], {"copy": 1.0, "cpu.shift": 0.5}, 2

        def __call__(self, *arguments):
            with contextlib.chdir(project):
                self.asked = []
                done = CliRunner(env=settings(project)).invoke(main, ["speed", *arguments], catch_exceptions=False)
                return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

        def ask(self, question, *_):
            self.asked.append((question["problem"], question["threads"]))
            intervals = [[ours, than, 0.4, 3.0] for ours, than, least in question["comparisons"] if least == 0.5]
            known = line("", 0, {name: self.times[name] for name in question["names"]})
            yield from ({"cell": cell} for cell in known["cells"])
            facts = {"versions": known["versions"], "pools": {"openmp": question["threads"]}, "intervals": intervals}
            yield {"facts": facts}

    found = Fake()
    monkeypatch.setattr(measure.ask, "ForkServer", lambda _project, _verb: contextlib.nullcontext(found))
    monkeypatch.setattr(load, "busy", lambda _seconds: None)
    monkeypatch.setattr(load, "cores", lambda: found.cores)
    return found


ALL = [(FIRST, 1), (FIRST, 2), (SECOND, 1), (SECOND, 2)]


def test_what_is_there_is_not_measured_again_unless_asked_for(fake, project):
    assert fake().returncode == 0
    assert fake.asked == ALL
    before = stored(project)
    done = fake()
    assert fake.asked == []
    assert done.stdout.startswith("0 of 4 measurements are to be made\n")
    assert stored(project) == before
    fake.times = {"copy": 3.0, "cpu.shift": 0.5}
    shown = fake("--again").stdout
    assert fake.asked == ALL
    assert "met: 6.00x" in shown  # the newer line counts
    assert fake("--report").stdout == shown[shown.index("Measured on") : shown.index("the report of all rows")]
    assert fake.asked == []


def test_what_is_too_close_to_tell_is_stored_and_said(fake, project):
    done = fake()
    lines = {line["problem"]: line["intervals"] for line in map(json.loads, stored(project).splitlines())}
    assert lines == {FIRST: [], SECOND: [["cpu.shift", "copy", 0.4, 3.0]]}
    assert done.stdout.count("too close to tell: 0 of those that miss it, 1 of the others") == 2


def test_what_is_close_to_what_a_goal_wants_is_measured_in_several_processes(fake, project):
    """Twice more where the processes agree, four times where they do not; if stopped in between it resumes there."""
    again = ALL[2:]  # those of which something is wanted of each
    fake.times = {"copy": 0.6, "cpu.shift": 1.0}
    done = fake()
    assert fake.asked == ALL + 2 * again
    assert "2 of 4 measurements are close to a goal for each problem: they are made in 3 processes\n" in done.stdout
    assert "a goal for each problem: 2 of 4 in 3; a ratio" in done.stdout
    before = stored(project)
    assert fake().stdout.count("0 of 2 measurements are to be made") == 2
    assert stored(project) == before

    (path,) = project.glob("results/*/speed/*.jsonl.gz")
    compressed.write_text(path, "".join(before.splitlines(keepends=True)[:-1]))
    fake.times = {"copy": 0.4, "cpu.shift": 1.0}
    done = fake()
    assert fake.asked == again[1:] + 2 * again[1:]
    assert "a goal for each problem: 1 of 4 in 3, 1 of 4 in 5; a ratio" in done.stdout
    assert [json.loads(text)["process"] for text in stored(project).splitlines()] == [1, 1, 1, 1, 2, 2, 3, 3, 4, 5]

    fake.times = {"copy": 2.0, "cpu.shift": 1.0}
    done = fake("--again")
    assert fake.asked == ALL  # a new first process, and those after it count no longer
    assert "several processes" not in done.stdout


def test_processes_that_were_disturbed_are_measured_again(fake, project, monkeypatch):
    fake.times = {"copy": 0.6, "cpu.shift": 1.0}
    fake()
    (path,) = project.glob("results/*/speed/*.jsonl.gz")
    lines = [json.loads(text) for text in compressed.read_text(path).splitlines()]
    marked = [{**each, "disturbed": "so" * (i == 4)} for i, each in enumerate(lines)]
    compressed.write_text(path, "".join(json.dumps(each) + "\n" for each in marked))
    assert f"* {SECOND}, 1 thread: measured while so" in fake("--report").stdout
    done = fake("--disturbed")
    assert fake.asked == [ALL[2], ALL[2]]  # the second process, and the third that came after it
    assert "measured while" not in done.stdout


def test_rows_are_picked(fake, project):
    done = fake("--row", "second")
    assert fake.asked == ALL[2:]
    assert "## Second" in done.stdout
    assert "## First" not in done.stdout
    assert "## First" in (project / "docs" / "speed.md").read_text()  # which holds all rows, and says what is missing
    assert "no row is called 'third'; there are first, second" in sentence(fake("--row", "third"))


def test_rows_that_are_not_measured_now_are_shown_from_where_they_were_last(fake, project, monkeypatch):
    measured, later = [], iter(range(100))

    class Clock:
        @staticmethod
        def now(zone):  # dates are of whole seconds
            return datetime(2026, 11, 20, tzinfo=zone) + timedelta(seconds=next(later))

    monkeypatch.setattr(measure, "datetime", Clock)
    for i in range(3):
        (project / "impls" / "kernel.py").write_text(f"speed = {i}\n")
        commit(project, f"speed {i}")
        measured.append(git(project, "rev-parse", "HEAD")[:8])
        fake.times = {"copy": 2.0 + i, "cpu.shift": 1.0}
        fake("--row", "first" if i < 2 else "second")
    text = (project / "docs" / "speed.md").read_text()
    places = [text.index(word) for word in (measured[2], "## Second", measured[1], "## First")]
    assert places == sorted(places)
    assert measured[0] not in text
    assert "met: 3.00x" in text[places[2] :]
    assert "not measured" not in text


def test_rows_that_are_judged_together_are_shown_from_where_all_of_them_were_measured(fake, project):
    """They are, although a later commit has measured one of them, since it cannot judge them together."""
    goals = '[[overall]]\nname = "both"\nrows = ["first", "second"]\ngoals = [{ than = "copy", geomean = 1.0 }]\n'
    (project / "benchmarks" / "commands" / "speed.toml").write_text(GOALS + goals)
    commit(project, "together")
    fake()
    (project / "impls" / "kernel.py").write_text("speed = 1\n")
    commit(project, "speed 1")
    shown = fake("--row", "first").stdout
    assert "not judged: no time for 1 of 2 problems" in shown
    text = (project / "docs" / "speed.md").read_text()
    assert text.count("Measured on") == 1
    assert "| both" in text
    assert "not judged" not in text


def test_on_one_core_two_threads_are_not_measured(fake):
    fake.cores = 1
    done = fake()
    assert fake.asked == [(FIRST, 1), (SECOND, 1)]
    assert "only one core may be used here" in done.stdout
    assert "not judged: no time for 1 of 1 problems" in done.stdout


def test_half_a_line_is_passed_over_and_measured_anew(fake, project):
    fake()
    (path,) = project.glob("results/*/speed/*.jsonl.gz")
    whole = compressed.read_text(path)
    for text in (whole[:-40], whole[:-1], whole + '{"problem": ', whole + "[]\n7\n{}\n\n"):
        compressed.write_text(path, text)
        fake()
        assert fake.asked == (ALL[3:] if text == whole[:-40] else [])
        assert list(times_file.read(path)) == ALL
    compressed.write_text(path, whole.encode()[:-40] + b"\xff\0")
    fake()
    assert fake.asked == ALL[3:]
    assert list(times_file.read(path)) == ALL


def test_failed_candidates_and_new_ones_are_measured_again(fake, project):
    fake.times = {"copy": 1.0, "cpu.shift": {"status": "failed", "reason": "not today"}}
    done = fake("--row", "first")
    assert done.returncode == 1
    assert "Error: 2 candidates or measurements failed" in done.stderr
    fake.times = {"copy": 1.0, "cpu.shift": 0.5, "cpu.new": 2.0}
    assert fake("--row", "first").returncode == 0
    assert fake.asked == ALL[:2]
    goals = project / "benchmarks" / "commands" / "speed.toml"
    goals.write_text(goals.read_text().replace("beside = []", 'beside = ["cpu.new"]'))  # not code: need not be committed
    assert fake("--row", "first").returncode == 0
    assert fake.asked == ALL[:2]


def test_a_commit_of_results_or_documents_leaves_the_times_valid_and_one_of_code_does_not(fake, project):
    assert "no times of commit" in sentence(fake("--report"))
    fake()
    measured = git(project, "rev-parse", "HEAD")[:8]
    commit(project, "results")
    fake()
    assert fake.asked == []
    (project / "impls" / "kernel.py").write_text("faster = True\n")
    commit(project, "faster")
    assert f"commit {measured}" in fake("--report").stdout  # where they were measured last
    assert fake.asked == []
    fake()
    assert fake.asked == ALL
    assert len(list(project.glob("results/*/speed/*.jsonl.gz"))) == 2


def test_times_with_huge_pages_are_kept_apart_and_not_published(fake, project, monkeypatch):
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")
    assert "THP_MEM_ALLOC_ENABLE=1 convbench speed" in fake().stdout
    assert [path.name[8:] for path in project.glob("results/*/speed/*.jsonl.gz")] == ["-huge-pages.jsonl.gz"]
    assert (project / "docs" / "speed.md").read_text() == DOCS
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE")
    fake()
    assert len(list(project.glob("results/*/speed/*.jsonl.gz"))) == 2
    (project / "impls" / "kernel.py").write_text("faster = True\n")
    commit(project, "faster")
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "1")
    assert "no times of commit" in sentence(fake("--report"))  # those of small pages are no answer


@pytest.mark.parametrize("name", ["impls/kernel.py", "impls/new.py", "benchmarks/commands/speed.py", "meson.build"])
def test_what_is_not_committed_is_no_result(fake, project, name):
    (project / name).write_text("changed = True\n")
    said = sentence(fake())
    assert f"uncommitted changes, and times are kept by commit: {name}; commit them, or use --dirty" in said
    assert fake.asked == []
    done = fake("--dirty")
    assert fake.asked == ALL
    assert "with uncommitted changes" in done.stdout
    assert stored(project) == ""
    assert (project / "docs" / "speed.md").read_text() == DOCS
    assert fake("--dirty", "--report").stdout in done.stdout
    fake("--dirty")
    assert fake.asked == []
    (project / name).write_text("changed = 'again'\n")
    fake("--dirty")
    assert fake.asked == ALL  # another state of the code


@pytest.mark.parametrize("by", ["an edit", "a commit"])
def test_code_that_changes_meanwhile_is_not_stored_as_the_commit_before(fake, project, monkeypatch, by):
    ask = fake.ask

    def meanwhile(*arguments):
        yield from ask(*arguments)
        if fake.asked[-1] == ALL[1]:
            (project / "impls" / "kernel.py").write_text("changed = True\n")
            if by == "a commit":
                commit(project, "meanwhile")

    monkeypatch.setattr(fake, "ask", meanwhile)
    said = sentence(fake())
    assert ("uncommitted changes" if by == "an edit" else "the code was changed by another commit during the run") in said
    assert list(map(json.loads, stored(project).splitlines()))[-1]["threads"] == 1
    assert stored(project).count("\n") == 1


def test_a_disturbed_measurement_says_so(fake, project, monkeypatch):
    monkeypatch.setattr(load, "busy", lambda _seconds: "other processes use 1.5 of 2 cores")
    assert f"* {FIRST}, 1 thread: measured while other processes use 1.5 of 2 cores" in fake("--row", "first").stdout
    stolen = iter(range(0, 1000, 10))
    monkeypatch.setattr(load, "stolen", lambda: next(stolen))
    assert f"* {SECOND}, 1 thread: measured while the host took " in fake("--row", "second").stdout


def test_what_was_disturbed_is_measured_again_when_asked_for(fake, project, monkeypatch):
    monkeypatch.setattr(load, "stolen", lambda: 0.0)
    fake()
    monkeypatch.setattr(load, "busy", lambda _seconds: "other processes use 1.5 of 2 cores")
    fake("--row", "first", "--again")
    fake("--row", "first")
    assert fake.asked == []
    monkeypatch.setattr(load, "busy", lambda _seconds: None)
    shown = fake("--disturbed").stdout
    assert fake.asked == ALL[:2]
    assert shown.startswith("2 of 4 measurements are to be made")
    assert "measured while" not in shown
    fake("--disturbed")
    assert fake.asked == []


@pytest.mark.parametrize("content", [None, "no marks", f"{measure.BEGIN}\n", f"{measure.END}{measure.BEGIN}"])
def test_a_page_without_a_place_for_the_report(fake, project, content):
    page = project / "docs" / "speed.md"
    page.unlink() if content is None else page.write_text(content)
    assert "docs/speed.md has no place for the report" in sentence(fake())
    assert stored(project).count("\n") == len(ALL)


def test_the_estimate_is_of_what_is_left(fake, project):
    fake()
    (path,) = project.glob("results/*/speed/*.jsonl.gz")
    lines = [{**json.loads(text), "wall": 300.0 * (i + 1)} for i, text in enumerate(stored(project).splitlines())]
    compressed.write_text(path, "".join(json.dumps(each) + "\n" for each in lines))
    shown = fake("--again").stdout
    assert "4 of 4 measurements are to be made: about 50 minutes\n" in shown
    assert [f"[{i}/4, {left} minutes left]" in shown for i, left in ((1, 50), (2, 45), (3, 35), (4, 20))] == [True] * 4


@pytest.mark.parametrize(("place", "minutes"), [("speed", 8), ("elsewhere/speed", 6), ("tune", 4), ("elsewhere/tune", 2)])
@pytest.mark.parametrize("known", [4, 1])
def test_the_estimate_is_of_the_like_and_from_here_rather_than_from_elsewhere(fake, project, place, minutes, known):
    """The estimate comes from the best match although others are newer; unmeasured problems count as similar ones."""
    fake()
    (path,) = project.glob("results/*/speed/*.jsonl.gz")
    lines = list(map(json.loads, stored(project).splitlines()))
    path.unlink()
    places = ["speed", "elsewhere/speed", "tune", "elsewhere/tune"]
    for i, name in enumerate(places[places.index(place) :], places.index(place)):
        file = path.parents[2 if "/" in name else 1] / name / "01234567.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        dated = [{**each, "wall": 30.0 * (4 - i), "date": f"2026-11-{20 + i}T00:00:00+00:00"} for each in lines]
        dated = dated if known == len(lines) else dated[:1] if name == place else dated[1:2]
        compressed.write_text(file, "".join(json.dumps(each) + "\n" for each in dated))
    assert f"4 of 4 measurements are to be made: about {minutes} minutes\n" in fake().stdout


def test_two_at_once_are_refused(fake, project):
    (project / ".convbench").mkdir()
    with filelock.FileLock(project / ".convbench" / "lock"):
        said = sentence(fake())
    assert said == "Error: another `convbench` command is measuring here; two at once would disturb each other"


def test_a_suite_without_goals(tmp_path):
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "first")
    with contextlib.chdir(tmp_path):
        done = CliRunner(env=settings(tmp_path)).invoke(main, ["speed"], catch_exceptions=False)
    assert done.stderr == "Error: this suite has no goals: benchmarks/commands/speed.toml is not there\n"
