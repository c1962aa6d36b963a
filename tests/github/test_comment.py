"""The script that comments on a pull request, with a GitHub of our own: where it comments, and where it does not."""

import json
import re
import subprocess
import sys

import pytest
from comments import (
    BOT,
    EVENT,
    FOREIGN,
    GOOD,
    MARKER,
    REPORT,
    ROWS,
    RUN,
    SCRIPT,
    STARTED,
    Github,
    comment,
    environment,
    packed,
    remark,
    report,
)


def test_a_first_comment_is_made_from_the_standard_library_alone(github):
    server = github()
    command = [sys.executable, "-I", SCRIPT]
    done = subprocess.run(command, env=environment(server, EVENT), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "commented on pull request 12\n"), done.stderr
    (made,) = server.comments
    assert made["body"] == REPORT
    texts = [path.read_text(encoding="utf-8") for path in SCRIPT.parent.glob("*.py")]
    imported = {name for text in texts for name in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)}
    assert imported - {"github_api"} <= sys.stdlib_module_names


def test_the_next_run_updates_that_comment(github):
    server = github()
    comment(server)
    server.data = packed(**GOOD | {"gate_json": json.dumps(report(ROWS[:1]))})
    assert comment(server) == (0, "updated the comment on pull request 12\n")
    (made,) = server.comments
    assert "\n\n1 regressed\n\n" in made["body"]


def test_the_comment_is_found_among_many_and_a_forged_one_is_let_be(github):
    server = github()
    forged = remark(1, f"{MARKER}\nmine", "hubot")
    quoting = remark(2, f"> {MARKER}", BOT)
    gone = {"id": 3, "body": "of an account that is deleted", "user": None}
    others = [remark(number, "hello", "octocat") for number in range(4, 150)]
    server.comments = [forged, quoting, gone, *others, remark(150, f"{MARKER}\nold", BOT)]
    assert comment(server)[0] == 0
    assert server.written() == [("PATCH", "/repos/octo-org/convbench/issues/comments/150")]
    assert server.comments[-1]["body"] == REPORT
    assert (forged["body"], quoting["body"]) == (f"{MARKER}\nmine", f"> {MARKER}")


def test_the_newest_attempt_of_a_run_counts(github):
    server = github()
    old, gone = ({"id": number, "name": "gate", "expired": number == 9, "size_in_bytes": 1} for number in (2, 9))
    server.artifacts = [old, *server.artifacts, gone]
    assert comment(server)[0] == 0
    assert server.comments[0]["body"] == REPORT


HEAD = Github.pull()["head"]
GONE, STALE, OTHER = (
    "no open pull request here",
    "is not the head of its pull request",
    "several pull requests have this head",
)


@pytest.mark.parametrize(
    ("pulls", "said"),
    [
        ([Github.pull(head=HEAD | {"sha": "0" * 40})], STALE),  # a newer push
        ([Github.pull(head=HEAD | {"repo": {"id": 1}})], GONE),
        ([Github.pull(head=HEAD | {"ref": "main"})], GONE),  # as where GitHub does not know the branch and lists all
        ([Github.pull(head=HEAD | {"repo": None})], GONE),
        ([Github.pull(state="closed")], GONE),
        ([Github.pull(base={"repo": {"full_name": "other/convbench"}})], GONE),
        ([], GONE),
        ([Github.pull(), Github.pull(number=13)], OTHER),
    ],
)
def test_where_no_pull_request_is_of_what_was_measured_nothing_is_commented(github, pulls, said):
    server = github()
    server.pulls = pulls
    status, printed = comment(server)
    assert status == 0
    assert printed.startswith("no comment: ")
    assert said in printed
    assert server.written() == []


def test_the_artifact_is_not_asked_which_pull_request_it_is_of(github):
    server = github(packed(**GOOD | {"number": "13"}))
    server.pulls += [Github.pull(number=13, head=HEAD | {"ref": "another"})]
    assert comment(server) == (0, "commented on pull request 12\n")


@pytest.mark.parametrize("branch", ["a&state=all#?x=1", "../../$(id)`id`", "\u202e\u00e4 %41"])
def test_a_branch_is_asked_for_as_it_is_called(github, tmp_path, branch):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": RUN | {"head_branch": branch}}))
    server = github()
    server.branch, server.pulls = branch, [Github.pull(head=HEAD | {"ref": branch})]
    assert comment(server, event) == (0, "commented on pull request 12\n")
    assert branch not in server.comments[0]["body"]


def test_a_fork_that_is_gone(github, tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": RUN | {"head_repository": None}}))
    assert "no comment: the fork of the pull request is gone" in comment(github(), event)[1]


def test_the_reports_of_several_jobs_are_one_comment(github):
    server = github()
    server.artifacts += [dict(server.artifacts[0], id=number, name=f"gate-{number}") for number in (4, 5)]
    server.artifacts += [dict(server.artifacts[0], id=6, name="gate_other"), dict(server.artifacts[0], id=7, name="coverage")]
    server.zips = {4: packed(**GOOD | {"gate_json": json.dumps(report(ROWS[3:4]))}), 5: packed(gate_md="none")}
    assert comment(server)[0] == 0
    body = server.comments[0]["body"]
    assert body.startswith(f"{MARKER}\n### Speed: the gate fails: cells have regressed\n")
    assert "Jobs that wrote no report: 1." in body
    assert "1 accepted, 1 regressed, 1 not measured, 2 improved, 1 same, 1 skipped" in body


def test_more_reports_than_ours_are_refused(github):
    server = github()
    server.artifacts = [dict(server.artifacts[0], id=number, name=f"gate-{number}") for number in range(1, 22)]
    assert comment(server) == (1, "refused: the run has more than 20 reports\n")
    assert server.written() == []


@pytest.mark.parametrize("conclusion", ["cancelled", "skipped", "timed_out"])
def test_a_run_that_was_stopped_is_passed_over(github, tmp_path, conclusion):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": RUN | {"conclusion": conclusion}}))
    server = github()
    assert comment(server, event) == (0, "no comment: the run was stopped\n")
    assert server.asked == []


@pytest.mark.parametrize("artifacts", [[], [{"id": 3, "name": "gate", "expired": True, "size_in_bytes": 9}]])
def test_a_run_that_was_not_asked_to_measure_has_nothing_to_say(github, artifacts):
    server = github()
    server.artifacts = artifacts
    status, printed = comment(server)
    assert status == 0
    assert "no comment: the run left no report" in printed
    assert server.written() == []


def test_a_run_of_something_else_than_a_pull_request_is_passed_over(github, tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": RUN | {"event": "push"}}))
    server = github()
    assert "no comment: the run was not of a pull request" in comment(server, event)[1]
    assert server.asked == []


def test_a_gate_without_a_report(github):
    server = github(packed(gate_md=FOREIGN))
    assert comment(server)[0] == 0
    assert server.comments[0]["body"] == f"{MARKER}\n### Speed: the gate wrote no report\n\n{STARTED}\n"


@pytest.mark.parametrize(("method", "path"), [("GET", "pulls"), ("POST", "issues/12/comments")])
def test_an_api_that_fails_is_one_sentence(github, method, path):
    server = github()
    server.status[method, path] = 500
    status, printed = comment(server)
    assert status == 1
    assert "GitHub's API did not answer as it should" in printed
