"""The workflows: their form, the rights they take, and the shell in them."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, and the workflows cannot be read without it")

ROOT = Path(__file__).parents[2]
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


def test_there_are_five():
    assert set(WORKFLOWS) == {"tests", "gate", "comment", "unaccept", "weekly"}


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


def test_the_gate_that_is_installed_is_the_bases(history):
    folder, _, main, head = history
    git(folder, "switch", "--quiet", "branch")
    command(folder / "bin/make", 'printf "%s\\n" "$PWD" "$@" > "$RUNNER_TEMP/made"')
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = shell("gate.gate", "Install", folder, BASE=main, PATH=path)
    assert done.returncode == 0, done.stderr
    assert (folder / "made").read_text().splitlines() == [str(folder), "-C", str(folder / "tool"), ".venv/installed"]
    assert git(folder / "tool", "rev-parse", "HEAD") == main
    assert git(folder, "rev-parse", "HEAD") == head


def gate(folder, script, accepted="false", labelled="false"):
    """Run the gate's step with a convbench that is a script: what it was called with stands in `asked`."""
    command(folder / "tool/.venv/bin/convbench", f'printf "%s\\n" "$@" > asked\n{script}')
    asked = {"BASE": "b" * 40, "HEAD": "a" * 40, "NUMBER": "7", "ACCEPTED": accepted, "LABELLED": labelled}
    return shell("gate.gate", "Gate", folder, **asked)


REPORTING = 'echo "| cell |" > "$RUNNER_TEMP/gate/gate.md"'


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("accepted", ["true", "false"])
def test_the_gate_ends_as_convbench_does_and_its_report_is_kept(tmp_path, status, accepted):
    done = gate(tmp_path, f"{REPORTING}\nexit {status}", accepted, labelled=accepted)
    assert done.returncode == status
    assert done.summary == "| cell |\n"
    assert (tmp_path / "gate/number").read_text() == "7\n"
    files = ["--json", f"{tmp_path}/gate/gate.json", "--markdown", f"{tmp_path}/gate/gate.md"]
    accepting = ["--accept", "*", "--reason", "label accept-regression"] if accepted == "true" else []
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[: 3 + len(accepting)] == ["gate", "b" * 40, "a" * 40, *accepting]
    assert asked[asked.index("--accept-file") + 1] == f"{tmp_path}/tool/convbench-accept.toml"
    assert asked[-4:] == files
    assert patterns(asked)


def test_a_label_of_an_earlier_commit_accepts_nothing_and_that_is_said(tmp_path):
    done = gate(tmp_path, f"{REPORTING}\nexit 1", accepted="false", labelled="true")
    assert done.returncode == 1
    assert "--accept" not in (tmp_path / "asked").read_text().splitlines()
    assert done.summary.startswith("| cell |\n")
    assert "`accept-regression` does not count for this commit" in done.summary


def patterns(command):
    """The expressions of --bench in a command."""
    return [command[place + 1] for place, word in enumerate(command) if word == "--bench"]


def test_the_gate_measures_cells_that_there_are(tmp_path):
    """An expression that no longer matches anything would leave its cells out in silence."""
    gate(tmp_path, REPORTING)
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
    done = gate(tmp_path, "exit 4")
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


def keep(folder, remote, fill=lambda new: None, **machines):
    """Run the job that pushes, in a fresh folder. machines: content of a machine's file; fill: adds more to the artifact."""
    folder.mkdir()
    for machine, content in machines.items():
        write(folder / "new" / machine / "machine.json", content)
    fill(folder / "new")
    there = {"GITHUB_SERVER_URL": f"file://{remote.parents[1]}", "GITHUB_REPOSITORY": "octo-org/convbench"}
    path = f"{remote.parents[2] / 'bin'}:{os.environ['PATH']}"
    return shell("weekly.keep", "Commit to the branch of results", folder, **there, PATH=path, GITHUB_SHA="5" * 40)


