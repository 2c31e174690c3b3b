import xml.etree.ElementTree as ElementTree

import pytest

from unspur.errors import UnspurError
from unspur.report.sweeps import BOTTOM, TOP, figure, write_figure

SVG = "{http://www.w3.org/2000/svg}"


def summary(rates=("0.001", "0.01", "0.1"), usable=(True, True, True), key="erm.lr", **scores):
    scores = scores or {"unbiased accuracy": (0.6, 0.7, 0.9), "CSI": (0.5, 0.3, 0.4)}
    points = [
        {
            "settings": {key: rate},
            "usable": good,
            "scores": {name: {"mean": means[place], "deviation": None, "n": 1} for name, means in scores.items()},
            "runs": [],
        }
        for place, (rate, good) in enumerate(zip(rates, usable, strict=True))
    ]
    return {"method": "erm", "dataset": "<parity>", "arch": "fcn", "points": points}


def lines(text):
    root = ElementTree.fromstring(text)  # and it is well-formed, whatever names are in it
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in root.iter(f"{SVG}polyline")
    ]


def words(text):
    return [element.text for element in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_each_curve_fills_the_same_height():
    # accuracy rises, CSI has its highest value first and its lowest in the middle
    accuracy, csi = lines(figure(summary()))
    low, high = max(y for _, y in accuracy), min(y for _, y in accuracy)
    assert TOP < high < low < BOTTOM
    assert [y for _, y in accuracy] == [low, pytest.approx(low - (low - high) / 3, abs=0.1), high]
    assert [y for _, y in csi] == [high, low, pytest.approx((low + high) / 2, abs=0.1)]


def test_rates_are_placed_by_their_ratios():
    (first, middle, last), _ = lines(figure(summary()))
    assert middle[0] == pytest.approx((first[0] + last[0]) / 2, abs=0.1)  # 0.01 is half-way from 0.001 to 0.1


def test_other_numbers_are_placed_by_their_size():
    ((first, middle, last),) = lines(figure(summary(("2", "3", "6"), key="arch.depth", CSI=(1.0, 2.0, 3.0))))
    assert middle[0] == pytest.approx(first[0] + (last[0] - first[0]) / 4, abs=0.1)


def test_ranges_are_written_beside_the_curves():
    written = words(figure(summary()))
    assert "60 % to 90 %" in written and "0.3 to 0.5" in written and "erm on <parity>, fcn" in written


def test_points_that_are_not_usable_are_left_out_and_named():
    text = figure(summary(usable=(True, True, False)))
    assert all(len(line) == 2 for line in lines(text))
    assert any("not usable: 0.1" in word for word in words(text))


def test_a_score_that_never_changes_is_a_level_line():
    ((_, first), (_, last)) = lines(figure(summary(("1", "2"), (True, True), CSI=(0.4, 0.4))))[0]
    assert first == last


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (summary(usable=(False, False, False)), "nothing to draw"),
        (summary(("sgd", "adam", "adamw"), key="erm"), "one key whose values are numbers, but this one is over erm"),
    ],
)
def test_what_cannot_be_drawn_is_told(wrong, sentence):
    with pytest.raises(UnspurError, match=sentence):
        figure(wrong)


def test_a_score_that_no_run_has_is_named():
    with pytest.raises(UnspurError, match="has the score 'BSI'"):
        figure(summary(), ["BSI"])


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(UnspurError, match=r"ends in .svg instead of"):
        write_figure(summary(), tmp_path / "figure.png")
    write_figure(summary(), tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text() == figure(summary())
