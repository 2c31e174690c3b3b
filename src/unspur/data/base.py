"""Batch, Split and Dataset: images, labels and what is known of their groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from unspur.data.augment import Augment
from unspur.data.masks import Mask
from unspur.errors import require


class Batch(NamedTuple):
    """What a method sees of the data: inputs, labels and sample numbers, and never a group."""

    x: Tensor  # float32; images (n, channels, height, width) in [0, 1], or vectors (n, features)
    y: Tensor  # int64
    index: Tensor  # type: ignore[assignment]  # int64, the sample's place in its split; hides tuple.index


class Images(NamedTuple):
    """Images (n, channels, height, width) in bytes and their labels: what a data set is made of."""

    x: Tensor
    y: Tensor


class Source(Protocol):
    """Where samples come from, by index: a tensor, or anything that reads files like one."""

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def __getitem__(self, index: Tensor, /) -> Tensor: ...


@runtime_checkable
class Unread(Source, Protocol):
    """A source whose samples are not in memory: do not ask for all of them at once."""

    def subset(self, index: Tensor, /) -> Source:
        """The samples at ``index``, still unread."""
        ...

    def reading(self, order: Sequence[Tensor], /) -> Iterator[Tensor]:
        """``self[index]`` for each index in turn, the next ones perhaps read while the caller works."""
        ...


@dataclass(frozen=True, eq=False)
class Split:
    """Samples in order: inputs, labels, and any number of attributes (named columns of small integers)."""

    x: Source  # uint8 images (n, channels, height, width), or float vectors (n, features)
    y: Tensor
    attributes: Mapping[str, Tensor] = field(default_factory=dict)
    mask: Mask | None = None  # what is hidden of each sample
    augment: Augment | None = None  # how samples are moved in training

    def __post_init__(self) -> None:
        for name, column in {"y": self.y, **self.attributes}.items():
            require(
                column.shape == (len(self),),
                f"A split of {len(self)} samples needs as many values of '{name}', but got {tuple(column.shape)}.",
            )

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def sample_shape(self) -> torch.Size:
        """The shape of one input: (channels, height, width) or (features,)."""
        return torch.Size(self.x.shape[1:])

    def batch(
        self, index: Tensor, device: torch.device | str = "cpu", generator: torch.Generator | None = None
    ) -> Batch:
        """The samples at ``index``, with bytes scaled to [0, 1] and masked parts set to 0 (black).

        With a ``generator`` they are training samples: they are masked, then moved as ``augment`` says.
        """
        return self._batch(self.x[index], index, device, generator)

    def batches(
        self, order: Sequence[Tensor], device: torch.device | str = "cpu", generator: torch.Generator | None = None
    ) -> Iterator[Batch]:
        """``batch`` for each index in turn; samples that come from files may be read ahead."""
        inputs = self.x.reading(order) if isinstance(self.x, Unread) else (self.x[index] for index in order)
        for index, x in zip(order, inputs, strict=True):
            yield self._batch(x, index, device, generator)

    def _batch(self, x: Tensor, index: Tensor, device: torch.device | str, generator: torch.Generator | None) -> Batch:
        x = x.to(device)
        if x.dtype == torch.uint8:
            x = x.float().div_(255)
        if self.mask is not None:
            keep = self.mask.keep(index).to(device)
            x = x * (keep.unsqueeze(1) if x.ndim == 4 else keep)
        if self.augment is not None and generator is not None:
            x = self.augment(x, generator)
        return Batch(x, self.y[index].to(device), index.to(device))

    def subset(self, index: Tensor) -> Split:
        """A split of the samples at ``index``, in that order."""
        x = self.x.subset(index) if isinstance(self.x, Unread) else self.x[index]
        attributes = {name: column[index] for name, column in self.attributes.items()}
        return replace(self, x=x, y=self.y[index], attributes=attributes, mask=self.mask and self.mask.subset(index))

    def without_attributes(self) -> Split:
        """The same samples with nothing known of their groups."""
        return replace(self, attributes={})

    def masked(self, mask: Mask | None) -> Split:
        """The same samples with ``mask`` instead of the mask they had."""
        return replace(self, mask=mask)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training set, a validation set drawn like it, and the test sets by name."""

    name: str
    train: Split
    val: Split
    tests: Mapping[str, Split]
    classes: tuple[str, ...]
    attribute_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names of each attribute's values
    mean: tuple[float, ...] | None = None  # of each channel in [0, 1], for the model's first layer; None: left as it is
    std: tuple[float, ...] | None = None
    note: str = ""  # what a reader of any figure from this set must know, such as "CIFAR-10 (JPEG)"
    # For a test set, the name of the one that shows the same images in the same order but without the shortcut.
    without_shortcut: Mapping[str, str] = field(default_factory=dict)
    content: str = ""  # a hash of all images and of what they are for, where these are the user's own and may change
    # Where the objects are in the images of "train", "val" and each test set: masks (n, height, width), read when asked
    # for; empty where the publishers have none.
    foreground: Mapping[str, Source] = field(default_factory=dict)

    @property
    def sample_shape(self) -> torch.Size:
        return self.train.sample_shape


