"""The site as people meet it: built with warnings as errors, opened in a browser, searched, on a phone, in the dark."""

import os
import subprocess
import sys

import pytest

from report.browser import Browser
from website.scripts import ROOT

pytestmark = pytest.mark.site
PAGES = [
    "index",
    "start",
    "questions",
    "guides/which-method",
    "guides/audit",
    "reference/commands/audit",
    "reference/methods/masktune",
    "reference/methods/dcwp",
    "reference/files",
    "reference/python",
    "results/tables",
    "develop/architecture",
]
CONTRAST = """
const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (color) => {
  const shares = rgb(color).map((c) => c / 255);
  const [r, g, b] = shares.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const seen = (element) => {
  let behind = element;
  while (behind && getComputedStyle(behind).backgroundColor.match(/, 0\\)$/)) behind = behind.parentElement;
  const one = light(getComputedStyle(element).color);
  const two = light(behind ? getComputedStyle(behind).backgroundColor : "rgb(255,255,255)");
  return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
};
const texts = [...document.querySelectorAll("article p, article td, article li, article h1, article pre, article a")];
return {
  theme: document.documentElement.dataset.theme,
  background: light(getComputedStyle(document.body).backgroundColor),
  least: Math.min(...texts.filter((one) => one.innerText?.trim() && one.offsetWidth).map(seen)),
};
"""
SEARCH = """
for (let tries = 0; tries < 300 && !document.querySelector("#search-results li a"); tries++) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
return [...document.querySelectorAll("#search-results li a")].map((link) => link.getAttribute("href"));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site without what commands print; a warning of any kind, such as a link into nowhere, is an error."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "make_site.py"), "--no-capture", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_an_error_and_asks_nobody_else_for_anything(site, browser, page):
    seen = browser.open(site / f"{page}.html")
    assert not seen.problems and not seen.broken
    assert not [url for url in seen.requests if not url.startswith("file:")]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_on_a_phone(site, browser, page):
    assert browser.open(site / f"{page}.html", width=380).overflow <= 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", ["index", "start", "reference/methods/masktune", "results/tables"])
def test_text_is_readable_by_day_and_in_the_dark(site, browser, page, dark):
    found = browser.open(site / f"{page}.html", dark=dark, script=CONTRAST).found
    assert found["theme"] == ("dark" if dark else "light") and (found["background"] < 0.2) == dark
    assert found["least"] >= 4.5  # WCAG's AA for text of ordinary size


@pytest.mark.parametrize(
    ("words", "page"), [("masktune", "methods/masktune.html"), ("worst group", ".html"), ("abstain", "predict.html")]
)
def test_the_search_finds_a_page(site, browser, words, page):
    found = browser.open(site / "search.html", query=f"?q={words.replace(' ', '+')}", script=SEARCH).found
    assert any(page in link for link in found), found


def test_every_page_of_the_menus_is_there(site):
    for section in ("guides", "reference", "results", "develop"):
        assert (site / section / "index.html").exists()
    assert len(list((site / "reference" / "methods").glob("*.html"))) > 30
