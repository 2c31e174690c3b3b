"""Ranges and names as people write them."""

import pytest

from unspur.errors import UnspurError
from unspur.runs.search_space import Axis, axes_of


def test_a_range_of_whole_numbers_has_whole_values_and_any_other_has_not():
    assert axes_of(["erm.epochs=2..8"]) == [Axis("erm.epochs", 2, 8, whole=True)]
    assert axes_of(["erm.lr=0.001..1:log"]) == [Axis("erm.lr", 0.001, 1, log=True)]
    assert axes_of(["erm.lr=1e-4..1e-1"]) == [Axis("erm.lr", 1e-4, 0.1)]
    assert axes_of(["erm.lr=-2..2"]) == [Axis("erm.lr", -2, 2, whole=True)]


def test_names_are_one_of_several():
    assert axes_of(["erm=sgd, adam,sgd"]) == [Axis("erm", names=("sgd", "adam"))]


@pytest.mark.parametrize(
    ("ranges", "sentence"),
    [
        ([], "A search needs ranges"),
        (["erm.lr=0.1"], "needs a range, such as erm.lr=LOW..HIGH"),
        (["erm.lr=1..0.1"], "from a lower number to a higher one"),
        (["erm.lr=a..b"], "has two numbers"),
        (["erm.lr=0..1:log"], "must begin above 0"),
        (["erm.lr=0.1..inf"], "from a lower number to a higher one"),
        (["erm.lr=1..2", "erm.lr=1..3"], "names erm.lr twice"),
    ],
)
def test_a_range_that_makes_no_sense_is_one_sentence(ranges, sentence):
    with pytest.raises(UnspurError, match=sentence):
        axes_of(ranges)
