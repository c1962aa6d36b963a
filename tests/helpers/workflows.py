"""The workflows, and the shell in them run as GitHub runs it."""

import os
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, and the workflows cannot be read without it")

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / "convbench" / "adopt").glob("*.yml"))  # of other projects' workflows
ACTIONS = [ROOT / "action.yml", ROOT / "comment" / "action.yml"]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
JOBS = {f"{file}.{name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()}


def steps(job):
    return JOBS[job]["steps"]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


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


def write(path, content="1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
