"""Reference pages say what the code says."""

from typing import NotRequired, TypedDict

from website.scripts import script

reference = script("site_reference")


class Example(TypedDict):
    """A structure."""

    name: str  # what it is called
    size: NotRequired[int | None]  # in pixels
    other: float


def test_a_field_has_its_type_and_the_comment_behind_it():
    assert reference._fields(Example).splitlines() == [
        "| field | type | meaning |",
        "| --- | --- | --- |",
        "| `name` | `str` | what it is called |",
        "| `size` | `int \\| None` | in pixels, *may be absent* |",
        "| `other` | `float` |  |",
    ]


def test_every_stored_file_is_described_field_by_field():
    page = reference._files()
    assert "## `result.json`, of a run" in page and "| `warnings` | `list[str]` |" in page
    assert "**FindingJSON**" in page and "| `follows_cue` | `float` |" in page


def test_a_method_that_penalises_shows_its_penalty_and_others_their_fit():
    methods = reference.METHODS
    assert reference._algorithm(methods["coral"]).startswith("def penalty(")
    assert reference._algorithm(methods["jtt"]).startswith("def _fit(")
    assert all(reference._algorithm(kind) for kind in methods.values())
