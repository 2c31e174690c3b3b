"""Every page of the repository stands on the site, and its links lead somewhere: what needs no build."""

import re

import pytest

from unspur.core.outline import catalogue
from website.scripts import ROOT, script

pages = script("site_pages")
METHODS = list(catalogue("unspur.methods.catalog", "METHODS"))
SECTIONS = ["Algorithm", "Formula", "Where it fails", "Citation"]


def test_every_page_of_docs_stands_on_the_site():
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert there <= set(pages.PAGES.values()), "Name it in scripts/site_pages.py."


@pytest.mark.parametrize("place", pages.PAGES)
def test_every_link_of_a_page_leads_to_a_page_of_the_site(place, tmp_path):
    file = pages.PAGES[place]
    text = pages.relinked((ROOT / file).read_text(encoding="utf-8"), file, place, tmp_path)
    for target in re.findall(r"\]\(([^)#:\s]+\.md)", text):
        path = (tmp_path / place).parent / target
        known = str(path.resolve().relative_to(tmp_path.resolve())).removesuffix(".md")
        assert known in pages.PAGES or known.startswith("reference/methods/"), f"{file} links to {target}"


def test_links_are_written_for_the_place_where_a_page_stands(tmp_path):
    text = "[a](metrics.md#groups) [b](../results/README.md) [c](https://example.org/x.md) [d](#here) ![e](report.png)"
    # docs/runs.md stands at reference/runs: metrics beside it, results/tables one folder up, the picture in pictures/
    expected = (
        "[a](metrics.md#groups) [b](../results/tables.md) [c](https://example.org/x.md) [d](#here) "
        "![e](../pictures/report.png)"
    )
    assert pages.relinked(text, "docs/runs.md", "reference/runs", tmp_path) == expected
    assert (tmp_path / "pictures" / "report.png").exists()


def test_a_link_to_what_is_no_page_stops_the_build(tmp_path):
    with pytest.raises(ValueError, match=r"docs/runs.md links to ../Makefile, which is no page"):
        pages.relinked("[make](../Makefile)", "docs/runs.md", "reference/runs", tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_page_with_idea_algorithm_formula_limits_and_citation(name):
    path = ROOT / "docs" / "methods" / f"{name}.md"
    assert path.exists(), f"Write docs/methods/{name}.md; docs/methods/jtt.md is a short one."
    idea, *sections = path.read_text(encoding="utf-8").split("\n## ")
    assert [section.partition("\n")[0] for section in sections] == SECTIONS
    assert len(re.findall(r"[.?!:](?:\s|$)", idea)) >= 3, "the idea has three sentences"
    assert "```math" in sections[1]


@pytest.mark.parametrize("name", METHODS)
def test_the_page_to_choose_by_has_every_method_and_what_it_needs(name):
    text = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^.*\[`{name}`\]\(methods/{name}\.md\).*$", text, re.MULTILINE)
    _, _, without, some, _ = row.split("|")
    facts = catalogue("unspur.methods.catalog", "METHODS")[name].constants
    needs = facts.get("needs_groups", False) or facts.get("needs_val_groups", False)
    assert (f"`{name}`" in some, f"`{name}`" in without) == (needs, not needs)
