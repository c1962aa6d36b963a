"""Workflows and composite actions run as GitHub runs them, with a remote repository, caches and artifacts of our own."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from expressions import Known, condition, filled, text
from repositories import git
from workflows import command

ROOT = Path(__file__).parents[2]
OURS = {"./": ROOT, "./comment": ROOT / "comment", "OWNER/convbench": ROOT, "OWNER/convbench/comment": ROOT / "comment"}
TOKEN = "the token"
REPOSITORY = "octo-org/sample"
RUNNER = {"os": "Linux", "arch": "X64"}
# In place of setup-python's: makes virtual environments of the interpreter that runs the tests, and installs nothing there.
PYTHON = """#!/bin/bash
set -e
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
printf '#!/bin/bash\\n[ "$2" != pip ] || {{ test -f "$5/pyproject.toml"; exit; }}\\nexec {python} "$@"\\n' > "$3/bin/python"
printf '#!/bin/bash\\n%s\\n' {convbench} > "$3/bin/convbench"
chmod +x "$3/bin/"*
"""
REAL = f'exec {sys.executable} -P -m convbench "$@"'


@dataclass
class Hub:
    """A GitHub stand-in: a repository, and what its runs leave. convbench: the installed command, a line of bash."""

    folder: Path
    convbench: str = REAL
    caches: dict = field(default_factory=dict)

    @property
    def remote(self):
        return self.folder / "remote"

    def start(self):
        """The repository, whose work tree is where its commits are made."""
        git(self.folder, "init", "--quiet", "--initial-branch", "main", "remote")
        git(self.remote, "config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub has it
        return self

    def merged(self, base, head):
        """GitHub's checkout of a pull request: a merge commit that is in no branch."""
        tree = git(self.remote, "rev-parse", f"{head}^{{tree}}")
        return git(self.remote, "commit-tree", tree, "-p", base, "-p", head, "-m", "merged")

    def pull_request(self, base, head, action="synchronize", label=None, labels=(), branch="topic", fork="hubot/sample"):
        """The context of a run of a pull request."""
        repository = {"full_name": REPOSITORY, "default_branch": "main"}
        pull = {
            "number": 12,
            "base": {"sha": base, "ref": "main"},
            "head": {"sha": head, "ref": branch, "repo": {"full_name": fork}},
            "labels": [{"name": name} for name in labels],
        }
        event = {"action": action, "number": 12, "pull_request": pull, "repository": repository}
        if label:
            event["label"] = {"name": label}
        return self.context("pull_request", event, self.merged(base, head), "refs/pull/12/merge", branch)

    def push(self, commit, branch="main"):
        """The context of a run of a push."""
        event = {"after": commit, "repository": {"full_name": REPOSITORY, "default_branch": "main"}}
        return self.context("push", event, commit, f"refs/heads/{branch}", "")

    def context(self, name, event, sha, ref, branch):
        return Known(
            event_name=name, event=event, sha=sha, ref=ref, head_ref=branch, token=TOKEN, repository=REPOSITORY, run_id=7
        )


@dataclass
class Run:
    """One run of a workflow.

    jobs: by their keys, what they are called and how they ended. artifacts: the files of each, by name.
    judged_by: the commits that were checked out where an action of the checkout was used. commands: scripts of sh, by name.
    """

    hub: Hub
    github: dict
    variables: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)
    artifacts: dict = field(default_factory=dict)
    log: str = ""
    judged_by: list = field(default_factory=list)
    commands: dict = field(default_factory=dict)

    def __post_init__(self):
        self.folder = self.hub.folder / "runner"  # of one name for all runs, as at GitHub
        self.temp, self.workspace, self.tools = (self.folder / name for name in ("temp", "work", "tools"))
        self.event = self.folder / "event.json"

    def workflow(self, content, inputs=None):
        """Run a workflow's jobs in their order. inputs: of our action, in place of the file's."""
        for name, job in content["jobs"].items():
            others = [job["needs"]] if "needs" in job else []
            self.job(name, job, {other: Known(result=self.jobs[other][1]) for other in others}, inputs or {})
        return self

    def job(self, name, job, needs, inputs):
        contexts = {"github": self.github, "needs": Known(needs), "vars": {}}
        done = all(each["result"] == "success" for each in needs.values())
        functions = {"success": lambda: done, "cancelled": lambda: False, "failure": lambda: not done, "always": lambda: True}
        shown = text(filled(job["name"], contexts | {"matrix": {}}, functions))
        if not condition(job.get("if", "true"), contexts, functions):
            self.jobs[name] = (shown, "skipped")
            return
        matrix = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        results = []
        for place, entry in enumerate(matrix):
            shutil.rmtree(self.folder, ignore_errors=True)
            for folder in (self.temp, self.workspace, self.tools):
                folder.mkdir(parents=True)
            for program, script in self.commands.items():
                command(self.tools / program, script)
            self.event.write_text(json.dumps(self.github["event"]))
            inner = contexts | {"matrix": Known(entry), "strategy": Known({"job-index": place}), "runner": self.runner}
            given = {key: text(filled(value, inner, functions)) for key, value in job.get("env", {}).items()}
            self.variables |= given
            results.append(Steps(self, inner, job["steps"], self.workspace, ROOT, inputs).run())
        self.jobs[name] = (shown, "success" if all(results) else "failure")

    @property
    def runner(self):
        return Known(RUNNER, temp=str(self.temp))

    @property
    def summary(self):
        path = self.folder / "summary"
        return path.read_text() if path.exists() else ""

    def zipped(self, name="gate"):
        """An artifact as the API gives it."""
        path = self.hub.folder / f"{name}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, content in self.artifacts[name].items():
                archive.writestr(file, content)
        return path.read_bytes()


