"""What a method is: a frozen dataclass whose fields are all its hyperparameters, one `_fit`, and what that returns."""

from __future__ import annotations

import abc
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast, final

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.errors import UnspurError, require
from unspur.methods.facts import Facts, Role
from unspur.models.base import head_of
from unspur.models.classifier import Classifier
from unspur.parts.abstaining import SELECTOR, Selector
from unspur.parts.features import frozen_body, on_features, with_head
from unspur.parts.group_losses import lone_sample_warnings
from unspur.parts.masking import Hidden
from unspur.parts.mining import Mined
from unspur.parts.pruning import Masks, pruned_facts
from unspur.parts.select import Selection
from unspur.train.losses import Loss, cross_entropy
from unspur.train.recipe import recipes
from unspur.train.session import Session

FIXED = (
    "{name} works on the features before the last layer, which are frozen, so that only the last layer was trained as "
    "usual; train all layers (arch.freeze=none)."
)


class Baseline(NamedTuple):
    """The stage that a result is to be compared with, and what that was to it."""

    stage: str
    role: Role = "before"


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
    selector: Selector | None = None  # when to abstain, where the method has learnt that
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
        if self.selector is not None:
            found["abstains"] = self.selector.kind
        return cast(Facts, found | dict(self.figures))

    @property
    def artifacts(self) -> dict[str, Tensor]:
        """What is stored beside the weights: mined sample numbers, pruning masks, what was hidden."""
        kept = {f"mask.{name}": mask for name, mask in (self.pruning or {}).items()}
        mined = self.mining.artifacts() if self.mining else {}
        unit = {SELECTOR: self.selector.weight} if self.selector else {}
        return kept | mined | unit | (self.masks.artifacts() if self.masks else {})


@dataclass(frozen=True)
class Method(abc.ABC):
    """A method writes ``_fit``, and where it must ``check``, ``loss`` and ``stage_model``; the base does the rest."""

    name: ClassVar[str]
    paper: ClassVar[str] = ""  # where it comes from
    cost: ClassVar[str] = ""  # in units of plain training
    network: ClassVar[str] = "any"  # that it is for: any, from scratch, or pretrained: it reads the first features
    needs_groups: ClassVar[bool] = False  # whether it reads the training set's attributes
    needs_val_groups: ClassVar[bool] = False  # whether it reads the validation set's
    takes_ticked: ClassVar[bool] = False  # whether it validates best on images that go against the shortcut
    one_device: ClassVar[bool] = False  # whether it cannot train on several devices at once
    own_stages: ClassVar[tuple[str, ...]] = ()  # stages whose architecture may be another than the result's
    mixes: ClassVar[bool] = True  # whether it trains through the session's fabric alone, which can mix precisions
    moves_features: ClassVar[bool] = False  # whether all that sets it apart is what it does to the features

    @final
    def fit(
        self, model: nn.Module, train: Split, *, val: Split | None = None, seed: int = 0, session: Session | None = None
    ) -> Fit:
        """Train ``model`` in place and return it with its history."""
        session = session or Session()
        session.seed = seed
        self.require(model, train, val, session.fabric.world_size)
        found = self._fit_any(model, train, val if val is not None and len(val) else None, session)
        lone = lone_sample_warnings(train) if self.needs_groups else []
        fixed = [FIXED.format(name=self.name)] if self.moves_features and frozen_body(model) else []
        stopped = [why for stage, why in session.stopped.items() if found.trained in (None, stage)]
        return replace(found, warnings=[*stopped, *fixed, *found.warnings, *lone])

    @final
    def require(self, model: nn.Module, train: Split, val: Split | None = None, devices: int = 1) -> None:
        """Stop, before anything is trained or written, at what this method cannot work with."""
        require(
            devices == 1 or not self.one_device,
            f"{self.name} runs on one device, but got {devices}; use --devices 1.",
        )
        for _, recipe in recipes(self):
            recipe.require_installed()
        instead = "use a method that needs none, such as masktune, dcwp or jtt (`unspur methods` lists them)."
        require(
            bool(train.attributes) or not self.needs_groups,
            f"{self.name} needs training data with group labels, and these have none; {instead}",
        )
        require(
            not self.needs_val_groups or (val is not None and len(val) > 0 and bool(val.attributes)),
            f"{self.name} needs validation data with group labels, and there are none; {instead}",
        )
        if not len(train):
            raise UnspurError("There is nothing to train on: the training set is empty.")
        self.check(model, train, val)

    def _fit_any(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        return self._fit(model, train, val, session)

    @abc.abstractmethod
    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        """Train ``model`` in place; ``val`` has samples or is None."""

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:  # noqa: B027 (most have nothing to ask)
        """Raise an error that says what is wrong with a model or data and what to do."""

    def settled(self) -> Method:
        """The method with whatever its settings name on disk read in: a run's configuration must hold all of it."""
        return self

    @property
    def loss(self) -> Loss:
        """What the method's first recipe minimises; the probe for a learning rate does too."""
        return cross_entropy

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """A model of the architecture that ``stage``, one of ``own_stages``, has, given one of the result's."""
        return copy.deepcopy(model)

    @classmethod
    def grown(cls, model: Classifier, channels: int, seed: int = 0) -> Classifier:
        """``model``, as an architecture builds it for images of ``channels``, with what else a result needs to answer.

        It depends on no setting: who has the weights, the architecture and the method's name can build it again.
        """
        return model


class LogitsMethod(Method):
    """A method that asks a model for nothing but logits, or what goes into its last layer.

    Where all before the head is frozen, the head alone is fitted, on features that are computed once.
    """

    @final
    def _fit_any(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        if not frozen_body(model, train) or session.fabric.world_size > 1:
            return self._fit(model, train, val, session)
        features = on_features(model, train, session, "features")
        val = None if val is None else on_features(model, val, session, "val-features")
        fit = self._fit(copy.deepcopy(head_of(model)), features, val, session)
        stages = {name: with_head(copy.deepcopy(model), stage) for name, stage in fit.stages.items()}
        return replace(fit, model=with_head(model, fit.model), stages=stages)
