"""The page about an audit in a browser: it shows everything as words and pictures, and ticks become groups.csv."""

import csv
import io
from dataclasses import replace

import pytest
import torch
from PIL import Image

from report.browser import Browser
from report.examples import HOSTILE
from unspur.data.images.listing import list_table
from unspur.report.audit_context import (
    AuditContext,
    ChecksContext,
    ClassExamples,
    EvidenceContext,
    Example,
    FindingContext,
    HiddenContext,
    JudgedImage,
    LookedAtContext,
    MeanImage,
    MinedContext,
    RelianceContext,
    SuspectsContext,
    SwapExample,
)
from unspur.report.audit_page import page_of, write_audit
from unspur.report.page import render
from unspur.report.scores import Share

A, B = HOSTILE[0], "=1+1"
NAMES = ["plain.png", "=HYPERLINK(1).png", '-a "quoted", name;.png', "<img src=x>.png", " leading.png", "@at/+plus.png"]
IMAGE = torch.full((3, 32, 32), 90, dtype=torch.uint8)
CORNER = torch.zeros(32, 32, dtype=torch.bool)
CORNER[:4, :4] = True
EXAMPLE = Example(IMAGE, CORNER)


def finding(grade):
    swap = SwapExample(IMAGE, EXAMPLE, IMAGE, A, B, A, B)
    reliance = RelianceContext(0.81, 0.04, Share(0.77, 0.7, 0.8), True, 400)
    share = Share(0.92, 0.9, 0.94)
    classes = (ClassExamples(A, (EXAMPLE, Example(IMAGE, None))),)
    return FindingContext(HOSTILE[1], grade, share, 0.001, reliance, 97, share, classes, (swap,))


JUDGED = tuple(JudgedImage(name, A if place % 2 else B, B) for place, name in enumerate(NAMES))
CONTEXT = AuditContext(
    name=HOSTILE[0],
    verdict="leans",
    sentence=f"The model leans on {HOSTILE[1]}.",
    next="unspur train masktune folder --set 'data.root=<photos>'",
    images=160,
    of=200,
    model="a model",
    model_accuracy=0.9,
    estimated_worst_group=0.12,
    means=(MeanImage(A, 80, IMAGE), MeanImage(B, 80, IMAGE)),
    leak_map=torch.linspace(0.4, 1, 64).reshape(8, 8),
    chance=0.5,
    findings=(finding("leaks"), finding("informative")),
    suspects=SuspectsContext(
        "a corner", JUDGED, tuple((row, EXAMPLE) for row in range(len(NAMES))), len(NAMES), files=True
    ),
    tested=(ChecksContext("files", 12, None, "0.61 or more"), ChecksContext("marks that move", 0, None, None)),
    notes=(HOSTILE[1],),
    evidence=EvidenceContext(
        LookedAtContext(torch.full((8, 8), 1 / 64), 0.31, 240),
        HiddenContext(0.9, 0.5, 0.8, Share(0.3, 0.2, 0.4), 0.06, 240),
        (
            MinedContext("gce", 12, 160, 0.25, 0.95, 1.5, 0.2, 7),
            MinedContext("twins", 0, 160, None, 0.95, None, 0.2, None),
        ),
    ),
)

TICK = """
const kept = [];
const make = URL.createObjectURL.bind(URL);
URL.createObjectURL = (blob) => { kept.push(blob); return make(blob); };
const press = (row, value) => document.querySelector(`[name="suspect-${row}"][value="${value}"]`).click();
press(1, "has");
press(3, "not");
press(5, "has");
press(5, "not");
const status = document.getElementById("ticked").textContent;
document.getElementById("groups").click();
return {
  status,
  csv: await kept[0].text(),
  words: document.body.innerText,
  scripts: document.scripts.length,
  plain: [...document.images].filter((image) => !image.alt && !image.nextElementSibling).length,
  cells: document.querySelectorAll("svg.heat rect").length,
};
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("audit") / "audit.html"
    assert write_audit(CONTEXT, out) == []
    return out


@pytest.fixture(scope="module")
def visit(browser, page):
    return browser.open(page, script=TICK)


def test_the_page_opens_ticks_and_downloads_without_a_fault(visit):
    assert visit.images > 10
    own = [url for url in visit.requests if not url.startswith("blob:")]  # the download itself
    assert (visit.broken, own, visit.problems) == (0, [], [])
    assert visit.found["scripts"] == 1 and visit.found["plain"] == 0


def test_names_from_outside_are_words_on_the_page(visit):
    for word in (HOSTILE[0], HOSTILE[1], *(" ".join(name.split()) for name in NAMES)):
        assert " ".join(word.split()) in " ".join(visit.found["words"].split())


def test_the_leak_map_lies_over_the_mean_of_each_class_and_beside_where_the_model_looks(visit):
    assert visit.found["cells"] == 2 * 64 + 2 * 64


def test_the_page_says_what_hiding_costs_and_how_mined_images_are_told(visit):
    words = " ".join(visit.found["words"].split())
    assert "with that hidden 50.0 %" in words or "with that hidden 50 %" in words
    assert "12 of 160" in words and "XRM's twins" in words


def test_what_a_person_ticked_goes_before_the_audits_estimate(visit):
    assert visit.found["status"] == "3 of 6 ticked"
    rows = list(csv.DictReader(io.StringIO(visit.found["csv"])))
    # All show the cue of B by estimate; 3 and 5 "have not", so that theirs is that of their own class, A.
    assert [(row["cue"], row["checked"]) for row in rows] == [
        ("'" + B, "audit"),
        ("'" + B, "person"),
        ("'" + B, "audit"),
        (A, "person"),
        ("'" + B, "audit"),
        (A, "person"),
    ]


def test_no_cell_of_groups_csv_begins_like_a_formula(visit):
    for row in csv.reader(io.StringIO(visit.found["csv"])):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row), row


def test_the_data_set_folder_reads_groups_csv_with_the_cue_as_attribute(visit, tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    table = tmp_path / "groups.csv"
    table.write_text(visit.found["csv"], encoding="utf-8")
    listing = list_table(tmp_path, table, file="filename", label="label", attributes=("cue",))
    assert [file.name for file in listing.files] == NAMES
    assert set(listing.attributes["cue"]) == {A, "'" + B} == set(listing.labels)


def test_a_phone_scrolls_the_page_in_one_direction_only(browser, page):
    assert browser.open(page, width=375).overflow <= 0


def test_a_clean_audit_has_a_page_without_findings_and_suspects():
    text, failed = render(page_of(replace(CONTEXT, verdict="clean", findings=(), suspects=None)))
    assert failed == [] and 'id="judged"' not in text and 'id="tested"' in text


def test_images_that_are_no_files_are_said_to_be_none():
    suspects = replace(CONTEXT.suspects, files=False)
    text = render(page_of(replace(CONTEXT, suspects=suspects))).text
    assert "are no files" in text and "data.csv=groups.csv" not in text
