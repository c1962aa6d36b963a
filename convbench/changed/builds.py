"""Finds the files that differ between two installed builds, among those that a process can load."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from convbench.changed import shared_objects, sources
from convbench.changed.sources import Functions

SIDES = ("base", "head")  # as folders they are of one length, since a longer path alone moves the memory of a process
PATHS = "import json, sys; print(json.dumps([sys.version, sys.base_prefix, sys.prefix, sys.path]))"
PATHS_TIMEOUT = 60.0  # seconds for an interpreter to report its module search path
# The files in a distribution's own folder that a process may read, the first two up to the description that follows.
HEADED = {"METADATA", "PKG-INFO"}
READ_METADATA = {"entry_points.txt", *HEADED}
BESIDE_MODULES = ("etc", "share")  # of an environment, where packages have other files
# Files that refer to other folders: in these a path counts.
LINKS = re.compile(r"__editable__|.*\.(pth|egg-link)$")
COMMIT = re.compile(rb"\bg(?:it\d+\.)?([0-9a-f]{7,40})\b")  # in a version
# Values beside a commit in version files, which differ with it.
BESIDE = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d ?[+-]\d\d:?\d\d|\b(?:dev|post)\d+\b|\bd20\d{6}\b")


class Kind(Enum):
    """How a process loads a file."""

    SOURCE = "source"
    SHARED_OBJECT = "shared object"
    DATA = "data"


@dataclass(frozen=True)
class Change:
    """A file that differs.

    name: relative to where modules are looked for. files: where it is, by side, of those that have it. package: the folder
    of modules, or of a distribution's notes, that it lies in, None where it stands alone; empty where it is of a checkout, of
    which files are used that a process opens. functions: where the bodies of plain functions are all that differs; None is
    the whole file.
    """

    name: str
    kind: Kind
    files: Mapping[str, Path]
    package: str | None
    functions: Functions | None = None


@dataclass(frozen=True)
class Install:
    """How a side is started, and what it is called. commit: empty where it is not known. code: where it was installed."""

    python: str
    environment: Mapping[str, str]
    folder: Path
    commit: str = ""


@dataclass(frozen=True)
class Difference:
    """What differs.

    ignored: files that differ in the commit that they name. everything: what concerns every process, in words, None for
    nothing. empty: sides that have installed nothing. roots: by side, where its own files lie.
    """

    changes: tuple[Change, ...] = ()
    ignored: tuple[str, ...] = ()
    everything: str | None = None
    empty: tuple[str, ...] = ()
    roots: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Whether both sides have the same."""
        return not (self.changes or self.everything)


def compare(installs: Mapping[str, Install]) -> Difference:
    """Compare what the sides look for modules in and do not share."""
    try:
        said = {side: _search_path(installs[side]) for side in SIDES}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Difference(everything=f"an interpreter does not report its module search path: {error}")
    if said["base"][:2] != said["head"][:2]:
        return Difference(everything="the Pythons differ")
    shared = {path.resolve() for path in said["base"][3]} & {path.resolve() for path in said["head"][3]}
    roots = {side: tuple(path for path in said[side][3] if path.resolve() not in shared) for side in SIDES}
    installs_nothing = not any(any(root.iterdir()) for paths in roots.values() for root in paths)
    if installs_nothing:
        # No command installs anything: the suite imports the checkout.
        roots = {side: (installs[side].folder / "checkout",) for side in SIDES}
    if len(roots["base"]) != len(roots["head"]):
        return Difference(everything="base and head have different numbers of module folders", roots=roots)
    files = {side: {name: path for root in reversed(roots[side]) for name, path in _files(root)} for side in SIDES}
    if Path(said["base"][2]).resolve() != Path(said["head"][2]).resolve():
        for side in SIDES:
            files[side] |= dict(_beside_modules(Path(said[side][2])))
    empty = tuple(side for side in SIDES if not files[side])
    difference = _compare(files, [_Spelling(installs[side], said[side][2], roots[side]) for side in SIDES], empty, roots)
    if not installs_nothing:
        return difference
    return dataclasses.replace(
        difference,
        changes=tuple(dataclasses.replace(change, package=change.package or "") for change in difference.changes),
    )


