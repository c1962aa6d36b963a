"""Pages of the site that are written elsewhere in the repository, and links as they are on the site.

README, CONTRIBUTING and others are at the root, where people look for them; the commands' reference is made from their help.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "convbench/README.md": "tool.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
COMMANDS = """# Commands

::: mkdocs-click
    :module: convbench.cli.main
    :command: main
    :prog_name: convbench
    :depth: 1
"""


def on_files(files, config):
    """Add the pages that are not in this folder."""
    for path, page in PAGES.items():
        text = for_site((ROOT / path).read_text(encoding="utf-8"), posixpath.dirname(path))
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "commands.md", content=COMMANDS))
    return files


def on_page_markdown(markdown, page, **_):
    """Have the links of this folder's pages lead to the site's."""
    return markdown if page.file.generated_by else for_site(markdown, "docs")


def for_site(text: str, folder: str) -> str:
    """Text whose relative links are as on the site; what is not on it keeps its words and loses its link.

    folder: that of the text, from the root of the repository.
    """

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return found[0]
        place = posixpath.normpath(posixpath.join(folder, path))
        page = PAGES.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else None)
        return f"{image}[{words}]({page}{hash_}{anchor})" if page else words

    return LINK.sub(link, text)
