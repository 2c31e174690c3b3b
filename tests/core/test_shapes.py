from typing import Literal, NotRequired, TypedDict

import pytest

from unspur.core.shapes import checked
from unspur.errors import UnspurError


class Leaf(TypedDict):
    share: float | None
    kind: Literal["a", "b"]


class Tree(TypedDict):
    name: str
    count: int
    leaves: list[Leaf]
    by_name: dict[str, Leaf]
    flag: NotRequired[bool]
    size: NotRequired[int | str]


LEAF = {"share": 0.5, "kind": "a"}
TREE = {"name": "oak", "count": 2, "leaves": [LEAF], "by_name": {"x": LEAF}}


@pytest.mark.parametrize("more", [{}, {"flag": True}, {"size": 3}, {"size": "big"}, {"unknown": object()}])
def test_what_fits_is_returned_as_it_is(more):
    value = TREE | more
    assert checked(value, Tree, "tree.json") is value


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": 1}, "name must be text but is 1"),
        ({"count": True}, "count must be a whole number but is True"),
        ({"count": 2.5}, "count must be a whole number but is 2.5"),
        ({"leaves": {}}, "leaves must be a list but is {}"),
        ({"leaves": [LEAF, {**LEAF, "share": "0.5"}]}, "leaves[1].share must be a number but is '0.5'"),
        ({"leaves": [{**LEAF, "share": float("inf")}]}, "leaves[0].share must be a number but is inf"),
        ({"leaves": [{"share": None}]}, "leaves[0].kind is missing"),
        ({"by_name": {"x": {**LEAF, "kind": "c"}}}, "by_name.x.kind must be 'a' or 'b' but is 'c'"),
        ({"size": 2.5}, "size must be a whole number or text but is 2.5"),
        ({"flag": None}, "flag must be true or false but is None"),
        (
            {"name": ["x" * 100]},
            "name must be text but is ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_field(change, sentence):
    with pytest.raises(UnspurError) as error:
        checked(TREE | change, Tree, "tree.json")
    assert str(error.value) == f"tree.json: {sentence}; restore or delete the file."


def test_a_value_that_is_no_object_at_all_is_named():
    with pytest.raises(UnspurError, match="the whole must be an object but is 1"):
        checked(1, Tree, "tree.json")
