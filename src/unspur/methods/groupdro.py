"""GroupDRO (arXiv:1911.08731): 1. Draw groups alike.  2. Raise the weights of groups with high losses.  3. Descend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.core.options import require_finite
from unspur.data.base import Split, groups_of
from unspur.errors import require
from unspur.methods.base import Fit, LogitsMethod
from unspur.parts.group_losses import GroupWeights
from unspur.train.loop import train as train_model
from unspur.train.orders import Draws, equal_shares
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class GroupDRO(LogitsMethod):
    """Minimise the worst group's loss by weights that grow with the groups' losses (GroupDRO, Algorithm 1).

    Weights start equal and rise before the step that uses them, by losses + C / sqrt(n) (Eq. 5). Runs on one device.
    """

    name: ClassVar[str] = "groupdro"
    paper: ClassVar[str] = "arXiv:1911.08731"
    cost: ClassVar[str] = "1"
    needs_groups: ClassVar[bool] = True
    one_device: ClassVar[bool] = True
    training: Optimiser = SGD(weight_decay=1e-4)  # strong regularisation helps: the paper goes up to 1
    eta: float = 0.01  # step size of the weights
    adjustment: float = 1.0  # C, 0 to 5 in the paper: the losses of small groups count as so much higher

    def __post_init__(self) -> None:
        require_finite(self)
        require(min(self.eta, self.adjustment) >= 0, f"eta and adjustment must be from 0 but got {self}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        group = groups_of(train).id
        q, alike = GroupWeights(group, self.eta, self.adjustment, session.device), Draws(equal_shares(group))
        train_model(
            model, train, self.training, stage="training", session=session, objective=q.loss, order=alike, carry=[q]
        )
        return Fit(model, figures={"group_weights": q.q.tolist()})
