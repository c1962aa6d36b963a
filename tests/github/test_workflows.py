"""The workflows: their form and the rights they take."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from workflows import FILES, JOBS, WORKFLOWS, command, run, shell, steps


def tool(name):
    """A command of this environment; the test is skipped where it is missing."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed; it comes with the extra `test`")


def test_there_are_six():
    assert set(WORKFLOWS) == {"tests", "gate", "comment", "unaccept", "weekly", "release"}


def test_the_schema_of_workflows_holds():
    done = run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing():
    """Two findings are ignored: comment.yml and unaccept.yml run with a right to write, and each says why that is safe."""
    command = [tool("zizmor"), "--offline", "--no-config", "--strict-collection", "--no-progress", "--persona", "pedantic"]
    done = run(*command, *FILES)
    assert done.returncode == 0, done.stdout + done.stderr
    ignored = {path.stem: re.findall(r"(.*)# zizmor: (.*)", path.read_text(encoding="utf-8")) for path in FILES}
    (comment,), (unaccept,) = ignored.pop("comment"), ignored.pop("unaccept")
    assert not any(ignored.values())
    for (trigger, said), name in ((comment, "workflow_run"), (unaccept, "pull_request_target")):
        assert trigger.strip() == f"{name}:"
        assert re.match(r"ignore\[dangerous-triggers\] \w+", said)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_with_their_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used or path.stem == "unaccept"
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+(, .*)?", line), line


def test_an_action_has_one_version_everywhere():
    pins = {pin for path in FILES for pin in re.findall(r"uses: (\S+@\S+)", path.read_text(encoding="utf-8"))}
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_no_rights_of_its_own_and_a_concurrency_group(name):
    assert WORKFLOWS[name]["permissions"] == {}
    assert WORKFLOWS[name]["concurrency"]["group"]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_ends_by_itself_and_takes_the_least_rights(name):
    writing = {
        "comment.comment": {"pull-requests"},
        "unaccept.unaccept": {"pull-requests"},
        "weekly.dashboard": {"pages", "id-token"},
        "weekly.keep": {"contents"},
        "release.publish": {"id-token"},
    }
    job = JOBS[name]
    assert job["timeout-minutes"] <= 360
    assert {right for right, access in job["permissions"].items() if access == "write"} == writing.get(name, set())


@pytest.mark.parametrize("name", JOBS)
def test_a_job_keeps_no_token_and_no_expression_reaches_a_shell(name):
    for step in JOBS[name]["steps"]:
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", JOBS)
def test_what_may_write_runs_nothing_of_a_pull_request(name):
    """A job that may write checks out the default branch, which is what checkout does unless told otherwise, or nothing."""
    if "write" not in JOBS[name]["permissions"].values():
        return
    assert "pull_request" not in WORKFLOWS[name.partition(".")[0]][True]  # YAML reads `on` as true
    assert not any("ref" in step.get("with", {}) for step in JOBS[name]["steps"])
    assert not any("make " in step.get("run", "") for step in JOBS[name]["steps"])
    if "pull_request_target" in WORKFLOWS[name.partition(".")[0]][True]:
        assert not any("uses" in step for step in JOBS[name]["steps"])


def test_the_gates_job_installs_nothing_of_the_head():
    """What judges is the base's: the head's Makefile and environment are not used, and modules of its folder not imported."""
    scripts = "\n".join(step.get("run", "") for step in steps("gate.gate"))
    assert re.findall(r"^.*\bmake\b.*$", scripts, re.MULTILINE) == ['make -C "$RUNNER_TEMP/tool" .venv/installed']
    assert set(re.findall(r"\S*\.venv/\S*", scripts)) == {".venv/installed", '"$RUNNER_TEMP/tool/.venv/bin/convbench"'}
    (gate,) = [step for step in steps("gate.gate") if step.get("name") == "Gate"]
    assert gate["env"]["PYTHONSAFEPATH"] == "1"


def test_the_label_counts_in_the_run_that_it_started():
    """A later push has the label too, and another commit."""
    (gate,) = [step for step in steps("gate.gate") if step.get("name") == "Gate"]
    started = "github.event.action == 'labeled' && github.event.label.name == 'accept-regression'"
    assert gate["env"]["ACCEPTED"] == f"${{{{ {started} }}}}"
    assert gate["env"]["LABELLED"] == "${{ contains(github.event.pull_request.labels.*.name, 'accept-regression') }}"
    assert "accept-regression" not in json.dumps([step for step in steps("gate.gate") if step is not gate])


def test_a_push_takes_the_label_off(tmp_path):
    job = JOBS["unaccept.unaccept"]
    assert WORKFLOWS["unaccept"][True] == {"pull_request_target": {"types": ["synchronize"]}}
    assert job["if"] == "${{ contains(github.event.pull_request.labels.*.name, 'accept-regression') }}"
    (step,) = job["steps"]
    assert step["env"] == {"GH_TOKEN": "${{ github.token }}", "NUMBER": "${{ github.event.pull_request.number }}"}
    command(tmp_path / "bin/gh", 'printf "%s\\n" "$@"')
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "octo-org/convbench"}
    done = shell("unaccept.unaccept", step["name"], tmp_path, NUMBER="7", **environment)
    assert done.returncode == 0, done.stderr
    path = "repos/octo-org/convbench/issues/7/labels/accept-regression"
    assert done.stdout.split() == ["api", "--silent", "--method", "DELETE", path]


def test_the_tests_run_on_all_supported_pythons():
    assert JOBS["tests.tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert [step["run"] for step in steps("tests.tests") if "make" in step.get("run", "")] == [
        "make lint",
        "make smoke",
        "make test-all",
    ]
