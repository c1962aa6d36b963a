"""The content of the comparison page, without a browser: files of results and pictures in, or one sentence."""

import io
import json
import math
import os
import random
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote

import pytest
from asv.graph import GraphSet
from published import BENCHMARKS, CEILINGS, CELLS, LINES, PROBLEMS, QUARTILES, SWEEP, TIMES, Published

from convbench import pages
from convbench.pages import changes, comparison, document

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


LINE = {"benchmark": SWEEP["name"], "params": list(CELLS[0]), "status": "ok"}


@pytest.mark.parametrize(
    ("times", "lines", "entry"),
    [
        ({CEILINGS["name"]: [0.0, 0.0, 0.0]}, [], {}),
        ({CEILINGS["name"]: [-1.0, math.nan, None]}, [], {}),
        ({}, [LINE | {"versions": 3}], {}),
        ({}, [LINE | {"threads": [1]}], {}),
        ({}, [LINE | {"relative_l2": "x"}], {}),
        ({}, [LINE | {"ended": "today"}], {}),
        ({}, [3, None, "x"], {}),
        ({}, [], {"problems": {name: {"flops": math.nan, "bytes": 0} for name in PROBLEMS}}),
        ({}, [], {"params": []}),
    ],
)
def test_nonsense_ends_in_a_page_and_ends_nothing_else(tmp_path, times, lines, entry):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add({**TIMES, **times}, QUARTILES, lines)
    (made.results / "benchmarks.json").write_text(json.dumps({**BENCHMARKS, SWEEP["name"]: {**SWEEP, **entry}, "version": 2}))
    content = document.document("project", made.results, {"rows": [], "left_out": 0}, made.folder / "none.png")
    assert content["runs"] or made.path.name in content["passed_over"][0]
    assert "<html" in comparison.page(content)


def test_whatever_happens_asv_s_own_pages_are_written(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparison, "page", lambda content: 1 / 0)
    conf = SimpleNamespace(project="p", results_dir="results", html_dir="html")
    pages.Comparison.publish(conf, None, {}, GraphSet(), {})
    assert "comparison.html could not be written: ZeroDivisionError: division by zero" in caplog.text


def test_a_file_whose_name_is_no_text_costs_no_page(tmp_path):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES, QUARTILES, LINES)
    (made.path.parent / os.fsdecode(b"\xff-env.json")).write_text("{")
    said = made.publish()
    assert "could not be written" not in said
    assert made.page.stat().st_size > 1e6


def test_the_page_is_a_file_of_its_own(tmp_path, monkeypatch, caplog):
    """asv has made the folder anew; a file that exists there all the same is not written to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "html").mkdir()
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "html" / "comparison.html").symlink_to(tmp_path / "theirs")
    conf = SimpleNamespace(project="p", results_dir="results", html_dir="html")
    pages.Comparison.publish(conf, None, {}, GraphSet(), {})
    assert "comparison.html could not be written: FileExistsError" in caplog.text
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_rows_that_the_suite_has_no_more_are_left_out(tmp_path):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES)
    fewer = {**SWEEP, "params": [SWEEP["params"][0][:1], SWEEP["params"][1][:2]]}
    (made.results / "benchmarks.json").write_text(json.dumps({**BENCHMARKS, SWEEP["name"]: fewer, "version": 2}))
    (run,) = document.document("project", made.results, {"rows": [], "left_out": 0}, made.folder / "none.png")["runs"]
    cells = zip(run["cells"]["benchmark"], run["cells"]["value"], strict=True)
    assert [value for index, value in cells if index == 0] == [1e-6, 6.1e-5]


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG" + bytes(5 << 20)])
def test_a_gallery_that_is_none(tmp_path, content):
    (tmp_path / "gallery.png").write_bytes(content)
    assert document._picture(tmp_path / "gallery.png") is None
    assert document._picture(tmp_path / "none.png") is None


def drawn(kind, size=(30, 20), mode="RGB"):
    """A picture as a file of that kind."""
    written = io.BytesIO()
    Image.new(mode, size, "red" if mode == "RGB" else 1).save(written, kind)
    return written.getvalue()


@pytest.mark.parametrize("kind", ["GIF", "JPEG", "TIFF", "PPM", "EPS", "WEBP"])
def test_a_gallery_of_another_kind(tmp_path, monkeypatch, kind):
    """Pillow starts Ghostscript for one of them."""
    started = tmp_path / "started"
    ghostscript = tmp_path / "gs"
    ghostscript.write_text(f"#!/bin/sh\necho 10.0\necho $* >> {started}\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # it looks for it once
    (tmp_path / "gallery.png").write_bytes(drawn(kind))
    assert (document._picture(tmp_path / "gallery.png"), started.exists()) == (None, False)


def test_a_gallery_that_is_no_file_of_its_own(tmp_path):
    """A link may lead to any picture of the user's, and a pipe never ends."""
    (tmp_path / "other.png").write_bytes(drawn("PNG"))
    (tmp_path / "gallery.png").symlink_to(tmp_path / "other.png")
    assert document._picture(tmp_path / "other.png") is not None
    assert document._picture(tmp_path / "gallery.png") is None
    os.mkfifo(tmp_path / "pipe.png")
    assert document._picture(tmp_path / "pipe.png") is None


def test_a_gallery_of_too_many_pixels(tmp_path, monkeypatch):
    """Ten kilobytes can hold them; none is decoded."""
    (tmp_path / "gallery.png").write_bytes(drawn("PNG", (8000, 8000), "1"))
    decoded = []
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda picture: decoded.append(picture.size))
    assert document._picture(tmp_path / "gallery.png") is None
    assert decoded == []


def test_a_damaged_gallery(tmp_path):
    chance = random.Random(0)
    for _ in range(300):
        content = bytearray(drawn("PNG"))
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(8, len(content))] = chance.randrange(256)
        (tmp_path / "gallery.png").write_bytes(content)
        document._picture(tmp_path / "gallery.png")


@pytest.mark.parametrize("name", ["b.time_it", "b?c.time", "b#c&d=e.time%20", 'b" onclick="c', "javascript:b", "b/../c"])
def test_a_link_to_a_graph_leads_to_no_other(name):
    """asv reads what stands before the question mark as a name, decoded."""
    before, after = (0, 4, 1.0, 1.0, 0.0), (4, 8, 2.0, 2.0, 0.0)
    entry = {"name": name, "unit": "seconds", "param_names": ["p&q=r#s"], "params": [["'t&u'"]]}
    row = changes._row(entry, ("'t&u'",), (before, after), dict.fromkeys(range(9), "c" * 40), {"machine": "m&n=o"})
    path, _, fragment = row["link"].partition("#")
    place, _, query = fragment.partition("?")
    assert (path, unquote(place)) == ("index.html", name)
    assert parse_qs(query) == {"p-p&q=r#s": ["'t&u'"], "machine": ["m&n=o"], "commits": [f"{'c' * 40}-{'c' * 40}"]}
    assert not set(place) & set("?#&\"'<>")


def test_a_dashboard_without_the_place_for_the_link(tmp_path):
    (tmp_path / "index.html").write_text("<html></html>")
    assert not comparison.link(tmp_path / "index.html")
    assert not comparison.link(tmp_path / "none.html")
    assert (tmp_path / "index.html").read_text() == "<html></html>"


def test_json_cannot_end_its_element():
    text = {"</script>": ["<!--", "]]>", "\u2028", "&lt;"]}
    written = comparison.as_json(text)
    assert not set(written) & set("<>&")
    assert json.loads(written) == text