class Groups(NamedTuple):
    """Samples by label and attributes: ``keys[id[i]]`` is sample i's (y, value, value, ...)."""

    id: Tensor
    keys: tuple[tuple[int, ...], ...]


def groups_of(split: Split) -> Groups:
    """The groups present in ``split``, sorted by label, then by each attribute.

    >>> x = torch.zeros(3, 2)
    >>> groups_of(Split(x, torch.tensor([1, 0, 1]), {"square": torch.tensor([0, 1, 0])}))
    Groups(id=tensor([1, 0, 1]), keys=((0, 1), (1, 0)))
    """
    table = torch.stack([split.y, *split.attributes.values()], dim=1)
    keys, group = torch.unique(table, dim=0, return_inverse=True)
    return Groups(group, tuple(tuple(row) for row in keys.tolist()))


def aligned_with(train: Split, split: Split) -> Tensor | None:
    """Which samples of ``split`` follow the training correlation; None where there is none to follow.

    A value a of an attribute is aligned with label y when training samples have both more often than chance:
    n(y, a) * n > n(y) * n(a). With several attributes a sample is aligned when every one of them is. If no sample of
    ``split`` has a value that occurs in training, such as grey digits after coloured ones, the result is None, too.

    >>> train = Split(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), {"a": torch.tensor([1, 1, 0, 0])})
    >>> aligned_with(train, Split(torch.zeros(2, 1), torch.tensor([0, 1]), {"a": torch.tensor([1, 1])}))
    tensor([ True, False])
    """
    aligned = torch.ones(len(split), dtype=torch.bool)
    correlated, seen = False, torch.ones(len(split), dtype=torch.bool)
    for name, column in train.attributes.items():
        classes = int(max(train.y.max(), split.y.max())) + 1
        values = int(max(column.max(), split.attributes[name].max())) + 1
        count = torch.bincount(train.y * values + column, minlength=classes * values).reshape(classes, values)
        lift = count * len(train) > count.sum(1, keepdim=True) * count.sum(0, keepdim=True)
        correlated = correlated or bool(lift.any())
        seen &= (count.sum(0) > 0)[split.attributes[name]]
        aligned &= lift[split.y, split.attributes[name]]
    return aligned if correlated and bool(seen.any()) else None


def stratified_split(y: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Split sample numbers into the rest and ``count`` held out, each class by its share (largest remainders).

    Both parts are sorted, so the order of the data reveals nothing about the draw.
    """
    require(0 <= count < len(y), f"Cannot hold out {count} of {len(y)} samples.")
    sizes = torch.bincount(y)
    share = sizes * count / len(y)
    take = share.floor().long()
    take[(share - take).argsort(descending=True, stable=True)[: count - int(take.sum())]] += 1
    held = []
    for label, number in enumerate(take.tolist()):
        members = (y == label).nonzero().squeeze(1)
        held.append(members[torch.randperm(len(members), generator=generator)[:number]])
    out = torch.zeros(len(y), dtype=torch.bool)
    out[torch.cat(held)] = True
    return (~out).nonzero().squeeze(1), out.nonzero().squeeze(1)
