"""Two networks that train beside each other in one training: the one that is kept, and one that helps it."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from unspur.models.base import head_of, hooked


class Both(NamedTuple):
    """The outputs of the two networks for the same inputs."""

    kept: Tensor  # logits
    helper: Tensor
    kept_features: Tensor  # what goes into the head
    helper_features: Tensor


class Pair(nn.Module):
    """A network that is kept and gives the answers, and a helper that runs beside it in training."""

    def __init__(self, kept: nn.Module, helper: nn.Module) -> None:
        super().__init__()
        self.helper, self.kept = helper, kept  # the head of the last one is the pair's

    @property
    def networks(self) -> tuple[nn.Module, nn.Module]:
        """Both networks; a pass in evaluation mode calls only one of them."""
        return self.kept, self.helper

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.helper(x)  # `both` hooks into this: any wrapper of the pair then runs both networks
        logits: Tensor = self.kept(x)
        return logits

    def both(self, model: nn.Module, x: Tensor) -> Both:
        """Both outputs for ``x``, from one pass in training mode of ``model``: the pair or a wrapper around it."""
        heads = head_of(self.kept), head_of(self.helper)
        caught: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def catch(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            caught[module] = inputs[0].float(), output.float()

        with hooked({*self.networks, *heads}, catch):
            model(x)
        return Both(*(caught[network][1] for network in self.networks), *(caught[head][0] for head in heads))
