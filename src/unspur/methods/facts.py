"""What result.json says of a fit: what it is compared with, and what was measured on the way."""

from __future__ import annotations

from typing import Literal, TypedDict

from unspur.parts.abstaining import Kind
from unspur.parts.masking import HiddenFacts
from unspur.parts.mining import MinedFacts, MiningQuality
from unspur.parts.pruning import PrunedFacts
from unspur.parts.select import Selection

Role = Literal["before", "student"]  # what a result began as, or a biased model that was trained beside it


class BaselineBlock(TypedDict):
    """The stage that a result is to be compared with, and what that was to it."""

    stage: str  # its name, as in `stages`
    role: Role  # before: what the repair began with; student: a biased model trained beside it


class Facts(MinedFacts, PrunedFacts, HiddenFacts, total=False):
    """Everything that was measured on the way, as plain JSON values; a method may add figures of its own."""

    mining: MiningQuality  # where attributes tell; no method sees it
    selection: Selection
    abstains: Kind  # how the method has learnt to
