"""MMD (CVPR 2018): learn while the features of all domains keep the same distribution, as kernels see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unspur.methods.aligned_features import AlignedFeatures
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import mmd


@dataclass(frozen=True)
class MMD(AlignedFeatures):
    """Align the distributions of the features between domains by their maximum mean discrepancy (MMD-AAE, Eq. 4).

    The distance without the autoencoder and the adversary of MMD-AAE, as domains are usually compared by it. The mean
    over pairs of domains, with Gaussian kernels of seven widths from 0.001 to 1,000.
    """

    name: ClassVar[str] = "mmd"
    paper: ClassVar[str] = "CVPR 2018"

    def penalty(self, seen: Seen) -> Tensor:
        """The mean distance between the features of two domains."""
        return mmd(seen.features, seen.domain)
