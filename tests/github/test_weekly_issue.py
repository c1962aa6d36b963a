"""The weekly run reports slower cells in one issue, and closes it when they are back."""

import os

import pytest
from workflows import JOBS, command, commit, git, shell, steps, write

MEASURED = "Is a cell slower than half a year ago?"
TOLD = "Open, update or close the issue"
CONVBENCH = """
printf '%s\\n' "$@" > asked
while [ $# != 0 ]; do
  case $1 in --json) echo '{"machine": "box"}' > "$2" ;; --markdown) echo "one cell" > "$2" ;; esac
  shift
done
exit STATUS
"""


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    return tmp_path


@pytest.mark.parametrize(("status", "ended"), [(0, 0), (1, 0), (2, 2)])
def test_what_history_says_is_kept_and_only_a_mistake_fails(repository, status, ended):
    first = commit(repository, "first")
    commit(repository, "second")
    command(repository / ".venv/bin/convbench", CONVBENCH.replace("STATUS", str(status)))
    done = shell("weekly.measure", MEASURED, repository)
    assert done.returncode == ended, done.stderr
    assert (repository / "asked").read_text().split()[:4] == ["history", "--since", first, "--fail"]
    assert done.outputs == ({} if ended else {"slower": str(status), "machine": "box"})
    assert done.summary == ("" if ended else "one cell\n")


def test_it_looks_back_half_a_year(repository, monkeypatch):
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
    commit(repository, "older")
    last = commit(repository, "old")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    commit(repository, "new")
    command(repository / ".venv/bin/convbench", CONVBENCH.replace("STATUS", "0"))
    shell("weekly.measure", MEASURED, repository)
    assert (repository / "asked").read_text().split()[2] == last


@pytest.mark.parametrize(
    ("slower", "there", "called"),
    [
        ("1", "", "issue create --title Slower on box --body-file body.md"),
        ("1", "7", "issue edit 7 --body-file body.md"),
        ("0", "7", "issue close 7 --comment No cell is slower any more, says [the weekly run](https://x/1)."),
        ("0", "", None),
    ],
)
def test_there_is_one_issue_while_a_cell_is_slower(tmp_path, slower, there, called):
    write(tmp_path / "history" / "history.md", "$(touch pwned)" + "x" * 100_000)
    command(tmp_path / "bin/gh", f'[ "$2" = list ] && {{ echo "$TITLE" > title; echo "{there}"; }} || echo "$*" > called')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = shell("weekly.tell", TOLD, tmp_path, PATH=path, SLOWER=slower, MACHINE="box$(id)\"'", RUN="https://x/1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "title").read_text() == "Slower on boxid\n"
    said = (tmp_path / "called").read_text().strip() if (tmp_path / "called").exists() else None
    assert said == (called and called.replace("box", "boxid"))
    assert len((tmp_path / "body.md").read_bytes()) < 65_536
    assert not (tmp_path / "pwned").exists()


def test_the_job_that_may_write_issues_runs_nothing_of_ours():
    job = JOBS["weekly.tell"]
    assert job["permissions"] == {"issues": "write"}
    assert [step["uses"].partition("@")[0] for step in steps("weekly.tell") if "uses" in step] == [
        "actions/download-artifact"
    ]
