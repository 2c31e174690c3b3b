"""Images that a biased model gets wrong, without group labels, and how the tested model does on them.

Both miners are heads on the features of the images, each fitted on one half of them and applied to the other. GCE (as
in DCWP, E.2) learns what is easy and gives up the rest. XRM's twins (arXiv:2309.16748) are two plain heads; a coin
decides which of them learns from an image. XRM also flips labels while it trains, so that its twins agree more and
more. This is left out: a head that is fitted in one go has no such course of training.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from unspur.core.seeds import stream
from unspur.errors import UnspurError
from unspur.models.base import penultimate
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.evidence import MinedTest, Miner
from unspur.practice.audit.findings import Finding
from unspur.practice.audit.looking import as_taken
from unspur.practice.audit.model import BATCH, Model
from unspur.practice.audit.quick_model import fit_head
from unspur.train.losses import Loss, cross_entropy, generalised_cross_entropy

FEWEST = 40  # images of which one half is enough to fit a head
MINERS: dict[Miner, Loss] = {"gce": generalised_cross_entropy(0.7), "twins": cross_entropy}  # q as in DCWP


def mined_tests(
    model: Model, scores: Tensor, data: Collected, findings: Sequence[Finding], *, seed: int = 0
) -> tuple[MinedTest, ...]:
    """What each miner mines, and how the model with these ``scores`` of all images does there and elsewhere."""
    pictures, features = _features(model, data)
    if features is None or len(pictures) < FEWEST:
        return ()
    numbers = data.pictured[pictures]
    against = next((set(each.suspects) for each in findings if each.suspects), None)
    tests = []
    for by, loss in MINERS.items():
        wrong = held_out_mistakes(features, data.y[numbers], len(data.classes), loss, stream(seed, f"audit {by}"))
        mined = tuple(numbers[wrong].tolist())
        known = ~scores[numbers].isnan().any(1)
        here, there = (_score(scores, data.y, numbers[known & chosen]) for chosen in (wrong, ~wrong))
        both = None if against is None else len(against.intersection(mined))
        tests.append(MinedTest(by, mined, len(numbers), here[0], there[0], here[1], there[1], both))
    return tuple(tests)


def held_out_mistakes(features: Tensor, y: Tensor, classes: int, loss: Loss, generator: torch.Generator) -> Tensor:
    """Which images are misclassified by the head that was not fitted on them; a coin assigns each to one of two."""
    coin = torch.rand(len(y), generator=generator) < 0.5
    wrong = torch.zeros(len(y), dtype=torch.bool)
    for kept in (coin, ~coin):
        head = fit_head(features[kept], y[kept], classes, loss)
        wrong[~kept] = head(features[~kept]).argmax(1) != y[~kept]
    return wrong


def _features(model: Model, data: Collected) -> tuple[Tensor, Tensor | None]:
    """The numbers of pictures, and their features by a network that was not trained on them; None: no features."""
    insight = model.insight
    if insight is None:
        return torch.zeros(0, dtype=torch.long), None
    if insight.features is not None:
        return torch.arange(len(data.pictures)), insight.features
    if len(model.parts) != 1:
        return torch.zeros(0, dtype=torch.long), None
    part, parts = model.parts[0], []
    try:
        with torch.no_grad():
            for index in part.split(BATCH):
                images = as_taken(data.pictures[index], insight.shape).float() / 255
                parts.append(penultimate(insight.modules[0], images).flatten(1))
    except UnspurError:  # the model has no layer before its last, or does not end in a linear layer
        return part, None
    return part, torch.cat(parts)


def _score(scores: Tensor, y: Tensor, numbers: Tensor) -> tuple[float | None, float | None]:
    """Accuracy and mean loss on images; None without any."""
    if not len(numbers):
        return None, None
    own, labels = scores[numbers], y[numbers]
    return float((own.argmax(1) == labels).float().mean()), float(functional.cross_entropy(own, labels))
