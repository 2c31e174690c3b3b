"""CIM (arXiv:2106.06620): a network masks the image so that it looks like its class; another one reads what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Fit, Method
from unspur.models.classifier import Classifier
from unspur.parts.layers import with_output
from unspur.parts.morphing import Morphing, as_pixels, drawn_from, ssim, with_morphing
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import Adam, Optimiser
from unspur.train.session import Session

TRIPLET = 3  # samples


@dataclass(frozen=True)
class CIM(Method):
    """Contrastive input morphing: classify images behind a learnt mask, which a perceptual triplet loss holds to them.

    Cross-entropy on the masked image + lambda max(0, s(masked, negative) - s(masked, positive) + margin): the positive
    is another image of the class, the negative one of another class, both of the batch and unmasked. Read from the
    abstract; open were and are ours: s (structural similarity), the mask's network and form (one number a pixel and
    channel, in (0, 1), times the normalised image), where the triplet comes from, lambda and the margin. The mask is
    a layer of the result, which answers behind it. One device.
    """

    name: ClassVar[str] = "cim"
    paper: ClassVar[str] = "arXiv:2106.06620"
    cost: ClassVar[str] = "1.2 to 2.2"
    one_device: ClassVar[bool] = True
    training: Optimiser = Adam(batch_size=256)
    lam: float = 5.0  # lambda: weight of the triplet loss
    margin: float = 0.3  # by how much more like its class than like another the masked image is to look
    window: int = 7  # side of the windows that structural similarity compares, in pixels

    def __post_init__(self) -> None:
        require_finite(self)
        weights = [self.lam, self.margin]
        require(min(weights) >= 0, f"lam and margin must be from 0 but got {weights}.")
        require(self.window >= 2, f"window must be at least 2 but got {self.window}.")
        size = self.training.batch_size
        require(size >= TRIPLET, f"A triplet needs {TRIPLET} samples in a batch, but it has {size}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Windows need images that hold them."""
        shape, side = train.sample_shape, self.window
        images = len(shape) == 3 and side <= min(shape[1:])
        require(images, f"cim needs images with sides of {side} pixels or more, but these are {tuple(shape)}.")

    @classmethod
    def grown(cls, model: Classifier, channels: int, seed: int = 0) -> Classifier:
        """``model`` behind a mask."""
        return with_morphing(model, channels, seed)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        own = model if isinstance(model, Classifier) else Classifier(type(model).__name__, nn.Identity(), model)
        whole = self.grown(own, train.sample_shape[0], session.seed)
        masking = next(layer for layer in whole.modules() if isinstance(layer, Morphing))

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            logits, mask = with_output(model, masking.mask, batch.x)
            plain, masked = as_pixels(whole, batch.x, mask)
            triplet = self.triplet(masked, plain, batch.y)
            loss = cross_entropy(logits, batch) + self.lam * triplet
            return Minimised(loss, logits, {"triplet": triplet.mean(), "mask": mask.float().mean()})

        train_model(whole, train, self.training, stage="training", session=session, objective=objective)
        return Fit(whole)

    def triplet(self, masked: Tensor, plain: Tensor, y: Tensor) -> Tensor:
        """Of each masked image, the loss with a random positive and negative; 0 where the batch lacks one of them."""
        same = y[:, None] == y
        positive, has_positive = drawn_from(same & ~torch.eye(len(y), dtype=torch.bool, device=y.device))
        negative, has_negative = drawn_from(~same)
        towards, away = (ssim(masked, plain[other], self.window) for other in (positive, negative))
        return (away - towards + self.margin).clamp(min=0) * (has_positive & has_negative)
