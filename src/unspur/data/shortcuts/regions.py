"""Which part of an input carries the class and which the shortcut, for sets where the two lie apart."""

from __future__ import annotations

import torch
from torch import Tensor

from unspur.data.sets.planted_mnist import MNISTSC, BiasedMNIST, DoubleMNIST
from unspur.data.sets.synthetic import Parity
from unspur.data.spec import DataSpec


def regions(spec: DataSpec, sample_shape: torch.Size) -> dict[str, Tensor]:
    """Masks (height, width) or (features,) by name: ``core``, ``spurious`` and, for bits, ``noise``; together all.

    Empty where the two share their pixels, as a digit and its colour do, or where it is not known.

    >>> {name: int(mask.sum()) for name, mask in regions(Parity(), torch.Size([21])).items()}
    {'core': 6, 'spurious': 2, 'noise': 13}
    """
    if isinstance(spec, Parity):
        place = torch.arange(spec.core + spec.spurious + spec.noise)
        until = spec.core + spec.spurious
        return {
            "core": place < spec.core,
            "spurious": (place >= spec.core) & (place < until),
            "noise": place >= until,
        }
    spurious = torch.zeros(sample_shape[-2:], dtype=torch.bool)
    if isinstance(spec, DoubleMNIST):
        spurious[:, sample_shape[-1] // 2 :] = True  # the right digit
    elif spec.name == "mnist_cifar":
        spurious[: sample_shape[-2] // 2] = True  # the digit above
    elif isinstance(spec, MNISTSC):
        spurious[0, :10] = True  # the code
    elif isinstance(spec, BiasedMNIST):
        spurious[:4, :4] = True  # the blue square
        if spec.squares == 2:
            spurious[:4, -4:] = True
    else:
        return {}
    return {"core": ~spurious, "spurious": spurious}
