"""W2D (arXiv:2204.04384): 1. Keep the worst third of a batch.  2. Hide the cells that matter most.  3. Descend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.models.base import cam_layer, channels_first
from unspur.parts.layers import scaled_at, with_output
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class W2D(Method):
    """Train on the worst samples with the cells hidden that matter most to them (W2D, Algorithm 1).

    What matters is found as by Grad-CAM, as in the code that the paper builds on (RSC, arXiv:2007.02454): the channels
    of a map, each times the mean slope of the label's logit at it. (The slope at a cell, without the map, is the same
    everywhere before global pooling.) Hidden are the highest cells of those kept samples whose label loses most
    probability by it. Cells alone are hidden: the paper hides channels as often. Runs on one device.
    """

    name: ClassVar[str] = "w2d"
    paper: ClassVar[str] = "arXiv:2204.04384"
    cost: ClassVar[str] = "1.1"
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    keep: float = 1 / 3  # share of a batch that trains, by loss
    hide: float = 0.25  # share of a map's cells that are hidden
    samples: float = 1 / 3  # share of the kept samples in which they are

    def __post_init__(self) -> None:
        for name, share in (("keep", self.keep), ("hide", self.hide), ("samples", self.samples)):
            require(0 < share <= 1, f"{name} must lie in (0, 1] but got {share}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be a layer that is a map of the image."""
        cam_layer(model, train.sample_shape)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        layer, shape = cam_layer(model, train.sample_shape), train.sample_shape

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            with torch.no_grad():
                everything = model(batch.x)
            worst = most(cross_entropy(everything.float(), batch), self.keep, least=2)
            kept = Batch(batch.x[worst], batch.y[worst], batch.index[worst])
            plain, maps = with_output(model, layer, kept.x)
            visible = keep_mask(plain, maps, kept.y, self.hide, shape)
            masked = scaled_at(model, layer, kept.x, visible)
            before, after = (cross_entropy(logits.float(), kept) for logits in (plain, masked))
            hidden = most((-before.detach()).exp() - (-after.detach()).exp(), self.samples)
            return Minimised(before.index_copy(0, hidden, after[hidden]).mean(), everything)

        train_model(model, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model)


def most(values: Tensor, share: float, least: int = 1) -> Tensor:
    """The places of the largest ``share`` of values."""
    return values.topk(min(len(values), max(least, round(share * len(values))))).indices


def keep_mask(logits: Tensor, maps: Tensor, y: Tensor, hide: float, sample_shape: torch.Size) -> Tensor:
    """0 in the cells that add most to the label's logit, 1 elsewhere, in the shape of the maps."""
    (slope,) = torch.autograd.grad(logits.gather(1, y[:, None]).sum(), maps, retain_graph=True)
    first, shown = (channels_first(each, sample_shape) for each in (slope, maps.detach()))
    cells = (first.mean((2, 3), keepdim=True) * shown).sum(1).flatten(1)
    hidden = cells.topk(max(1, round(hide * cells.shape[1])), dim=1).indices
    keep = torch.ones_like(cells).scatter(1, hidden, 0.0).reshape(len(cells), *first.shape[2:])
    return keep.unsqueeze(1 if first.shape == slope.shape else 3)
