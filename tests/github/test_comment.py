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
    imported = re.findall(r"^(?:import|from) (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(imported) <= sys.stdlib_module_names
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 400


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


@pytest.mark.parametrize(
    ("pull", "said"),
    [
        (Github.pull(head={"sha": "0" * 40, "repo": {"id": 869402117}}), "is not the head of pull request 12"),
        (Github.pull(head={"sha": RUN["head_sha"], "repo": {"id": 1}}), "is not the head of pull request 12"),
        (Github.pull(head={"sha": RUN["head_sha"], "repo": None}), "the fork of pull request 12 is gone"),
        (Github.pull(state="closed"), "pull request 12 is not open here"),
        (Github.pull(base={"repo": {"full_name": "other/convbench"}}), "pull request 12 is not open here"),
        (None, "there is no pull request 12"),
    ],
)
def test_an_artifact_that_names_another_pull_request_comments_nowhere(github, pull, said):
    server = github()
    server.pulls = {12: pull}
    status, printed = comment(server)
    assert status == 0
    assert printed.startswith("no comment: ")
    assert said in printed
    assert server.written() == []


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
    server = github(packed(gate_md=FOREIGN, number="12"))
    assert comment(server)[0] == 0
    assert server.comments[0]["body"] == f"{MARKER}\n### Speed: the gate wrote no report\n\n{STARTED}\n"


@pytest.mark.parametrize(("method", "path"), [("GET", "pulls/12"), ("POST", "issues/12/comments")])
def test_an_api_that_fails_is_one_sentence(github, method, path):
    server = github()
    server.status[method, path] = 500
    status, printed = comment(server)
    assert status == 1
    assert "GitHub's API did not answer as it should" in printed
