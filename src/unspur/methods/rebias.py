"""ReBias (arXiv:1910.02806): learn features that are independent of what a network of small patches learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.core.seeds import derive
from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import head_of
from unspur.parts.independence import LEAST, dependence, patch_network
from unspur.parts.pairs import Pair
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.recipe import Adam, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class ReBias(Method):
    """Features independent of those of a network that is biased by design, in a minimax game (ReBias, Eq. 4 and 5).

    The biased network sees patches alone, pixels by default, as for colours in the paper; a cue of shape is none to it.
    It minimises cross-entropy - lambda HSIC, the network that is kept cross-entropy + lambda HSIC. Neither moves the
    other's features. Both step at once, where the paper's take turns. HSIC is the unbiased estimate. One device.
    """

    name: ClassVar[str] = "rebias"
    paper: ClassVar[str] = "arXiv:1910.02806"
    cost: ClassVar[str] = "2.5 to 6.1"
    own_stages: ClassVar[tuple[str, ...]] = ("patches",)
    one_device: ClassVar[bool] = True
    training: Optimiser = Adam(batch_size=256)
    patch: int = 1  # side of what the biased network sees at once, in pixels
    lam: float = 1.0  # lambda: weight of HSIC for the network that is kept
    lam_biased: float = 1.0  # lambda_g: for the biased one
    radius: float | None = None  # of the kernels; none: the median distance in the batch

    def __post_init__(self) -> None:
        require_finite(self)
        require(self.patch >= 1, f"patch must be at least 1 but got {self.patch}.")
        weights = [self.lam, self.lam_biased]
        require(min(weights) >= 0, f"lam and lam_biased must be from 0 but got {weights}.")
        require(self.radius is None or self.radius > 0, f"radius must be above 0 but got {self.radius}.")
        size = self.training.batch_size
        require(size >= LEAST, f"HSIC needs {LEAST} samples in a batch, but it has {size}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Patches need images that hold them."""
        shape, patch = train.sample_shape, self.patch
        images = len(shape) == 3 and patch <= min(shape[1:])
        require(images, f"rebias needs images with sides of {patch} pixels or more, but these are {tuple(shape)}.")

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """The biased network before its training."""
        channels, classes = train.sample_shape[0], head_of(model).out_features
        return patch_network(model, channels, classes, self.patch, derive(seed, stage))

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        biased = self.stage_model("patches", model, train, session.seed)
        pair = Pair(model, biased)

        def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
            seen = pair.both(model, batch.x)
            own, other = seen.kept_features, seen.helper_features
            for_kept = dependence(own, other.detach(), self.radius)
            for_biased = dependence(own.detach(), other, self.radius)
            kept = cross_entropy(seen.kept, batch).mean() + self.lam * for_kept
            helper = cross_entropy(seen.helper, batch).mean() - self.lam_biased * for_biased
            return Minimised(kept + helper, seen.kept, {"hsic": for_kept, "kept": kept, "patches": helper})

        train_model(pair, train, self.training, stage="training", session=session, objective=objective)
        return Fit(model, {"patches": biased.eval()}, Baseline("patches", "student"))
