"""AFR (arXiv:2306.11074): 1. ERM on 80 %.  2. Weigh the rest by what it gets wrong.  3. Fit the last layer on that."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unspur.core.options import require_finite
from unspur.core.seeds import stream
from unspur.data.base import Split, stratified_split
from unspur.errors import require
from unspur.methods.base import Baseline, Fit, LogitsMethod
from unspur.models.base import head_of
from unspur.parts.features import features_of
from unspur.parts.last_layer import check_head
from unspur.parts.logistic import Heads, Penalty, fit_heads, require_bias
from unspur.parts.select import GroupRule, choose, few_mined_warnings, scores, validation_groups
from unspur.train.loop import train as train_model
from unspur.train.recipe import SGD, Optimiser
from unspur.train.session import Session


@dataclass(frozen=True)
class AFR(LogitsMethod):
    """Automatic feature reweighting: fit the last layer where ERM is unsure, near ERM's own (AFR, Eq. 4 and 5).

    Weights exp(-gamma p) / n_y on the 20 % that ERM has not seen, p being the probability that it gives the label, and
    lambda times the squared distance from ERM's last layer. All pairs of gamma and lambda are fitted at once. The paper
    chooses by the worst group of labelled validation data; the default rule needs no labels and takes what ERM gets
    wrong for groups. The paper stops its descent early; here the convex problem is solved as far as `steps` go. With
    lambda = 0 separable data leave it no finite minimum, and `steps` is an early stop as well.
    """

    name: ClassVar[str] = "afr"
    paper: ClassVar[str] = "arXiv:2306.11074"
    cost: ClassVar[str] = "1 and a last layer"
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    erm: Optimiser = SGD()  # the training of the network
    held: float = 0.2  # share of the training set that it does not see
    gammas: tuple[float, ...] = (4.0, 8.0, 12.0, 16.0, 20.0)  # how much less a sample counts that ERM is sure of
    lams: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)  # lambda: what holds the last layer to ERM's
    rule: GroupRule = "mined_group"  # what is best: mined_group, worst_class, mean, or worst_group (needs attributes)
    steps: int = 300  # of a fit, at most

    def __post_init__(self) -> None:
        require_finite(self)
        require(0 < self.held < 1, f"held must lie in (0, 1) but got {self.held}.")
        for name, values in (("gammas", self.gammas), ("lams", self.lams)):
            require(len(values) > 0 and min(values) >= 0, f"{name} must be numbers from 0 but got {list(values)}.")
        require(self.steps >= 1, f"steps must be at least 1 but got {self.steps}.")

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """The model must end in one linear layer, and there must be what the choice needs."""
        require_bias(check_head(model, train))
        if len(self.gammas) * len(self.lams) > 1:
            held_out = train.subset(torch.arange(0)) if val is None else val
            validation_groups("mean" if self.rule == "mined_group" else self.rule, held_out)  # an error if it cannot

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        seen, held = stratified_split(train.y, round(self.held * len(train)), stream(session.seed, "held"))
        train_model(model, train.subset(seen), self.erm, stage="erm", session=session)
        before, part = copy.deepcopy(model), train.subset(held)
        x, head = features_of(model, part, session, "held-features").cpu(), head_of(model)
        points = list(itertools.product(self.gammas, self.lams))
        erm = Heads(head.weight.detach().cpu()[None].double(), head.bias.detach().cpu()[None].double())
        share = torch.stack([weights(erm.logits(x)[0], part.y, gamma) for gamma, _ in points])
        start = Heads(*(value.expand(len(points), *value.shape[1:]) for value in erm))
        found = fit_heads(x, part.y, share, start, Penalty(l2=torch.tensor([lam for _, lam in points])), self.steps)
        session.progress("heads", 1.0)
        best, score, warnings = 0, None, []
        if val is not None:
            val_x = features_of(model, val, session, "val-features").cpu()
            wrong = ~erm.right(val_x, val.y)[0]
            right, group = found.right(val_x, val.y), validation_groups(self.rule, val, wrong)
            best = choose(self.rule, right, group)
            score = float(scores(self.rule, right, group)[best])
            warnings = few_mined_warnings(val.y, wrong) if self.rule == "mined_group" else []
        found.give(model, best)
        chosen = {"gamma": points[best][0], "lam": points[best][1], "score": score}
        return Fit(model.eval(), {"erm": before}, Baseline("erm"), warnings=warnings, figures={"chosen": chosen})


def weights(logits: Tensor, y: Tensor, gamma: float) -> Tensor:
    """exp(-gamma p) / n, p being the label's probability and n the label's number of samples; they sum to 1."""
    p = logits.softmax(1).gather(1, y[:, None]).squeeze(1)
    raw = (-gamma * p).exp() / torch.bincount(y)[y]
    return raw / raw.sum()
