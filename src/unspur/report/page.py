"""Sections with their contexts as one self-contained HTML page: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from unspur.core.files import write_text
from unspur.core.progress import Done
from unspur.errors import UnspurError
from unspur.report.charts import FRAME
from unspur.report.pictures import scale
from unspur.report.section import Section
from unspur.report.words import interval, percent
from unspur.version import __version__

HERE = Path(__file__).parent

C = TypeVar("C")


class Placed(NamedTuple):
    """A section and what it is about."""

    section: Section[Any]
    context: Any


def placed(sections: Sequence[Section[C]], context: C) -> list[Placed]:
    """Several sections about the same thing."""
    return [Placed(section, context) for section in sections]


class Part(NamedTuple):
    """What one link at the top of a page leads to."""

    anchor: str
    link: str
    sections: Sequence[Placed]


@dataclass(frozen=True)
class Page:
    """A page: what its window is called, what stands above its links, and its parts."""

    title: str
    head: Sequence[Placed]
    parts: Sequence[Part]


class Failure(NamedTuple):
    """A section that could not be made, and why."""

    section: str
    reason: str


class Rendered(NamedTuple):
    """A page's text, and which of its sections failed."""

    text: str
    failed: list[Failure]


def write_page(page: Page, out: Path, progress: Done | None = None) -> list[Failure]:
    """Write ``page`` to the file ``out``; returns which of its sections failed."""
    text, failed = render(page, progress)
    try:
        write_text(out, text)
    except OSError as error:
        raise UnspurError(f"Cannot write {out} ({error.strerror or error}); name another file with --out.") from None
    return failed


def render(page: Page, progress: Done | None = None) -> Rendered:
    """The page's text. A section that fails leaves a sentence in its place, and the others are not lost."""
    environment = _environment()
    script = (HERE / "page.js").read_text(encoding="utf-8")
    failed: list[Failure] = []
    made, total = 0, len(page.head) + sum(len(part.sections) for part in page.parts)

    def shown(sections: Sequence[Placed]) -> Markup:
        nonlocal made
        texts = []
        for each in sections:
            texts.append(_shown(environment, each, failed))
            made += 1
            if progress:
                progress(made / total)
        return Markup("").join(texts)

    text = environment.get_template("page.html.j2").render(
        title=page.title,
        head=shown(page.head),
        parts=[(part.anchor, part.link, shown(part.sections)) for part in page.parts],
        version=__version__,
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return Rendered(text, failed)


def _shown(environment: Environment, place: Placed, failed: list[Failure]) -> Markup:
    section, context = place
    try:
        if not section.applies(context):
            return Markup("")
        template = environment.get_template(f"{section.name}.html.j2")
        return Markup(template.render(view=section.view(context), context=context))
    except Exception as error:  # whatever it is, the rest of the page is worth having
        reason = str(error) if isinstance(error, UnspurError) else f"{type(error).__name__}: {error}."
        failed.append(Failure(section.name, reason))
        name = section.name.replace("_", " ")
        return Markup(environment.get_template("failed.html.j2").render(name=name, reason=reason))


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader([HERE, HERE / "sections"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "interval": interval, "count": lambda n: f"{n:,}"}
    environment.globals |= {"frame": FRAME, "scale": scale()}
    return environment
