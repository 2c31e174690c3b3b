"""What a fit returns: the model, and in typed blocks what was mined, pruned, hidden and chosen on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict, cast

from torch import Tensor, nn

from unspur.parts.masking import Hidden, HiddenFacts
from unspur.parts.mining import Mined, MinedFacts, MiningQuality
from unspur.parts.pruning import Masks, PrunedFacts, pruned_facts
from unspur.parts.select import Selection

Role = Literal["before", "student"]  # what a result began as, or a biased model that was trained beside it


class Baseline(NamedTuple):
    """The stage that a result is to be compared with, and what that was to it."""

    stage: str
    role: Role = "before"


class BaselineBlock(TypedDict):
    """The same in result.json."""

    stage: str
    role: Role


class Facts(MinedFacts, PrunedFacts, HiddenFacts, total=False):
    """Everything that was measured on the way, as plain JSON values; a method may add figures of its own."""

    mining: MiningQuality  # where attributes tell; no method sees it
    selection: Selection


@dataclass(frozen=True, eq=False)
class Fit:
    """The trained model, what came before it, and what was measured on the way."""

    model: nn.Module
    stages: Mapping[str, nn.Module] = field(default_factory=dict)
    baseline: Baseline | None = None
    trained: str | None = None  # the stage whose training made the model, where others were given up
    mining: Mined | None = None
    pruning: Masks | None = None
    masks: Hidden | None = None  # of the training images, as the model saw them last
    selection: Selection | None = None
    warnings: Sequence[str] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)  # the method's own, as plain JSON values

    @property
    def facts(self) -> Facts:
        """Every block and figure as plain JSON values, the ``facts`` of result.json."""
        found: dict[str, Any] = {}
        if self.mining is not None:
            found |= self.mining.facts()
        if self.pruning is not None:
            found |= pruned_facts(self.pruning)
        if self.masks is not None:
            found |= self.masks.facts()
        if self.selection is not None:
            found["selection"] = self.selection
        return cast(Facts, found | dict(self.figures))

    @property
    def artifacts(self) -> dict[str, Tensor]:
        """What is stored beside the weights: mined sample numbers, pruning masks, what was hidden."""
        kept = {f"mask.{name}": mask for name, mask in (self.pruning or {}).items()}
        mined = self.mining.artifacts() if self.mining else {}
        return kept | mined | (self.masks.artifacts() if self.masks else {})
