"""What a method is, and what its fit returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.train.loop import Loss
from unspur.train.session import Session


@dataclass(frozen=True, eq=False)
class Fit:
    """The trained model, what came before it, and what was measured on the way."""

    model: nn.Module
    stages: Mapping[str, nn.Module] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # plain JSON values
    artifacts: Mapping[str, Tensor] = field(default_factory=dict)  # maps, mined sample numbers, pruning masks


@runtime_checkable
class BuildsStages(Protocol):
    """A method some of whose stages have another architecture than its result."""

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """A model of the architecture that ``stage`` has, given one of the result's."""
        ...


@runtime_checkable
class Checks(Protocol):
    """A method that can tell, before it trains or writes anything, that it cannot work with a model or data."""

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Raise an error that says what is wrong and what to do; ``fit`` does it too."""
        ...


@runtime_checkable
class OwnLoss(Protocol):
    """A method whose ``erm`` recipe does not minimise the cross-entropy."""

    @property
    def loss(self) -> Loss: ...


class Method(Protocol):
    """A frozen dataclass whose fields are all its hyperparameters."""

    name: ClassVar[str]
    needs_groups: ClassVar[bool]  # whether fit reads the training set's attributes
    mixes: ClassVar[bool]  # whether it trains through the session's fabric alone, which can mix precisions
    one_device: ClassVar[bool]  # whether it cannot train on several devices at once

    def fit(
        self, model: nn.Module, train: Split, *, val: Split | None = None, seed: int = 0, session: Session | None = None
    ) -> Fit:
        """Train ``model`` in place and return it with its history."""
        ...
