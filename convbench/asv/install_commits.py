"""Builds commits through asv and installs each into a folder of its own.

python -m convbench.asv.install_commits QUESTION, in the project's folder. It is a program, since asv prints, changes what it
finds in os.environ, and can only be stopped by ending it.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import re
import shutil
import sys
import traceback
import zipfile
from collections.abc import Iterable
from email.parser import BytesHeaderParser
from pathlib import Path

from asv import environment, repo
from asv.console import log
from asv.util import ProcessError, UserError, iter_subclasses

from convbench.asv import git
from convbench.asv.build_commit import REASON_LINES, last_words, load

RECORDS = re.compile(r"\.(dist|egg)-info$")  # the notes of installers, which are not part of a package
# By kind of environment, the program that asv calls for it.
PROGRAMS = {"conda": "conda", "uv": "uv"}
PACKAGES = {"rattler": "py-rattler"}  # by module, where a package is called otherwise
REQUIREMENTS = ("Requires-Dist", "Requires-Python")


def main(question: dict) -> None:
    """Install the question's commits, {name: hash}, and write what came of it to the outcome.

    It is {"python", "variables", "environment", "others", "empty"}: by name of a commit, the interpreter and what asv sets
    for a benchmark; environments that nothing is installed in; names of commits that have installed no file. While a commit
    is being built, it is {"building": name}, and with "reason" where asv has words for what failed; {"refused": sentence}
    where no environment can be made.
    """
    outcome = Path(question["outcome"])
    conf = load(question["configuration"])
    conf.build_cache_size = max(2, getattr(conf, "build_cache_size", 0) or 0)  # the wheels of both sides are needed
    log.enable(True)
    if not conf.environment_type and question["environments"]:  # asv asks the configuration, whatever was chosen
        conf.environment_type = question["environments"][0].partition(":")[0]
    try:
        found = list(environment.get_environments(conf, question["environments"]))
        reason = _refused(conf, question["environments"], found)
    except (RuntimeError, environment.EnvironmentUnavailable) as error:  # no kind is named, or one that asv lacks
        reason = (
            f"asv finds no environment ({' '.join(str(error).split())}): choose one, for example --environment virtualenv"
        )
    except (UserError, AttributeError, TypeError, ValueError) as error:
        reason = f"asv cannot read matrix, include and exclude of the configuration: {' '.join(str(error).split())}"
    if reason:
        outcome.write_text(json.dumps({"refused": reason}), encoding="utf-8")
        return
    here, *others = found
    here.create()
    source = Path(conf.repo) if question["shallow"] else None
    repository, work = repo.get_repo(conf), Path(question["work"])
    wheels, used, empty = {}, dict.fromkeys(question["commits"], here), []
    for name, commit in question["commits"].items():
        outcome.write_text(json.dumps({"building": name}), encoding="utf-8")
        checkout = work / name / "checkout"
        _share(source, checkout, Path(here._build_root))
        repository.checkout(str(checkout), commit)
        wheels[name] = _build(conf, here, repository, commit)
    commands, is_shared = (conf.build_command, conf.install_command), all(wheels.values())
    if is_shared and len(set(map(_requirements, wheels.values()))) > 1:
        is_shared = False
        shutil.rmtree(question["environments_dir"], ignore_errors=True)  # so that both are of today's packages
    for name, commit in question["commits"].items():
        outcome.write_text(json.dumps({"building": name}), encoding="utf-8")
        if is_shared:
            _unpack(conf, here, wheels[name], work / name / "code")
            if not _installed(work / name / "code"):
                empty.append(name)
        elif None in commands or any(commands):  # None are asv's own; without any, the suite brings its code along
            used[name] = _own(conf, question, name)
            _share(source, Path(used[name]._build_root))
            libraries, is_new = Path(used[name]._path, "lib"), used[name].installed_commit_hash != commit
            before = _installed(libraries)
            used[name].install_project(conf, repository, commit)
            if is_new and _installed(libraries) == before:
                used[name]._set_installed_commit_hash(None)  # otherwise the next gate would consider it installed
                empty.append(name)
    known = {
        "python": {name: one.find_executable("python") for name, one in used.items()},
        "variables": {
            name: _variables(
                conf, one, question["commits"][name], work / name / "checkout" if one is here else one._build_root
            )
            for name, one in used.items()
        },
        "environment": here.name,
        "others": [other.name for other in others],
        "empty": empty,
    }
    outcome.write_text(json.dumps(known), encoding="utf-8")


def _variables(conf, one, commit: str, checkout: Path | str) -> dict[str, str]:
    """What asv sets for the benchmarks of a commit; the environment has what it was for the last commit that was built."""
    cache = one._cache.get_cache_dir(commit)
    where = {"ASV_COMMIT": commit, "ASV_BUILD_DIR": str(Path(checkout, conf.repo_subdir or ""))}
    known = {**one._global_env_vars, **one.env_vars, "ASV_BUILD_CACHE_DIR": cache, **where}
    return {name: value for name, value in known.items() if value is not None}


def _share(source: Path | None, *clones: Path) -> None:
    """Make clones of a shallow repository that are not there yet, as asv cannot. source: None if it is not shallow."""
    for clone in clones:
        if source and not clone.exists():
            git.share(source, clone)


def _own(conf, question: dict, name: str):
    """An environment for one commit alone, which is kept; the paths of all are as long as their names."""
    own = copy.copy(conf)
    own.env_dir = str(Path(question["environments_dir"], name))
    found, *_ = environment.get_environments(own, question["environments"])
    found.create()
    return found


def _refused(conf, wanted: list[str], found: list) -> str | None:
    """Why nothing can be built in the environments that were found, of those that are wanted or configured."""
    asked = wanted[0].partition(":")[0] if wanted else ""
    kind = found[0].tool_name if found else asked or conf.environment_type
    if kind == "existing":
        return (
            "existing environments install nothing, so both sides would be the same: choose another with --environment, "
            "or compare two installs with --installed"
        )
    if tool := _missing(kind):
        return f"environments of {kind} need {tool}, which is not installed: install it, or --environment virtualenv"
    if found:
        return None
    known = sorted({one.tool_name for one in iter_subclasses(environment.Environment) if one.tool_name})
    if kind not in known:
        usable = ", ".join(one for one in known if one != "existing" and not _missing(one))
        return f"asv knows no environments of {kind}: choose one of {usable} with --environment"
    versions = ", ".join(one.partition(":")[2] for one in wanted if ":" in one) or ", ".join(conf.pythons)
    return f"asv found no Python {versions} for environments of {kind}: install it, or choose another with --python"


def _missing(kind: str) -> str | None:
    """What asv needs for a kind of environment and does not find: a program, or a package beside itself."""
    program = PROGRAMS.get(kind)
    if program and not os.environ.get(f"{program.upper()}_EXE") and not shutil.which(program):  # asv asks for CONDA_EXE, too
        return program
    try:
        importlib.import_module(f"asv.plugins.{kind}")
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith("asv.plugins."):
            return f"the package {PACKAGES.get(error.name, error.name)} beside asv"
    return None


def _build(conf, here, repository, commit: str) -> list[str]:
    """Install a commit as asv does, for what it depends on; its wheels, of which its commands may make none."""
    here.install_project(conf, repository, commit)
    if not _wheels(here, commit) and here.installed_commit_hash == commit:
        here._set_installed_commit_hash(None)  # installed long ago, and its wheel is no longer kept
        here.install_project(conf, repository, commit)
    return _wheels(here, commit)


def _unpack(conf, here, wheels: list[str], folder: Path) -> None:
    """Install wheels once more, alone, into a folder."""
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(folder)]
    here.run_executable("python", ["-m", "pip", "install", *options, *wheels], timeout=conf.install_timeout)
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _installed(folder: Path) -> dict[str, int]:
    """The files below a folder that a process may load, and when they were changed."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path): path.stat().st_ctime_ns for path in found if not any(map(RECORDS.search, path.parts))}


