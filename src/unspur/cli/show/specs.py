"""A method, architecture or data set with its options and defaults, for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from unspur.cli.show.console import console
from unspur.core.options import options


class OptionEntry(TypedDict):
    """One setting: its dotted key, its default and what the source says of it."""

    key: str
    default: Any
    comment: str


class SpecEntry(TypedDict):
    """What ``--json`` says of a name."""

    name: str
    description: str
    facts: dict[str, str | None]
    options: list[OptionEntry]


def describe_spec(name: str, spec: object, facts: Mapping[str, str | None]) -> SpecEntry:
    """``facts`` are what the listing says of it, by the heading of each column."""
    settings = [OptionEntry(key=key, default=default, comment=comment) for key, default, comment in options(spec)]
    return {"name": name, "description": _summary(spec), "facts": dict(facts), "options": settings}


def print_spec(name: str, spec: object, facts: Mapping[str, str | None], prefix: str = "") -> None:
    """Name, summary, facts and a line for each option; ``prefix`` is what --set wants before its key."""
    out = console()
    out.print(f"[bold]{name}[/bold]  {_summary(spec)}", highlight=False)
    for heading, text in facts.items():
        if text is not None:
            out.print(f"  {heading}: {text}", highlight=False, markup=False)
    print_options(spec, prefix)


def print_options(spec: object, prefix: str = "") -> None:
    """A line for each option with its default, as --set takes it."""
    out = console()
    settings = list(options(spec))
    if settings:
        out.print("  options, for --set:", highlight=False)
    for key, default, comment in settings:
        out.print(f"    {prefix}{key}={default}", end="", highlight=False, markup=False)
        out.print(f"  [dim]{comment}[/dim]" if comment else "", highlight=False)


def _summary(spec: object) -> str:
    return (type(spec).__doc__ or "").splitlines()[0]
