"""RandMask: MaskTune's control, which hides places at random (MaskTune, sections 4.1 and A.1)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from unspur.core.options import added
from unspur.core.progress import of_stage
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.data.masks import BitMask, hidden_shares
from unspur.errors import UnspurError
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import cam_layer
from unspur.parts.masking import Hidden, fine_tune, require_tuning, unmasked_warnings
from unspur.saliency.maps import FINE, coarse_warnings, maps_of
from unspur.saliency.threshold import Hard, MeanStd, hide
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class RandMask(Method):
    """MaskTune with a square at a random place of each image in the map's place (MaskTune, Figure 2 and Table 6).

    ``same_area`` hides a square of the area that MaskTune would hide of that image, to the nearest whole side: the
    paper says no more than "a randomly chosen area". ``window`` hides a square with a side from 2 to half the image's
    smaller side, each as likely (section A.1).
    """

    name: ClassVar[str] = "randmask"
    paper: ClassVar[str] = "arXiv:2210.00055"
    cost: ClassVar[str] = "1.5, or 2.2 with restart"
    erm: Optimiser = SGD(weight_decay=1e-4)  # as MaskTune's: sgd, adam, adamw, adadelta or kron
    area: Literal["same_area", "window"] = "same_area"  # how large the hidden square is
    threshold: Hard = MeanStd()  # MaskTune's, whose area same_area takes: mean_std, dataset_mean or top_k
    finetune_lr: float | None = None  # none: the last rate that ERM used
    restart: bool = added(False)  # as MaskTune's

    def __post_init__(self) -> None:
        require_tuning(self.finetune_lr, restart=self.restart)

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Squares need images, and the area that MaskTune would hide needs its maps."""
        if len(train.sample_shape) != 3:
            raise UnspurError("RandMask hides squares of images; this data set has vectors.")
        if self.area == "same_area":
            cam_layer(model, train.sample_shape)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        first = copy.deepcopy(model) if self.restart else None
        train_model(model, train, self.erm, stage="erm", session=session)
        height, width = train.sample_shape[-2:]
        generator = stream(session.seed, "randmask")
        if self.area == "window":
            sides = torch.randint(2, min(height, width) // 2 + 1, (len(train),), generator=generator)
        else:
            progress = of_stage(session.progress, "maps")
            maps = maps_of(model, train, "xgradcam", session.device, least=FINE, progress=progress)
            shares = hidden_shares(hide(self.threshold, maps, (height, width)))
            sides = (shares * height * width).sqrt().round().long()
        masked = train.masked(BitMask.of(random_squares(sides, height, width, generator)))
        tuned = first or copy.deepcopy(model)
        fine_tune(tuned, masked, self.erm, self.finetune_lr, stage="iteration-1", session=session, restart=self.restart)
        hidden = Hidden.of(masked)
        warnings = unmasked_warnings(hidden.unmasked, len(train)) + self.coarse(model, train.sample_shape)
        return Fit(tuned, {"erm": model}, Baseline("erm"), masks=hidden, warnings=warnings)

    def coarse(self, model: nn.Module, sample_shape: torch.Size) -> list[str]:
        """As MaskTune's, of the maps whose area is taken."""
        return coarse_warnings(model, sample_shape) if self.area == "same_area" else []


def random_squares(sides: Tensor, height: int, width: int, generator: torch.Generator) -> Tensor:
    """For each side a map (height, width), True in a square of that side which lies wholly inside it."""
    top = (torch.rand(len(sides), generator=generator) * (height - sides + 1)).long()
    left = (torch.rand(len(sides), generator=generator) * (width - sides + 1)).long()
    row, column = torch.arange(height), torch.arange(width)
    rows = (row >= top.unsqueeze(1)) & (row < (top + sides).unsqueeze(1))
    columns = (column >= left.unsqueeze(1)) & (column < (left + sides).unsqueeze(1))
    return rows.unsqueeze(2) & columns.unsqueeze(1)
