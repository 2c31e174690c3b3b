"""What a training step computes, who may look at it, and what state may change with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn

from unspur.data.base import Batch, Split


class Minimised(NamedTuple):
    """What an objective finds for a batch."""

    loss: Tensor  # one value a sample, of which the mean over the batch counts, or a single number
    logits: Tensor | None = None  # from which the running accuracy is taken
    logged: Mapping[str, Tensor] = {}  # means over the batch that the log shows as well, by name
    for_carry: Mapping[str, Tensor] = {}  # what something carried along needs to know beside these, by name

    def detached(self) -> Minimised:
        """The same without gradients."""
        logged, kept = ({name: value.detach() for name, value in part.items()} for part in self[2:])
        return Minimised(self.loss.detach(), None if self.logits is None else self.logits.detach(), logged, kept)


class Moment(NamedTuple):
    """What a carry or an observer sees after each step (under DDP: of its own rank's part of the batch)."""

    model: nn.Module
    stage: str
    epoch: int  # the number of the round, from 0
    step: int  # counted over the whole stage, from 0
    split: Split
    batch: Batch
    found: Minimised  # without gradients
    ends_round: bool = False

    @property
    def logits(self) -> Tensor:
        assert self.found.logits is not None
        return self.found.logits

    @property
    def losses(self) -> Tensor:
        return self.found.loss


class Carry:
    """Something that lives through a training and is saved with it, such as weights of groups or a mean of losses."""

    saved: ClassVar[tuple[str, ...]] = ()  # the attributes that change, tensors or plain values
    judges: ClassVar[bool] = False  # whether something is decided by how ``figures`` finds the model in evaluation mode

    def see(self, moment: Moment) -> None:
        """Update after a step. This is the only place where a training may change anything other than its model."""

    def figures(self) -> Mapping[str, Any]:
        """Figures for the line of the log that ends a round."""
        return {}

    def state(self) -> dict[str, Any]:
        """Everything that has changed, for the checkpoint."""
        return {name: getattr(self, name) for name in self.saved}

    def load(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        for name, value in state.items():
            setattr(self, name, value)


class Observer(Protocol):
    """Watches every step for which each sample's loss is known; the training does not depend on it."""

    def see(self, moment: Moment) -> None:
        """Look at one step."""

    def figures(self) -> dict[str, Any]:
        """What was seen since the last time, for the next line of metrics.jsonl."""
