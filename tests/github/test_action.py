"""action.yml and comment/action.yml, run as GitHub runs them, in the workflows that the documentation shows."""

import base64
import json
import re
import shutil

import actions
import comments
import pytest
from actions import Run
from adopters import COMMENT, GATE, Adopter, fails, passes
from comments import RUN, Github
from expressions import Known, Unknown, condition, evaluate
from gate_projects import SLOW
from repositories import commit, git
from workflows import write

HOSTILE = "$(touch${IFS}pwned)`touch${IFS}pwned`;touch${IFS}pwned;'\"&|"
REPORT = comments.report()


@pytest.fixture
def adopter(tmp_path):
    made = Adopter(tmp_path / "hub")
    made.result(0, REPORT)
    made.branch("topic")
    made.head = made.change()
    return made


def gate(adopter, context, **inputs):
    return Run(adopter.hub, context).workflow(GATE, {key.replace("_", "-"): value for key, value in inputs.items()})


def pull(adopter, **more):
    return adopter.hub.pull_request(adopter.main, adopter.head, **more)


def test_a_pull_request_of_a_fork_with_a_hostile_branch(adopter):
    """It is measured against the commit where it left main, with main's current acceptances, and without any rights."""
    git(adopter.top, "checkout", "--quiet", "main")
    accepted = '[[accept]]\ncell = "a"\nreason = "b"\n'
    main = adopter.change(**{"perf__convbench-accept.toml": accepted})
    git(adopter.top, "checkout", "--quiet", "topic")
    head = adopter.change(**{"perf__convbench-accept.toml": 'accept = "everything"', HOSTILE.replace("/", ""): ""})
    git(adopter.top, "branch", "--move", "topic", HOSTILE.replace("'\"&|", "").replace(";", ""))
    run = gate(adopter, adopter.hub.pull_request(main, head, branch=HOSTILE))
    assert passes(run), run.log
    asked = adopter.asked()
    assert asked[:3] == ["gate", adopter.main, head]
    assert not {"--accept", "--bench", "--budget", "--config", "--environment"} & set(asked)
    assert (adopter.folder / "accepted").read_text() == accepted
    assert run.artifacts == {"gate": {"gate.json": json.dumps(REPORT), "gate.md": "| cell |\n"}}
    assert run.summary == "| cell |\n"
    assert git(run.workspace, "rev-parse", "HEAD") == head  # the merge with main is not measured, nor its configuration read
    kept = (adopter.folder / "variables").read_text() + (run.workspace / ".git" / "config").read_text()
    assert actions.TOKEN not in kept
    assert "x-access-token" not in kept
    assert not list(adopter.folder.rglob("pwned"))
    assert GATE["jobs"]["gate"]["permissions"] == {"contents": "read"}
    assert adopter.hub.caches == {}


def test_the_token_is_given_to_the_fetches_alone_and_sent_once(adopter):
    """A token kept by the checkout would be sent as well, and GitHub would refuse both."""
    run = Run(adopter.hub, pull(adopter))
    seen, real = adopter.folder / "seen", shutil.which("git")
    asked = f"{real} config --get-all http.https://github.com/.extraheader | base64 --wrap=0"
    run.commands = {"git": f'echo "$(GIT_DIR=/dev/null {asked}) $*" >> {seen}\nexec {real} "$@"'}
    assert passes(run.workflow(GATE)), run.log
    given = {
        base64.b64decode(headers).decode(): call
        for headers, call in re.findall(r"^(\S*) (.*)$", seen.read_text(), re.MULTILINE)
    }
    token = base64.b64encode(f"x-access-token:{actions.TOKEN}".encode()).decode()
    assert given.keys() == {"", f"\nAUTHORIZATION: basic {token}\n"}
    assert given[""].startswith("show ")


@pytest.mark.slow
@pytest.mark.parametrize("status", [1, 2, 3, 4])
def test_the_check_fails_by_the_gates_status_and_keeps_the_report(adopter, status):
    adopter.result(status, REPORT if status != 2 else None)
    run = gate(adopter, pull(adopter))
    assert fails(run)
    assert set(run.artifacts["gate"]) == ({"gate.json", "gate.md"} if status != 2 else {"gate.md"})
    assert run.summary == run.artifacts["gate"]["gate.md"]
    assert ("ended with status 2 and wrote no report" in run.summary) == (status == 2)


