"""What each method was shown to do here: shown.json, which `make results` writes from results/."""

from __future__ import annotations

import importlib.resources
import json
from typing import Literal, TypedDict

KindOfCue = Literal["place", "scene", "trace"]  # cells of the image, its colours, how it was made


class Shown(TypedDict):
    """What a method made of a shortcut: per cent right where it misleads, without and with the method."""

    shortcut: str
    cue: KindOfCue
    images: str  # what kind of images, and what of the network was trained
    before: float
    after: float
    seeds: int
    file: str


def shown() -> dict[str, list[Shown]]:
    """Every committed figure, by method; torch is not imported."""
    text = importlib.resources.files("unspur.methods").joinpath("shown.json").read_text(encoding="utf-8")
    found: dict[str, list[Shown]] = json.loads(text)
    return found
