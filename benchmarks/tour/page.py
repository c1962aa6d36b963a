"""Stories as one HTML page that needs no other file, and a step as the part of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import side_file

TEMPLATES = Path(__file__).parent


def html(told: Sequence[Mapping[str, Any]], stories: Mapping[str, Mapping[str, str]]) -> str:
    """A page of all that was told. stories: number, title and source by name. Raises ImportError without Jinja."""
    chapters = [
        {"name": name, **facts, "steps": [step for step in told if step["story"] == name]} for name, facts in stories.items()
    ]
    dates = sorted(step["date"] for step in told)
    return (
        _environment()
        .get_template("page.html")
        .render(
            chapters=[chapter for chapter in chapters if chapter["steps"]],
            date=dates[0] if dates else "",
            versions=side_file.versions(),
        )
    )


def step_html(step: Mapping[str, Any]) -> str:
    """One step as the part of a page, for a notebook."""
    return _environment().get_template("notebook.html").render(step=step)


def _environment() -> Any:
    try:
        import jinja2  # imported here, because asv imports every file of the suite
        from markupsafe import Markup, escape
    except ImportError as error:
        raise ImportError("a page of the tour needs Jinja: pip install jinja2") from error
    loader = jinja2.FileSystemLoader(TEMPLATES)
    made = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    made.filters["spelled"] = lambda text: Markup(spelled(str(escape(text))))
    return made


def spelled(text: str) -> str:
    """Markdown's code as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", without_links(text))


def without_links(text: str) -> str:
    """The words of Markdown's links."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
