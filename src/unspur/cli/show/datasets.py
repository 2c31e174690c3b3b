"""What is known of a data set, and how many samples each group has."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from unspur.cli.show.console import console

MOST_GROUPS = 40  # lines of a table that are still read


def print_info(info: Mapping[str, Any]) -> None:
    """What a data set is, whether it is here and whole, and how many samples each group has."""
    out = console()
    out.print(f"[bold]{info['name']}[/bold]  {info['description']}", highlight=False)
    lines = {"citation": info["citation"], "licence": info["licence"], "where to get it": info["get"]}
    for part in info["files"]:
        lines[part["title"]] = f"whole, in {part['folder']}" if part["state"] == "whole" else part["reason"]
    lines |= {"problem": info["problem"]} if info["problem"] else {}
    lines |= {"note": info["note"]} if info.get("note") else {}
    for heading, text in lines.items():
        out.print(f"  {heading}: {text}", highlight=False, markup=False)
    if info["splits"] is not None:
        _print_groups(info["splits"])
    _print_comparison(info)


def _print_groups(splits: Mapping[str, Any]) -> None:
    """A table with a row for each group and a column for each split."""
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for split, content in splits.items():
        for group in content["groups"]:
            rows.setdefault((group["class"], *group["attributes"].values()), {})[split] = group["n"]
    table = Table(show_footer=True)
    attributes: Mapping[str, str] = next(
        (group["attributes"] for content in splits.values() for group in content["groups"]), {}
    )
    for heading, footer in zip(("class", *map(escape, attributes)), ("all", *("" for _ in attributes)), strict=True):
        table.add_column(heading, footer)
    for split, content in splits.items():
        table.add_column(_short(split), f"{content['n']:,}", justify="right")
    for names, counts in itertools.islice(rows.items(), MOST_GROUPS):
        table.add_row(*map(escape, names), *(f"{counts.get(split, 0):,}" for split in splits))
    out = console()
    out.print(table)
    if len(rows) > MOST_GROUPS:
        out.print(f"and {len(rows) - MOST_GROUPS:,} more groups, which --json lists", highlight=False)


def _short(split: str) -> str:
    """What a split is called for people: the only test set is just "test"."""
    return "test" if split == "test test" else split


def _print_comparison(info: Mapping[str, Any]) -> None:
    """What the publishers counted differently, or that there is nothing of the kind."""
    out = console()
    if info["verified"]:
        out.print(f"All {len(info['counts'])} published counts agree.", highlight=False)
    for count in info["counts"]:
        if count["published"] != count["found"]:
            groups = " and ".join(", ".join(names) for names in count["groups"] if names) or "all"
            here = f"{_short(count['split'])}, {groups}: {count['found']:,} here"
            out.print(f"{here}, but {count['published']:,} were published.", highlight=False, markup=False)