def test_the_label_accepts_the_commit_it_was_set_for_and_no_later_one(adopter):
    run = gate(adopter, pull(adopter, action="labeled", label="accept-regression", labels=["accept-regression"]))
    asked = adopter.asked()
    assert asked[3:7] == ["--accept", "*", "--reason", "label accept-regression"]
    assert passes(run)
    adopter.head = adopter.change()
    adopter.result(1, REPORT)
    run = gate(adopter, pull(adopter, labels=["accept-regression"]))
    assert "--accept" not in adopter.asked()
    assert fails(run)
    assert "`accept-regression` does not count for this commit" in run.summary


def test_another_label_measures_nothing_and_takes_the_checks_name_from_nothing(adopter):
    run = gate(adopter, pull(adopter, action="labeled", label="documentation"))
    assert run.jobs == {"gate": ("another label", "skipped")}


@pytest.mark.slow
def test_what_the_inputs_say_reaches_the_gate(adopter):
    inputs = {"bench": "a b\n\n'$(c)'\n", "budget": "9", "config": "asv.conf.json", "environment": "virtualenv:3.12"}
    run = gate(adopter, pull(adopter), working_directory="perf", report="gate-b", **inputs)
    assert passes(run), run.log
    words = ["--config", "asv.conf.json", "--environment", "virtualenv:3.12", "--budget", "9"]
    assert adopter.asked()[3:13] == [*words, "--bench", "a b", "--bench", "'$(c)'"]
    assert set(run.artifacts) == {"gate-b"}


@pytest.mark.slow
def test_a_base_may_be_named_by_its_branch(adopter):
    git(adopter.top, "checkout", "--quiet", "main")
    release = adopter.change()
    git(adopter.top, "branch", "release")
    assert passes(gate(adopter, pull(adopter), base="release"))
    assert adopter.asked()[1] == release


@pytest.mark.slow
def test_a_pull_request_of_another_branch_than_the_default_is_held_against_that(adopter):
    adopter.branch("release")
    release = adopter.change()
    adopter.head = adopter.change()
    assert passes(gate(adopter, adopter.hub.pull_request(release, adopter.head)))
    assert adopter.asked()[1:3] == [release, adopter.head]


@pytest.mark.slow
def test_the_gate_of_itself(adopter):
    adopter.result(1)
    run = gate(adopter, adopter.hub.push(adopter.head, "topic"), self_test="true")
    assert fails(run)
    assert adopter.asked() == ["gate", "--self-test"]
    assert run.summary.startswith("```\n")


@pytest.mark.parametrize(
    ("paths", "everything", "measured"),
    [
        ("docs", "false", False),
        pytest.param("docs", "true", True, marks=pytest.mark.slow),
        pytest.param("a\nsample", "false", True, marks=pytest.mark.slow),
    ],
)
def test_a_pull_request_that_touches_no_path_passes_unmeasured(adopter, paths, everything, measured):
    adopter.head = adopter.change(SLOW)
    run = gate(adopter, pull(adopter), paths=paths, all=everything)
    assert passes(run), run.log
    assert (run.artifacts != {}) == measured == (adopter.folder / "asked").exists()
    assert ("there is nothing to measure" in run.summary) != measured


@pytest.mark.slow
def test_the_commit_that_a_long_branch_left_is_fetched(adopter):
    tree, tips = git(adopter.top, "rev-parse", "HEAD^{tree}"), [adopter.main, adopter.main]
    for number in range(120):
        place = number % 2
        tips[place] = git(adopter.top, "commit-tree", tree, "-p", tips[place], "-m", f"{number}")
    git(adopter.top, "branch", "--force", "main", tips[0])
    run = gate(adopter, adopter.hub.pull_request(*tips))
    assert passes(run), run.log
    assert adopter.asked()[1:3] == [adopter.main, tips[1]]


@pytest.mark.slow
def test_a_head_that_has_nothing_in_common_with_its_base(adopter):
    git(adopter.top, "checkout", "--quiet", "--orphan", "other")
    run = gate(adopter, adopter.hub.pull_request(adopter.main, commit(adopter.top, "other")))
    assert fails(run)
    assert "have no commit in common" in run.log


