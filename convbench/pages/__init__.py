"""The comparison page as a publisher of asv: `"plugins": [".convbench.pages"]` in asv.conf.json, and `asv publish` writes it.

asv imports this for every command it runs, so that what only a page needs is imported when one is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convbench.asv import publisher, safe_pages
from convbench.common import extras

__all__ = ["Comparison", "safe_pages"]  # asv takes both publishers as soon as they are imported


def _write(project: str, results: Path, html: Path, benchmarks: Any, graphs: Any, commits: dict[int, str]) -> list[str]:
    """html/comparison.html, self-contained, and a link to it in asv's own dashboard."""
    extras.require("The comparison page", "page", "jinja2", "PIL", "plotly")
    from convbench.pages import changes, comparison, document

    found = changes.changes(benchmarks, graphs, commits)
    gallery = Path(".convbench") / "gallery.png"  # asv runs in the folder of asv.conf.json
    content = document.document(project, results, found, gallery)
    warnings = [f"skipped: {sentence}" for sentence in content["passed_over"]]
    page = comparison.page(content)
    with (html / "comparison.html").open("x", encoding="utf-8", errors="replace") as file:  # asv has made the folder again
        file.write(page)
    if not comparison.link(html / "index.html"):
        warnings.append("asv's index.html no longer has the list of pages in which comparison.html is linked")
    return warnings


ABOUT = "Which implementation is fastest where, and how far from this machine's limit"
Comparison = publisher.page("comparison", "Compare implementations", ABOUT, _write)
