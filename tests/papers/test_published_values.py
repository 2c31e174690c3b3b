"""Every published value is pinned by a checksum of its row: a changed digit in any of them fails.

Whoever corrects a value reads it in the paper again and puts the new checksum here, which the failing test prints.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from unspur.papers.reproduce import TABLES

PINNED = json.loads(Path(__file__).with_name("published.json").read_text())


def checksums(cells):
    """For each row of a table a checksum of its published values and deviations, by column."""
    rows = {}
    for cell in cells:
        rows.setdefault(cell.row, []).append([cell.column, cell.published, cell.deviation])
    return {row: hashlib.sha256(json.dumps(sorted(values)).encode()).hexdigest()[:12] for row, values in rows.items()}


@pytest.mark.parametrize("table", TABLES)
def test_every_published_value_is_as_it_was_read_in_the_paper(table):
    assert checksums(TABLES[table].cells) == PINNED[table]


def test_a_changed_digit_changes_the_checksum_of_its_row():
    first, *others = TABLES["masktune/table5"].cells
    changed = checksums([replace(first, published=first.published + 0.01), *others])
    before = PINNED["masktune/table5"]
    assert {row for row in before if changed[row] != before[row]} == {first.row}
