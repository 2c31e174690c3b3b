"""Where attributions lie and what one neuron uses, epoch by epoch (large-LR, Figures 3 and 28)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.metrics.attribution import mean_shares
from unspur.saliency.attributions import integrated_gradients, neuron_attribution
from unspur.train.seeds import stream
from unspur.train.session import Observer

SAMPLES = 50  # training samples whose attributions are looked at after each epoch


class Attributions:
    """Follows the shares of Integrated Gradients in each of ``masks``, and one penultimate neuron's spurious use.

    Figures of an epoch, of the model at its end: ``core_attribution``, ``spurious_attribution`` and so on for the
    predicted class, and ``neuron_spurious_use``: the spurious share of what the neuron fires for, which is missing
    while it does not fire for any of the samples. The training does not depend on it.
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

    def check(self, model: nn.Module) -> None:
        """Refuse a neuron that ``model`` does not have."""
        neuron_attribution(model, self._x[:1].to(next(model.parameters()).device), self._neuron, steps=1)

    def see(self, moment: Any) -> None:
        self._model = moment.model

    def figures(self) -> dict[str, float]:
        if self._model is None:
            return {}
        model = getattr(self._model, "module", self._model)  # without what a device strategy wraps around it
        x = self._x.to(next(model.parameters()).device)
        shares = mean_shares(integrated_gradients(model, x).cpu(), self._masks)
        found = {f"{name}_attribution": share for name, share in shares.items()}
        own = neuron_attribution(model, x, self._neuron).cpu()
        found["neuron_spurious_use"] = mean_shares(own, {"spurious": self._masks["spurious"]})["spurious"]
        return {name: value for name, value in found.items() if value is not None}


class Together:
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def see(self, moment: Any) -> None:
        for observer in self._observers:
            observer.see(moment)

    def figures(self) -> dict[str, Any]:
        return {name: value for observer in self._observers for name, value in observer.figures().items()}
