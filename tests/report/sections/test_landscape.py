import re

from report.examples import opened
from unspur.report.runs_page import write_report
from unspur.report.sections.analysis import ANALYSIS
from unspur.report.sections.landscape import planes
from unspur.runs.analyze import analyze

FOUND = {
    "axis": [-1.0, 0.0, 1.0],
    "loss": [[100.0, 1.0, 10.0], [1.0, 0.01, 1.0], [None, 1.0, 10.0]],
    "accuracy": [[0.5, 0.6, 0.5], [0.6, 0.9, 0.6], [0.5, 0.6, 0.7]],
    "spurious_use": None,
    "spurious_by": None,
}


def lightness(colour):
    return sum(int(part, 16) for part in re.findall("[0-9a-f]{2}", colour))


def test_a_plane_goes_from_its_lowest_to_its_highest_value():
    loss, accuracy = planes(FOUND)
    assert (loss.low, loss.high, loss.middle) == ("0.01", "100", "0.01")
    assert (accuracy.low, accuracy.high, accuracy.middle) == ("50 %", "90 %", "90 %")
    light = [lightness(square.colour) for square in accuracy.squares]
    assert light.index(max(light)) == 4  # the middle of three rows of three


def test_losses_are_coloured_by_ratio():
    # 1 is half-way from 0.01 to 100 by ratio, and next to nothing by difference
    loss, _ = planes(FOUND)
    dark, half, pale = (lightness(loss.squares[place].colour) for place in (4, 1, 0))
    assert dark < half < pale and half - dark > 60


def test_a_place_without_a_value_is_grey_and_says_so():
    loss, _ = planes(FOUND)
    assert loss.squares[6].colour == "#9aa1ab" and loss.squares[6].title == "1, -1: not finite"


def test_spurious_use_says_how_it_was_measured():
    more = FOUND | {"spurious_use": FOUND["accuracy"], "spurious_by": "attribution"}
    assert planes(more)[2].title == "spurious use: share of attribution on the shortcut"


def test_nobody_asked_nothing_is_drawn():
    assert planes(None) == ()


def test_the_page_shows_the_surroundings(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("unspur.evaluation.landscape.ATTRIBUTED", 2)
    analyze(tiny_run, around=True)
    assert len(ANALYSIS.view(opened(tiny_run)).planes) == 3
    write_report([tiny_run], tmp_path / "page.html")
    assert "Around the solution" in (tmp_path / "page.html").read_text()
