"""The comparison page as a publisher of asv: `"plugins": [".convbench.pages"]` in asv.conf.json, and `asv publish` writes it.

asv imports this for every command it runs, so that what only a page needs is imported when one is written.
"""

from __future__ import annotations

from pathlib import Path

from asv.console import log
from asv.publishing import OutputPublisher

from convbench.asv import safe_pages

__all__ = ["Comparison", "safe_pages"]  # asv takes both publishers as soon as they are imported


class Comparison(OutputPublisher):
    """html/comparison.html, self-contained, and a link to it in asv's own dashboard."""

    name = "comparison"
    button_label = "Compare implementations"
    description = "Which implementation is fastest where, and how far from this machine's limit"
    order = 4

    @classmethod
    def publish(cls, conf, repo, benchmarks, graphs, revisions) -> None:
        """Called by asv when its graphs are saved, and before it writes what its own pages need: nothing may end it here."""
        try:
            cls._write(conf, benchmarks, graphs, revisions)
        except Exception as error:
            log.error(f"comparison.html could not be written: {type(error).__name__}: {error}")

    @staticmethod
    def _write(conf, benchmarks, graphs, revisions) -> None:
        from convbench.pages import changes, document, render

        html = Path(conf.html_dir)
        found = changes.changes(benchmarks, graphs, {revision: commit for commit, revision in revisions.items()})
        gallery = Path(".convbench") / "gallery.png"  # asv runs in the folder of asv.conf.json
        content = document.document(conf.project, Path(conf.results_dir), found, gallery)
        for sentence in content["passed_over"]:
            log.warning(f"passed over: {sentence}")
        page = render.page(content)
        with (html / "comparison.html").open("x", encoding="utf-8", errors="replace") as file:  # asv has made the folder anew
            file.write(page)
        if not render.link(html / "index.html"):
            log.warning("asv's index.html has no list of pages any more that a link to comparison.html could be put into")
