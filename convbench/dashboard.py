"""asv's dashboard without a network: published, what its page takes from other hosts put beside it, and served.

asv's page loads jQuery, Bootstrap, flot and a few small scripts from content delivery networks, and shows an error page where
they cannot be reached. npm has the same libraries in the same versions. What it fetched is kept in the work folder, so that
only the first call needs a network; nothing of it is committed.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import hashlib
import html
import http.server
import io
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import click

from convbench import measure, results, store
from convbench.project import Project

# What the addresses in asv's page call a library, and npm's package of it; in the page's version where none is said.
PACKAGES = {
    "blueimp-md5": "blueimp-md5",
    "bootstrap": "bootstrap",
    "flot": "flot-charts",
    "flot-orderbars": "flot-orderbars",
    "jquery": "jquery",
    "stupidtable": "stupid-table-plugin@1.1.3",  # npm has no 1.0.1; what asv calls is the same in both
}
# How addresses spell both: NAME@VERSION/..., NAME/VERSION/... and NAME-VERSION.min.js.
LIBRARY = re.compile(r"/(?P<name>[^/@]+?)[@/-](?P<version>\d+(?:\.\d+)+)[/.]")
# What a style sheet loads by itself: fonts and pictures.
LINKED = re.compile(r"""url\(\s*["']?(?P<path>[^"')?#]+)""")
PORT = 8080  # where no other is asked for; asv's own


class Unavailable(Exception):
    """A file that the page takes from another host cannot be had here; the text says why, and what to do."""


@dataclass(frozen=True)
class Tag:
    """A start tag that loads something from another host."""

    text: str  # as it stands in the page
    name: str
    attributes: dict[str, str | None]
    source: str  # the attribute that holds the address

    @property
    def url(self) -> str:
        return self.attributes[self.source] or ""

    def local(self, path: str, content: bytes) -> str:
        """The same tag for a copy at a path beside the page, with the copy's hash."""
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        new = {**self.attributes, self.source: path, "integrity": f"sha384-{digest}"}
        for about_other_hosts in ("crossorigin", "referrerpolicy"):
            new.pop(about_other_hosts, None)
        words = [name if value is None else f'{name}="{html.escape(value)}"' for name, value in new.items()]
        return f"<{' '.join([self.name, *words])}>"


class _Page(HTMLParser):
    """Collects the tags that load something from another host; a link that is only clicked loads nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tag] = []

    def handle_starttag(self, tag, attrs) -> None:
        source = "href" if tag == "link" else "src"
        if urlsplit(dict(attrs).get(source) or "").netloc:
            self.found.append(Tag(self.get_starttag_text() or "", tag, dict(attrs), source))


def external(page: str) -> list[Tag]:
    """The tags of a page that load something from another host."""
    parser = _Page()
    parser.feed(page)
    return parser.found


@dataclass(frozen=True)
class Library:
    """One file of a package of npm, in one version."""

    package: str
    version: str
    file: str

    @classmethod
    def at(cls, url: str) -> Self:
        """What an address names. Raises Unavailable where no package is known for it."""
        path = urlsplit(url).path
        found = LIBRARY.search(path)
        if not found or found["name"] not in PACKAGES:
            raise Unavailable("no package of npm is known for it: name one in PACKAGES of convbench/dashboard.py")
        package, _, version = PACKAGES[found["name"]].partition("@")
        file = posixpath.basename(path).replace(f"-{found['version']}", "")
        return cls(package, version or found["version"], file)

    def __str__(self) -> str:
        return f"{self.package}@{self.version}"

    @property
    def folder(self) -> str:
        return f"{self.package}-{self.version}"

    def path(self, files: dict[str, bytes]) -> str:
        """Where the package has the file. A missing minified one is replaced by the original. Raises Unavailable."""
        for name in (self.file, self.file.replace(".min.", ".")):
            if found := [path for path in files if posixpath.basename(path) == name]:
                return min(found, key=len)  # the others are copies for examples and documentation
        raise Unavailable(f"{self} of npm has no {self.file}: name another package in PACKAGES of convbench/dashboard.py")


def contents(library: Library, cache: Path) -> dict[str, bytes]:
    """Every file of the library's package by its path, fetched where it is not kept or no longer whole.

    Raises Unavailable where it cannot be fetched.
    """
    tarball = cache / f"{library.folder}.tgz"
    with contextlib.suppress(OSError, EOFError, zlib.error, tarfile.TarError):
        return _unpack(tarball)
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
        fetched.replace(tarball)
    return _unpack(tarball)


def _unpack(tarball: Path) -> dict[str, bytes]:
    """The files of a package; the one folder that they all are in is left out of their paths.

    Raises OSError, EOFError, zlib.error or TarError unless every byte is as it was packed.
    """
    content = gzip.decompress(tarball.read_bytes())  # to the end, where the checksum is
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name.partition("/")[2]: file.read() for name, file in files.items() if file}


def linked(path: str, files: dict[str, bytes]) -> list[str]:
    """The files of a package that one of them loads, if it is a style sheet."""
    if not path.endswith(".css"):
        return []
    found = LINKED.finditer(files[path].decode())
    paths = {posixpath.normpath(posixpath.join(posixpath.dirname(path), match["path"])) for match in found}
    return sorted(paths & files.keys())


def publish(project: Project) -> None:
    """Have asv write its pages from what is stored. Raises ClickException in one sentence where it cannot."""
    if not results.machines(project.results):
        raise click.ClickException(f"no results yet in {project.results.name}/: measure with `convbench run --quick` first")
    click.echo("publishing")
    command = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, cwd=project.root, stdout=pipe, stderr=same, text=True, start_new_session=True) as process:
        try:
            said, _ = process.communicate()
        finally:
            measure.end(process)
    if process.returncode:
        last = said.strip().rpartition("\n")[2].strip()
        raise click.ClickException(f"`asv publish` ended with status {process.returncode}: {last}")


def make_local(project: Project) -> None:
    """Put copies of what the published page takes from other hosts beside it, and have it take these.

    Raises ClickException in one sentence where one cannot be had; then the page is as asv made it.
    """
    page, cache = project.html / "index.html", project.work / "web"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        text = page.read_text(encoding="utf-8")
        for tag in external(text):
            try:
                path, content = _copy(Library.at(tag.url), cache, page.parent)
            except Unavailable as error:
                raise click.ClickException(f"{page} takes {tag.url}, and {error}; till then it needs a network") from None
            text = text.replace(tag.text, tag.local(path, content))
        with store.whole(page) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write to {error.filename}: {error.strerror}") from None


def _copy(library: Library, cache: Path, folder: Path) -> tuple[str, bytes]:
    """Put a file, and what it loads itself, below a folder; its path from there, and its content."""
    files = contents(library, cache)
    path = library.path(files)
    for name in (path, *linked(path, files)):
        target = folder / "vendor" / library.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[name])
    return f"vendor/{library.folder}/{path}", files[path]


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        """Say nothing: asv's page asks for graphs of what was never measured, too, and goes on without."""


class _Server(http.server.ThreadingHTTPServer):
    """A folder for this machine alone; `asv preview` would listen to every machine that reaches this one."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), functools.partial(_Handler, directory=folder))

    def handle_error(self, request, client_address) -> None:
        """Say nothing where the browser went away before the end of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(folder: Path, port: int | None) -> None:
    """Serve a folder until Ctrl-C; without a port on PORT or, where that is taken, on any that is free.

    Raises ClickException where the port cannot be had.
    """
    try:
        server = _Server(folder, port or PORT)
    except OSError as error:
        if port:
            raise click.ClickException(f"cannot serve on port {port}: {error.strerror}; choose another with --port") from None
        server = _Server(folder, 0)
    with server, contextlib.suppress(KeyboardInterrupt):
        click.echo(f"serving {folder} at http://127.0.0.1:{server.server_port}/ until Ctrl-C")
        server.serve_forever()
    click.echo("\nstopped")
