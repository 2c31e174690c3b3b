"""CausIRL (arXiv:2206.11646): learn while any two mixtures of all domains keep the same distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unspur.methods.aligned_features import AlignedFeatures
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import between_mixtures, mmd


@dataclass(frozen=True)
class CausIRLMMD(AlignedFeatures):
    """Align the distributions of the features between random mixtures of domains by kernels (CausIRL, section 4).

    Every step draws two mixtures: each domain goes to both sides in shares of its own. The distance is that of `mmd`.
    """

    name: ClassVar[str] = "causirl_mmd"
    paper: ClassVar[str] = "arXiv:2206.11646"

    def penalty(self, seen: Seen) -> Tensor:
        """The distance between two random sides of the batch, each a mixture of all domains."""
        return between_mixtures(mmd, seen.features, seen.domain, len(seen.risks))