def _search_path(install: Install) -> tuple[str, str, str, list[Path]]:
    """An interpreter's version, where it is from, its environment, and the folders that are there of its search path."""
    done = subprocess.run(
        [install.python, "-c", PATHS],
        cwd=install.folder,
        env=dict(install.environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATHS_TIMEOUT,
    )
    version, base, prefix, path = json.loads(done.stdout.splitlines()[-1])
    return version, base, prefix, [Path(entry) for entry in dict.fromkeys(path) if entry and Path(entry).is_dir()]


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """The files below a folder that a process may load, by their names, without versions where a distribution has its own."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if "__pycache__" in parts or ".git" in parts or not (path.is_file() or path.is_symlink()):
            continue
        first, *rest = parts
        if first.endswith((".dist-info", ".egg-info")):
            if not rest or rest[-1] not in READ_METADATA:
                continue
            parts = (f"{first.partition('-')[0]}.{first.rpartition('.')[2]}", *rest)
        yield "/".join(parts), path


def _beside_modules(prefix: Path) -> Iterator[tuple[str, Path]]:
    """An environment's files that lie outside of the folders of modules: what libraries load and read."""
    for folder in BESIDE_MODULES:
        yield from ((f"{folder}/{name}", path) for name, path in _files(prefix / folder))
    yield from ((f"lib/{path.name}", path) for path in (prefix / "lib").glob("*.so*"))


class _Spelling:
    """How a side calls its commit and its own folders, which differ where nothing else does."""

    def __init__(self, install: Install, prefix: str, roots: tuple[Path, ...]) -> None:
        self.paths = sorted({str(one).encode() for path in (Path(prefix), *roots) for one in (path, path.resolve())})
        self.versions = {
            path.name.partition("-")[0]: path.name.partition("-")[2].rpartition(".")[0].encode()
            for root in roots
            for path in root.glob("*-*.*-info")
        }
        self.commits = {install.commit[:7].encode()} - {b""}
        for version in self.versions.values():
            self.commits.update(found[:7] for found in COMMIT.findall(version))

    def without_paths(self, data: bytes) -> bytes:
        """Paths of this side's own as question marks, so that a shared object keeps its size."""
        for path in reversed(self.paths):  # longer paths first, since one may begin with another
            data = data.replace(path, b"?" * len(path))
        return data

    def without_commit(self, data: bytes) -> bytes:
        """A text that names the commit without it, its version and its dates; any other as it is."""
        commits = b"|".join(map(re.escape, sorted(self.commits)))
        named = re.compile(rb"\bg?(?:" + commits + rb")[0-9a-f]{0,33}\b")
        if not commits or not named.search(data):
            return data
        for version in self.versions.values():
            if named.search(version):
                data = data.replace(version, b"VERSION")
        return BESIDE.sub(b"BESIDE", named.sub(b"COMMIT", data))


def _compare(
    files: Mapping[str, Mapping[str, Path]],
    spellings: list[_Spelling],
    empty: tuple[str, ...],
    roots: Mapping[str, tuple[Path, ...]],
) -> Difference:
    changes, ignored = [], []
    every = files["base"].keys() | files["head"].keys()
    packages = {name.partition("/")[0] for name in every if _kind(name) is not Kind.DATA or "-info/" in name}

    def change(name: str, found: Mapping[str, Path], functions: Functions | None = None) -> Change:
        top, inside, _ = name.partition("/")
        return Change(name, _kind(name), found, top if inside and top in packages else None, functions)

    for name in sorted(every):
        found = {side: files[side][name] for side in SIDES if name in files[side]}
        kind = _kind(name)
        if len(found) < len(SIDES):
            changes.append(change(name, found))
            continue
        if all(path.exists() for path in found.values()) and found["base"].samefile(found["head"]):
            continue
        if not all(path.is_file() for path in found.values()):  # a link to a folder, or to nothing
            changes.append(change(name, found))
            continue
        contents = [found[side].read_bytes() for side in SIDES]
        if name.rpartition("/")[2] in HEADED and "-info/" in name:
            contents = [re.split(rb"\r?\n\r?\n", data, maxsplit=1)[0] for data in contents]
        if contents[0] == contents[1]:
            continue
        if not LINKS.match(name.rpartition("/")[2]):
            contents = [one.without_paths(data) for one, data in zip(spellings, contents, strict=True)]
        if kind is Kind.SHARED_OBJECT:
            if shared_objects.loaded(contents[0]) != shared_objects.loaded(contents[1]):
                changes.append(change(name, found))
        elif contents[0] != contents[1]:
            texts = [one.without_commit(data) for one, data in zip(spellings, contents, strict=True)]
            functions = sources.differing(*contents) if kind is Kind.SOURCE else None
            if texts[0] == texts[1]:
                ignored.append(name)
            elif functions != sources.SAME:
                changes.append(change(name, found, functions))
    return Difference(tuple(changes), tuple(ignored), None, empty, roots)


def _kind(name: str) -> Kind:
    if name.endswith(".py"):
        return Kind.SOURCE
    return Kind.SHARED_OBJECT if ".so" in Path(name).suffixes else Kind.DATA
