"""What a method is: a frozen dataclass whose fields are all its hyperparameters, and one `_fit`."""

from __future__ import annotations

import abc
import copy
from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError, require
from unspur.methods.outcome import Fit
from unspur.train.losses import Loss, cross_entropy
from unspur.train.session import Session


@dataclass(frozen=True)
class Method(abc.ABC):
    """A method writes ``_fit``, and where it must ``check``, ``loss`` and ``stage_model``; the base does the rest."""

    name: ClassVar[str]
    paper: ClassVar[str] = ""  # where it comes from
    cost: ClassVar[str] = ""  # in units of plain training
    needs_groups: ClassVar[bool] = False  # whether it reads the training set's attributes
    one_device: ClassVar[bool] = False  # whether it cannot train on several devices at once
    own_stages: ClassVar[tuple[str, ...]] = ()  # stages whose architecture may be another than the result's
    mixes: ClassVar[bool] = True  # whether it trains through the session's fabric alone, which can mix precisions

    @final
    def fit(
        self, model: nn.Module, train: Split, *, val: Split | None = None, seed: int = 0, session: Session | None = None
    ) -> Fit:
        """Train ``model`` in place and return it with its history."""
        session = session or Session()
        session.seed = seed
        self.require(model, train, val, session.fabric.world_size)
        return self._fit(model, train, val if val is not None and len(val) else None, session)

    @final
    def require(self, model: nn.Module, train: Split, val: Split | None = None, devices: int = 1) -> None:
        """Stop, before anything is trained or written, at what this method cannot work with."""
        require(
            devices == 1 or not self.one_device,
            f"{self.name} runs on one device, but got {devices}; use --devices 1.",
        )
        require(
            bool(train.attributes) or not self.needs_groups,
            f"{self.name} needs training data with group labels, and these have none; use a method that needs none, "
            "such as masktune, dcwp or jtt (`unspur methods` lists them).",
        )
        if not len(train):
            raise UnspurError("There is nothing to train on: the training set is empty.")
        self.check(model, train, val)

    @abc.abstractmethod
    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        """Train ``model`` in place; ``val`` has samples or is None."""

    def check(self, model: nn.Module, train: Split, val: Split | None) -> None:  # noqa: B027 (most have nothing to ask)
        """Raise an error that says what is wrong with a model or data and what to do."""

    @property
    def loss(self) -> Loss:
        """What the method's first recipe minimises; the probe for a learning rate does too."""
        return cross_entropy

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """A model of the architecture that ``stage``, one of ``own_stages``, has, given one of the result's."""
        return copy.deepcopy(model)
