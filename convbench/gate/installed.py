"""Sides that are installed already: an interpreter's packages, or those in a folder; nothing is built."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convbench.asv.project import Project
from convbench.gate.build import SIDES, Built
from convbench.gate.failures import Reason, Usage

PROBE = Path(__file__).with_name("programs") / "probe.py"
PROBE_TIMEOUT = 60.0  # seconds for an interpreter to list its packages
NAME = "installed"  # of the environment
SITES = ("site-packages", "dist-packages")


def sides(base: str | None, head: str | None) -> dict[str, str]:
    """The absolute paths of what is compared: an interpreter, or a folder of packages. Raises Usage for anything else."""
    if base is None or head is None:
        raise Usage("--installed needs both sides, each an interpreter or a folder of packages: --installed BASE HEAD")
    return {"base": _absolute(base), "head": _absolute(head)}


def _absolute(name: str) -> str:
    path = Path(name).absolute()  # not resolved: an interpreter is a link, beside which its packages lie
    if path.is_dir() and os.access(path / "bin" / "python", os.X_OK):
        path = path / "bin" / "python"
    if path.is_dir():
        if path.name in SITES:
            return str(path)
        inside = [folder for site in SITES for folder in sorted(path.glob(f"**/python*/{site}"))]
        if len(inside) > 1:
            raise Usage(f"{name} has several package folders: give one of {', '.join(map(str, inside))}")
        return str(inside[0] if inside else path)
    if path.is_file() and os.access(path, os.X_OK):
        return str(path)
    raise Usage(f"{name} is neither an interpreter nor a folder of packages")


def ready(project: Project, paths: Mapping[str, str], work: Path, launch_method: str | None = None) -> dict[str, Built]:
    """Both sides ready to run, measured by the suite of the working tree. launch_method: None is the configuration's.

    Raises Usage if an interpreter cannot be used, or where both sides import the project from the same files.
    """
    built, found = {}, {}
    for side in SIDES:
        folder = work / side
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "numba").mkdir(parents=True, mode=0o700)
        path = Path(paths[side])
        python, packages = (_interpreter_for(path), path) if path.is_dir() else (path, None)
        if packages:
            (folder / "code").symlink_to(packages)
        else:
            (folder / "code").mkdir()
        python, found[side] = _evened(project, python, folder)
        own = {"ASV": "true", "ASV_PROJECT": project.name, "ASV_CONF_DIR": str(project.root)}
        own |= {"ASV_ENV_NAME": NAME, "ASV_ENV_TYPE": "existing"}
        spawns = (launch_method or project.conf.launch_method) == "spawn"
        built[side] = Built(folder, str(python), own, project.benchmarks, project.benchmarks, NAME, spawns)
    _require_two(found, project.source.resolve())
    differences = tuple(_differences(found))
    return {side: dataclasses.replace(one, differences=differences) for side, one in built.items()}


def _interpreter_for(packages: Path) -> Path:
    """The interpreter of the active environment, of the version that a folder of packages is for."""
    version = next((part for part in reversed(packages.parts) if re.fullmatch(r"python\d+\.\d+", part)), "")
    for name in filter(None, ("python", version, "python3", sys.executable)):
        found = shutil.which(name)
        if found and (not version or _version(found) == version):
            return Path(found).absolute()
    raise Usage(f"{packages} is for {version}, which is not found: activate an environment that has it")


def _version(python: str) -> str:
    words = [python, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _evened(project: Project, python: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """An interpreter by a path as long as the other side's, and what it has; by its own path where that changes something."""
    direct = _probe(project, python, folder)
    if python.parent.name == "bin":
        (folder / "env").symlink_to(python.parent.parent)
        name = "python" if (python.parent / "python").resolve() == python.resolve() else python.name
        linked = folder / "env" / "bin" / name
        found = _probe(project, linked, folder)
        if found["packages"] == direct["packages"] and _real(found["path"]) == _real(direct["path"]):
            return linked, found
    return python, direct


def _real(paths: list[str]) -> list[str]:
    return [str(Path(path).resolve()) for path in paths]


def _probe(project: Project, python: Path, folder: Path) -> dict[str, Any]:
    """What an interpreter has, with a side's packages in front. Raises Usage if it cannot measure."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    if (folder / "code").is_symlink():
        variables["PYTHONPATH"] = str(folder / "code")
    try:
        done = subprocess.run(
            [str(python), str(PROBE), project.name],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = Reason.printed(getattr(error, "stderr", None) or "", str(error))
        raise Usage(f"{python} cannot list its packages: {said.words}") from None
    if "asv_runner" not in found["modules"]:
        raise Usage(f"{python} has no asv_runner, which runs the suite: {python} -m pip install asv_runner")
    return found


def _require_two(found: Mapping[str, dict[str, Any]], source: Path) -> None:
    """Raise Usage if the sides import the project, whose repository is `source`, from the same files."""
    base, head = found["base"], found["head"]
    same = [
        base["modules"][name]
        for name in base["modules"].keys() & head["modules"].keys() - {"asv_runner"}
        if Path(base["modules"][name]).resolve() == Path(head["modules"][name]).resolve()
    ]
    both = set(base["editable"].items() & head["editable"].items())
    same += [url for _, url in both if Path(url.removeprefix("file://")).resolve().is_relative_to(source)]
    if not same and _real(base["path"]) == _real(head["path"]):
        same = ["everything"]
    if same:
        raise Usage(f"both sides import {same[0]}, as editable installs do: install each side into an environment of its own")


def _differences(found: Mapping[str, dict[str, Any]]) -> list[str]:
    """Versions of Python and packages that differ: "NAME VERSION and VERSION"."""
    base, head = found["base"], found["head"]
    pythons = [f"{base['python']} and {head['python']}"] if base["python"] != head["python"] else []
    packages = []
    for name in sorted(base["packages"].keys() | head["packages"].keys(), key=str.lower):
        versions = [side["packages"].get(name, "none") for side in (base, head)]
        if versions[0] != versions[1]:
            packages.append(f"{name} {' and '.join(versions)}")
    return pythons + packages
