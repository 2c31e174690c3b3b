from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from unspur.core.options import added, from_json, make, options, to_json, with_option
from unspur.errors import UnspurError
from unspur.parts.debias import MaskTraining
from unspur.train.recipe import SGD


@dataclass(frozen=True)
class Blue:
    """A blue thing."""

    name: ClassVar[str] = "blue"
    depth: int = 3  # how deep the blue is


@dataclass(frozen=True)
class Green:
    """A green thing."""

    name: ClassVar[str] = "green"
    hue: float = 0.3


@dataclass(frozen=True)
class Thing:
    """Something to configure."""

    name: ClassVar[str] = "thing"
    colour: Blue | Green = Blue()  # blue or green
    side: Literal["left", "right"] = "left"
    rate: float | None = None
    sizes: tuple[int, ...] = (1, 2)
    loud: bool = False
    nickname: str | None = None


def test_a_nested_key_reaches_its_field():
    changed = with_option(with_option(Thing(), "colour", "green"), "colour.hue", "0.5")
    assert changed == Thing(colour=Green(hue=0.5))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("side", "right", "right"),
        ("rate", "1e-3", 1e-3),
        ("rate", "none", None),
        ("sizes", "4, 5", (4, 5)),
        ("loud", "true", True),
        ("nickname", "none", None),
        ("nickname", "Bo", "Bo"),
    ],
)
def test_text_becomes_the_fields_type(key, text, value):
    assert getattr(with_option(Thing(), key, text), key) == value


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("colour.depth", "deep", "colour.depth must be a whole number but got 'deep'."),
        ("side", "up", "side must be left or right but got 'up'."),
        ("rate", "fast", "rate must be a number or none but got 'fast'."),
        ("colour", "red", "colour must be blue or green but got 'red'."),
        ("loud", "2", "loud must be true or false but got '2'."),
        ("color.depth", "1", "Unknown key 'color.depth'. Did you mean 'colour.depth'?"),
        ("colour.dept", "1", "Unknown key 'colour.dept'. Did you mean 'colour.depth'?"),
        (
            "side.depth",
            "1",
            "Unknown key 'side.depth'. There are: colour, colour.depth, side, rate, sizes, loud, nickname.",
        ),
    ],
)
def test_a_wrong_key_or_value_is_one_sentence(key, text, sentence):
    with pytest.raises(UnspurError) as error:
        with_option(Thing(), key, text)
    assert str(error.value) == sentence


def test_json_keeps_everything():
    thing = Thing(colour=Green(hue=0.5), rate=0.1, sizes=(7,))
    assert from_json(to_json(thing), Thing) == thing


def test_equal_specs_have_equal_json():
    assert to_json(Thing(rate=1)) == to_json(Thing(rate=1.0))
    assert str(to_json(Thing(rate=1))) == str(to_json(Thing(rate=1.0)))  # 1 and 1.0 are equal but print differently


def test_json_with_an_unknown_part_is_refused():
    with pytest.raises(UnspurError, match="names 'mauve', which this version does not have"):
        from_json({"name": "thing", "colour": {"name": "mauve"}}, Thing)
    with pytest.raises(UnspurError, match="Unknown option of thing 'colours'"):
        from_json({"name": "thing", "colours": 1}, Thing)


def test_a_keyword_that_is_no_field_is_refused():
    with pytest.raises(UnspurError, match=r"Unknown option of thing 'lowd'\. Did you mean 'loud'\?"):
        make(Thing, "thing", {"lowd": True})


def test_options_are_described_with_their_comments():
    described = {option.key: (option.default, option.comment) for option in options(Thing())}
    assert described["colour"] == ("blue", "blue or green")
    assert described["colour.depth"] == (3, "how deep the blue is")


def test_json_with_a_word_that_is_no_choice_is_refused():
    with pytest.raises(UnspurError, match="penalise of masks must be keep or theta but got 'Theta'"):
        from_json({"name": "masks", "penalise": "Theta"}, MaskTraining)


@dataclass(frozen=True)
class Grown:
    """A thing that has grown a field since runs of it were stored."""

    name: ClassVar[str] = "grown"
    size: int = 1
    colour: Blue | Green = added(Blue())  # blue or green
    share: float = added(1.0)


def test_a_field_that_came_later_is_written_only_when_it_is_set():
    old = {"name": "grown", "size": 1}
    assert to_json(Grown()) == to_json(Grown(share=1)) == old and from_json(old, Grown) == Grown()
    changed = Grown(colour=Blue(depth=4), share=0.5)
    assert to_json(changed) == {**old, "colour": {"name": "blue", "depth": 4}, "share": 0.5}
    assert from_json(to_json(changed), Grown) == changed
    assert with_option(Grown(), "colour.depth", "4") == Grown(colour=Blue(depth=4))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 1.5}, r"epochs of sgd must be a whole number but got 1\.5"),
        ({"epochs": True}, "epochs of sgd must be a whole number but got True"),
        ({"lr": "fast"}, "lr of sgd must be a number but got 'fast'"),
        ({"lr": float("inf")}, "lr of sgd must be a number but got inf"),
        ({"until_loss": []}, r"until_loss of sgd must be a number or none but got \[\]"),
        ({"schedule": 3}, "schedule of sgd must be constant or step or multistep or drop or cosine or wsd but got 3"),
        ({"schedule": {"name": "multistep", "at": ["x"]}}, r"at of multistep must be values like 1,2 but got \['x'\]"),
    ],
)
def test_a_stored_value_of_another_type_is_named_with_its_field(changes, sentence):
    with pytest.raises(UnspurError, match=sentence):
        from_json(to_json(SGD()) | changes, SGD)
