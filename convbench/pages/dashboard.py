"""asv's dashboard without a network: published, what its page takes from other hosts put beside it, and served.

asv's page loads jQuery, Bootstrap, flot and a few small scripts from content delivery networks, and shows an error page where
they cannot be reached. npm has the same libraries in the same versions. What it fetched is kept in the user's cache, so that
only the first call needs a network, and no package comes along with a project.

Results and configuration may be anybody's: what they hold is shown as text (convbench/asv/safe_pages.py), and the server
answers this machine's browsers alone, with files of the one folder and a policy by which they load and run nothing else.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import hashlib
import html
import http
import http.server
import io
import os
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

from convbench.asv import git, safe_pages
from convbench.asv.project import Project
from convbench.common import atomic_write, private_folder, session_guard, untrusted
from convbench.pages import content_policy
from convbench.stored import results

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
PUBLISH = "from convbench.asv import safe_pages; safe_pages.run()"
LARGEST = 64 << 20  # bytes of a package, packed or unpacked: ten times the largest of these
# What a package that is cut short or changed makes tarfile and gzip raise.
DAMAGE = (OSError, EOFError, zlib.error, tarfile.TarError, *untrusted.FAULTS)
# In a file's name, what ends or leaves its folder on any system.
ELSEWHERE = re.compile(r"[\\:\x00-\x1f]|(^|/)(\.{0,2})(/|$)")


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
        """The same tag for a copy at a path beside the page, with the copy's hash.

        Without asv's handler for a network that fails: no such script is allowed to run here, and there is no network.
        """
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        new = {**self.attributes, self.source: path, "integrity": f"sha384-{digest}"}
        for about_other_hosts in ("crossorigin", "referrerpolicy", "onerror"):
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
            raise Unavailable("no package of npm is known for it: name one in PACKAGES of convbench/pages/dashboard.py")
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
        raise Unavailable(
            f"{self} of npm has no {self.file}: name another package in PACKAGES of convbench/pages/dashboard.py"
        )


def contents(library: Library) -> dict[str, bytes]:
    """Every file of the library's package by its path, fetched where it is not kept or no longer whole.

    Raises Unavailable where it cannot be fetched, or is no package to be trusted.
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
            raise Unavailable(f"what npm has fetched as {library} is no package: {error}") from error
        fetched.replace(tarball)
    return files


def _unpack(library: Library, tarball: Path) -> dict[str, bytes]:
    """The files of a package; the one folder that they all are in is left out of their paths.

    Raises Unavailable where a file would lie elsewhere or too much is packed, and Unreadable or one of DAMAGE where it is not
    whole.
    """
    files = {}
    with gzip.GzipFile(fileobj=io.BytesIO(untrusted.read_bytes(tarball, LARGEST))) as packed:
        content = packed.read(LARGEST + 1)  # to the end, where the checksum is
    if len(content) > LARGEST:
        raise Unavailable(f"{library} of npm has more than {LARGEST >> 20} MiB")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:  # packed once, not twice
        for member in archive:
            file = archive.extractfile(member) if member.isreg() and not member.issparse() and member.size >= 0 else None
            path = member.name.partition("/")[2]
            if ELSEWHERE.search(member.name) or not (member.isdir() or (file and path)):
                raise Unavailable(f"{library} of npm has {member.name!r:.80}, which is no file inside of the package")
            if file:
                files[path] = file.read()
    return files


def linked(path: str, files: dict[str, bytes]) -> list[str]:
    """The files of a package that one of them loads, if it is a style sheet."""
    if not path.endswith(".css"):
        return []
    found = LINKED.finditer(files[path].decode(errors="replace"))
    paths = {posixpath.normpath(posixpath.join(posixpath.dirname(path), match["path"])) for match in found}
    return sorted(paths & files.keys())


