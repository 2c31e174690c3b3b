"""MaskTune (arXiv:2210.00055): 1. ERM.  2. Hide what it looks at.  3. Fine-tune one epoch.  (4. Again.)"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Size, nn

from unspur.core.options import added
from unspur.core.progress import of_stage
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import cam_layer
from unspur.parts.masking import (
    Hidden,
    HiddenFacts,
    fine_tune,
    require_tuning,
    shared_holes,
    telling_warnings,
    unmasked_warnings,
)
from unspur.saliency.maps import FINE, Kind, coarse_warnings, covered_by_maps, maps_of
from unspur.saliency.threshold import MeanStd, Soft, Threshold, hide, soften
from unspur.train.loop import measure
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session

PAPER = SGD(weight_decay=1e-4)  # section 3: momentum 0.9, rate 0.01, batches of 128; epochs as a user has time for


class Round(HiddenFacts):
    """One round of masking and fine-tuning: what it hid, and what of the masked images it then got right."""

    train_accuracy: float


@dataclass(frozen=True)
class MaskTune(Method):
    """Hide what a trained model looks at, and fine-tune it for one epoch (MaskTune, section 2).

    The maps are of the *predicted* class, not the true one; saliency/threshold.py says how they become masks. Where the
    network's last map is coarser than 7x7 they are LayerCAM's of an earlier layer. The fine-tuning is at the
    last rate that ERM used.

    Two options go beyond the paper, whose digits lie on black. In a photograph a black hole is seen, and its shape is
    that of the shortcut: where a tag names the class the holes alone tell it for most images, and fine-tuning
    learns the holes. ``holes=shared`` hides of each image also what is hidden of one of another class. And one epoch of
    a small set is a few dozen steps, in which a model that knows nothing but the tag forgets little: ``restart``
    fine-tunes the network that ERM began with, which makes sense if that is a pretrained one.

    With several iterations each one looks at what the model, as fine-tuned so far, sees: of the masked images, adding
    to their masks (``accumulate``, Table 5's better column), or of the raw images, masked again.
    """

    name: ClassVar[str] = "masktune"
    paper: ClassVar[str] = "arXiv:2210.00055"
    cost: ClassVar[str] = "1.5, or 2.2 with restart"
    erm: Optimiser = PAPER  # sgd, adam, adamw, adadelta or kron
    saliency: Kind = "xgradcam"  # xgradcam, gradcam, layercam, scorecam or gradient (works for every model)
    threshold: Threshold = MeanStd()  # mean_std, dataset_mean, top_k or soft
    place: Literal["stretched", "centred"] = added("stretched")  # of a map: over all of its image, or where cells lie
    grow: int = added(0)  # pixels by which what is hidden grows on each side
    holes: Literal["own", "shared"] = added("own")  # shared: each image has also those of one of another class
    finetune_lr: float | None = None  # none: the last rate that ERM used
    restart: bool = added(False)  # train what ERM began with by ERM's recipe, in place of one epoch of ERM's
    iterations: int = 1  # rounds of masking and fine-tuning, at most
    accumulate: bool = True  # whether a round adds to the masks of those before it
    stop_below: float | None = None  # drop a round that cannot fit the masked images to this accuracy, and stop

    def __post_init__(self) -> None:
        require_tuning(self.finetune_lr, restart=self.restart)
        require(self.grow >= 0, f"grow must be at least 0 pixels but got {self.grow}.")
        require(self.iterations >= 1, f"iterations must be at least 1 but got {self.iterations}.")
        stop = self.stop_below
        require(stop is None or 0 < stop <= 1, f"stop_below must lie in (0, 1] but got {stop}.")
        added_up = self.holes == "shared" or (self.accumulate and self.iterations > 1)
        require(
            not (isinstance(self.threshold, Soft) and added_up),
            "Soft masks do not add up: use accumulate=false and holes=own, or a threshold that is not soft.",
        )
        require(
            not (isinstance(self.threshold, Soft) and (self.grow or self.place == "centred")),
            "Soft masks have no edges: leave grow and place out, or use a threshold that is not soft.",
        )

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Class-activation maps need a layer that is a map of the image, and what grows needs pixels."""
        require(not self.grow or len(train.sample_shape) == 3, "grow is of pixels, but these samples are no images.")
        if self.saliency != "gradient":
            cam_layer(model, train.sample_shape)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        first = copy.deepcopy(model) if self.restart else None
        train_model(model, train, self.erm, stage="erm", session=session)
        models, seen, empty, stopped = [model], train, 0, None
        rounds: list[Round] = []
        for number in range(1, self.iterations + 1):
            masked, unmasked = self._mask(models[-1], seen if self.accumulate else train, session)
            tuned = copy.deepcopy(first or models[-1])
            stage = f"iteration-{number}"
            rate = fine_tune(
                tuned, masked, self.erm, self.finetune_lr, restart=self.restart, stage=stage, session=session
            )
            accuracy, _ = measure(tuned, masked, session, progress=of_stage(session.progress, f"{stage}, scored"))
            rounds.append({"train_accuracy": accuracy, **Hidden.of(masked).facts()})
            if self.stop_below is not None and accuracy < self.stop_below:
                stopped = f"Round {number} fitted {accuracy:.4f} of the masked images, less than {self.stop_below}."
                break
            models.append(tuned)
            seen, empty = masked, unmasked
        stages = {"erm": models[0]} | {f"iteration-{n}": tuned for n, tuned in enumerate(models[1:-1], 1)}
        figures = {"finetune_lr": rate, "rounds": rounds, "stopped": stopped}
        if seen is train:
            warnings = [f"{stopped} It was dropped, so that the result is the model before it."]
        else:
            warnings = unmasked_warnings(empty, len(train)) + telling_warnings(seen)
        warnings += self.coarse(model, train.sample_shape)
        return Fit(models[-1], stages, Baseline("erm"), masks=Hidden.of(seen), figures=figures, warnings=warnings)

    def coarse(self, model: nn.Module, sample_shape: Size) -> list[str]:
        """A sentence if the maps are not of the network's last layer, or too coarse."""
        return [] if self.saliency == "gradient" else coarse_warnings(model, sample_shape)

    def _mask(self, model: nn.Module, split: Split, session: Session) -> tuple[Split, int]:
        """The images with what their maps show hidden, and of how many of them that is nothing."""
        progress = of_stage(session.progress, "maps")
        maps = maps_of(model, split, self.saliency, session.device, least=FINE, progress=progress)
        size = tuple(split.sample_shape[-2:])
        if isinstance(self.threshold, Soft):
            masked = split.masked(soften(maps, size))
            return masked, Hidden.of(masked).unmasked
        cells = self.place == "centred" and self.saliency != "gradient"
        covered = covered_by_maps(model, split.sample_shape) if cells else None
        hidden = hide(self.threshold, maps, size, split.mask, covered, self.grow)
        unmasked = Hidden(hidden, len(split)).unmasked  # before an image gets another's holes
        if self.holes == "shared":
            hidden = shared_holes(hidden, split.y, stream(session.seed, "holes"))
        return split.masked(hidden), unmasked
