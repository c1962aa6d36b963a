"""Copies the files that asv's page loads from other hosts, and changes the page to load the copies.

asv's page loads jQuery, Bootstrap, flot and a few small scripts from content delivery networks, and shows an error page where
they cannot be reached. npm has the same libraries in the same versions.
"""

from __future__ import annotations

import base64
import hashlib
import html
import shutil
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import click

from convbench.asv.project import Project
from convbench.common import atomic_write
from convbench.pages import npm_packages
from convbench.pages.npm_packages import Library, Unavailable


@dataclass(frozen=True)
class Tag:
    """A start tag that loads something from another host."""

    text: str  # as it stands in the page
    name: str
    attributes: dict[str, str | None]
    source: str  # the attribute that holds the URL

    @property
    def url(self) -> str:
        return self.attributes[self.source] or ""

    def local(self, path: str, content: bytes) -> str:
        """The same tag for a copy at a path beside the page, with the copy's hash.

        asv's handler for a failing network is omitted: the policy does not allow it, and no network is needed.
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


def make_local(project: Project) -> None:
    """Replace the page's files from other hosts by local copies.

    Raises ClickException in one sentence if a copy is not available; the page then stays as asv made it.
    """
    page = project.html / "index.html"
    copies: dict[str, bytes] = {}
    try:
        text = page.read_text(encoding="utf-8")
        for tag in external(text):
            try:
                path, files = _copies(Library.at(tag.url))
            except Unavailable as error:
                raise click.ClickException(f"{page} takes {tag.url}, and {error}; until then it needs a network") from None
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
    files = npm_packages.contents(library)
    path = library.path(files)
    wanted = {f"{library.folder}/{name}": files[name] for name in (path, *npm_packages.linked(path, files))}
    return f"{library.folder}/{path}", wanted


def _write(files: dict[str, bytes], folder: Path) -> None:
    """Write files into a folder that is made again, so that no link in it leads elsewhere."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    folder.mkdir()
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
