"""CORAL (arXiv:1607.01719): learn while the features of all domains keep the same means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unspur.methods.aligned_features import AlignedFeatures
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import coral


@dataclass(frozen=True)
class CORAL(AlignedFeatures):
    """Align the means and covariances of the features between domains (Deep CORAL, Eq. 1 to 6).

    The distance is the mean over pairs of domains; parts/feature_distances.py says how it is scaled.
    """

    name: ClassVar[str] = "coral"
    paper: ClassVar[str] = "arXiv:1607.01719"

    def penalty(self, seen: Seen) -> Tensor:
        """The mean distance between the features of two domains."""
        return coral(seen.features, seen.domain)
