"""EE (arXiv:2212.06254): a linear classifier on the features of a pretrained network, and nothing else."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unspur.data.base import Split
from unspur.methods.base import Fit, Method
from unspur.models.base import head_of
from unspur.parts.features import on_features, with_head
from unspur.parts.last_layer import check_head
from unspur.train.loop import train as train_model
from unspur.train.recipe import AdamW, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class EE(Method):
    """A good embeddings extractor: train the last layer alone, on features that are kept (EE, section 3).

    ULE's row EE is this one, by its reference: the robustness is that of the pretrained features, so that a network
    with random weights has none. It is ERM with a frozen backbone, whatever `arch.freeze` says.
    """

    name: ClassVar[str] = "ee"
    paper: ClassVar[str] = "arXiv:2212.06254"
    cost: ClassVar[str] = "a last layer"
    network: ClassVar[str] = "pretrained"
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    training: Optimiser = AdamW(epochs=30)  # of the last layer

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The model must end in one linear layer."""
        check_head(model, train)

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        features, head = on_features(model, train, session, "features"), copy.deepcopy(head_of(model))
        train_model(head, features, self.training, stage="training", session=session)
        return Fit(with_head(model, head))
