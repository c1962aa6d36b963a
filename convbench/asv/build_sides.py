"""Builds and installs both sides through asv: python -m convbench.asv.build_sides QUESTION, in the project's folder.

A program of its own, since asv prints, changes what it finds in os.environ, and can only be stopped by ending it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from asv import environment, repo
from asv.console import log
from asv.util import ProcessError

from convbench.asv.build_commit import last_words, load


def main(question: dict) -> None:
    """Write {"python", "variables", "environment", "suite"} to the outcome, with {"side"} while that one is being built."""
    outcome = Path(question["outcome"])
    conf = load(question["configuration"])
    log.enable(True)
    here = next(iter(environment.get_environments(conf, None)))
    here.create()
    repository, work = repo.get_repo(conf), Path(question["work"])
    for side, commit in question["commits"].items():
        outcome.write_text(json.dumps({"side": side}), encoding="utf-8")
        suites = work / side / "checkout"
        repository.checkout(str(suites), commit)
        _install(conf, here, repository, commit, suites, work / side / "code")
    known = {
        "python": here.find_executable("python"),
        "variables": here.env_vars,
        "environment": here.name,
        "suite": {side: str((work / side / "checkout" / conf.benchmark_dir).resolve()) for side in question["commits"]},
    }
    outcome.write_text(json.dumps(known), encoding="utf-8")


def _install(conf, here, repository, commit: str, checkout: Path, folder: Path) -> None:
    """Install a commit as asv does, for what it depends on; then its own build once more, alone, into the folder."""
    source = [str(checkout / (conf.repo_subdir or ""))]
    if here.can_install_project():
        here.install_project(conf, repository, commit)
        if not (wheels := _wheels(here, commit)) and here.installed_commit_hash == commit:
            here._set_installed_commit_hash(None)  # installed long ago, and its wheel is no longer kept
            here.install_project(conf, repository, commit)
            wheels = _wheels(here, commit)
        if not wheels and not (conf.install_command is None or conf.install_command):
            return  # the suite brings its code along, and there is nothing to install
        source = wheels or source
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(folder)]
    here.run_executable("python", ["-m", "pip", "install", *options, *source], timeout=conf.install_timeout)
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _wheels(here, commit: str) -> list[str]:
    cache = here._cache.get_cache_dir(commit)
    return [str(path) for path in Path(cache).glob("*.whl")] if cache else []


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except ProcessError as error:  # its own words are the last that the log has, not ours
        print("\n".join(last_words(error)))
        sys.exit(f"status {error.retcode} of {' '.join(error.args)}")
