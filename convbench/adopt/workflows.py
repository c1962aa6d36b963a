"""Writes the two workflows of the gate into another project's checkout."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.resources
import json
import re
from pathlib import Path

import click

from convbench.asv import git
from convbench.asv.project import Project

ACTION = re.compile(r"[\w.-]+/[\w.-]+@[\w./-]+")
INSTALLED = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?")
OLDEST = (3, 11)  # on which convbench runs
DEFAULT = "3.11"  # of the action
# The environment types that need nothing beyond a GitHub runner's tools.
READY = ("virtualenv",)


def installed_from() -> str | None:
    """The action of the installed commit, OWNER/REPOSITORY@COMMIT; None if pip has not fetched it from GitHub."""
    text = importlib.metadata.distribution("convbench").read_text("direct_url.json") or "{}"
    with contextlib.suppress(ValueError, KeyError, TypeError):
        content = json.loads(text)
        if found := INSTALLED.fullmatch(content["url"]):
            return f"{found[1]}@{content['vcs_info']['commit_id']}"
    return None


def write(project: Project, config: Path | None, action: str) -> list[Path]:
    """Write both files and return their paths. Raises ClickException if one is there already, or they could not work.

    config: the configuration, if given.
    """
    if not ACTION.fullmatch(action):
        raise click.UsageError(f"{action!r} is not the location of an action, such as OWNER/convbench@COMMIT")
    if not git.holds(project.root):
        raise click.ClickException(f"{project.root} is not in a git repository: run git init")
    top = Path(project.suite_git("rev-parse", "--show-toplevel"))
    if project.is_mirror or Path(project.git("rev-parse", "--show-toplevel")) != top:
        raise click.ClickException(
            f"{project.file.name} measures {project.conf.repo}, another repository than the one it lies in, and a gate "
            "measures the pull requests of its own: keep the suite in the repository that it measures"
        )
    inputs = _inputs(project, config.resolve().relative_to(top) if config else None)
    folder = top / ".github" / "workflows"
    texts = {folder / f"{name}.yml": _template(name, action) for name in ("gate", "comment")}
    texts[folder / "gate.yml"] = texts[folder / "gate.yml"].replace("[main]", f"[{json.dumps(_branch(project))}]")
    if inputs:
        lines = [f"          {name}: {json.dumps(value)}\n" for name, value in inputs.items()]
        texts[folder / "gate.yml"] += "        with:\n" + "".join(lines)
    if there := [path for path in texts if path.exists() or path.is_symlink()]:
        raise click.ClickException(f"{there[0].relative_to(top)} exists and is not replaced: move it away or edit it")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _template(name: str, action: str) -> str:
    place, commit = action.split("@")
    text = importlib.resources.files("convbench.adopt").joinpath(f"{name}.yml").read_text(encoding="utf-8")
    return text.replace("OWNER/convbench", place).replace("@COMMIT", f"@{commit}")


def _branch(project: Project) -> str:
    """The default branch: that of the remote, else the first configured one."""
    with contextlib.suppress(click.ClickException):
        return project.git("symbolic-ref", "--short", "refs/remotes/origin/HEAD").partition("/")[2]
    return (project.conf.branches or [None])[0] or "main"


def _inputs(project: Project, config: Path | None) -> dict[str, str]:
    """The action's inputs for a suite, beyond its defaults."""
    found = {} if config is None else {"config": str(config)}
    kind = project.conf.environment_type or "virtualenv"
    chosen = kind if kind in READY else READY[0]
    versions = [version for version in project.conf.pythons if re.fullmatch(r"3\.\d+", version)]
    new = [version for version in versions if tuple(map(int, version.split("."))) >= OLDEST]
    version = new[0] if new else DEFAULT
    is_first = project.conf.pythons[:1] == [version]
    if chosen != kind or not is_first:
        found["environment"] = chosen if is_first else f"{chosen}:{version}"
    if version != DEFAULT:
        found["python-version"] = version
    return found