def publish(project: Project) -> None:
    """Have asv write its pages from what is stored. Raises ClickException in one sentence where it cannot."""
    if not results.machines(project.results):
        raise click.ClickException(f"no results yet in {project.results.name}/: measure with `convbench run --quick` first")
    _require_pages(project.html)
    click.echo("publishing")
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PUBLISH, "publish", "--no-pull"],
        cwd=project.root,
        env=git.environment(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            said, warnings = process.communicate()
        finally:
            session_guard.end(process)
    if process.returncode:
        last = (warnings.strip() or said.strip()).rpartition("\n")[2].strip()
        raise click.ClickException(f"`asv publish` ended with status {process.returncode}: {last}")
    for line in warnings.splitlines():
        click.echo(line, err=True)
    index = project.html / "index.json"
    # The same data, in which nothing looks like markup to what takes the file for a page.
    index.write_text(index.read_text(encoding="utf-8").replace("<", "\\u003c").replace(">", "\\u003e"), encoding="utf-8")


def _require_pages(folder: Path) -> None:
    """Raise ClickException where asv, which removes the folder it publishes to, would remove what it has not written."""
    try:
        found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise click.ClickException(f"cannot read {folder}: {error.strerror}") from None
    # Other pages have an index.html as well.
    if found and not found & ({path.name for path in safe_pages.WWW.iterdir()} - {"index.html", "error.html"}):
        raise click.ClickException(
            f"asv would remove {folder}, which are not its pages: empty it, or choose another html_dir"
        )


def make_local(project: Project) -> None:
    """Put copies of what the published page takes from other hosts beside it, and have it take these.

    Raises ClickException in one sentence where one cannot be had; then the page is as asv made it.
    """
    page = project.html / "index.html"
    copies: dict[str, bytes] = {}
    try:
        text = page.read_text(encoding="utf-8")
        for tag in external(text):
            try:
                path, files = _copies(Library.at(tag.url))
            except Unavailable as error:
                raise click.ClickException(f"{page} takes {tag.url}, and {error}; till then it needs a network") from None
            copies |= files
            text = text.replace(tag.text, tag.local(f"vendor/{path}", files[path]))
        if not copies:
            return
        _write(copies, page.parent / "vendor")
        with atomic_write.whole(page) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write to {error.filename or page.parent}: {error.strerror}") from None


def _copies(library: Library) -> tuple[str, dict[str, bytes]]:
    """Where the copy of a library's file is to lie, and the same for it and all that it loads itself, with their content."""
    files = contents(library)
    path = library.path(files)
    wanted = {f"{library.folder}/{name}": files[name] for name in (path, *linked(path, files))}
    return f"{library.folder}/{path}", wanted


def _write(files: dict[str, bytes], folder: Path) -> None:
    """Write files into a folder that is made anew, so that no link in it leads elsewhere."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    folder.mkdir()
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Answers for files of one folder, asked for by the server's own address.

    A page of another host can have its name point to this machine once it is open, and would then read all that is here; its
    requests carry that name.
    """

    server: _Server
    policy = content_policy.served(b"")

    def log_message(self, *_) -> None:
        """Say nothing: asv's page asks for graphs of what was never measured, too, and goes on without."""

    def parse_request(self) -> bool:
        """Read a request, and refuse what is asked of another host."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            explain = f"This server answers to {' and '.join(sorted(self.server.hosts))}"
            self.send_error(http.HTTPStatus.MISDIRECTED_REQUEST, explain=explain)
            return False
        return True

    def send_head(self):
        """Send what stands before a file, or that there is none: a folder is not listed, and no link leads out of ours."""
        file = self._file()
        if file is None:
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return None
        if file.suffix == ".html":
            self.policy = content_policy.served(file.read_bytes())
        return super().send_head()

    def _file(self) -> Path | None:
        """The regular file inside of the folder that is asked for, if there is one."""
        try:
            found = Path(self.translate_path(self.path)).resolve()
            if found.is_dir():
                found = (found / "index.html").resolve()
            inside = found.is_relative_to(Path(self.directory).resolve())
            return found if inside and found.is_file() else None
        except (OSError, RuntimeError, ValueError):  # links in a circle, or a name that no file can have
            return None

    def end_headers(self) -> None:
        """Add what a browser may do with any answer."""
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()


class _Server(http.server.ThreadingHTTPServer):
    """A folder for this machine alone; `asv preview` would listen to every machine that reaches this one."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), functools.partial(_Handler, directory=folder))
        ports = [f":{self.server_port}", *([""] if self.server_port == 80 else [])]  # browsers leave out HTTP's own
        self.hosts = {name + port for name in ("127.0.0.1", "localhost") for port in ports}

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
