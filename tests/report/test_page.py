from pathlib import Path

import pytest

from unspur.errors import UnspurError
from unspur.report import audit_page, compare_page, repair_page
from unspur.report.page import Page, Part, placed, render
from unspur.report.section import Section
from unspur.report.sections import catalog


def broken(context):
    raise context


SAYS = Section("headline")  # its template shows one sentence


def shown(*sections, context="It works."):
    return render(Page("title", [], [Part("place", "A place", placed(sections, context))]))


def test_a_page_is_made_of_any_sections_and_contexts_and_links_to_its_parts():
    text = shown(SAYS).text
    assert "<h1>It works.</h1>" in text and '<a href="#place">A place</a>' in text and '<section id="place">' in text


def test_a_section_that_does_not_apply_leaves_nothing():
    silent = Section("headline", applies=lambda context: False)
    assert "<h1>" not in shown(silent).text


@pytest.mark.parametrize(
    "error, sentence",
    [
        (UnspurError("The file is gone; restore it."), "The file is gone; restore it."),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero."),
    ],
)
def test_a_section_that_fails_says_so_in_its_place_and_the_others_are_shown(error, sentence):
    parts = [
        Part("one", "One", placed([Section("shortcut_effect", broken)], error)),
        Part("two", "Two", placed([SAYS], "It works.")),
    ]
    text, failed = render(Page("title", [], parts))
    assert f"This part (shortcut effect) could not be made: {sentence}" in text and "<h1>It works.</h1>" in text
    assert failed == [("shortcut_effect", sentence)]


def test_a_template_that_fails_is_a_section_that_fails():
    text, failed = shown(Section("pruning", lambda context: object()))
    assert "could not be made: UndefinedError" in text and len(failed) == 1


def test_why_a_section_failed_is_never_markup():
    text, _ = shown(Section("headline", broken), context=ValueError("<script>alert(1)</script>"))
    assert text.count("<script") == 1


def test_every_section_has_a_name_and_a_template_of_its_own():
    pages = (audit_page, compare_page, repair_page)
    of_pages = [section for page in pages for section in vars(page).values() if isinstance(section, Section)]
    sections = [*catalog.HEAD, *catalog.OVERVIEW, *catalog.DATA, *catalog.RUN, *catalog.END, *of_pages]
    names = [section.name for section in sections]
    templates = sorted(path.name.removesuffix(".html.j2") for path in Path(catalog.__file__).parent.glob("*.html.j2"))
    assert sorted(names) == templates
