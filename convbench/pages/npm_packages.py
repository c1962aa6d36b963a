"""Files of packages of npm, fetched once and kept in the user's cache: only the first call needs a network."""

from __future__ import annotations

import contextlib
import gzip
import io
import posixpath
import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import click

from convbench.common import private_folder, untrusted

# Names of libraries in the URLs of asv's page, and their packages of npm; the page's version unless given.
PACKAGES = {
    "blueimp-md5": "blueimp-md5",
    "bootstrap": "bootstrap",
    "flot": "flot-charts",
    "flot-orderbars": "flot-orderbars",
    "jquery": "jquery",
    "stupidtable": "stupid-table-plugin@1.1.3",  # npm has no 1.0.1; what asv calls is the same in both
}
# How URLs spell both: NAME@VERSION/..., NAME/VERSION/... and NAME-VERSION.min.js.
LIBRARY = re.compile(r"/(?P<name>[^/@]+?)[@/-](?P<version>\d+(?:\.\d+)+)[/.]")
# The URLs in a style sheet: fonts and pictures.
LINKED = re.compile(r"""url\(\s*["']?(?P<path>[^"')?#]+)""")
MAX_BYTES = 64 << 20  # of a package, packed or unpacked: ten times the largest of these
# The errors of tarfile and gzip for damaged packages.
DAMAGE = (OSError, EOFError, zlib.error, tarfile.TarError, *untrusted.FAULTS)
# Characters and parts that leave the folder of a file's name on any system.
ELSEWHERE = re.compile(r"[\\:\x00-\x1f]|(^|/)(\.{0,2})(/|$)")


class Unavailable(Exception):
    """A file that the page takes from another host is not available; the message has the cause and the cure."""


@dataclass(frozen=True)
class Library:
    """One file of a package of npm, in one version."""

    package: str
    version: str
    file: str

    @classmethod
    def at(cls, url: str) -> Self:
        """The library of a URL. Raises Unavailable if no package is known for it."""
        path = urlsplit(url).path
        found = LIBRARY.search(path)
        if not found or found["name"] not in PACKAGES:
            raise Unavailable("no package of npm is known for it: name one in PACKAGES of convbench/pages/npm_packages.py")
        package, _, version = PACKAGES[found["name"]].partition("@")
        file = posixpath.basename(path).replace(f"-{found['version']}", "")
        return cls(package, version or found["version"], file)

    def __str__(self) -> str:
        return f"{self.package}@{self.version}"

    @property
    def folder(self) -> str:
        return f"{self.package}-{self.version}"

    def path(self, files: dict[str, bytes]) -> str:
        """The path of the file in the package. A missing minified one is replaced by the original. Raises Unavailable."""
        for name in (self.file, self.file.replace(".min.", ".")):
            if found := [path for path in files if posixpath.basename(path) == name]:
                return min(found, key=len)  # the others are copies for examples and documentation
        raise Unavailable(
            f"{self} of npm has no {self.file}: name another package in PACKAGES of convbench/pages/npm_packages.py"
        )


def contents(library: Library) -> dict[str, bytes]:
    """Every file of the library's package by its path, fetched if it is not kept or no longer whole.

    Raises Unavailable if it cannot be fetched, or is not a trusted package.
    """
    cache = private_folder.folder("npm")
    tarball = cache / f"{library.folder}.tgz"
    with contextlib.suppress(Unavailable, untrusted.Unreadable, *DAMAGE):
        return _unpack(library, tarball)
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(f"npm, which has it in {library}, is not installed: install it (Debian: apt-get install npm)")
    click.echo(f"fetching {library}")
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [npm, "pack", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", str(library)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        fetched = next(Path(folder).glob("*.tgz"), None)
        if done.returncode or not fetched:
            code = re.search(r"code (\w+)", done.stderr)
            why = code[1] if code else f"status {done.returncode}"
            raise Unavailable(f"npm cannot fetch {library}, which has it: {why}")
        try:
            files = _unpack(library, fetched)
        except (untrusted.Unreadable, *DAMAGE) as error:
            raise Unavailable(f"what npm has fetched as {library} is not a package: {error}") from error
        fetched.replace(tarball)
    return files


def _unpack(library: Library, tarball: Path) -> dict[str, bytes]:
    """The files of a package; the one folder that they all are in is left out of their paths.

    Raises Unavailable if a file would lie elsewhere or too much is packed, and Unreadable or one of DAMAGE if it is not
    whole.
    """
    files = {}
    with gzip.GzipFile(fileobj=io.BytesIO(untrusted.read_bytes(tarball, MAX_BYTES))) as packed:
        content = packed.read(MAX_BYTES + 1)  # to the end, where the checksum is
    if len(content) > MAX_BYTES:
        raise Unavailable(f"{library} of npm has more than {MAX_BYTES >> 20} MiB")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:  # packed once, not twice
        for member in archive:
            file = archive.extractfile(member) if member.isreg() and not member.issparse() and member.size >= 0 else None
            path = member.name.partition("/")[2]
            if ELSEWHERE.search(member.name) or not (member.isdir() or (file and path)):
                raise Unavailable(f"{library} of npm has {member.name!r:.80}, which is not a file inside the package")
            if file:
                files[path] = file.read()
    return files


def linked(path: str, files: dict[str, bytes]) -> list[str]:
    """The files of a package that one of them loads if it is a style sheet."""
    if not path.endswith(".css"):
        return []
    found = LINKED.finditer(files[path].decode(errors="replace"))
    paths = {posixpath.normpath(posixpath.join(posixpath.dirname(path), match["path"])) for match in found}
    return sorted(paths & files.keys())
