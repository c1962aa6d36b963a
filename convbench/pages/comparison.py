"""The page's content as one HTML file that needs nothing else, and a link to it in asv's dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from convbench.pages import content_policy

HERE = Path(__file__).parent
SCRIPTS = ("state.js", "table.js", "summary.js", "figures.js", "start.js")
# asv's list of pages: the entry that ours is put behind.
ENTRY = re.compile(r'<li id="nav-li-regressions">.*?</li>', re.DOTALL)


def page(content: dict[str, Any]) -> str:
    """The page. The plotting library is put into it, so that it opens without a network."""
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    script = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    library = get_plotlyjs()
    return environment.get_template("comparison.html").render(
        content=content,
        policy=content_policy.alone(script, library),
        data=Markup(as_json(content)),
        library=Markup(library),
        script=Markup(script),
        style=Markup((HERE / "comparison.css").read_text(encoding="utf-8")),
    )


def as_json(content: Any) -> str:
    """JSON that no text in it can end the element it stands in."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def link(index: Path) -> bool:
    """Add a link to the page to asv's index.html; False if its list of pages was not found."""
    text = index.read_text(encoding="utf-8") if index.is_file() else ""
    entry = '\n\t<li id="nav-li-comparison"><a href="comparison.html">Compare implementations</a></li>'
    linked, count = ENTRY.subn(lambda found: found[0] + entry, text, count=1)
    if count:
        index.write_text(linked, encoding="utf-8")
    return bool(count)
