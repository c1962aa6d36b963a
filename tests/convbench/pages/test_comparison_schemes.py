"""The comparison page in the light and in the dark scheme of a browser."""

import pytest
from dashboards import offline_pages
from published import SWEEP

pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")

# The smallest contrast of texts with what lies behind them, as WCAG 2 defines it, by selector; that of the table's cells for
# times up to a hundred times the best.
CONTRASTS = """() => {
  const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => rgb(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (node) => {
    let behind = node;
    while (behind.parentElement && rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const both = [light(getComputedStyle(node).color), light(getComputedStyle(behind).backgroundColor)];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  const texts = ["h1", "p",
    "nav a", "#fastest th", "#fastest a", "#fastest td", "#table th", "#table td", ".source", "form label"];
  const found = texts.map((text) => [text, Math.min(...[...document.querySelectorAll(text)].map(contrast))]);
  const spot = document.querySelector("#table td.near");
  for (let percent = 0; percent <= 100; percent += 5) {
    spot.style.setProperty("--share", percent / 100);
    spot.className = percent <= 50 ? "near" : "far";
    found.push([percent, contrast(spot)]);
  }
  return found;
}"""


@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 27)")])
def test_every_text_can_be_read(published, browser, scheme, background):
    with offline_pages(browser) as open_page:
        page = open_page(published.page, f"#benchmark={SWEEP['name']}", scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
        assert [(text, contrast) for text, contrast in page.evaluate(CONTRASTS) if contrast < 4.5] == []


@pytest.mark.slow
def test_figures_follow_the_scheme(published, browser):
    """Also when it changes; paper is transparent."""
    ink = "getComputedStyle(document.querySelector('#curves .xtitle')).fill"
    with offline_pages(browser) as open_page:
        page = open_page(published.page, f"#benchmark={SWEEP['name']}", scheme="dark")
        page.locator("#curves").scroll_into_view_if_needed()
        page.locator("#curves .xtitle").wait_for()
        assert page.evaluate(ink) == "rgb(227, 232, 235)"
        assert page.locator("#curves .main-svg").first.evaluate("svg => svg.style.background") == "transparent"
        page.emulate_media(color_scheme="light")
        page.evaluate(f"new Promise((done) => setInterval(() => {ink} === 'rgb(28, 34, 38)' && done(), 50))")
