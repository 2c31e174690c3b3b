"""The page as people meet it: in a browser, on a phone, in the dark."""

from dataclasses import replace

import pytest
import torch

from report.browser import Browser, chromium
from report.examples import HOSTILE, config, run_in, tiny
from unspur.data.catalog import dataset_named
from unspur.report.runs_page import write_report


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two runs and one that diverged, on data whose names are hostile and whose groups differ in size."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        data = tiny(HOSTILE)
        unequal = {"original": data.tests["original"].subset(torch.arange(39)), "biased": data.tests["biased"]}
        data = replace(data, note=HOSTILE[1], tests=unequal)
        patch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: data)
        runs = [run_in(folder, config(seed=seed)) for seed in (0, 1)]
        runs.append(run_in(folder, config("erm.lr=1e30", "erm.epochs=20")))
        write_report(runs, folder / "report.html")
    return folder / "report.html"


VISIT = """
const found = {};
const cells = (row) => [...row.cells];
const column = (table, place) => [...table.tBodies[0].rows].map((row) => row.cells[place].dataset.value);

found.words = document.body.innerText;
found.scripts = document.scripts.length;
found.charts = document.querySelectorAll("svg[role=img]").length;
found.mute = [...document.querySelectorAll("svg[role=img]")].filter((svg) => !svg.getAttribute("aria-label")).length;
found.plain = [...document.images].filter((image) => !image.alt && !image.nextElementSibling?.alt).length;

found.sorted = {};
const groups = document.querySelector("table.groups");
const headings = cells(groups.tHead.rows[0]).filter((cell) => cell.hasAttribute("aria-sort"));
for (const heading of headings) {
  const steps = [];
  for (const press of [1, 2]) {
    heading.querySelector("button").click();
    const others = headings.filter((cell) => cell !== heading && cell.getAttribute("aria-sort") !== "none").length;
    steps.push([heading.getAttribute("aria-sort"), others, column(groups, heading.cellIndex)]);
  }
  found.sorted[heading.textContent.trim()] = steps;
}

const comparison = document.querySelector("#comparison table");
const all = cells(comparison.tHead.rows[1]).find((cell) => cell.textContent.trim() === "all");
found.compared = [1, 2].map(() => {
  all.querySelector("button").click();
  return column(comparison, all.cellIndex);
});

const button = all.querySelector("button");
button.focus();
found.focused = document.activeElement === button && button.tabIndex === 0;

const slider = document.querySelector(".strength input");
slider.value = 0;
slider.dispatchEvent(new Event("input"));
found.faded = [...new Set([...document.querySelectorAll(".heat")].map((map) => getComputedStyle(map).opacity))];
return found;
"""


@pytest.fixture(scope="module")
def visit(browser, page):
    return browser.open(page, script=VISIT)


def test_the_page_opens_without_a_fault_and_every_image_is_decoded(visit):
    assert visit.images > 50
    assert (visit.broken, visit.requests, visit.problems) == (0, [], [])


def test_hostile_names_are_words_on_the_page(visit):
    assert HOSTILE[0] in visit.found["words"] and HOSTILE[1] in visit.found["words"]
    assert visit.found["scripts"] == 1  # the page's own


@pytest.mark.parametrize("heading, kind", [("n", float), ("accuracy", float), ("class", str), ("square", str)])
def test_a_table_is_sorted_by_the_heading_that_is_pressed(visit, heading, kind):
    (up, others_up, rising), (down, others_down, falling) = visit.found["sorted"][heading]
    assert (up, down, others_up, others_down) == ("ascending", "descending", 0, 0)
    values = [kind(value) for value in rising]
    assert values == sorted(values)
    assert [kind(value) for value in falling] == sorted(values, reverse=True)


def test_numbers_are_sorted_as_numbers(visit):
    # As text, 9 would come behind 10.
    assert visit.found["sorted"]["n"][0][2] == ["9", "10", "10", "10"]


def test_runs_without_a_score_stay_at_the_end_of_the_comparison(visit):
    for values in visit.found["compared"]:
        assert [value == "" for value in values] == [False, False, True]


def test_headings_can_be_reached_from_the_keyboard(visit):
    assert visit.found["focused"]


def test_the_slider_fades_every_map(visit):
    assert visit.found["faded"] == ["0"]


def test_every_image_and_chart_has_words_for_those_who_cannot_see_it(visit):
    assert visit.found["charts"] > 0
    assert (visit.found["mute"], visit.found["plain"]) == (0, 0)


def test_a_phone_scrolls_the_page_in_one_direction_only(browser, page):
    seen = browser.open(page, width=375, script="return innerWidth")
    assert seen.found == 375
    assert seen.overflow <= 0


CONTRAST = """
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour;
  }
};
const words = [...document.body.querySelectorAll("*")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
  .filter((e) => !e.closest("svg, script") && e.getClientRects().length);
const ratios = words.map((e) => {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), e.className + ": " + e.textContent.slice(0, 40)];
});
return [light(behind(document.body)), ratios.sort((a, b) => a[0] - b[0])[0]];
"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_in_the_light_and_in_the_dark(browser, page, dark):
    paper, (lowest, where) = browser.open(page, script=CONTRAST, dark=dark).found
    assert (paper < 0.1) == dark
    assert lowest >= 4.5, where  # WCAG 2, level AA


FAULTS = """
<img src="data:image/png;base64,AAAA" alt="x">
<img src="http://127.0.0.1:9/x.png" alt="x">
<script>alert(1)</script>
<div style="width: 900px">x</div>
"""


def test_these_tests_would_notice_each_kind_of_fault(browser, page, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(page.read_text(encoding="utf-8").replace("<main>", f"<main>{FAULTS}"), encoding="utf-8")
    seen = browser.open(spoilt, width=375)
    assert (seen.broken, seen.overflow > 0) == (2, True)
    assert any("127.0.0.1" in problem for problem in seen.problems)
    assert any("inline script" in problem for problem in seen.problems)


def test_a_page_without_a_policy_would_be_caught_asking(browser, tmp_path):
    page = tmp_path / "open.html"
    page.write_text(
        '<!doctype html><title>x</title><img src="http://127.0.0.1:9/x.png" alt="x"><script>oops()</script>'
    )
    seen = browser.open(page)
    assert seen.requests == ["http://127.0.0.1:9/x.png"]
    assert any("oops is not defined" in problem for problem in seen.problems)


@pytest.mark.parametrize("ci, outcome", [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_a_browser_these_tests_are_skipped_but_fail_on_ci(monkeypatch, tmp_path, ci, outcome):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no Chromium on this machine"):
        chromium()
