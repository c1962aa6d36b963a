"""A page beside asv's own, written when `asv publish` runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from asv.console import log
from asv.publishing import OutputPublisher

Write = Callable[[str, Path, Path, Any, Any, dict[int, str]], list[str]]


def page(file: str, label: str, about: str, write: Write) -> type[OutputPublisher]:
    """A publisher for a page; asv finds it because it is a subclass of its own base class.

    file: the page's name without .html. label, about: of its button.
    write(project, results, html, benchmarks, graphs, commits) writes it into the folder `html` and returns warnings;
    results: a folder; commits: hashes by asv's revision numbers.
    """

    class Page(OutputPublisher):
        name, button_label, description, order = file, label, about, 4

        @classmethod
        def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: dict[str, int]) -> None:
            """Called by asv between its graphs and what its own pages need: an error here must not end it."""
            try:
                commits = {revision: commit for commit, revision in revisions.items()}
                for sentence in write(conf.project, Path(conf.results_dir), Path(conf.html_dir), benchmarks, graphs, commits):
                    log.warning(sentence)
            except click.ClickException as error:
                log.error(f"{file}.html could not be written: {error.message}")
            except Exception as error:
                log.error(f"{file}.html could not be written: {type(error).__name__}: {error}")

    return Page
