"""The comparison page, as asv publish writes it, in a real browser without a network."""

import io
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from asv.graph import GraphSet
from published import (
    BENCHMARKS,
    CEILINGS,
    CELLS,
    LINES,
    PLAIN,
    PROBLEMS,
    QUARTILES,
    SWEEP,
    THREADS,
    TIMES,
    Published,
    benchmark,
)

from convbench import pages
from convbench.common import numbers
from convbench.pages import changes, dashboard, document, render

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    made = Published(tmp_path_factory.mktemp("page") / "project", BENCHMARKS)
    slower = {**TIMES, SWEEP["name"]: [t and 1.5 * t for t in TIMES[SWEEP["name"]]]}
    for times in [slower] * 4 + [TIMES] * 4:
        made.commit = made.add(times, QUARTILES, LINES)
    made.said = made.publish()
    return made


@pytest.fixture
def opened(browser):
    """Opens a page in a browser that no network answers; what goes wrong in it fails the test."""
    contexts, wrong = [], []

    def open_page(path, address="", width=1280, first=""):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(first)
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
        page.goto(path.as_uri() + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def heads(page):
    return page.locator("#table thead th").all_inner_texts()[1:]


def query(page):
    return {key: value for key, (value,) in parse_qs(urlsplit(page.url).fragment).items()}


# What it shows


def test_every_number_is_that_of_the_results(published, opened):
    page = opened(published.page)
    content = json.loads(published.path.read_text())
    for name in (SWEEP["name"], THREADS["name"]):
        page.select_option("#benchmark", label=name)
        values, params, *_ = content["results"][name]
        expected = {}
        for one, value in zip(itertools.product(*params), values, strict=True):
            if value and math.isfinite(value):
                expected["|".join(map(document.results.plain, one))] = value
        spots = page.locator("#table td[data-value]")
        found = {spot.get_attribute("data-cell"): float(spot.get_attribute("data-value")) for spot in spots.all()}
        assert found == expected
        for spot in spots.all():
            number, unit, *_ = spot.locator("span").first.inner_text().split()
            scale = {name: size for size, name in numbers.UNITS["seconds"]}[unit]
            assert float(number) * scale == pytest.approx(float(spot.get_attribute("data-value")), rel=0.05)


def test_who_wins_is_said_without_colour(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    lines = [row.locator("td").all_inner_texts() for row in page.locator("#table tbody tr").all()]
    assert heads(page) == ["cpu.fast", "cpu.loops", "im2col.naive"]  # who wins most, first
    best = [["★" in text for text in line] for line in lines]
    assert best == [[False, True, False], [True, False, False], [True, False, False]]
    assert "2\N{MULTIPLICATION SIGN}" in lines[0][0]
    assert "7.47 GFLOP/s, 15 %" in lines[1][0]
    assert lines[1][2] == "failed"


def test_reasons_are_told(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    assert "2 reasons" in page.locator("#without summary").inner_text()
    page.locator("#without summary").click()
    said = page.locator("#without li").all_inner_texts()
    assert "gpu.fast (3 rows): skipped: unavailable: gpu.fast needs a GPU" in said
    assert "im2col.naive: failed: ended without a report: killed, out of time or memory" in said


def test_a_crossover_is_said_in_words_and_marked(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.locator("#curves").scroll_into_view_if_needed()
    page.locator("#curves .main-svg").first.wait_for()
    assert page.locator("#curves .words").inner_text() == "Fastest from the left: cpu.loops; from 64x64 up: cpu.fast."
    assert page.locator("#curves .annotation-text").all_text_contents() == ["cpu.fast"]


def test_the_roofline_says_what_binds(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.locator("#roofline").scroll_into_view_if_needed()
    page.locator("#roofline .main-svg").first.wait_for()
    words = page.locator("#roofline .words").inner_text()
    start = r"On 1 thread: by the lower roof \d+ cells are compute-bound and \d+ memory-bound, of which 0 reach half of it;"
    assert re.match(start + r" \d+ are overhead-bound\.", words)
    assert "Closest to its limit: cpu.fast on 256x256" in words


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("scaling", "sizes.Threads.time_it: cpu.fast 1.94 times on 2, cpu.loops 0.98 times on 2."),
        ("memory", "1 of 2 measurements of memory have a time on the same problem. Nothing extra, and so no place on a "
         "logarithmic axis: cpu.loops."),
        ("error", "The errors of 8 cells are known. No error at all in 1, of cpu.loops: they have no place on a logarithmic "
         "axis."),
    ],
)  # fmt: skip
def test_figures_have_their_words(published, opened, section, words):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.locator(f"#{section}").scroll_into_view_if_needed()
    page.locator(f"#{section} .main-svg").first.wait_for()
    assert page.locator(f"#{section} .words").inner_text() == words


def test_figures_have_their_place_before_they_are_drawn(published, opened):
    top = "document.getElementById('error').getBoundingClientRect().top + scrollY"
    page = opened(
        published.page,
        f"#benchmark={SWEEP['name']}",
        first=f"addEventListener('DOMContentLoaded', () => window.early = {top})",
    )
    for section in ("curves", "roofline", "scaling", "memory", "error"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
        page.locator(f"#{section} .main-svg").first.wait_for()
    assert abs(page.evaluate(f"{top} - window.early")) < 200  # sentences, which come with them


def test_every_figure_has_its_source(published, opened):
    page = opened(published.page)
    for text in page.locator(".source").all_inner_texts():
        for part in ("box", "A processor", published.commit[:8], "2023-11-14", "numpy 2.4.6", "openblas 1", "env-py3.11"):
            assert part in text


def test_what_changed_between_which_commits(published, opened):
    page = opened(published.page)
    rows = page.locator("#history tbody tr")
    texts = rows.all_inner_texts()
    assert len(texts) == 8  # all cells of the sweep that have a time
    assert all("0.67x ▼ faster" in text for text in texts)
    link = urlsplit(rows.first.locator("a").get_attribute("href"))
    name, _, parameters = link.fragment.partition("?")
    given = parse_qs(parameters)
    assert (link.path, name) == ("index.html", SWEEP["name"])
    assert given["p-size"][0] in PROBLEMS
    first, last = given["commits"][0].split("-")
    assert published.sample.git("rev-list", "--count", f"{first}..{last}") == "1"


def test_asv_s_dashboard_has_a_link(published):
    assert published.page.name in (published.html / "index.html").read_text()
    assert not re.search(r"WARN|ERROR", published.said)


# Filters and the address


def test_filters_leave_out_and_stand_in_the_address(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.select_option("#device", "cuda")
    assert page.locator("#table tbody tr").count() == 0
    assert page.locator("#cell").inner_text() == "Nothing that passes these filters has a time."
    page.select_option("#device", "cpu")
    page.get_by_label("im2col").uncheck()
    assert heads(page) == ["cpu.fast", "cpu.loops"]
    assert query(page) | {"device": "cpu", "without": "im2col", "benchmark": SWEEP["name"]} == query(page)
    again = opened(published.page, "#" + urlsplit(page.url).fragment)
    assert heads(again) == ["cpu.fast", "cpu.loops"]
    assert not again.get_by_label("im2col").is_checked()
    again.get_by_role("button", name="Show all").click()
    assert heads(again) == ["cpu.fast", "cpu.loops", "im2col.naive"]


def test_threads_are_a_filter(published, opened):
    page = opened(published.page, f"#benchmark={THREADS['name']}&threads=2")
    assert page.locator("#table tbody th").all_inner_texts() == ["64x64, 2"]


def test_a_machine_is_a_filter(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES)
    other = json.loads(made.path.read_text())
    other["params"] = {**other["params"], "machine": "other"}
    (made.results / "other").mkdir()
    (made.results / "other" / made.path.name).write_text(json.dumps(other))
    (made.results / "other" / "machine.json").write_text(json.dumps({**other["params"], "version": 1}))
    made.publish()
    page = opened(made.page)
    assert page.locator("#run option").count() == 2
    page.select_option("#machine", "other")
    assert page.locator("#run option").all_inner_texts()[0].startswith("other, ")
    assert page.locator("#run option").count() == 1
    assert query(page)["machine"] == "other"
    assert "other (cpu A processor" in page.locator(".source").first.inner_text()


def test_an_older_commit_is_a_choice(published, opened):
    page = opened(published.page)
    assert page.locator("#run option").count() == document.RUNS
    oldest = page.locator("#run option").last.get_attribute("value")
    page.select_option("#run", oldest)
    assert query(page)["run"] == oldest
    assert oldest.split("@")[1] in page.locator(".source").first.inner_text()


def test_an_address_that_names_what_is_not_there(published, opened):
    page = opened(published.page, "#run=x&benchmark=y&threads=z&device=q&without=w&cell=v&fixed=u&problem=t")
    assert page.locator("#table td").count() > 0


def test_the_keyboard_is_enough(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.locator("#table td").first.focus()
    for arrow in ("Right", "Down", "Left"):
        page.keyboard.press(f"Arrow{arrow}")
    said = page.locator("#cell").inner_text()
    assert said.startswith("cpu.fast on 64x64: 9.9 us")
    assert "6.2x the speed of cpu.loops" in said
    page.keyboard.press("Enter")
    assert query(page)["cell"] == "cpu.fast|64x64"
    again = opened(published.page, "#" + urlsplit(page.url).fragment)
    assert again.locator("td[aria-selected=true]").get_attribute("data-cell") == "cpu.fast|64x64"
    assert parse_qs(urlsplit(again.locator("#cell a").get_attribute("href")).fragment.partition("?")[2]) == {
        "p-implementation": ["'cpu.fast'"],
        "p-size": ["'64x64'"],
    }


def test_a_small_screen(published, opened):
    page = opened(published.page, width=375)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


# What goes wrong

HOSTILE = [
    "<script>window.taken = 1</script>",
    "'\"`",
    "a\nb",
    "x" * 10_000,
    "</script><b>",
    "{{ content }}",
    "<img src=x>",
    " ",
    "%",
]


def test_hostile_names_and_values(tmp_path, opened):
    nasty = "</script><script>window.taken = 1</script>"
    rows = [repr(name) for name in HOSTILE]
    one = benchmark("b.time_it", HOSTILE, [("<b>row</b>", rows)], baseline=HOSTILE[0], implementations={
        name: {"device": name, "family": name, "summary": name} for name in HOSTILE
    })  # fmt: skip
    made = Published(tmp_path / "project", {"b.time_it": one})
    values = [-1.0, 0.0, math.nan, 1e300, 1e-300, None, 1.0, 2.0]
    count = len(HOSTILE) ** 2
    cells = itertools.product(*one["params"])
    lines = [{"benchmark": "b.time_it", "params": list(params), "status": "failed", "reason": nasty} for params in cells][:20]
    made.add({"b.time_it": [random.Random(i).choice(values) for i in range(count)]}, lines=lines)
    made.publish()
    page = opened(made.page)
    assert page.evaluate("window.taken") is None
    assert page.locator("#table td").count() > 0
    for section in ("curves", "roofline", "scaling", "memory", "error"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
        page.locator(f"#{section} .words:not(:empty)").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.locator("script, img").count() == 3  # the page's own


# What Plotly would make a link, bold, a second label beside the first, or a figure of its own of.
LINK = '<a href="https://b.example">b</a>'
FORMATTED = f"{LINK}<b>b</b><extra>b</extra>%{{x}}&lt;"


def test_plotly_takes_names_and_units_for_text(tmp_path, opened):
    """In titles, ticks, legends, annotations, and in what is shown beside a point."""
    names = [f"1{FORMATTED}", f"2{FORMATTED}"]
    sizes = [repr("8"), repr("64"), repr("256")]
    one = benchmark("b.time_it", names, [(f"p{FORMATTED}", sizes)], unit=f"u{FORMATTED}", baseline=names[0])
    many = benchmark("b.time_threads", names, [("threads", ["1", "2"])], unit=f"u{FORMATTED}")
    made = Published(tmp_path / "project", {"b.time_it": one, "b.time_threads": many})
    lines = [
        {"benchmark": "b.time_it", "params": list(c), "status": "ok", "relative_l2": 1e-6}
        for c in itertools.product(*one["params"])
    ]
    made.add({"b.time_it": [1.0, 2.0, 4.0, 3.0, 1.0, 1.0], "b.time_threads": [2.0, 1.0, 4.0, 2.0]}, lines=lines)
    made.publish()
    page = opened(made.page, "#benchmark=b.time_it")
    shown = {}
    for section in ("curves", "scaling", "error"):
        page.locator(f"#{section}").scroll_into_view_if_needed()
        page.locator(f"#{section} .main-svg").first.wait_for()
        point = page.locator(f"#{section} .scatterlayer .points path").first
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.locator(f"#{section} .hovertext").first.wait_for()
        shown[section] = page.locator(f"#{section} .plot").evaluate(
            "plot => [...plot.querySelectorAll('text')].map(t => t.textContent)"
        )
        for made_of in ("a", "text tspan[style*=bold]", "text a"):
            assert page.locator(f"#{section} .plot svg {made_of}").count() == 0, (section, made_of)
    for title in (f"p{FORMATTED}", f"u{FORMATTED}"):
        assert title in shown["curves"]
    assert shown["curves"].count(f"2{FORMATTED}") == 2  # the legend, and where it begins to be the fastest
    for section, text in shown.items():
        assert f"1{FORMATTED}" in text
        assert any(said.startswith((f"1{FORMATTED}, ", f"2{FORMATTED}, ")) and f"u{FORMATTED}" in said for said in text), (
            section
        )


def test_no_script_but_its_own_runs_in_the_page(published, browser):
    """Not even where a text became a part of the page."""
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(published.page.as_uri())
    page.locator("#curves .main-svg").first.wait_for()
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.taken = 1'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button onclick=\"window.taken = 2\">b</button>')")
    page.locator("body > button").dispatch_event("click")
    taken = page.evaluate("window.taken")
    page.close()
    assert taken is None
    assert len([text for text in said if "Content Security Policy" in text]) == 2


def test_the_page_works_where_the_dashboard_serves_it(published, browser):
    """Whose policy holds together with that of the page."""
    page, wrong = browser.new_page(), []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    with dashboard._Server(published.html, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            page.goto(f"http://127.0.0.1:{server.server_port}/comparison.html#benchmark={SWEEP['name']}")
            page.locator("#curves .main-svg").first.wait_for()
            page.locator("#table td").first.click()
            page.close()
        finally:
            server.shutdown()
    assert wrong == []


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


def test_the_link_of_a_cell_leads_to_no_other_graph(tmp_path, opened):
    name = "b?c#d&e=f.time_it"
    made = Published(tmp_path / "project", {name: benchmark(name, ["cpu.a", "cpu.b"])})
    made.add({name: [1.0, 2.0]})
    made.publish()
    page = opened(made.page)
    page.locator("#table td").first.click()
    place = page.locator("#cell a").get_attribute("href").partition("#")[2].partition("?")
    assert unquote(place[0]) == name
    assert parse_qs(place[2]) == {"p-implementation": ["'cpu.a'"]}


def test_files_that_cannot_be_read_are_named(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES, QUARTILES, LINES)
    whole = made.path.read_text()
    made.add(TIMES)
    made.publish()
    made.path.write_text(whole[: len(whole) // 2])
    content = document.document("project", made.results, {"rows": [], "left_out": 0}, made.folder / "none.png")
    assert len(content["runs"]) == 1
    assert made.path.name in content["passed_over"][0]
    made.page.write_text(render.page(content), encoding="utf-8")
    assert made.path.name in opened(made.page).locator(".warning").inner_text()


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
    assert "<html" in render.page(content)


def test_whatever_happens_asv_s_own_pages_are_written(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(render, "page", lambda content: 1 / 0)
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
    """asv has made the folder anew; what lies there all the same is not written to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "html").mkdir()
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "html" / "comparison.html").symlink_to(tmp_path / "theirs")
    conf = SimpleNamespace(project="p", results_dir="results", html_dir="html")
    pages.Comparison.publish(conf, None, {}, GraphSet(), {})
    assert "comparison.html could not be written: FileExistsError" in caplog.text
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_nothing_to_compare(tmp_path, opened):
    made = Published(tmp_path / "project", {PLAIN["name"]: PLAIN})
    made.add({PLAIN["name"]: [1.0]})
    made.publish()
    page = opened(made.page)
    assert "no benchmark of this suite has a parameter called implementation" in page.locator("#nothing").inner_text().lower()


def test_no_results_yet(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.publish()
    assert "No results of these benchmarks have a time yet." in opened(made.page).locator("#nothing").inner_text()


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


def drawn(kind, size=(30, 20)):
    """A picture as a file of that kind."""
    written = io.BytesIO()
    Image.new("RGB", size, "red").save(written, kind)
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
    (tmp_path / "gallery.png").write_bytes(drawn("PNG", (8000, 8000)))
    decoded = []
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda picture: decoded.append(picture.size))
    assert document._picture(tmp_path / "gallery.png") is None
    assert decoded == []


def test_a_damaged_gallery(tmp_path):
    chance = random.Random(0)
    for _ in range(1000):
        content = bytearray(drawn("PNG"))
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(8, len(content))] = chance.randrange(256)
        (tmp_path / "gallery.png").write_bytes(content)
        document._picture(tmp_path / "gallery.png")


def test_a_gallery(published, opened):
    (published.folder / ".convbench").mkdir()
    Image.new("RGB", (900, 300), "red").save(published.folder / ".convbench" / "gallery.png")
    published.publish()
    picture = opened(published.page).locator("#gallery img")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [900, 300]


def test_a_dashboard_without_the_place_for_the_link(tmp_path):
    (tmp_path / "index.html").write_text("<html></html>")
    assert not render.link(tmp_path / "index.html")
    assert not render.link(tmp_path / "none.html")
    assert (tmp_path / "index.html").read_text() == "<html></html>"


def test_json_cannot_end_its_element():
    text = {"</script>": ["<!--", "]]>", "\u2028", "&lt;"]}
    written = render.as_json(text)
    assert not set(written) & set("<>&")
    assert json.loads(written) == text


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "8"], {"1": 1, "8": 8}),
        (["4x4", "2x8"], {"4x4": 4, "2x8": 4}),
        (["1", "2", "all"], {"1": 1, "2": 2}),
        (["0.5", "1.5"], {"0.5": 0.5, "1.5": 1.5}),
        (["3"], None),
        (["a", "b"], None),
        (["1", "b"], None),
        (["0", "1"], None),
        (["n1c1h7", "n1c1h8"], None),
        ([], None),
    ],
)
def test_what_is_a_quantity(values, numbers):
    assert document._numbers(values) == numbers


# Many of them


# asv publish, but for its step detection: that of 5,000 series of 200 takes ten minutes, and says nothing of the page.
PUBLISH = """
import asv.main, asv.step_detect

asv.step_detect.detect_steps = lambda y, w: [(0, 100, y[0], y[0], 0.0), (100, len(y), y[-1], y[-1], 0.0)]
asv.main.main()
"""


@pytest.mark.slow  # two minutes
def test_5000_series_over_200_commits(tmp_path, opened, monkeypatch):
    generator = random.Random(0)
    names = [f"family{i}.implementation{i}" for i in range(50)]
    rows = [repr(f"{8 * i}x{8 * i}") for i in range(1, 21)]
    many = {f"b{k}.Sweep.time_it": benchmark(f"b{k}.Sweep.time_it", names, [("size", rows)]) for k in range(5)}
    made = Published(tmp_path / "project", many)
    base = {name: [10 ** generator.uniform(-6, -1) for _ in range(1000)] for name in many}
    for number in range(200):
        shift = 1.2 if number > 100 else 1.0
        times = {n: [float(f"{t * shift * generator.gauss(1, 0.02):.5g}") for t in values] for n, values in base.items()}
        made.add(times, {n: ([0.99 * t for t in v], [1.01 * t for t in v]) for n, v in times.items()})
    command = [sys.executable, "-u", "-c", PUBLISH, "publish", "--no-pull"]
    process = subprocess.Popen(command, cwd=made.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [(time.monotonic(), line) for line in process.stdout]
    assert process.wait() == 0, lines[-5:]
    place = next(i for i, (_, line) in enumerate(lines) if "for Comparison" in line)
    (began, _), (ended, _) = lines[place - 1 : place + 1]  # a line ends when the next step begins
    assert made.page.stat().st_size < 15e6
    start = time.monotonic()
    page = opened(made.page)
    page.locator("#table td").first.wait_for()
    opening = time.monotonic() - start
    size = made.page.stat().st_size / 1e6
    print(
        f"{ended - began:.1f} s of asv publish's {lines[-1][0] - lines[0][0]:.0f} s; {size:.1f} MB; opened in {opening:.2f} s"
    )
    assert ended - began < 15
    assert opening < 3
    assert page.locator("#history tbody tr").count() == changes.MOST
    assert f"{5000 - changes.MOST} smaller changes are left out" in page.locator("#history").inner_text()
