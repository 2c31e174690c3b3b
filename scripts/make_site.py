"""Build the documentation site.

    make docs                       # or: python scripts/make_site.py [--no-capture]

Writes every page to build/site/source and the site to build/site/html: pages of this repository with their links,
reference pages from the code, what commands print. Warnings are errors, such as a link into nowhere. Needs no network.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from site_capture import BLOCK, captured
from site_house import drawn
from site_pages import DEVELOP, GUIDES, PAGES, RESULTS, ROOT, menu, write_pages
from site_reference import write_reference
from site_tutorials import write_tutorials

BUILD = ROOT / "build" / "site"


def write_source(source: Path, kept: Path, *, capture: bool = True) -> None:
    """The site's Markdown below ``source``; without ``capture`` no command is run."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    changed = {}
    for file in PAGES.values():
        text = (ROOT / file).read_text(encoding="utf-8")
        if BLOCK.search(text):
            changed[file] = captured(text, kept, print) if capture else text
    changed["ARCHITECTURE.md"] = drawn((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    write_pages(source, changed)
    write_reference(source)
    lessons = write_tutorials(source, kept, capture=capture)
    (source / "tutorials" / "index.md").write_text(menu("Tutorials", lessons, TUTORIALS), encoding="utf-8")
    for place, title, pages, text in MENUS:
        (source / place / "index.md").write_text(menu(title, pages, text), encoding="utf-8")
    shutil.copy(ROOT / "docs" / "site" / "conf.py", source)
    shutil.copytree(ROOT / "docs" / "site" / "static", source / "_static")


TUTORIALS = "Notebooks in `docs/tutorials`; what is shown here they gave when the site was built."
MENUS = (
    ("guides", "Guides", list(GUIDES), "One job each; every command can be pasted."),
    (
        "results",
        "Results",
        list(RESULTS),
        "Every table is written from a file of figures by `make results`, and a test compares them. The notes say how "
        "figures were obtained, what was tried, and what is below the papers and why.",
    ),
    ("develop", "Develop", list(DEVELOP), "The code in five minutes, and how to add to it."),
)


def build(source: Path, out: Path) -> int:
    """Sphinx's exit code; warnings are errors."""
    from sphinx.cmd.build import main as sphinx

    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-j", "1", "-d", str(out.parent / "doctrees")]
    return sphinx([*arguments, str(source), str(out)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-capture", action="store_true", help="run no command: pages without their output")
    parser.add_argument("--out", type=Path, default=BUILD, help="the folder to build in (build/site)")
    asked = parser.parse_args()
    write_source(asked.out / "source", BUILD / "captures", capture=not asked.no_capture)
    code = build(asked.out / "source", asked.out / "html")
    if not code:
        print(f"Open {(asked.out / 'html' / 'index.html')} in a browser.")
    return code


if __name__ == "__main__":
    sys.exit(main())
