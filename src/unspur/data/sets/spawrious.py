"""Spawrious (Lynch et al., 2023): four breeds of dogs in six places, in six variants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from unspur.data.images.layout import Entries, Row, WithoutValidation, entries_of, images_in
from unspur.data.spec import About, Count

BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
BACKGROUNDS = ("beach", "desert", "dirt", "jungle", "mountain", "snow")
EACH = 3168  # images of each breed in each place, in each of the two halves 0 and 1

Variant = Literal["o2o_easy", "o2o_medium", "o2o_hard", "m2m_easy", "m2m_medium", "m2m_hard"]


class Places(NamedTuple):
    """Where each breed is, in the order of ``ORDER``; many-to-many variants pair the first two and the last two."""

    train: tuple[str, str, str, str]
    test: tuple[str, str, str, str]
    rest: str = ""  # where all breeds are in the remaining training images


VARIANTS: dict[str, Places] = {
    "o2o_easy": Places(("desert", "jungle", "dirt", "snow"), ("dirt", "snow", "desert", "jungle"), "beach"),
    "o2o_medium": Places(("mountain", "beach", "dirt", "jungle"), ("jungle", "dirt", "beach", "snow"), "desert"),
    "o2o_hard": Places(("jungle", "mountain", "snow", "desert"), ("mountain", "snow", "desert", "jungle"), "beach"),
    "m2m_easy": Places(("desert", "mountain", "dirt", "jungle"), ("dirt", "jungle", "mountain", "desert")),
    "m2m_medium": Places(("beach", "snow", "mountain", "desert"), ("desert", "mountain", "beach", "snow")),
    "m2m_hard": Places(("dirt", "jungle", "snow", "beach"), ("snow", "beach", "dirt", "jungle")),
}
ORDER = ("bulldog", "dachshund", "labrador", "corgi")


class Portion(NamedTuple):
    split: str
    half: int
    place: str
    breed: str
    n: int


@dataclass(frozen=True)
class Spawrious(WithoutValidation):
    """Four breeds of dogs whose background changes between training and test, in six variants.

    One to one: a breed has one place in 97 % of the first half and 87 % of the second, and shares another place with
    the rest. Many to many: two breeds share two places. Of a folder the first images by name are taken. Validation
    images are a share of the training images; the publishers have none.
    """

    name: ClassVar[str] = "spawrious"
    about: ClassVar[About] = About(
        "Lynch, Dovonon, Kaddour and Silva, Spawrious, arXiv:2303.05470",
        "MIT (as its repository)",
        "linked from github.com/aengusl/spawrious: the variant's archive, or the entire data set for many-to-many",
    )
    title: ClassVar[str] = "Spawrious"
    folders: ClassVar[tuple[str, ...]] = ("spawrious224", "spawrious/spawrious224", "spawrious")
    marks: ClassVar[tuple[str, ...]] = ("0",)

    variant: Variant = "o2o_easy"  # o2o_easy, o2o_medium, o2o_hard (one to one) or m2m_... (many to many)

    def entries(self, root: Path) -> Entries:
        rows = []
        for portion in self.portions():
            files = images_in(root, f"{portion.half}/{portion.place}/{portion.breed}")[: portion.n]
            rows.append(Row(files, portion.split, portion.breed, background=portion.place))
        return entries_of(root, rows, BREEDS, {"background": BACKGROUNDS})

    def portions(self) -> list[Portion]:
        """Which images are in which split."""
        places = VARIANTS[self.variant]
        if self.variant.startswith("m2m"):
            return [
                Portion(split, 0, place, breed, EACH)
                for split, where in (("train", places.train), ("test", places.test))
                for number, breed in enumerate(ORDER)
                for place in (where[:2] if number < 2 else where[2:])
            ]
        portions = []
        for half, share in ((0, 0.97), (1, 0.87)):
            count = int(share * EACH)
            for breed, train, test in zip(ORDER, places.train, places.test, strict=True):
                portions += [
                    Portion("train", half, train, breed, count),
                    Portion("train", half, places.rest, breed, EACH - count),
                    Portion("test", half, test, breed, EACH),
                ]
        return portions

    def expected(self) -> tuple[Count, ...]:
        held = self.held_out(8 * EACH)
        tests: dict[tuple[str, str], int] = {}
        for portion in self.portions():
            if portion.split == "test":
                group = (portion.breed, portion.place)
                tests[group] = tests.get(group, 0) + portion.n
        return (
            Count("train", 8 * EACH - held),
            Count("val", held),
            *(Count("test test", n, (group,)) for group, n in tests.items()),
        )