def write(path, content="1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def kept(remote):
    """The files of the branch `results`: {path: mode}."""
    lines = git(remote, "ls-tree", "-r", "-z", "results").split("\0")
    return {path: about.split()[0] for about, _, path in (line.partition("\t") for line in lines if line)}


def test_results_go_to_a_branch_without_a_history_and_main_stays(remote, tmp_path):
    main = git(remote, "rev-parse", "main")
    assert keep(tmp_path / "first", remote, epyc="1").returncode == 0
    assert git(remote, "rev-list", "--count", "results") == "1"
    done = keep(tmp_path / "second", remote, epyc="2", xeon="3")
    assert done.returncode == 0, done.stderr
    assert git(remote, "log", "--format=%s", "results").splitlines() == ["Results of 55555555"] * 2
    assert list(kept(remote)) == ["epyc/machine.json", "xeon/machine.json"]
    assert git(remote, "show", "results:epyc/machine.json") == "2"
    assert "nothing new" in keep(tmp_path / "third", remote, epyc="2").stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)").splitlines() == ["main", "results"]
    assert git(remote, "rev-parse", "main") == main


def test_where_the_remote_cannot_be_asked_no_branch_is_begun(remote, tmp_path):
    shutil.rmtree(remote)
    assert keep(tmp_path / "first", remote, epyc="1").returncode not in (0, 2)


def test_the_job_that_pushes_ends_its_file_with_its_script():
    """It can be run by itself: the whole shell is there, and nothing of it comes from the workflow's environment."""
    text = (ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8")
    (step,) = [step for step in steps("weekly.keep") if "run" in step]
    assert textwrap.dedent(text[text.index("          gh auth setup-git") :]) == step["run"]
    assert step["env"].keys() == {"GH_TOKEN"}


COMMIT = "12345678"


def test_every_kind_of_result_is_kept(remote, tmp_path):
    names = {
        *(path.removeprefix("results/") for path in git(ROOT, "ls-files", "results").splitlines()),
        "epyc-2cores/unbuilt.jsonl",
        f"epyc-2cores/{COMMIT}-env-0f343b0931126a20f133d67c2b018a3b.json",  # as asv shortens a long name
        f"epyc-2cores/{COMMIT}-virtualenv-py3.13-numpy_=2.0-OMP_NUM_THREADS2.cells.jsonl",
    }
    done = keep(tmp_path / "first", remote, lambda new: [write(new / path, path) for path in names])
    assert done.returncode == 0, done.stderr
    assert set(kept(remote)) == names
    assert "passed over" not in done.stdout


GOOD = f"epyc-2cores/{COMMIT}-virtualenv-py3.11.json"
STRANGE = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".gitattributes",
    ".gitmodules",
    ".github/workflows/pages.yml",
    "Makefile",
    "index.html",
    "machine.json",
    "benchmarks.json.sh",
    "nested/benchmarks.json",
    "epyc-2cores/.gitattributes",
    "epyc-2cores/.git/config",
    "epyc-2cores/12345678.json",
    "epyc-2cores/1234567-virtualenv-py3.11.json",
    "epyc-2cores/ABCDEF01-virtualenv-py3.11.json",
    "epyc-2cores/12345678-virtualenv-py3.11.json.new",
    "epyc-2cores/12345678-virtualenv py3.11.json",
    "epyc-2cores/12345678-virtualenv-py3.11\n.json",
    "epyc-2cores/12345678-\x1b[2Jpy3.11.json",
    "epyc-2cores/12345678-py3.11.json\nepyc-2cores/machine.json",
    "epyc-2cores/12345678-é.json",
    "epyc-2cores/speed/12345678.json",
    "epyc-2cores/speed/deep/12345678.jsonl",
    "epyc-2cores/other/12345678.jsonl",
    "epyc-2cores/deep/epyc-2cores/machine.json",
    "EPYC/machine.json",
    "épyc/machine.json",
    "-epyc/machine.json",
    "epyc 2/machine.json",
    "$(id)/machine.json",
    "\n::set-env name=PATH::x/machine.json",
    "::stop-commands::x",
]


