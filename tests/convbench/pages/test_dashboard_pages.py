"""asv's dashboard with copies of the real packages, in a real browser that reaches no other host."""

import base64
import hashlib
import json
import re
import shutil

import pytest
from dashboards import DRAWN, PAGE, REF, interrupt, markup, served, serving, tags

# In the packages of these the file is not, byte for byte, what asv's hash says.
OTHER_BYTES = {
    *(f"jquery.flot{part}.min.js" for part in ("", ".time", ".selection", ".categories")),  # not minified
    "stupidtable.min.js",  # a newer version
}


@pytest.mark.slow
def test_as_asv_makes_it_the_page_needs_a_network(original, visit):
    with served(original / "html") as address:
        visit.page.goto(address)
        visit.page.wait_for_url("**/error.html")


@pytest.mark.slow
def test_every_page_of_the_dashboard_works_without_a_network(real, visit):
    page = visit.page
    with served(real.html) as address:
        page.goto(address)
        grid = page.locator("#summarygrid-display a.benchmark-container")
        grid.first.wait_for()
        assert sorted(grid.locator(".benchmark-text").all_inner_texts()) == ["time_length", "time_sort"]
        assert page.locator("#summarygrid-display canvas.flot-base").first.evaluate(DRAWN)

        grid.filter(has_text="time_sort").click()
        graph = page.locator("#main-graph canvas.flot-base")
        graph.wait_for()
        assert graph.evaluate(DRAWN)
        assert page.locator("#overview canvas.flot-base").evaluate(DRAWN)
        # The benchmark's own parameter along the x axis: flot's categories, and its bars side by side.
        page.get_by_role("button", name="algorithm", exact=True).click()
        page.wait_for_function("document.querySelector('#main-graph').innerText.includes('merge')")
        assert graph.evaluate(DRAWN)

        page.get_by_role("link", name="Benchmark list").click()
        rows = page.locator("#summarylist-body tbody tr")
        rows.first.wait_for()
        for first in ("('quick')", "('merge')"):  # the least time on top, then the greatest
            page.locator("#summarylist-body th").get_by_text("Value", exact=True).click()
            page.locator("#summarylist-body tbody tr:first-child", has_text=first).wait_for()
        assert rows.count() == 3

        page.get_by_role("link", name="Regressions").click()
        page.locator("#regressions-body").get_by_text("lists.time_length").first.wait_for()
        asked = [url for url in visit.asked if not url.startswith(address)]
    assert (asked, visit.complaints) == ([], [])


@pytest.mark.slow
def test_what_the_scripts_define_is_there(real, visit):
    with served(real.html) as address:
        visit.page.goto(address)
        visit.page.locator("a.benchmark-container").first.wait_for()
        assert visit.page.evaluate("$.fn.jquery") == "3.3.1"
        plugins = set(visit.page.evaluate("$.plot.plugins.map(plugin => plugin.name)"))
        assert plugins >= {"time", "selection", "categories", "orderBars", "axisLabels"}
        assert visit.page.evaluate("$.plot.version") == "0.8.3"
        assert visit.page.evaluate("[typeof $.fn.stupidtable, typeof md5, typeof $.fn.tooltip]") == ["function"] * 3
        assert visit.page.locator("#nav").evaluate("nav => getComputedStyle(nav).position") == "fixed"  # the style sheet


@pytest.mark.slow
def test_a_copy_that_was_changed_is_refused_by_the_browser(real, visit, tmp_path):
    shutil.copytree(real.html, tmp_path / "html")
    (changed,) = tmp_path.glob("html/vendor/jquery-*/dist/jquery.min.js")
    changed.write_text(changed.read_text() + "\n")
    with served(tmp_path / "html") as address:
        visit.page.goto(address)
        visit.page.wait_for_load_state()
    assert any("integrity" in said and changed.name in said for said in visit.complaints)
    assert visit.page.evaluate("typeof jQuery") == "undefined"


@pytest.mark.slow
def test_which_copies_are_what_asv_takes_byte_for_byte(real):
    other = set()
    for (url, integrity), (path, _) in zip(tags(PAGE), tags(real.html / "index.html"), strict=True):
        if integrity:
            algorithm, _, expected = integrity.partition("-")
            digest = hashlib.new(algorithm, (real.html / path).read_bytes()).digest()
            if base64.b64encode(digest).decode() != expected:
                other.add(url.rpartition("/")[2])
    assert other == OTHER_BYTES


MISSING = "Failed to load resource: the server responded with a status of 404 (Not Found)"


@pytest.mark.slow
def test_the_command_serves_it(real, real_cache, visit, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(real_cache))
    page = visit.page
    with serving(real.root, "-m", "convbench", "dashboard") as (process, line):
        address = re.search(r"http://\S+", line)[0]
        page.goto(address)
        page.locator("a.benchmark-container").first.wait_for()
        page.goto(f"{address}#lists.time_sort")
        page.locator("#main-graph canvas.flot-base").wait_for()
        for name in ("summarylist", "regressions"):
            page.goto(f"{address}#/{name}")
            page.locator(f"#{name}-body tbody tr").first.wait_for()
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x.png onerror=\"window.taken = 1\">')")
        page.evaluate(
            "document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.taken = 2'}))"
        )
        page.wait_for_function("document.images[document.images.length - 1].complete")
        assert page.evaluate("window.taken") is None
        refused = [said for said in visit.complaints if "Content Security Policy" in said]
        page.close()
        assert interrupt(process) == (0, "stopped", "")
    assert len(refused) == 2
    assert [said for said in visit.complaints if said not in refused] == [f"{address}x.png", MISSING]


