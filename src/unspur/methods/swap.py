"""Swap (ours): 1. Copy each image with the cue of another class's image.  2. Train on both, labels unchanged.

Whatever the cue says, it then says nothing about the label, so that it is not worth learning. The cue must be known
and movable: from an audit, by name, or, without either, as what a biased model looks at.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from unspur.core.options import require_finite
from unspur.core.progress import of_stage
from unspur.core.seeds import derive
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import cam_layer, head_of
from unspur.parts.cues.audited import audited_cues
from unspur.parts.cues.texts import cues_of
from unspur.parts.features import features_of
from unspur.parts.last_layer import check_head, set_head
from unspur.parts.last_logistic import STRENGTHS, Judged, Layers, fit_plain, require_strengths
from unspur.parts.logistic_path import logistic_path
from unspur.parts.masking import Hidden, unmasked_warnings
from unspur.parts.swapping import (
    CueExchange,
    Exchange,
    MaskExchange,
    OneOfEach,
    require_images,
    usual_share,
    with_copies,
)
from unspur.saliency.maps import FINE, maps_of
from unspur.saliency.threshold import Hard, MeanStd, hide
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Adam, Optimiser
from unspur.train.schedules import WarmupStableDecay
from unspur.train.session import Session

ONE_CYCLE = WarmupStableDecay(warmup=0.3, decay=0.7)
JUDGED = 3  # copies of each validation image that a choice is made by


@dataclass(frozen=True)
class Swap(Method):
    """Train on images and on copies in which a cue comes from an image of another class, with the label unchanged.

    It assumes that the shortcut lies in a family of cues that can be moved between images without moving the object,
    and that it was found; it does nothing about others. The share of copies, (classes - 1) / classes by default, is the
    one at which every class's cue is as likely with each label. With a larger one some copies have the cue of an image
    of their own class, for the same reason; with ``share=1`` no image is left as it is. What is pasted has edges that a
    network can learn to see: if all copies mislead and all else does not, the edges say when to trust the cue.

    Without ``cues`` a plainly trained model shows what to swap: where its map exceeds the threshold (MaskTune, section
    2), the image is filled from the donor instead of black. With ``layers=last`` the network stays as it is, and a
    logistic regression on its features, in which every class counts the same, is fitted for each strength of L2. Kept
    is the strongest that is behind the best on validation images with swapped cues by no more than the standard error
    of that difference: weak L2 fits what copies alone show. That needs no group labels. Runs on one device.
    """

    name: ClassVar[str] = "swap"
    paper: ClassVar[str] = "ours"
    cost: ClassVar[str] = "1 with cues, 2 without"
    one_device: ClassVar[bool] = True
    cues: tuple[str, ...] = ()  # colour, cast, brightness, contrast, tone, noise, sharpness, compression, cells:8x8:F0
    audit: str = ""  # an audit's folder whose cues to take; the run's configuration holds these in its place
    layers: Layers = "all"  # what is trained: all layers, or the last one on features computed once
    copies: int = 4  # of each image; of all layers' training each epoch draws one of them
    share: float | None = None  # of copies among what is trained on; none: (classes - 1) / classes
    training: Optimiser = Adam(lr=4e-3, epochs=3, batch_size=256, schedule=ONE_CYCLE)  # of all layers
    l2s: tuple[float, ...] = STRENGTHS  # of the last layer, on features of deviation 1
    erm: Optimiser = SGD(weight_decay=1e-4)  # without cues: of the biased model
    threshold: Hard = MeanStd()  # without cues: what of its maps is swapped, mean_std, dataset_mean or top_k

    def __post_init__(self) -> None:
        require_finite(self)
        cues_of(self.cues)
        require(not (self.audit and self.cues), "Name either an audit or cues to swap, not both.")
        require(self.copies >= 1, f"copies must be at least 1 but got {self.copies}.")
        require(self.share is None or 0 < self.share <= 1, f"share must lie in (0, 1] but got {self.share}.")
        require_strengths(self.l2s)

    def settled(self) -> Swap:
        """The method with the audit's cues in place of its folder."""
        return replace(self, cues=audited_cues(self.audit), audit="") if self.audit else self

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be images of several classes, a linear head to train alone, and a layer that is a map."""
        require_images(train)
        if self.layers == "last":
            check_head(model, train)
            require(
                val is not None or len(self.l2s) == 1,
                "Choosing among strengths of L2 needs validation data; hold some out, or name one (l2s=0.1).",
            )
        if not self.cues and not self.audit:
            cam_layer(model, train.sample_shape)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        if self.audit:
            return self.settled()._fit(model, train, val, session)
        if self.layers == "last":
            return self._fit_head(model, train, val, session)
        stages, hidden, exchange = {}, None, self._cues()
        if exchange is None:
            stages["erm"] = copy.deepcopy(model)
            train_model(stages["erm"], train, self.erm, stage="erm", session=session)
            hidden, exchange = self._looked_at(stages["erm"], train, session)
        share = self._share(train)
        both = with_copies(train, exchange, self.copies, derive(session.seed, "swap"), share=share)
        order = OneOfEach(copies=self.copies, share=share)
        train_model(model, both, self.training, stage="training", session=session, order=order)
        figures = {"cues": list(self.cues), "share": share}
        baseline = Baseline("erm") if stages else None
        return Fit(model, stages, baseline, masks=hidden, figures=figures, warnings=_unmasked(hidden))

    def _fit_head(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        """Logistic regression on frozen features: plain as stage ``erm``, and with copies."""
        share, classes = self._share(train), head_of(model).out_features
        plain, heads = copy.deepcopy(model), fit_plain(model, train, self.l2s, session)
        ordinary = Judged.of(model, val, session, "val-features")
        set_head(plain, *heads[ordinary.best(heads)])
        hidden, exchange = None, self._cues()
        if exchange is None:
            hidden, exchange = self._looked_at(plain, train, session)
        seed = derive(session.seed, "swap")
        copies = with_copies(train, exchange, self.copies, seed, share=share, originals=False)
        x = torch.cat(
            [features_of(model, both, session, stage) for both, stage in ((train, "features"), (copies, "copies"))]
        )
        weight = torch.full((len(x),), share / len(copies))
        weight[: len(train)] = (1 - share) / len(train)
        y = torch.cat([train.y, copies.y])
        weight /= torch.bincount(y, weight)[y]  # every class counts the same
        heads = logistic_path(
            x, y, self.l2s, classes, weight=weight, progress=of_stage(session.progress, "heads with copies")
        )
        swapped = Judged.of(model, self._val_copies(plain, val, session), session, "swapped-features", JUDGED)
        chosen = swapped.steadiest(heads, self.l2s)
        set_head(model, *heads[chosen])
        grid = [
            {"l2": l2, "swapped": one, "ordinary": other}
            for l2, one, other in zip(self.l2s, swapped.scores(heads), ordinary.scores(heads), strict=True)
        ]
        figures = {"cues": list(self.cues), "share": share, "chosen_l2": self.l2s[chosen], "strengths": grid}
        rest: dict[str, Any] = {"masks": hidden, "figures": figures, "warnings": _unmasked(hidden)}
        return Fit(model.eval(), {"erm": plain.eval()}, Baseline("erm"), **rest)

    def _val_copies(self, biased: nn.Module, val: Split | None, session: Session) -> Split | None:
        """Validation images with cues of other validation images, of every class as often: none was trained on.

        Of other classes alone they would praise a head that knows by the edges of what is pasted that the cue misleads.
        """
        if val is None or len(val.y.unique()) < 2:
            return None
        exchange = self._cues() or self._looked_at(biased, val, session)[1]
        return with_copies(val, exchange, JUDGED, derive(session.seed, "swap", "val"), share=1.0, originals=False)

    def _share(self, train: Split) -> float:
        return usual_share(len(train.y.unique())) if self.share is None else self.share

    def _cues(self) -> Exchange | None:
        return CueExchange(cues_of(self.cues)) if self.cues else None

    def _looked_at(self, biased: nn.Module, train: Split, session: Session) -> tuple[Hidden, Exchange]:
        """What the biased model's maps show of each training image."""
        maps = maps_of(
            biased, train, "xgradcam", session.device, least=FINE, progress=of_stage(session.progress, "maps")
        )
        height, width = train.sample_shape[1:]
        mask = hide(self.threshold, maps, (height, width), None)
        return Hidden(mask, len(train)), MaskExchange(mask)


def _unmasked(hidden: Hidden | None) -> list[str]:
    return [] if hidden is None else unmasked_warnings(hidden.unmasked, hidden.images)