@dataclass
class Steps:
    """The steps of a job or of a composite action, which lies in `home`."""

    of: Run
    contexts: dict
    steps: list
    folder: Path
    home: Path
    inputs: dict

    def run(self):
        """Whether they succeed."""
        self.succeeded = True
        known = self.contexts["steps"] = Known()
        functions = {
            "success": lambda: self.succeeded,
            "failure": lambda: not self.succeeded,
            "cancelled": lambda: False,
            "always": lambda: True,
        }
        for step in self.steps:
            assert set(step) <= {"name", "id", "if", "uses", "with", "run", "shell", "env", "working-directory"}, step
            # Outputs of a step that was left out, or failed on its way, are null.
            known[step.get("id")] = record = Known(outputs={}, outcome="skipped")
            if not condition(step.get("if", "true"), self.contexts, functions):
                continue

            def values(mapping):
                return {key: text(filled(value, self.contexts, functions)) for key, value in mapping.items()}

            environment = values(step.get("env", {}))
            if "uses" in step:
                passed, outputs = self.use(step["uses"].partition("@")[0], values(step.get("with", {})))
            else:
                folder = self.folder / text(filled(step.get("working-directory", "."), self.contexts, functions))
                passed, outputs = self.shell(step["run"], folder, environment)
            record.update(outputs=Known(outputs) if passed else outputs, outcome="success" if passed else "failure")
            self.succeeded = self.succeeded and passed
        return self.succeeded

    def shell(self, script, folder, environment):
        assert "${{" not in script
        outputs = self.of.folder / "output"
        outputs.write_text("")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "GIT_"))},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH": f"{self.of.tools}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.of.temp),
            "GITHUB_ACTION_PATH": str(self.home),
            "GITHUB_EVENT_PATH": str(self.of.event),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(self.of.folder / "summary"),
            **self.of.variables,
            **environment,
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False)
        self.of.log += done.stdout + done.stderr
        return done.returncode == 0, dict(line.split("=", 1) for line in outputs.read_text().splitlines())

    def use(self, name, given):
        if name in OURS:
            if name.startswith("./"):
                self.of.judged_by.append(git(self.folder, "rev-parse", "HEAD"))
            content = yaml.safe_load((OURS[name] / "action.yml").read_text(encoding="utf-8"))
            declared = {key: one.get("default", "") for key, one in content.get("inputs", {}).items()}
            given = given | self.inputs
            assert given.keys() <= declared.keys()
            inner = self.contexts | {"inputs": Known({key: text(value) for key, value in (declared | given).items()})}
            return Steps(self.of, inner, content["runs"]["steps"], self.folder, OURS[name], {}).run(), {}
        return getattr(self, name.replace("actions/", "").replace("/", "_").replace("-", "_"))(
            **{key.replace("-", "_"): value for key, value in given.items()}
        )

    def checkout(self, ref="", persist_credentials="true", fetch_depth="1", sparse_checkout=""):
        git(self.folder, "init", "--quiet", ".")
        git(self.folder, "remote", "add", "origin", f"file://{self.of.hub.remote}")
        depth = [f"--depth={fetch_depth}"] if fetch_depth != "0" else []
        git(self.folder, "fetch", "--quiet", *depth, "origin", ref or self.of.github["sha"])
        git(self.folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return True, {}

    def setup_python(self, python_version):
        path = self.of.tools / "python"
        path.write_text(PYTHON.format(python=sys.executable, convbench=shlex.quote(self.of.hub.convbench)))
        path.chmod(0o755)
        return True, {"python-version": f"{python_version}.9"}

    def cache_restore(self, path, key, restore_keys=""):
        caches = self.of.hub.caches
        hits = (
            [key] if key in caches else [name for name in reversed(caches) if restore_keys and name.startswith(restore_keys)]
        )
        if hits and caches[hits[0]][0] == path:
            shutil.copytree(caches[hits[0]][1], path, symlinks=True, dirs_exist_ok=True)
        return True, {}

    def cache_save(self, path, key):
        kept = self.of.hub.folder / "caches" / str(len(self.of.hub.caches))
        shutil.copytree(path, kept, symlinks=True)
        self.of.hub.caches[key] = (path, kept)
        return True, {}

    def upload_artifact(self, name, path, if_no_files_found, retention_days):
        files = {file.name: file.read_text() for file in Path(path).iterdir()}
        assert name not in self.of.artifacts  # a second of one name is refused
        self.of.artifacts[name] = files
        return bool(files), {}
