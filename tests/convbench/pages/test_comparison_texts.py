"""The comparison page of other projects: texts that look like markup, files that cannot be read, and nothing to show."""

import itertools
import json
import math
import random
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from published import BENCHMARKS, LINES, PLAIN, QUARTILES, TIMES, Published, benchmark

from convbench.pages import comparison, document

pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


def written(made):
    """The page of a project's results, without asv: no change between commits is on it."""
    content = document.document("project", made.results, {"rows": [], "left_out": 0}, made.folder / "none.png")
    made.html.mkdir()
    made.page.write_text(comparison.page(content), encoding="utf-8")
    return made.page


def query(page):
    return {key: value for key, (value,) in parse_qs(urlsplit(page.url).fragment).items()}


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    page = opened(written(made), "#benchmark=b.time_it")
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


def test_the_link_of_a_cell_leads_to_no_other_graph(tmp_path, opened):
    name = "b?c#d&e=f.time_it"
    made = Published(tmp_path / "project", {name: benchmark(name, ["cpu.a", "cpu.b"])})
    made.add({name: [1.0, 2.0]})
    page = opened(written(made))
    page.locator("#table td").first.click()
    place = page.locator("#cell a").get_attribute("href").partition("#")[2].partition("?")
    assert unquote(place[0]) == name
    assert parse_qs(place[2]) == {"p-implementation": ["'cpu.a'"]}


def test_files_that_cannot_be_read_are_named(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES, QUARTILES, LINES)
    whole = made.path.read_text()
    made.add(TIMES)
    made.path.write_text(whole[: len(whole) // 2])
    content = document.document("project", made.results, {"rows": [], "left_out": 0}, made.folder / "none.png")
    assert len(content["runs"]) == 1
    assert made.path.name in content["passed_over"][0]
    assert made.path.name in opened(written(made)).locator(".warning").inner_text()


def test_a_machine_is_a_filter(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    made.add(TIMES)
    other = json.loads(made.path.read_text())
    other["params"] = {**other["params"], "machine": "other"}
    (made.results / "other").mkdir()
    (made.results / "other" / made.path.name).write_text(json.dumps(other))
    (made.results / "other" / "machine.json").write_text(json.dumps({**other["params"], "version": 1}))
    page = opened(written(made))
    assert page.locator("#run option").count() == 2
    page.select_option("#machine", "other")
    assert page.locator("#run option").all_inner_texts()[0].startswith("other, ")
    assert page.locator("#run option").count() == 1
    assert query(page)["machine"] == "other"
    assert "other (cpu A processor" in page.locator(".source").first.inner_text()


def test_nothing_to_compare(tmp_path, opened):
    made = Published(tmp_path / "project", {PLAIN["name"]: PLAIN})
    made.add({PLAIN["name"]: [1.0]})
    page = opened(written(made))
    assert "no benchmark of this suite has a parameter called implementation" in page.locator("#nothing").inner_text().lower()


def test_no_results_yet(tmp_path, opened):
    made = Published(tmp_path / "project", BENCHMARKS)
    assert "No results of these benchmarks have a time yet." in opened(written(made)).locator("#nothing").inner_text()