def _requirements(wheels: Iterable[str]) -> frozenset[tuple[str, str]]:
    """What wheels require beside themselves."""
    found = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".dist-info/METADATA"):
                    headers = BytesHeaderParser().parsebytes(archive.read(name))
                    found |= {(key, value) for key, value in headers.items() if key in REQUIREMENTS}
    return frozenset(found)


def _wheels(here, commit: str) -> list[str]:
    cache = here._cache.get_cache_dir(commit)
    return [str(path) for path in Path(cache).glob("*.whl")] if cache else []


def _failed(question: dict, reason: str) -> None:
    """Add why a commit could not be built to the outcome."""
    outcome = Path(question["outcome"])
    known = json.loads(outcome.read_text(encoding="utf-8")) if outcome.is_file() else {}
    outcome.write_text(json.dumps({**known, "reason": reason}), encoding="utf-8")


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    try:
        main(asked)
    except ProcessError as error:  # the log then ends with the command's own output
        words = last_words(error)
        print("\n".join(words))
        _failed(asked, " / ".join(words[-REASON_LINES:]))
        sys.exit(f"status {error.retcode} of {' '.join(error.args)}")
    except (Exception, environment.EnvironmentUnavailable) as error:
        traceback.print_exc()
        kind = "" if isinstance(error, (UserError, environment.EnvironmentUnavailable)) else f"{type(error).__name__}: "
        _failed(asked, kind + " ".join(str(error).split()))
        sys.exit(1)
