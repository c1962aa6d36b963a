"""The documents are short, and docs/reading-results.md explains each reason and verdict that tables and reports show."""

import re
from pathlib import Path

import pytest

from convbench.gate.report import ORDER

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reading-results.md").read_text(encoding="utf-8")
REASONS = sorted(
    {
        kind
        for path in (ROOT / "benchmarks").rglob("*.py")
        for kind in re.findall(r'Skip\(f?"([a-z ]+)[":]', path.read_text(encoding="utf-8"))
    }
)
MAX_LINES, MAX_WORDS = 150, 1000
GENERATED = ("docs/speed.md", "docs/implementations.md", "docs/seeds.md")
MAX_DOCUMENTED_WORDS = 15_000


def test_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) < MAX_WORDS


def test_the_documents_are_short():
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    names = {path: path.relative_to(ROOT).as_posix() for path in paths}
    assert set(GENERATED) < set(names.values())
    words = {name: len(path.read_text(encoding="utf-8").split()) for path, name in names.items() if name not in GENERATED}
    assert sum(words.values()) < MAX_DOCUMENTED_WORDS, words


def test_reasons_are_found():
    assert {"too slow here", "unavailable", "unsupported", "on request", "not on this machine"} <= set(REASONS)


@pytest.mark.parametrize("reason", [*REASONS, "failed", "skipped", "no reason recorded"])
def test_a_reason_is_explained(reason):
    assert re.search(rf'^\|[^|]*"{reason}"', PAGE, re.MULTILINE)


@pytest.mark.parametrize("verdict", ORDER)
def test_a_verdict_is_explained(verdict):
    assert re.search(rf"^\|[^|]*\b{verdict}\b", PAGE.partition("## Verdicts")[2], re.MULTILINE)
