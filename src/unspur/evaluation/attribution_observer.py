"""Where attributions lie, what a neuron uses and when it changes, through a training (large-LR, Figures 3, 13, 28)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspur.core.files import write_tensors
from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.metrics.attribution import mean_shares
from unspur.models.base import evaluating, penultimate
from unspur.saliency.attributions import integrated_gradients, neuron_attribution
from unspur.train.moments import Moment

SAMPLES = 50  # training samples whose attributions are computed
MAPPED = 6  # of these: samples whose maps are kept
FOLLOWED = "artifacts/followed"  # in a run's folder: a file of maps for each epoch
EVERY = 20  # steps from one look at the neuron to the next, from the first of an epoch on


class Attributions:
    """Follows the shares of Integrated Gradients in each of ``masks``, and one penultimate neuron's spurious use.

    Figures of an epoch, for the model at its end: ``core_attribution``, ``spurious_attribution`` and so on for the
    predicted class, and ``neuron_spurious_use``: the spurious share of what the neuron fires for. It is missing while
    the neuron does not fire for any of the samples.

    Figure 28 shows a neuron that is "reset" by large updates as its spurious use grows, mostly in the first epochs. So
    the epoch's figures also have ``neuron_uses`` and ``neuron_changes``, with an entry for each step (null for steps at
    which the neuron was not measured). A change is the 2-norm of the difference between the neuron's activations for
    the samples now and at the measurement before, divided by the sum of both norms: 1 means that nothing of them is
    left. The paper does not say how it measures the size of updates; updates of weights would mean little where a
    normalisation follows. The training does not depend on any of this.
    """

    def __init__(self, train: Split, masks: Mapping[str, Tensor], neuron: int, seed: int) -> None:
        if "spurious" not in masks:
            raise UnspurError(
                "What a neuron uses can be followed where class and shortcut lie apart, such as in parity, "
                "double_mnist or biased_mnist, but not in this data set."
            )
        self._masks, self._neuron = masks, neuron
        order = torch.randperm(len(train), generator=stream(seed, "follow"))
        self._x = train.batch(order[:SAMPLES]).x
        self._model: nn.Module | None = None
        self._at: tuple[str, int] | None = None
        self._clear()

    def _clear(self) -> None:
        self._uses: list[float | None] = []
        self._changes: list[float | None] = []
        self._activations: Tensor | None = None

    def check(self, model: nn.Module) -> None:
        """Refuse a neuron that ``model`` does not have."""
        neuron_attribution(model, self._x[:1].to(next(model.parameters()).device), self._neuron, steps=1)

    def see(self, moment: Moment) -> None:
        if (moment.stage, moment.epoch) != self._at:  # an epoch that diverged has left its figures behind
            self._at = (moment.stage, moment.epoch)
            self._clear()
        self._model = getattr(moment.model, "module", moment.model)  # without what a device strategy wraps around it
        if len(self._uses) % EVERY:
            self._uses.append(None)
            self._changes.append(None)
        else:
            self._uses.append(_rounded(self._use(self._model)))
            self._changes.append(_rounded(self._change(self._model)))

    def figures(self) -> dict[str, Any]:
        if self._model is None:
            return {}
        shares = mean_shares(integrated_gradients(self._model, self._on(self._model)).cpu(), self._masks)
        found: dict[str, Any] = {f"{name}_attribution": share for name, share in shares.items()}
        found["neuron_spurious_use"] = self._use(self._model)
        found |= {"neuron_uses": self._uses, "neuron_changes": self._changes}
        return {name: value for name, value in found.items() if value is not None}

    def _on(self, model: nn.Module) -> Tensor:
        return self._x.to(next(model.parameters()).device)

    def _use(self, model: nn.Module) -> float | None:
        own = neuron_attribution(model, self._on(model), self._neuron).cpu()
        return mean_shares(own, {"spurious": self._masks["spurious"]})["spurious"]

    @torch.no_grad()
    def _change(self, model: nn.Module) -> float | None:
        """How much the neuron changed. None while it does not fire, and at an epoch's first measurement, so that a
        resumed epoch logs the same."""
        before = self._activations
        with evaluating(model):
            self._activations = penultimate(model, self._on(model))[:, self._neuron].double().cpu()
        if before is None or not (before.any() or self._activations.any()):
            return None
        return float((self._activations - before).norm() / (self._activations.norm() + before.norm()))


def _rounded(value: float | None) -> float | None:
    return round(value, 4) if value is not None and math.isfinite(value) else None


class AttributionMaps:
    """Keeps the maps of a few training images after every epoch, as in Figure 13; the training does not depend on it.

    Each epoch is a file of ``folder``, STAGE-EPOCH.safetensors: the images' numbers and their maps, Integrated
    Gradients of the predicted class, summed over channels. An epoch that is repeated writes the same file again.
    """

    def __init__(self, train: Split, folder: Path, seed: int) -> None:
        self._folder = folder
        self._index = torch.randperm(len(train), generator=stream(seed, "follow"))[:MAPPED]
        self._x = train.batch(self._index).x
        self._last: Moment | None = None

    def check(self, model: nn.Module) -> None:
        """Refuse a model that has no attributions."""
        integrated_gradients(model, self._x[:1].to(next(model.parameters()).device), steps=1)

    def see(self, moment: Moment) -> None:
        self._last = moment

    def figures(self) -> dict[str, Any]:
        if self._last is not None:
            model: nn.Module = getattr(self._last.model, "module", self._last.model)
            maps = integrated_gradients(model, self._x.to(next(model.parameters()).device)).sum(1).abs()
            file = self._folder / f"{self._last.stage}-{self._last.epoch + 1:05d}.safetensors"
            write_tensors(file, {"index": self._index, "maps": maps.detach().cpu().contiguous()})
        return {}