def test_what_is_no_result_is_passed_over_and_counted(remote, tmp_path):
    def fill(new):
        for path in [GOOD, *STRANGE]:
            write(new / path)
        (new / GOOD).chmod(0o755)
        (new / "epyc-2cores/machine.json").symlink_to("/etc/passwd")
        (new / "linked").symlink_to("epyc-2cores")
        os.mkfifo(new / "epyc-2cores/unbuilt.jsonl")
        with (new / f"epyc-2cores/{COMMIT}-large.json").open("w") as file:
            file.truncate(100 << 20)

    done = keep(tmp_path / "first", remote, fill)
    assert done.returncode == 0, done.stderr
    assert kept(remote) == {GOOD: "100644"}
    assert f"{len(STRANGE) + 4} files of the artifact are not results and were passed over" in done.stdout
    for word in ("::", "\x1b", "epyc"):
        assert word not in done.stdout


def test_an_artifact_is_no_repository(remote, tmp_path):
    """Its .git/config would name a program that git starts, with the token in its environment."""

    def fill(new):
        config = f'[core]\n\tfsmonitor = "touch {tmp_path}/started; false"\n[remote "origin"]\n\turl = {remote}\n'
        write(new / ".git/config", config)
        write(new / ".gitattributes", "* filter=x\n")

    assert keep(tmp_path / "first", remote, fill, epyc="1").returncode == 0
    assert not (tmp_path / "started").exists()
    assert list(kept(remote)) == ["epyc/machine.json"]


def test_an_artifact_that_is_a_link_holds_nothing(remote, tmp_path):
    write(tmp_path / "elsewhere/epyc/machine.json")
    done = keep(tmp_path / "first", remote, lambda new: new.symlink_to(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    assert "nothing new" in done.stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)") == "main"


@pytest.fixture
def branch(remote, tmp_path):
    """A branch of results that an earlier week's artifact could write to: it has links and more than results."""
    work = tmp_path / "poisoned"
    git(tmp_path, "clone", "--quiet", remote, work)
    git(work, "switch", "--quiet", "--orphan", "results")
    write(work / "old/machine.json", "branch")
    write(work / "both/machine.json", "branch")
    for path in STRANGE:
        if ".git/" not in path and not path.endswith(".gitmodules"):
            write(work / path)
    (tmp_path / "outside").write_text("untouched")
    (work / "epyc").mkdir()
    (work / "epyc/machine.json").symlink_to(tmp_path / "outside")
    (work / "linked").symlink_to(tmp_path)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "poisoned")
    git(work, "push", "--quiet", "origin", "results")
    return work


@pytest.mark.parametrize("machine", ["epyc", "linked"])
def test_links_on_the_branch_lead_nowhere(branch, remote, tmp_path, machine):
    """A link to a file, and one to a folder: what is kept replaces them, and is not written to where they point."""
    done = keep(tmp_path / "first", remote, **{machine: "new"})
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not (tmp_path / "machine.json").exists()
    assert done.returncode == 0, done.stderr
    assert kept(remote)[f"{machine}/machine.json"] == kept(remote)["old/machine.json"] == "100644"
    assert git(remote, "show", f"results:{machine}/machine.json") == "new"


def test_results_of_earlier_weeks_do_not_replace_those_of_main(branch, remote, tmp_path):
    work = tmp_path / "work"
    git(work, "fetch", "--quiet", "origin")
    write(work / "results/both/machine.json", "main")
    done = shell("weekly.measure", "Add the results of earlier weeks", work)
    assert done.returncode == 0, done.stderr
    found = {
        str(path.relative_to(work / "results")): path.read_text() for path in work.glob("results/**/*") if path.is_file()
    }
    assert found == {"old/machine.json": "branch", "both/machine.json": "main"}
    assert not any(path.is_symlink() for path in work.glob("results/**/*"))


def test_without_a_branch_of_results_there_is_nothing_to_add(remote, tmp_path):
    assert shell("weekly.measure", "Add the results of earlier weeks", tmp_path / "work").returncode == 0


def test_both_jobs_know_the_same_names_of_results():
    scripts = [
        step["run"] for job in ("weekly.measure", "weekly.keep") for step in steps(job) if "machine=" in step.get("run", "")
    ]
    (first,), (second,) = (re.findall(r"^ *machine=(?:.*\n)*?.*results=.*$", script, re.MULTILINE) for script in scripts)
    assert textwrap.dedent(first) == textwrap.dedent(second)
