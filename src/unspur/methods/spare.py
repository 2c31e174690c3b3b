"""SPARE (arXiv:2305.18761): 1. ERM, briefly.  2. Cluster each class's outputs.  3. ERM, small clusters drawn more."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.core.seeds import stream
from unspur.data.base import Split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.parts.clusters import best_clusters
from unspur.parts.inferred_groups import all_logits
from unspur.parts.mining import Mined
from unspur.train.loop import train as train_model
from unspur.train.orders import Draws
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session

UNSPLIT = (
    "No class was split into clusters, so that this is class-balanced training: the brief model answers alike within "
    "each class. Train it longer or at another rate (erm.epochs, erm.lr)."
)


@dataclass(frozen=True)
class SPARE(LogitsMethod):
    """Separate early and resample: k-means of a brief model's outputs in each class, small clusters first (SPARE, 4).

    Outputs are probabilities, as in the authors' code: of logits nearly no class has the silhouette of 0.9. The number
    of clusters is that with the highest silhouette. Samples are drawn with their cluster's size to the power -1, or -2
    in classes whose silhouette is below 0.9. Classes are drawn alike often: with shares as they come, a class with
    power 2 would hardly be drawn beside one with power 1. The second training begins with the initial weights. What is
    in a class's smaller clusters counts as mined.
    """

    name: ClassVar[str] = "spare"
    paper: ClassVar[str] = "arXiv:2305.18761"
    cost: ClassVar[str] = "1.25"
    erm: Optimiser = SGD(epochs=1)  # the brief training
    training: Optimiser = SGD()  # of the result
    clusters: int = 10  # in a class, at most
    apart: float = 0.9  # silhouette below which the power is 2

    def __post_init__(self) -> None:
        require(self.erm.epochs >= 1, f"erm.epochs must be at least 1 but got {self.erm.epochs}.")
        require(self.clusters >= 2, f"clusters must be at least 2 but got {self.clusters}.")
        require(-1 <= self.apart <= 1, f"apart is a silhouette and must lie in [-1, 1] but got {self.apart}.")

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        brief = copy.deepcopy(model)
        train_model(brief, train, self.erm, stage="erm", session=session)
        chances, found = all_logits(brief, train, session).double().softmax(1), {}
        share, mined = torch.zeros(len(train), dtype=torch.double), torch.zeros(len(train), dtype=torch.bool)
        for label in train.y.unique().tolist():
            own = (train.y == label).nonzero().squeeze(1)
            found[label] = best_clusters(chances[own], self.clusters, stream(session.seed, "clusters", label))
            cluster, score = found[label]
            share[own] = shares(cluster, 1 if score >= self.apart else 2)
            mined[own] = cluster != torch.bincount(cluster).argmax()
        train_model(model, train, self.training, stage="training", session=session, order=Draws(share))
        sizes = [torch.bincount(one.of).tolist() for one in found.values()]
        figures = {"clusters": sizes, "silhouettes": [one.silhouette for one in found.values()]}
        said = [] if any(len(size) > 1 for size in sizes) else [UNSPLIT]
        mining = Mined(mined, None, train.y)
        return Fit(model, {"erm": brief}, Baseline("erm"), mining=mining, figures=figures, warnings=said)


def shares(cluster: Tensor, power: int) -> Tensor:
    """How often to draw each sample of a class: its cluster's size to the power ``-power``, of a sum of 1.

    >>> shares(torch.tensor([0, 0, 1]), 2)  # 1/4, 1/4 and 1 of 3/2
    tensor([0.1667, 0.1667, 0.6667], dtype=torch.float64)
    """
    weight = torch.bincount(cluster)[cluster].double() ** -power
    return weight / weight.sum()
