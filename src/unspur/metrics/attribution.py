"""Where on the input an attribution lies ("Large Learning Rates ...", 5 and E.1): pure functions of attributions.

An attribution has the shape of the inputs, (samples, channels, height, width) or (samples, features). That of a pixel
is the sum over its channels, since attributions such as Integrated Gradients add up; its magnitude counts, since
evidence against a class is use of the pixel as well. A sample without any attribution has no share and no entropy: nan.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from unspur.errors import require


def attribution_share(attribution: Tensor, mask: Tensor) -> Tensor:
    """Each sample's share of attribution inside ``mask``: sum of |a_i| over pixels i in it / sum over all (E.1).

    The boolean mask is one for all samples, (height, width) or (features,), or has one for each before that.

    >>> attribution_share(torch.tensor([[3.0, -1.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([False, True, True]))
    tensor([0.2500,    nan], dtype=torch.float64)
    """
    size = _pixels(attribution)
    require(
        mask.dtype == torch.bool and mask.shape in (size.shape, size.shape[1:]),
        f"A mask for attributions of {tuple(attribution.shape)} must be boolean and of shape {tuple(size.shape[1:])} "
        f"or {tuple(size.shape)}, but got {mask.dtype} of shape {tuple(mask.shape)}.",
    )
    return (size * mask).flatten(1).sum(1) / size.flatten(1).sum(1)


def mean_shares(attribution: Tensor, masks: Mapping[str, Tensor]) -> dict[str, float | None]:
    """The mean over samples of the share inside each mask, such as core, spurious and noise (Figures 3 and 26).

    Samples without attribution are left out; None if there is no other.

    >>> masks = {"core": torch.tensor([True, False, False]), "spurious": torch.tensor([False, True, False])}
    >>> mean_shares(torch.tensor([[3.0, -1.0, 0.0], [1.0, 0.0, 1.0]]), masks)
    {'core': 0.625, 'spurious': 0.125}
    """
    return {name: mean_of_known(attribution_share(attribution, mask)) for name, mask in masks.items()}


def background_share(attribution: Tensor, foreground: Tensor) -> Tensor:
    """Each sample's share of attribution outside its foreground mask ("background attribution percentage", 5).

    >>> background_share(torch.tensor([[[[3.0, 1.0]]]]), torch.tensor([[[True, False]]]))
    tensor([0.2500], dtype=torch.float64)
    """
    return attribution_share(attribution, ~foreground)


def attribution_entropy(attribution: Tensor) -> Tensor:
    """Each sample's entropy of its normalised attribution map, in nats: -sum p_i ln p_i, p_i = |a_i| / sum |a| (5).

    0 if one pixel has it all, ln(pixels) if all have the same.

    >>> attribution_entropy(torch.tensor([[2.0, -2.0, 0.0], [0.0, 5.0, 0.0]]))
    tensor([0.6931, 0.0000], dtype=torch.float64)
    """
    size = _pixels(attribution).flatten(1)
    entropy: Tensor = torch.special.entr(size / size.sum(1, keepdim=True)).sum(1)
    return entropy


def _pixels(attribution: Tensor) -> Tensor:
    """The magnitude of each pixel's or feature's attribution: (samples, height, width) or (samples, features)."""
    require(
        attribution.ndim in (2, 4),
        "Attributions must have the shape (samples, channels, height, width) or (samples, features), "
        f"but got {tuple(attribution.shape)}.",
    )
    attribution = attribution.detach().double()
    return (attribution.sum(1) if attribution.ndim == 4 else attribution).abs()


def mean_of_known(values: Tensor) -> float | None:
    """The mean without what is nan; None if nothing is left.

    >>> mean_of_known(torch.tensor([1.0, float("nan"), 2.0]))
    1.5
    """
    known = values[~values.isnan()]
    return float(known.mean()) if len(known) else None
