"""Domains: which attribute names them, and the risk in each of them with a penalty on how they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from unspur.data.base import Batch, Split
from unspur.errors import require
from unspur.models.base import with_features
from unspur.parts.group_losses import group_means
from unspur.train.loop import Objective
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Minimised
from unspur.train.orders import Even
from unspur.train.recipe import Optimiser
from unspur.train.session import Session

USUAL = "domain"  # the attribute that names the domains by default


def domain_of(train: Split, name: str | None) -> Tensor:
    """The number of each sample's domain, from 0: by the attribute ``name``, or ``domain``, or the only one."""
    found, names = name, list(train.attributes)
    if found is None:
        found = USUAL if USUAL in names else names[0] if len(names) == 1 else None
    there = f"there are {', '.join(names)}"
    require(
        found is not None,
        f"Domains can be said by any of several attributes: {there}; choose one (--set domains=NAME).",
    )
    require(found in names, f"No attribute is called '{found}'; {there} (--set domains=NAME).")
    domain: Tensor = train.attributes[str(found)].unique(return_inverse=True)[1]
    return domain


def require_domains(method: str, train: Split, name: str | None, batch_size: int) -> None:
    """Raise an error for data of a single domain, and for batches that cannot hold two samples of each domain."""
    count = int(domain_of(train, name).max()) + 1
    require(
        count > 1,
        f"{method} compares domains, but all training samples are of one; name another attribute (--set domains=NAME), "
        "or use a method that needs no domains, such as groupdro or jtt.",
    )
    require(
        batch_size >= 2 * count,
        f"{method} needs two samples of each of {count} domains in a batch, but it has {batch_size}; "
        f"use --set training.batch_size={2 * count} or more.",
    )


class Seen(NamedTuple):
    """What a penalty may look at."""

    features: Tensor
    logits: Tensor
    y: Tensor
    domain: Tensor  # of each sample
    risks: Tensor  # each domain's mean loss


Penalty = Callable[[Seen], Tensor]


def penalised(domain: Tensor, penalty: Penalty, weight: float) -> Objective:
    """The mean of the domains' risks plus ``weight`` times a penalty, all divided by ``weight`` where that exceeds 1.

    Without the division, a penalty of weight 100 would also multiply the learning rate by 100.
    """
    count = int(domain.max()) + 1

    def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
        features, logits = with_features(model, batch.x)
        features, own = features.float(), domain.to(batch.index.device)[batch.index]
        risks = group_means(cross_entropy(logits.float(), batch), own, count)
        cost = penalty(Seen(features, logits.float(), batch.y, own, risks))
        risk = risks.mean()
        return Minimised((risk + weight * cost) / max(1.0, weight), logits, {"risk": risk, "penalty": cost})

    return objective


def train_annealed(
    model: nn.Module,
    train: Split,
    recipe: Optimiser,
    domain: Tensor,
    penalty: Penalty,
    weights: tuple[float, float],
    anneal: int,
    session: Session,
) -> None:
    """Train with the first of two weights for ``anneal`` steps, then with the second and a new optimiser.

    The two parts are separate stages, so momentum gathered without the penalty does not carry over; a schedule begins
    again as well.
    """
    parts = (("annealing", anneal), ("training", annealed_steps(train, recipe, domain) - anneal))
    for (stage, steps), weight in zip(parts, weights, strict=True):
        if steps:
            order, objective = Even(domain, steps), penalised(domain, penalty, weight)
            train_model(model, train, recipe, stage=stage, session=session, objective=objective, order=order)


def annealed_steps(train: Split, recipe: Optimiser, domain: Tensor) -> int:
    """The steps of both parts together."""
    return sum(Even(domain).rounds(len(train), recipe, 1))


def require_annealing(train: Split, recipe: Optimiser, domain: Tensor, anneal: int) -> None:
    """Raise an error if the penalty would never get its full weight."""
    steps = annealed_steps(train, recipe, domain)
    require(
        0 <= anneal < max(1, steps),
        f"The penalty gets its full weight after {anneal} steps, but the training has {steps}; use --set anneal="
        f"{steps // 10}, or more training.epochs.",
    )
