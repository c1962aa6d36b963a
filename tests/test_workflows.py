"""The workflows: their form, the rights they take, and the shell in them."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, and the workflows cannot be read without it")

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
JOBS = {f"{file}.{name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()}


def steps(job):
    return JOBS[job]["steps"]


def tool(name):
    """A command of this environment; the test is skipped where it is missing."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed; it comes with the extra `test`")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


# Their form


def test_there_are_four():
    assert set(WORKFLOWS) == {"tests", "gate", "comment", "weekly"}


def test_the_schema_of_workflows_holds():
    done = run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing():
    """One finding is taken: comment.yml has to be a workflow_run, and says why that is safe."""
    command = [tool("zizmor"), "--offline", "--no-config", "--strict-collection", "--no-progress", "--persona", "pedantic"]
    done = run(*command, *FILES)
    assert done.returncode == 0, done.stdout + done.stderr
    ignored = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines() if "zizmor:" in line]
    assert len(ignored) == 1
    assert "workflow_run:" in ignored[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_with_their_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
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
        "weekly.dashboard": {"pages", "id-token"},
        "weekly.keep": {"contents"},
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


def test_the_tests_run_on_all_supported_pythons():
    assert JOBS["tests.tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert [step["run"] for step in steps("tests.tests") if "make" in step.get("run", "")] == [
        "make lint",
        "make smoke",
        "make test",
    ]


# The shell in them, run as GitHub runs it


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    done = run("git", "-C", folder, *names, *arguments, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder, path):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(path)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", path)
    return git(folder, "rev-parse", "HEAD")


def shell(job, name, folder, **environment):
    """Run the step of that name; what it printed, its outputs and its part of the summary."""
    (script,) = [step["run"] for step in steps(job) if step.get("name") == name]
    files = {key: folder / key.lower() for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "RUNNER_TEMP": str(folder), **environment}
    environment |= {key: str(file) for key, file in files.items()}
    done = run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, cwd=folder, env=environment)
    done.outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    done.summary = files["GITHUB_STEP_SUMMARY"].read_text()
    return done


