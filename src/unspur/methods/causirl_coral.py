"""CausIRL (arXiv:2206.11646): learn while any two mixtures of all domains keep the same means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unspur.methods.aligned_features import AlignedFeatures
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import between_mixtures, coral


@dataclass(frozen=True)
class CausIRLCORAL(AlignedFeatures):
    """Align the means and covariances of the features between random mixtures of domains (CausIRL, section 4).

    Every step draws two mixtures: each domain goes to both sides in shares of its own. The distance is that of `coral`.
    """

    name: ClassVar[str] = "causirl_coral"
    paper: ClassVar[str] = "arXiv:2206.11646"

    def penalty(self, seen: Seen) -> Tensor:
        """The distance between two random sides of the batch, each a mixture of all domains."""
        return between_mixtures(coral, seen.features, seen.domain, len(seen.risks))
