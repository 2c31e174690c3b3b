"""Write every table of README.md, docs/ and results/ from the JSON in results/, between comments that mark its place,
and what `unspur methods` says that methods were shown to do.

    make results                              # or: python scripts/make_results.py [--check]

A place is `<!-- table: NAME -->` up to `<!-- end -->`, and NAME is one of TABLES in result_tables.py, or a file that
`unspur reproduce` wrote. Text outside is written by hand and left alone. With --check nothing is written; it names the
pages that would change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import shown
from result_files import RESULTS
from result_tables import TABLES, reproduced

from unspur.core.files import write_text

ROOT = RESULTS.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "abstention.md",
    ROOT / "docs" / "audit.md",
    ROOT / "docs" / "repair.md",
    ROOT / "docs" / "scale.md",
    ROOT / "docs" / "which-method.md",
    RESULTS / "README.md",
    RESULTS / "cells.md",
    RESULTS / "reliability.md",
    RESULTS / "large-lr" / "README.md",
)
SHOWN = ROOT / "src" / "unspur" / "methods" / "shown.json"
PLACE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with every marked place written again."""

    def fill(place: re.Match[str]) -> str:
        name = place["name"]
        table = TABLES[name]() if name in TABLES else reproduced(name)
        return place[1] + "\n" + "\n".join(table).strip("\n") + "\n\n" + place[3]

    return PLACE.sub(fill, page)


def stale(pages: Iterable[Path] = PAGES) -> dict[Path, str]:
    """The pages that differ from what the results say, as they should be."""
    new = {page: filled(page.read_text(encoding="utf-8")) for page in pages}
    return {page: text for page, text in new.items() if text != page.read_text(encoding="utf-8")}


def stale_lists() -> dict[Path, str]:
    """The file of the package that says what methods were shown to do, where it differs from the results."""
    text = shown.text()
    return {} if SHOWN.exists() and SHOWN.read_text(encoding="utf-8") == text else {SHOWN: text}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page would change")
    check = parser.parse_args().check
    changed = stale() | stale_lists()
    for page, text in changed.items():
        print(f"{page.relative_to(ROOT)} {'differs from results/; run make results.' if check else 'written.'}")
        if not check:
            write_text(page, text)
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
