"""The comparison page, as asv publish writes it, in a real browser without a network."""

import itertools
import json
import math
import re
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from dashboards import offline_pages
from published import PROBLEMS, SWEEP, THREADS

from convbench.common import numbers
from convbench.pages import document, server

pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


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


def test_the_fastest_are_on_the_first_screen(published, opened):
    """On a desktop and on a phone, with the filters folded; a problem leads to all its times."""
    for width, height in ((1280, 720), (375, 667)):
        page = opened(published.page, width=width, as_it_opens=True)
        page.set_viewport_size({"width": width, "height": height})
        assert not page.locator("#machine").is_visible()
        for row in page.locator("#fastest tbody tr").all()[:3]:
            for part in row.locator("th, td").all():
                box = part.bounding_box()
                assert box["y"] + box["height"] <= height
                assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    lines = [row.locator("th, td").all_inner_texts() for row in page.locator("#fastest tbody tr").all()]
    assert [line[:2] for line in lines[:3]] == [
        [f"{SWEEP['name'].rpartition('.')[0]} {size}", name]
        for size, name in (("8x8", "cpu.loops"), ("64x64", "cpu.fast"), ("256x256", "cpu.fast"))
    ]
    assert lines[1][3] == "5.9 to 6.5x"  # 61 us by 9.87, each from -2 to +3 %
    page.locator("#fastest a").nth(1).click()
    assert query(page)["benchmark"] == SWEEP["name"]
    assert query(page)["cell"].startswith("cpu.fast|")


def test_no_word_of_a_problem_is_broken(published, opened):
    """On a phone each has a line of its own, at a size that can be read."""
    page = opened(published.page, width=375, as_it_opens=True)
    look = "links => links.map(link => [parseFloat(getComputedStyle(link).fontSize), link.getClientRects().length])"
    names = page.locator("#fastest a").evaluate_all(look)
    assert all(size >= 13 and lines == 1 for size, lines in names)
    narrow = "boxes => boxes.map(box => box.scrollWidth <= box.clientWidth)"
    assert page.locator("#summary .scroll, #history .scroll").evaluate_all(narrow) == [True, True]


def test_crossovers_stand_below_the_fastest(published, opened):
    page = opened(published.page)
    words = page.locator("#crossovers li")
    assert words.all_inner_texts() == ["sizes.Size: direct wins up to 8x8, winograd from 64x64"]
    page.get_by_label("im2col").uncheck()  # the sentence is of all families
    assert not page.locator("#crossovers").is_visible()


def test_the_winner_is_marked_without_colour(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    lines = [row.locator("td").all_inner_texts() for row in page.locator("#table tbody tr").all()]
    assert heads(page) == ["cpu.fast", "cpu.loops", "im2col.naive"]  # the most frequent winner first
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
    assert "im2col.naive: failed: no time (asv gives no reason)" in said


SECTIONS = ("curves", "roofline", "scaling", "memory", "error")
TOP = "document.getElementById('error').getBoundingClientRect().top + scrollY"


@pytest.fixture(scope="module")
def drawn(published, browser):
    """The page with all of its figures, which take seconds to draw. Only look at it."""
    with offline_pages(browser) as open_page:
        early = f"addEventListener('DOMContentLoaded', () => window.early = {TOP})"
        page = open_page(published.page, f"#benchmark={SWEEP['name']}", first=early)
        for section in SECTIONS:
            page.locator(f"#{section}").scroll_into_view_if_needed()
            page.locator(f"#{section} .main-svg").first.wait_for()
        yield page


@pytest.mark.slow
def test_a_crossover_is_said_in_words_and_marked(drawn):
    assert drawn.locator("#curves .words").inner_text() == "Fastest from the left: cpu.loops; from 64x64 up: cpu.fast."
    assert drawn.locator("#curves .annotation-text").all_text_contents() == ["cpu.fast"]


def test_the_roofline_says_what_binds(drawn):
    words = drawn.locator("#roofline .words").inner_text()
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
def test_figures_have_their_words(drawn, section, words):
    assert drawn.locator(f"#{section} .words").inner_text() == words


def test_figures_have_their_place_before_they_are_drawn(drawn):
    assert abs(drawn.evaluate(f"{TOP} - window.early")) < 200  # sentences, which come with them


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


def test_a_gallery(published, opened):
    picture = opened(published.page).locator("#gallery img")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [900, 300]


# Filters and the address


@pytest.mark.slow
def test_filters_leave_out_and_stand_in_the_address(published, opened):
    page = opened(published.page, f"#benchmark={SWEEP['name']}")
    page.select_option("#device", "cuda")
    assert page.locator("#table tbody tr").count() == 0
    assert page.locator("#cell").inner_text() == "Nothing that matches these filters has a time."
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


def test_an_older_commit_is_a_choice(published, opened):
    page = opened(published.page)
    assert page.locator("#run option").count() == document.MAX_RUNS
    oldest = page.locator("#run option").last.get_attribute("value")
    page.select_option("#run", oldest)
    assert query(page)["run"] == oldest
    assert oldest.split("@")[1] in page.locator(".source").first.inner_text()


def test_an_address_that_names_what_is_not_there(published, opened):
    page = opened(published.page, "#run=x&benchmark=y&threads=z&device=q&without=w&cell=v&fixed=u&problem=t")
    assert page.locator("#table td").count() > 0


@pytest.mark.slow
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


# What it lets run


@pytest.mark.slow
def test_no_script_but_its_own_runs_in_the_page(published, browser):
    """Not even where a text became a part of the page."""
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(published.page.as_uri())
    page.locator("#curves").scroll_into_view_if_needed()
    page.locator("#curves .main-svg").first.wait_for()
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.taken = 1'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button onclick=\"window.taken = 2\">b</button>')")
    page.locator("body > button").dispatch_event("click")
    taken = page.evaluate("window.taken")
    page.close()
    assert taken is None
    assert len([text for text in said if "Content Security Policy" in text]) == 2


@pytest.mark.slow
def test_the_page_works_where_the_dashboard_serves_it(published, browser):
    """The served page has both its own content policy and the server's."""
    page, wrong = browser.new_page(), []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    with server.Server(published.html, 0) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,)).start()
        try:
            page.goto(f"http://127.0.0.1:{serving.server_port}/comparison.html#benchmark={SWEEP['name']}")
            page.locator("#curves").scroll_into_view_if_needed()
            page.locator("#curves .main-svg").first.wait_for()
            page.locator("#table td").first.click()
            page.close()
        finally:
            serving.shutdown()
    assert wrong == []