@pytest.mark.parametrize(
    ("event", "inputs", "said"),
    [
        ("pull_request_target", {}, "pull_request_target would give the measured code the rights of the repository"),
        ("workflow_run", {}, "workflow_run would give"),
        ("pull_request", {"report": "../gate"}, "the input report has to be"),
    ],
)
def test_what_would_be_unsafe_is_refused_before_anything_is_fetched(adopter, event, inputs, said):
    run = gate(adopter, Known(pull(adopter), event_name=event), **inputs)
    assert fails(run)
    assert f"::error::{said}" in run.log
    assert run.artifacts == {}
    assert not (adopter.folder / "asked").exists()


@pytest.mark.slow
def test_a_configuration_cannot_forge_outputs(adopter):
    content = json.loads((adopter.top / "perf/asv.conf.json").read_text())
    adopter.head = adopter.change(**{"perf__asv.conf.json": json.dumps(content | {"env_dir": "env\nconfiguration=x"})})
    run = gate(adopter, pull(adopter))
    assert fails(run)
    assert "has a path with a control character" in run.log


# The comment


def commented(adopter, server, head):
    """Run the workflow that comments after a run of a commit; what it printed."""
    event = RUN | {"head_sha": head}
    write(adopter.folder / "event.json", json.dumps({"workflow_run": event}))
    run = Run(adopter.hub, Known(event_name="workflow_run", event={"workflow_run": event}, token=comments.TOKEN))
    run.variables = comments.environment(server, adopter.folder / "event.json")
    del run.variables["GITHUB_TOKEN"]
    run.workflow(COMMENT)
    assert run.jobs == {"comment": ("comment", "success")}
    return run.log


def test_the_comment_of_a_report_and_of_one_that_a_newer_push_has_overtaken(adopter, github):
    adopter.result(1, REPORT)
    run = gate(adopter, pull(adopter))
    server = github(run.zipped())
    server.pulls = [Github.pull(head=Github.pull()["head"] | {"sha": adopter.head})]
    assert commented(adopter, server, adopter.head) == "commented on pull request 12\n"
    assert "### Speed: the gate fails: cells have regressed" in server.comments[0]["body"]
    newer = "1" * 40
    server.pulls = [Github.pull(head=Github.pull()["head"] | {"sha": newer})]
    assert "is not the head of its pull request" in commented(adopter, server, adopter.head)
    assert len(server.comments) == 1
    assert COMMENT["jobs"]["comment"]["permissions"] == {"actions": "read", "pull-requests": "write"}


def test_no_comment_is_asked_for_by_a_run_of_a_push(adopter):
    event = {"workflow_run": RUN | {"event": "push"}}
    run = Run(adopter.hub, Known(event_name="workflow_run", event=event, token=comments.TOKEN)).workflow(COMMENT)
    assert run.jobs == {"comment": ("comment", "skipped")}


# The instrument itself

CONTEXTS = {"github": Known(event={"labels": [{"name": "a"}, {"name": "B"}], "number": 0}), "inputs": Known(base="")}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("contains(github.event.labels.*.name, 'b')", True),
        ("contains(fromJSON('[\"x\"]'), 'y') || 'it''s'", "it's"),
        ("github.event.missing.deeper", None),
        ("!github.event.label && (inputs.base || 'x')", "x"),
        ("github.event.number == '' && 'A' == 'a' && null != 'x'", True),
    ],
)
def test_expressions(expression, value):
    assert evaluate(expression, CONTEXTS, {}) == value


@pytest.mark.parametrize(
    "expression", ["inputs.bose", "hashFiles('a')", "secrets.x", "1 < 2", "github.x", "'a", "(1", "1 2", "a["]
)
def test_an_expression_that_is_not_known_fails(expression):
    with pytest.raises(Unknown):
        evaluate(expression, CONTEXTS, {})


def test_a_step_after_a_failure_runs_only_if_it_asks_how_the_others_ended():
    functions = {"success": lambda: False, "cancelled": lambda: False}
    assert condition("${{ !cancelled() }}", {}, functions)
    assert not condition("${{ true }}", {}, functions)
