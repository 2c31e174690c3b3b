"""MRM (Zhang et al., 2021), as DCWP compares with it: 1. ERM.  2. Learn which weights to keep.  3. ERM with those."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import head_of
from unspur.parts.debias import Debias, MaskTraining, learn_masks, prune_for_good
from unspur.parts.mining import GCE, Mined, Miner, require_both
from unspur.parts.pruning import prunable, pruned, pruned_warnings
from unspur.parts.select import val_scores
from unspur.train.loop import train as train_model
from unspur.train.recipe import Adam, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class MRM(Method):
    """Prune with plain cross-entropy (DCWP, Eq. 12), reset what is left to its initial weights, and train that anew.

    With ``debias`` the masks come from Eq. 11, as DCWP's do: MRM_debias of section 5.3. The second training is like the
    first, on all samples alike, for as many epochs or others. Runs on one device.
    """

    name: ClassVar[str] = "mrm"
    paper: ClassVar[str] = "Zhang et al., 2021"
    cost: ClassVar[str] = "2.5"
    one_device: ClassVar[bool] = True
    erm: Optimiser = Adam(lr=0.01, epochs=47, batch_size=256)  # as DCWP's: sgd, adam, adamw, adadelta or kron
    masks: MaskTraining = MaskTraining()  # up and align count with debias only
    debias: bool = False  # whether the masks are learnt with mined samples drawn more often, and aligned
    epochs_again: int | None = None  # of the second training; none: as many as of the first
    mining: Miner = GCE()  # with debias: gce, erm or ensemble
    temperature: float = 0.07  # with debias: of the contrastive losses

    def __post_init__(self) -> None:
        require(0 < self.temperature < math.inf, f"temperature must be positive but got {self.temperature}.")
        again = self.epochs_again
        require(again is None or again >= 1, f"epochs_again must be at least 1 but got {again}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be weights to prune, and with ``debias`` features to align."""
        prunable(model)
        if self.debias and self.masks.align:
            head_of(model)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        start = copy.deepcopy(model.state_dict())
        mined = self._mine(model, train, val, session) if self.debias else None
        train_model(model, train, self.erm, stage="erm", session=session)
        stages = {"erm": copy.deepcopy(model)}
        # With nothing mined and lambda_up = 1 every sample is drawn alike, and Eq. 11 is Eq. 12.
        recipe = self.masks if mined is not None else replace(self.masks, up=1.0, align=0.0)
        none = torch.zeros(len(train), dtype=torch.bool)
        debias = Debias(none if mined is None else mined.train, "sample", self.temperature)
        score = partial(val_scores, val=val, mined=mined and mined.val, session=session)
        masks = learn_masks(model, train, debias, recipe, score, session)
        stages["pruned"] = prune_for_good(model, train, debias, recipe, masks, session)
        model.load_state_dict(start)
        again = self.erm if self.epochs_again is None else replace(self.erm, epochs=self.epochs_again)
        with pruned(model, masks):
            train_model(model, train, again, stage="retraining", session=session)
        warnings = pruned_warnings(masks)
        if mined is not None:
            warnings = [*mined.warnings(), *warnings, *debias.pair_warnings(recipe, train, session)]
        return Fit(model, stages, Baseline("erm"), mining=mined, pruning=masks, warnings=warnings)

    def _mine(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Mined:
        mined = self.mining.mine(copy.deepcopy(model), train, val, session)
        require_both(mined.train)
        return mined
