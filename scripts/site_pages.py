"""The pages of the site that people wrote: which files they are, where they stand, and links between them.

A page is a Markdown file of this repository, read there as well as on the site, so that its links are those of the
repository. On the site it stands elsewhere; every link is written again, and one that leads nowhere is an error.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Section by section, in the order of the menus: where a page stands on the site, and the file that it is made of.
GUIDES = {
    "your-images": "docs/your-images.md",
    "audit": "docs/audit.md",
    "repair": "docs/repair.md",
    "which-method": "docs/which-method.md",
    "choosing": "docs/choosing.md",
    "predict": "docs/predict.md",
    "abstention": "docs/abstention.md",
    "plant": "docs/plant.md",
    "your-model": "docs/your-model.md",
    "compare": "docs/compare.md",
    "learning-rates": "docs/learning-rates.md",
    "sweeps": "docs/sweeps.md",
    "scale": "docs/scale.md",
    "reproduce": "docs/reproduce.md",
}
REFERENCE = {
    "metrics": "docs/metrics.md",
    "runs": "docs/runs.md",
    "glossary": "docs/glossary.md",
    "security": "docs/security.md",
}
RESULTS = {
    "tables": "results/README.md",
    "cells": "results/cells.md",
    "masktune": "results/notes/masktune.md",
    "dcwp": "results/notes/dcwp.md",
    "ule": "results/notes/ule.md",
    "large-lr": "results/notes/large-lr.md",
    "large-lr-tables": "results/large-lr/README.md",
    "compared": "results/notes/compare.md",
    "reliability": "results/reliability.md",
    "first-steps": "results/first-steps.md",
    "benchmarks": "results/benchmarks.md",
}
DEVELOP = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "extend": "docs/extend.md",
    "release": "docs/release.md",
    "changelog": "CHANGELOG.md",
    "report-a-weakness": "SECURITY.md",
}
PAGES: dict[str, str] = {
    "index": "docs/site/index.md",
    "start": "docs/start.md",
    "questions": "docs/questions.md",
    **{f"guides/{place}": file for place, file in GUIDES.items()},
    **{f"reference/{place}": file for place, file in REFERENCE.items()},
    **{f"results/{place}": file for place, file in RESULTS.items()},
    **{f"develop/{place}": file for place, file in DEVELOP.items()},
}
ELSEWHERE = {"README.md": "index", "results/notes": "results/tables"}  # files and folders that another page stands for

LINK = re.compile(r"(?P<text>\]\()(?P<target>[^)\s]+)(?P<end>\))")
IMAGES = (".png", ".svg", ".jpg")


def place_of(file: str) -> str | None:
    """Where a file of the repository stands on the site."""
    places = {source: place for place, source in PAGES.items()} | ELSEWHERE
    if file.startswith("docs/methods/"):
        return f"reference/methods/{Path(file).stem}"
    return places.get(file)


def relinked(text: str, file: str, place: str, out: Path) -> str:
    """``text`` of the repository's ``file`` with the links that it needs at ``place``; copies pictures to ``out``."""

    def link(found: re.Match[str]) -> str:
        target, hash_, anchor = found["target"].partition("#")
        if not target or ":" in target:
            return found[0]
        source = os.path.normpath(os.path.join(os.path.dirname(file), target))
        here = os.path.dirname(place) or "."
        if source.endswith(IMAGES):
            (out / "pictures").mkdir(exist_ok=True)
            shutil.copy(ROOT / source, out / "pictures")
            return f"{found['text']}{os.path.relpath(f'pictures/{os.path.basename(source)}', here)}{found['end']}"
        page = place_of(source)
        if page is None:
            raise ValueError(f"{file} links to {target}, which is no page of the site; name it in site_pages.py.")
        return f"{found['text']}{os.path.relpath(f'{page}.md', here)}{hash_}{anchor}{found['end']}"

    return LINK.sub(link, text)


def write_pages(out: Path, changed: Mapping[str, str]) -> None:
    """Every page below ``out``; ``changed`` has the text of files that are not shown as they are."""
    for place, file in PAGES.items():
        text = changed.get(file) or (ROOT / file).read_text(encoding="utf-8")
        path = out / f"{place}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace(" ± ", "\u00a0±\u00a0").replace(" % |", "\u00a0% |")  # a number stays on its line
        path.write_text(relinked(text, file, place, out), encoding="utf-8")


def menu(title: str, places: Mapping[str, object] | list[str], text: str = "", depth: int = 1) -> str:
    """A page that leads to others."""
    names = "\n".join(places)
    return f"# {title}\n\n{text}\n\n```{{toctree}}\n:maxdepth: {depth}\n\n{names}\n```\n"
