"""Rows survive CSV and JSON whatever is in their names, and no cell is a formula."""

import csv
import io
import json

import pytest

from unspur.practice.predict.rows import CSV, Guess, JSONLines, Row, as_json

NAMES = ["plain", "a,b", 'say "x"', "two\nlines", "cr\rhere", " space ", '"', '""', "", "=1+1", "+x", "-x", "@x", "\tx"]
ROWS = [Row(name, (Guess(name, 0.5), Guess("other", 0.25)), False, "") for name in NAMES]


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def test_a_csv_reader_gets_every_name_back_but_formulas_have_an_apostrophe():
    format = CSV(2)
    head, *rows = read(format.head() + b"".join(map(format.row, ROWS)))
    assert head == ["filename", "label", "probability", "label_2", "probability_2", "abstain", "why"]
    for name, row in zip(NAMES, rows, strict=True):
        safe = f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t") else name
        assert row == [safe, safe, "0.500000", "other", "0.250000", "false", ""]


def test_a_broken_file_has_empty_guesses_and_a_reason():
    (row,) = read(CSV(2).row(Row("x.png", (), True, "unreadable: is truncated")))
    assert row == ["x.png", "", "", "", "", "true", "unreadable: is truncated"]
    assert as_json(Row("x.png", (), True, "why"))["label"] is None


@pytest.mark.parametrize("format", [CSV(2), JSONLines()], ids=["csv", "jsonl"])
def test_whole_rows_are_found_again_wherever_the_file_is_cut(format):
    encoded = [format.row(row) for row in ROWS]
    data, ends = b"".join(encoded), [sum(map(len, encoded[: n + 1])) for n in range(len(encoded))]
    for cut in range(len(data) + 1):
        found = list(format.names(io.BytesIO(data[:cut])))
        whole = [end for end in ends if end <= cut]
        assert found == [(format.name(row), end) for row, end in zip(ROWS, whole, strict=False)], cut


def test_json_lines_have_the_names_as_they_are():
    lines = b"".join(map(JSONLines().row, ROWS)).decode().splitlines()
    assert [json.loads(line)["filename"] for line in lines] == NAMES
    assert json.loads(lines[0]) == {
        "filename": "plain",
        "label": "plain",
        "probability": 0.5,
        "top": [{"label": "plain", "probability": 0.5}, {"label": "other", "probability": 0.25}],
        "abstain": False,
        "why": None,
    }
