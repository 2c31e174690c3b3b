"""What an architecture is: options as fields, and one way to build a model for a data set from them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.memory import require_memory
from unspur.core.options import added, require_choices
from unspur.data.base import Dataset
from unspur.errors import UnspurError, require
from unspur.models.base import evaluating
from unspur.models.classifier import Classifier, Frozen, Normalize
from unspur.models.weights import load_state, load_weights


class Statistics(NamedTuple):
    """The mean and standard deviation of each channel, of pixels in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


Grown = Callable[[Classifier, int], Classifier]  # a built model for images of so many channels, with more layers
Freeze = Literal["auto", "none", "norm", "backbone"]
BYTES_A_WEIGHT = 12  # the weight, its gradient and a momentum, 4 bytes each
IMAGENET = Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True, kw_only=True)
class ArchSpec(abc.ABC):
    """An architecture. Its subclasses are frozen dataclasses whose fields are its options."""

    name: ClassVar[str]
    rgb: ClassVar[bool] = False  # takes three channels only; a grey image is repeated
    published: ClassVar[bool] = False  # somebody offers trained weights
    weights: str = "none"  # none, or a file of weights to begin with
    freeze: Freeze = added("auto")  # none, norm, backbone, or auto: norm for a network that begins with weights

    @abc.abstractmethod
    def network(self, sample_shape: torch.Size, classes: int) -> nn.Module:
        """The bare network for such inputs, with published weights if ``weights`` names them."""

    def __post_init__(self) -> None:
        require(
            self.published or self.weights != "default",
            f"There are no published weights for {self.name}; arch.weights must be none or a file.",
        )
        require_choices(self, "arch.")

    @property
    def weights_file(self) -> Path | None:
        """The file that ``weights`` names, if it names one."""
        return None if self.weights in ("none", "default") else Path(self.weights)

    @property
    def frozen(self) -> Frozen:
        """The part of the model that does not train.

        Batch norm statistics that were measured on a million images are better than those from the batches of a short
        fine-tuning, so a network that begins with published weights keeps them.
        """
        if self.freeze != "auto":
            return self.freeze
        return "none" if self.weights == "none" else "norm"

    def statistics(self, data: Dataset) -> Statistics | None:
        """What the first layer normalises with; None: nothing."""
        return Statistics(data.mean, data.std) if data.mean is not None and data.std is not None else None

    def adapt(self, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """A published state dict by the names that the network here has."""
        return state

    def build(self, data: Dataset, seed: int = 0) -> Classifier:
        """A model for the samples and classes of ``data``, drawn with ``seed``; global random state is left alone."""
        shape, classes = data.sample_shape, len(data.classes)
        if self.rgb:
            channels = self.images(shape)[0]
            require(channels in (1, 3), f"{self.name} takes images of 1 or 3 channels, but these have {channels}.")
        with torch.random.fork_rng(devices=[]):
            self._require_memory(shape, classes)
            torch.default_generator.manual_seed(seed)
            net = self.network(shape, classes)
        model = Classifier(self.name, self._first_layer(data), net, self.frozen)
        if self.weights_file:
            load_weights(model, self.weights_file, self.adapt)
        self._check(model, shape, classes)
        return model

    def restore(
        self, data: Dataset, state: Mapping[str, Tensor], source: str, grown: Grown = lambda model, channels: model
    ) -> Classifier:
        """The model whose ``state_dict()`` is ``state``, read from ``source``; ``grown`` adds a method's own layers.

        The weights that it once began with are not looked for again: their file may be gone, or the machine offline.
        """
        model = grown(replace(self, weights="none", freeze=self.frozen).build(data), data.sample_shape[0])
        load_state(model, state, source)
        return model

    def images(self, sample_shape: torch.Size, at_least: int = 1) -> tuple[int, int, int]:
        """Channels, height and width of images that are large enough; anything else is an error."""
        require(
            len(sample_shape) == 3,
            f"{self.name} needs images, but these samples are vectors of {sample_shape[0]} numbers; use the arch fcn.",
        )
        channels, height, width = sample_shape
        require(
            min(height, width) >= at_least,
            f"{self.name} needs images of at least {at_least}x{at_least} pixels, but these are {height}x{width}; "
            f"use --set data.size=32 or another arch.",
        )
        return channels, height, width

    def _first_layer(self, data: Dataset) -> nn.Module:
        statistics, channels = self.statistics(data), 3 if self.rgb else data.sample_shape[0]
        if statistics is None:
            if data.sample_shape[0] == channels:
                return nn.Identity()
            statistics = Statistics((0.0,), (1.0,))
        mean, std = (values * channels if len(values) == 1 else values for values in statistics)
        require(
            len(mean) == len(std) == channels,
            f"{data.name} has {len(mean)} means and {len(std)} deviations for images of {channels} channels.",
        )
        return Normalize(mean, std)

    def _require_memory(self, shape: torch.Size, classes: int) -> None:
        """Raise an error for a network that does not fit into this machine's memory, by building its shapes alone."""
        if not any(isinstance(getattr(self, field.name), int) for field in fields(self)):
            return  # it has no setting that could make it larger
        with torch.device("meta"):
            net = replace(self, weights="none").network(shape, classes)
        count = sum(parameter.numel() for parameter in net.parameters())
        require_memory(
            count * BYTES_A_WEIGHT, f"The {count:,} weights of {self.name}", "make the network smaller (arch.width)"
        )

    def _check(self, model: Classifier, shape: torch.Size, classes: int) -> None:
        """Pass two samples through the model's shapes alone, which costs next to nothing at any size."""
        size = "x".join(str(length) for length in shape)
        tensors = {name: tensor.to("meta") for name, tensor in model.state_dict(keep_vars=True).items()}
        for name, buffer in model.named_buffers():
            tensors[name] = buffer.to("meta")  # including those that are not saved
        try:
            with evaluating(model), torch.no_grad():
                logits = torch.func.functional_call(model, tensors, (torch.empty(2, *shape, device="meta"),))
        except (RuntimeError, ValueError, AssertionError, IndexError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise UnspurError(
                f"{self.name} does not fit inputs of {size} ({reason}); use larger images or another arch."
            ) from None
        require(
            logits.shape == (2, classes),
            f"{self.name} gives {tuple(logits.shape[1:])} numbers an input of {size} instead of {classes} classes.",
        )