# With texts of others


@pytest.fixture(scope="module")
def hostile_pages(real, hostile):
    """Hostile texts, in pages with copies of the real files."""
    if not (hostile.html / "vendor").exists():
        shutil.copytree(real.html / "vendor", hostile.html / "vendor")
        shutil.copy(real.html / "index.html", hostile.html)
    return hostile.html


INJECTED = "document.querySelectorAll('img[src=x], [onerror]').length"


class Shown:
    """Looks for text in a page that nothing may have been injected into."""

    def __init__(self, page):
        self.page = page

    def text(self, place, selector):
        self.page.locator(selector).get_by_text(markup(place), exact=False).first.wait_for(state="attached")
        self.nothing_else()

    def tooltip(self, place, over):
        """Bootstrap's tooltip, which is too large for the screen with a long text."""
        over.dispatch_event("mouseover")
        self.text(place, ".tooltip-inner")
        over.dispatch_event("mouseout")

    def nothing_else(self):
        assert (self.page.evaluate("window.taken"), self.page.evaluate(INJECTED)) == (None, 0)


@pytest.mark.slow
def test_markup_is_text_on_every_page(hostile_pages, visit):
    page, shown = visit.page, Shown(visit.page)
    with served(hostile_pages) as address:
        page.goto(address)
        page.locator("a.benchmark-container").nth(1).wait_for()
        shown.nothing_else()
        assert page.locator("#summarygrid-display h1").all_inner_texts() == ["lists"]
        shown.text("project", "#project-name")
        shown.text("pretty", ".benchmark-text")
        shown.tooltip("code", page.locator(".benchmark-plot").first)

        page.goto(f"{address}#lists.time_sort")
        page.locator("#main-graph canvas.flot-base").wait_for()
        for place in ("parameter", "setting"):
            shown.text(place, ".panel-heading")
        page.locator(".panel-heading").get_by_text(f"env-{markup('VARIABLE')}").wait_for(state="attached")
        for place in ("0", "value", "machine"):
            shown.text(place, "#graphdisplay-navigation .btn")
        shown.text("value", "#main-graph .legendLabel")
        shown.text("pretty", "#graphdisplay-navigation .tree li a")
        shown.tooltip("code", page.locator("#graphdisplay-navigation .tree li").first)
        shown.tooltip("details", page.locator("#graphdisplay-navigation .btn", has_text="machine").first)
        assert page.locator("#main-graph").get_by_text(f"tag{REF}").count() == 1
        revision = page.evaluate("Number(Object.keys($.asv.main_json.revision_to_hash)[0])")
        point = f"{{datapoint: [{revision}, 0.001], pageX: 300, pageY: 300}}"
        page.evaluate(f"void $('#main-graph').trigger('plothover', [{{}}, {point}])")
        shown.text("unit", ".tooltip-inner")
        for axis in ("size", markup("parameter")):
            page.locator("#graphdisplay-navigation-params .btn", has_text=axis).first.click()
            page.wait_for_function(f"location.hash.includes({json.dumps('x-axis=')})")
            page.locator("#main-graph canvas.flot-base").wait_for()
            shown.nothing_else()
        shown.text("value", "#main-graph .tickLabel, #main-graph .flot-tick-label")

        page.goto(f"{address}#/summarylist")
        page.locator("#summarylist-body tbody tr").first.wait_for()
        for place in ("pretty", "value"):
            shown.text(place, "#summarylist-body td a")
        shown.text("unit", "#summarylist-body td.value")
        shown.text("setting", "#summarylist-navigation .panel-heading")
        shown.tooltip("details", page.locator("#summarylist-navigation .btn", has_text="machine").first)
        page.goto(f"{address}#/regressions")
        page.locator("#regressions-body").get_by_text("lists.time_length").first.wait_for()
        page.locator("#regressions-body .dropdown-menu").get_by_text(f"branch{REF}").wait_for(state="attached")
        links = page.locator("a[href]").evaluate_all("links => links.map(link => link.protocol)")
        shown.nothing_else()
    assert set(links) == {"http:", "https:"}
    assert [said for said in visit.complaints if "Error" in said] == []


@pytest.mark.slow
def test_graphs_of_values_that_look_like_markup_are_drawn(hostile_pages, visit):
    with served(hostile_pages) as address:
        visit.page.goto(f"{address}#lists.time_sort?p-size=1&x-axis=commit")
        for text in ("float", markup("value")):
            visit.page.locator("#main-graph .legendLabel", has_text=text).first.wait_for()
        assert visit.page.locator("#main-graph canvas.flot-base").evaluate(DRAWN)
