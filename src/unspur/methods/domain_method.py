"""What methods that compare domains have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from unspur.data.base import Split
from unspur.methods.base import LogitsMethod
from unspur.parts.domains import domain_of, require_domains
from unspur.train.recipe import SGD, Optimiser


@dataclass(frozen=True)
class DomainMethod(LogitsMethod):
    """A method that compares domains, as many samples of each in every batch; it runs on one device."""

    needs_groups: ClassVar[bool] = True
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD()
    domains: str | None = None  # the attribute that says domains; none: `domain`, or the only one there is

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """There must be several domains, and batches that hold them."""
        require_domains(self.name, train, self.domains, self.training.batch_size)

    def domain(self, train: Split) -> Tensor:
        """The number of each training sample's domain."""
        return domain_of(train, self.domains)
