"""Builds a commit through asv and lists its benchmarks.

python -m convbench.asv.build_commit CONFIGURATION FOLDER COMMIT MACHINE.

asv does not distinguish a commit that does not build from other errors: it lists another commit's benchmarks and
fails every cell of this one. FOLDER/build.json says which environments there are, and why the commit builds in none of them;
the list is asv's own, FOLDER/benchmarks.json. Where there is a folder FOLDER/wheels, wheels are taken from it and put there.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from asv import environment, plugin_manager, repo
from asv.config import Config
from asv.main import main
from asv.util import ProcessError, UserError

from convbench.asv import isolated

OUTCOME = "build.json"
WHEELS = "wheels"
PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)==")
# Runs in the environment, since asv's file names contain only pinned versions.
VERSIONS = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""
REASON_LINES = 6  # lines at the end of a builder's output, where the cause usually is
# Lines that pip adds to a builder's output.
PIP_LINES = (
    *("note: ", "hint: ", "[end of output]", "╰─>", "│", "\N{MULTIPLICATION SIGN}", "[notice]"),
    *("ERROR: Failed", "error: metadata-generation-failed", "error: subprocess-exited-with-error"),
)


def load(configuration: str) -> Config:
    """A project's configuration, with the plugins that it names."""
    conf = Config.load(configuration)
    for plugin in conf.plugins:
        plugin_manager.plugin_manager.import_plugin(plugin)
    return conf


def build(configuration: str, commit: str, wheels: Path | None = None) -> dict:
    """Build and install a commit: {"environments": what asv's files say of each, "pythons": their interpreters, "reason": its
    builder's last words, or None where it builds}.

    wheels: a folder with the commit's wheels, which are built where they are not there, and added; by environment.
    A failure to make the environment is not the commit's fault; it raises asv's error.
    """
    conf = load(configuration)
    repository = repo.get_repo(conf)
    repository.pull()
    environments = list(environment.get_environments(conf, None))
    reasons = []
    for one in environments:
        one.create()
        cache = getattr(one, "_cache", None)  # environments in which nothing is built have none
        if wheels and cache:
            _copy(wheels / one.dir_name, Path(cache._path, commit))
        try:
            one.install_project(conf, repository, commit)
            if wheels and cache and (built := cache.get_cache_dir(commit)):
                shutil.copytree(built, wheels / one.dir_name, dirs_exist_ok=True)
        except (ProcessError, UserError) as error:
            reasons.append(" / ".join(last_words(error)[-REASON_LINES:]) or str(error))
    unbuilt = environments and len(reasons) == len(environments)
    date = repository.get_date(commit)
    about = [
        {
            "env_name": one.name,
            "python": one.python,
            "requirements": one.requirements,
            "env_vars": one.env_vars,
            "date": date,
            "versions": {} if unbuilt else _versions(one, conf.install_command or []),
        }
        for one in environments
    ]
    pythons = [one.find_executable("python") for one in environments]
    return {"environments": about, "pythons": pythons, "reason": reasons[0] if unbuilt else None}


def _copy(wheels: Path, cached: Path) -> None:
    """Put wheels where asv finds them; its file beside the folder says that they are whole."""
    if wheels.is_dir() and not cached.is_dir():
        shutil.copytree(wheels, cached)
        cached.with_name(f"{cached.name}.timestamp").touch()


def _versions(environment, commands: list[str]) -> dict[str, str]:
    """The versions of Python, asv_runner and what the configuration requires, or these commands pin.

    None if the environment cannot tell.
    """
    names = [name.removeprefix("pip+") for name in environment.requirements]
    names += PINNED.findall(" ".join(commands))
    try:
        return json.loads(environment.run_executable("python", ["-c", VERSIONS, "asv_runner", *names]))
    except (ProcessError, OSError, ValueError):
        return {}


def last_words(error: Exception) -> list[str]:
    """The output of a failed build without pip's additions; empty if something else failed."""
    printed = [getattr(error, stream, "") or "" for stream in ("stdout", "stderr")]  # pip says how far it is on the first
    lines = [line.strip() for line in "\n".join(printed).splitlines()]
    return [line for line in lines if line and not line.startswith(PIP_LINES)]


if __name__ == "__main__":
    configuration, folder, commit, machine = sys.argv[1:]
    isolated.use(folder)
    wheels = Path(folder, WHEELS)
    outcome = build(configuration, commit, wheels if wheels.is_dir() else None)
    Path(folder, OUTCOME).write_text(json.dumps(outcome), encoding="utf-8")
    if not outcome["reason"]:
        sys.argv[1:] = ["run", f"{commit}^!", "--bench", "just-discover", "--machine", machine, "--config", configuration]
        main()
