"""The documentation builds into a site without a warning: every link and anchor leads somewhere."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="MkDocs is not installed: pip install mkdocs-material mkdocs-click")
ROOT = Path(__file__).parents[1]
HOOKS = ROOT / "docs" / "site_hooks.py"


def hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", HOOKS)
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    return module


def build(folder):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_site_has_every_document(tmp_path):
    done = build(tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} | {
        "contributing",
        "security",
        "changelog",
        "tool",
        "commands",
    }
    assert {path.parent.name for path in (tmp_path / "site").glob("*/index.html")} >= pages
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{page}/"' in start for page in pages)
    for path in (ROOT / "docs" / "tour").glob("*.ipynb"):
        assert "<strong>Why.</strong>" in (tmp_path / "site" / "tour" / path.stem / "index.html").read_text(encoding="utf-8")
    commands = (tmp_path / "site" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "--dirty" in commands
    assert "https://" not in start.partition("</head>")[0]


@pytest.mark.parametrize(
    ("folder", "text", "expected"),
    [
        ("", "[a](docs/gate.md#x)", "[a](gate.md#x)"),
        ("", "![a](docs/a.png)", "![a](a.png)"),
        ("", "[a](LICENSE)", "a"),
        ("docs", "[a](../README.md) [b](gate.md)", "[a](index.md) [b](gate.md)"),
        ("docs", "[a](../convbench/README.md)", "[a](tool.md)"),
        ("docs", "[a](../.github/workflows/gate.yml)", "a"),
        ("convbench", "[a](../docs/gate.md)", "[a](gate.md)"),
        ("docs", "[a](https://a.b/c) [b](#c)", "[a](https://a.b/c) [b](#c)"),
    ],
)
def test_links_are_those_of_the_site(folder, text, expected):
    assert hooks().for_site(text, folder) == expected
