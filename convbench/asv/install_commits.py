"""Builds commits through asv and installs each into a folder of its own.

python -m convbench.asv.install_commits QUESTION, in the project's folder. It is a program, since asv prints, changes what it
finds in os.environ, and can only be stopped by ending it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from asv import environment, repo
from asv.console import log
from asv.util import ProcessError

from convbench.asv import git
from convbench.asv.build_commit import last_words, load

# By kind of environment, the programs of which asv needs one.
PROGRAMS = {"conda": ("conda",), "mamba": ("mamba", "conda"), "rattler": ("conda",), "uv": ("uv",)}


def main(question: dict) -> None:
    """Install the question's commits, {name: hash}; write {"python", "variables", "environment", "others"} to the outcome.

    variables: by name, what asv sets for a benchmark of that commit. others: environments that nothing is installed in. While
    a commit is being built, the outcome is {"building": name}; {"refused": sentence} where no environment can be made.
    """
    outcome = Path(question["outcome"])
    conf = load(question["configuration"])
    log.enable(True)
    found = list(environment.get_environments(conf, question["environments"]))
    if reason := _refused(conf, question["environments"], found):
        outcome.write_text(json.dumps({"refused": reason}), encoding="utf-8")
        return
    here, *others = found
    here.create()
    repository, work, variables = repo.get_repo(conf), Path(question["work"]), {}
    if question["shallow"]:
        for clone in (*(work / name / "checkout" for name in question["commits"]), Path(here._build_root)):
            if not clone.exists():
                git.share(Path(conf.repo), clone)
    for name, commit in question["commits"].items():
        outcome.write_text(json.dumps({"building": name}), encoding="utf-8")
        checkout = work / name / "checkout"
        repository.checkout(str(checkout), commit)
        _install(conf, here, repository, commit, checkout, work / name / "code")
        own = {"ASV_COMMIT": commit, "ASV_BUILD_DIR": str(checkout)}
        variables[name] = {**here._global_env_vars, **here.env_vars, **own}
    known = {
        "python": here.find_executable("python"),
        "variables": variables,
        "environment": here.name,
        "others": [other.name for other in others],
    }
    outcome.write_text(json.dumps(known), encoding="utf-8")


def _refused(conf, wanted: list[str], found: list) -> str | None:
    """Why nothing can be built in the environments that were found, of those that are wanted or configured."""
    asked = wanted[0].partition(":")[0] if wanted else ""
    kind = found[0].tool_name if found else asked or conf.environment_type
    if kind == "existing":
        return "existing environments install nothing, so that both sides would be the same: choose one with --environment"
    if kind in PROGRAMS and not any(map(shutil.which, PROGRAMS[kind])):
        program = PROGRAMS[kind][0]
        return f"environments of {kind} need {program}, which is not installed: install it, or --environment virtualenv"
    if found:
        return None
    versions = ", ".join(one.partition(":")[2] for one in wanted if ":" in one) or ", ".join(conf.pythons)
    return f"asv found no Python {versions} for environments of {kind}: install it, or choose another with --python"


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