def command(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def history(tmp_path):
    """Main went on after the branch had left it, and touched impls/."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    left = commit(tmp_path, "README")
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    head = commit(tmp_path, "docs/text")
    git(tmp_path, "switch", "--quiet", "main")
    return tmp_path, left, commit(tmp_path, "impls/theirs"), head


@pytest.mark.parametrize("labelled", ["true", "false"])
def test_without_the_label_what_main_did_to_impls_asks_for_no_gate(history, labelled):
    folder, left, main, head = history
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE=main, HEAD=head, LABELLED=labelled)
    assert done.returncode == 0, done.stderr
    assert done.outputs == {"base": left, "wanted": labelled}
    assert ("nothing to measure" in done.summary) == (labelled == "false")


def test_a_branch_that_touches_impls_asks_for_the_gate(history):
    folder, left, main, _ = history
    git(folder, "switch", "--quiet", "branch")
    head = commit(folder, "impls/ours")
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE=main, HEAD=head, LABELLED="false")
    assert done.outputs == {"base": left, "wanted": "true"}


def test_the_gate_is_not_passed_by_a_base_that_git_does_not_know(history):
    folder, *_, head = history
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE="0" * 40, HEAD=head, LABELLED="false")
    assert done.returncode


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("accepted", ["true", "false"])
def test_the_gate_ends_as_convbench_does_and_its_report_is_kept(tmp_path, status, accepted):
    command(
        tmp_path / ".venv/bin/convbench",
        f'printf "%s\\n" "$@" > asked\necho "| cell |" > "$RUNNER_TEMP/gate/gate.md"\nexit {status}',
    )
    done = shell("gate.gate", "Gate", tmp_path, BASE="b" * 40, HEAD="a" * 40, NUMBER="7", ACCEPTED=accepted)
    assert done.returncode == status
    assert done.summary == "| cell |\n"
    assert (tmp_path / "gate/number").read_text() == "7\n"
    files = ["--json", f"{tmp_path}/gate/gate.json", "--markdown", f"{tmp_path}/gate/gate.md"]
    accepting = ["--accept", "*", "--reason", "label accept-regression"] if accepted == "true" else []
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[: 3 + len(accepting)] == ["gate", "b" * 40, "a" * 40, *accepting]
    assert asked[-4:] == files
    assert patterns(asked)


def patterns(command):
    """The expressions of --bench in a command."""
    return [command[place + 1] for place, word in enumerate(command) if word == "--bench"]


def test_the_gate_measures_cells_that_there_are(tmp_path):
    """An expression that no longer matches anything would leave its cells out in silence."""
    command(tmp_path / ".venv/bin/convbench", 'printf "%s\\n" "$@" > asked')
    shell("gate.gate", "Gate", tmp_path, BASE="b", HEAD="a", NUMBER="7", ACCEPTED="false")
    known = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    cells = [
        f"{name}({', '.join(params)})"
        for name, benchmark in known.items()
        if name != "version"
        for params in itertools.product(*benchmark["params"])
    ]
    found = [
        [cell for cell in cells if re.search(pattern, cell)]
        for pattern in patterns((tmp_path / "asked").read_text().splitlines())
    ]
    assert found
    assert all(found)
    assert sum(map(len, found)) < 500


def test_a_gate_that_writes_no_report_is_reported_as_that(tmp_path):
    command(tmp_path / ".venv/bin/convbench", "exit 4")
    done = shell("gate.gate", "Gate", tmp_path, BASE="b" * 40, HEAD="a" * 40, NUMBER="7", ACCEPTED="false")
    assert done.returncode == 4
    assert "ended with status 4 and wrote no report" in done.summary == (tmp_path / "gate/gate.md").read_text()


@pytest.fixture
def remote(tmp_path):
    """A repository to push to, and a week's results."""
    folder = tmp_path / "remote" / "octo-org" / "convbench"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch", "main")
    work = tmp_path / "work"
    git(tmp_path, "clone", "--quiet", folder, work)
    git(work, "switch", "--quiet", "--create", "main")
    commit(work, "README")
    git(work, "push", "--quiet", "origin", "main")
    command(tmp_path / "bin/gh", "true")
    return folder


def keep(folder, remote, **results):
    """Run the job that pushes, in a fresh folder."""
    folder.mkdir()
    for machine, content in results.items():
        (folder / "new" / machine).mkdir(parents=True)
        (folder / "new" / machine / "results.json").write_text(content)
    there = {"GITHUB_SERVER_URL": f"file://{remote.parents[1]}", "GITHUB_REPOSITORY": "octo-org/convbench"}
    path = f"{remote.parents[2] / 'bin'}:{os.environ['PATH']}"
    return shell("weekly.keep", "Commit to the branch of results", folder, **there, PATH=path, GITHUB_SHA="5" * 40)


def test_results_go_to_a_branch_without_a_history_and_main_stays(remote, tmp_path):
    main = git(remote, "rev-parse", "main")
    assert keep(tmp_path / "first", remote, epyc="1").returncode == 0
    assert git(remote, "rev-list", "--count", "results") == "1"
    done = keep(tmp_path / "second", remote, epyc="2", xeon="3")
    assert done.returncode == 0, done.stderr
    assert git(remote, "log", "--format=%s", "results").splitlines() == ["Results of 55555555"] * 2
    assert git(remote, "ls-tree", "-r", "--name-only", "results").splitlines() == ["epyc/results.json", "xeon/results.json"]
    assert git(remote, "show", "results:epyc/results.json") == "2"
    assert "nothing new" in keep(tmp_path / "third", remote, epyc="2").stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)").splitlines() == ["main", "results"]
    assert git(remote, "rev-parse", "main") == main


def test_where_the_remote_cannot_be_asked_no_branch_is_begun(remote, tmp_path):
    shutil.rmtree(remote)
    assert keep(tmp_path / "first", remote, epyc="1").returncode not in (0, 2)


def test_results_of_earlier_weeks_do_not_replace_those_of_main(remote, tmp_path):
    keep(tmp_path / "first", remote, old="branch", both="branch")
    work = tmp_path / "work"
    git(work, "fetch", "--quiet", "origin")
    (work / "results/both").mkdir(parents=True)
    (work / "results/both/results.json").write_text("main")
    done = shell("weekly.measure", "Add the results of earlier weeks", work)
    assert done.returncode == 0, done.stderr
    assert {path.parent.name: path.read_text() for path in work.glob("results/*/*")} == {"old": "branch", "both": "main"}
