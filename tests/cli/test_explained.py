"""Errors name the page that explains them, and the page is there."""

import json
import re
from pathlib import Path

import pytest

from data.photos import class_folders
from unspur.cli.explained import METHODS, PAGES, page_of
from unspur.core.outline import catalogue

ROOT = Path(__file__).parents[2]
LINKED = sorted(
    {*PAGES.values(), *(page_of(f"{METHODS}.{name}") for name in catalogue(f"{METHODS}.catalog", "METHODS"))}
)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("link", LINKED)
def test_every_page_that_an_error_names_is_in_the_docs_with_its_anchor(link):
    name, _, anchor = link.partition("#")
    page = ROOT / "docs" / name
    assert page.is_file() and (not anchor or anchor in anchors(page))


@pytest.mark.parametrize("module", PAGES)
def test_every_module_that_has_a_page_exists(module):
    path = ROOT / "src" / module.replace(".", "/")
    assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (["audit", "nowhere"], "docs/audit.md"),
        (["repair", "biased_mnist", "--methods", "erm"], "docs/repair.md"),
        (["evaluate", "nowhere"], "docs/runs.md"),
        (["predict", "mine.onnx", "nowhere"], "docs/your-model.md"),
        (["train", "erm", "folder", "--set", "data.root=one"], "docs/your-images.md"),
        (["train", "ule", "mnist", "--set", "lam=1.5"], "docs/methods/ule.md"),
        (["train", "erm", "mnist", "--set", "erm.lr=fast"], None),  # said by core, of which no page is
        (["train", "masktun", "mnist"], None),  # the sentence has the name that was meant
    ],
)
def test_an_error_ends_with_the_page_of_the_part_it_arose_in(unspur, tmp_path, monkeypatch, arguments, page):
    monkeypatch.chdir(tmp_path)
    class_folders(tmp_path / "one", cat=4)
    (tmp_path / "mine.onnx").write_bytes(b"no network")
    code, out, err = unspur(*arguments)
    lines = err.splitlines()
    assert (code, out) == (2, "") and lines[0].startswith("Error: ")
    assert lines[1:] == ([f"See {page}"] if page else [])
    sentence = lines[0].removeprefix("Error: ")
    code, out, _ = unspur(*arguments, "--json")
    assert json.loads(out) == {"error": sentence, "see": page}


def test_quiet_leaves_the_sentence_alone(unspur, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_QUIET", "1")
    _, _, err = unspur("audit", tmp_path / "nowhere")
    assert err.count("\n") == 1
