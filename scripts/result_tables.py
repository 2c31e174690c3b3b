"""The tables that make_results.py writes: each function reads files of results/ and returns lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import compare_tables as compare
import finder_tables as finders
import paper_tables as papers
import practice_tables as practice
import recipe_tables as recipe
from audit_tables import missed
from cells_table import page as cells_page
from large_lr_tables import SCORES, every, loss_ratios, mechanism, overview, published
from result_files import as_printed, made, markdown, number, read, short, sweeps
from stand_in_table import stand_in


def reproduced(name: str) -> list[str]:
    """A published table: a row for each of its rows that we measured, ours beside what the paper prints."""
    found = read(name)
    cells = {(cell["row"], cell["column"]): cell for cell in found["cells"] if cell["values"]}
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    printed = {column for (_, column), cell in cells.items() if cell["published"] is not None}

    def beside(column: str, ours: str, theirs: str) -> list[str]:
        return [ours, theirs] if column in printed else [ours]

    headers = [text for column in columns for text in beside(column, column, "published")]
    body = []
    for row in rows:
        own = [(column, cells.get((row, column), {})) for column in columns]
        numbers = [
            beside(column, number(cell.get("ours"), cell.get("ours_deviation")), as_printed(cell.get("published")))
            for column, cell in own
        ]
        body.append([row, *(text for pair in numbers for text in pair)])
    return [made(found), "", *markdown(["", *headers], body)]


class Claim(NamedTuple):
    """A shortcut on digits that a method repairs: two cells of a table, before and after."""

    method: str
    shortcut: str
    repair: str
    table: str
    before: tuple[str, str]
    after: tuple[str, str]


_BIASED, _COLOURS = "accumulative biased", "CMNIST, 1.0 %"
_AUTHORS = "masktune-table5-authors"  # the paper's own draw, which its text describes otherwise
_CODE, _GREY = "MNIST-SC, tested on MNIST", "ColoredMNIST, tested on MNIST"
CLAIMS = (
    Claim("masktune", "a blue square", "MaskTune", "masktune-table6", ("ERM", "biased"), ("MaskTune", "biased")),
    Claim("masktune", "two squares", "MaskTune, 3 rounds", _AUTHORS, ("ERM, no masking", _BIASED), ("3", _BIASED)),
    Claim("dcwp", "digit's colour", "DCWP", "dcwp-table1", (_COLOURS, "ERM"), (_COLOURS, "DCWP")),
    Claim("ule", "code in a row", "ULE", "ule-table1", (_CODE, "ERM test"), (_CODE, "ULE test")),
    Claim("ule", "colour, always", "ULE", "ule-table1", (_GREY, "ERM test"), (_GREY, "ULE test")),
)
SECOND_DIGIT = "double_mnist-cnn"  # the large learning rates' claim, a sweep


def cells_of(claim: Claim) -> tuple[dict[str, Any], dict[str, Any]]:
    cells = {(cell["row"], cell["column"]): cell for cell in read(claim.table)["cells"]}
    return cells[claim.before], cells[claim.after]


def first_page() -> list[str]:
    """Accuracy before and after, where the shortcut does not help: one line for each paper's main claim."""
    rows = []
    for claim in CLAIMS:
        old, new = cells_of(claim)
        numbers = [f"{old['ours']:.1f} %", f"**{new['ours']:.1f} %**", f"{short(new['published'])} %"]
        rows.append([claim.shortcut, claim.repair, *numbers])
    low, high, theirs = second_digit()
    rows.append(["second digit", "large learning rate", f"{low:.1f} %", f"**{high:.1f} %**", f"{short(theirs)} %"])
    return markdown(["shortcut", "repair", "plain training", "repaired", "published"], rows)


def second_digit() -> tuple[float, float, float]:
    """The accuracy at a sweep's lowest and highest usable rate, and the best that Table 1 has."""
    points = [point for point in sweeps()[SECOND_DIGIT]["points"] if point["usable"]]
    low, high = (100 * points[end]["scores"]["unbiased accuracy"]["mean"] for end in (0, -1))
    return low, high, published()[SECOND_DIGIT][2]["unbiased accuracy"][1]


def first_page_made() -> list[str]:
    """How each line of the first page was made."""
    names = [*dict.fromkeys(claim.table for claim in CLAIMS), f"large-lr/{SECOND_DIGIT}"]
    return [f"- {made(read(name))}" for name in names]


TABLES: dict[str, Callable[[], list[str]]] = {
    "reliability": practice.reliability,
    "reliability-kills": practice.reliability_kills,
    "reliability-soak": practice.reliability_soak,
    "abstention": practice.abstention,
    "scale-points": practice.scale_points,
    "scale-costs": practice.scale_costs,
    "scale-far": practice.scale_far,
    "first-page": first_page,
    "first-page-made": first_page_made,
    **{name: partial(compare.compared, name) for name in compare.COMPARED},
    "compare-mined": compare.mined,
    "mining": finders.found,
    "abstaining": finders.abstaining,
    "compare-winners": compare.winners,
    "stand-in": stand_in,
    "masktune-no-harm": papers.no_harm,
    "masktune-table5-tries": papers.masktune_tries,
    "masktune-two-squares": papers.two_squares,
    "masktune-readings": papers.readings,
    "dcwp-table1-tries": papers.dcwp_tries,
    "dcwp-masks": papers.dcwp_masks,
    "dcwp-start": papers.dcwp_start,
    **{name: partial(papers.ule_protocol, name) for name in ("ule-table1-paper-mini", "ule-table1-paper-equal-mini")},
    "ule-trials": papers.ule_trials,
    "ule-digits": papers.ule_effect,
    "ule-last-layer": papers.ule_last_layer,
    "photographs": practice.photographs,
    "photographs-tried": practice.photographs_tried,
    "audit-found": practice.audit_found,
    "audit-clean": practice.audit_clean,
    "audit-missed": lambda: missed(read("audit-benchmark")),
    "audit-others": practice.audit_others,
    "audit-cases": practice.audit_cases,
    "audit-suspects": practice.audit_suspects,
    "recipe-parts": recipe.parts,
    "recipe-chosen": recipe.chosen,
    "recipe-singles": recipe.singles,
    "repair-no-harm": practice.repair_no_harm,
    "swap": practice.swap,
    "swap-beside": practice.swap_beside,
    "swap-cells": practice.swap_cells,
    "swap-on-top": practice.swap_on_top,
    "swap-selection": practice.swap_selection,
    "large_lr-table2-colored_mnist": papers.large_lr_table2,
    "large-lr": lambda: [line for score in SCORES for line in ("", f"### {score}", "", *overview(sweeps(), score))],
    "large-lr-accuracy": lambda: list(overview(sweeps(), SCORES[0])),
    "cells": cells_page,
    "masktune-squares": papers.squares,
    "large-lr-mechanism": lambda: list(mechanism(sweeps())),
    "large-lr-losses": lambda: list(loss_ratios(sweeps())),
    "large-lr-sweeps": lambda: list(every(sweeps(), made)),
}
