"""Marks that move: a network that sees 15 pixels at a time and answers by its strongest place.

Held-out images show how well a small piece of an image gives the label away. Natural texture does that as well, but a
mark separates the classes far better (``separation``), whatever the images show.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from unspur.core.seeds import seeded, stream
from unspur.data.base import stratified_split
from unspur.parts.cues.detector import LocalNet, SpeaksLoudest, fitted, places
from unspur.practice.audit.leak_scores import separation_of

IMAGES = 1_200  # images to train on, and half as many held out: enough for a mark that most images show
EPOCHS, BATCH, RATE = 8, 32, 1e-2


class Moving(NamedTuple):
    """What the local detector found."""

    balanced: float  # accuracy on held-out images, the mean over classes
    separation: float  # of the classes' scores on held-out images, in robust deviations
    label: int  # the class that fires most for its own images
    place: Tensor  # (n, 2) row and column of the strongest place of each image given, as shares of the side
    scores: Tensor  # (n, classes)
    held: Tensor  # the held-out images' numbers
    net: LocalNet

    @property
    def region(self) -> SpeaksLoudest:
        """Where images most strongly suggest the class with the mark."""
        return SpeaksLoudest(self.net, self.label)


def find_moving(images: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Moving:
    """Train the local detector on two thirds of ``images`` (bytes, n x 3 x s x s) and look at the rest."""
    images = fitted(images)
    kept, held = stratified_split(y, len(y) // 3, stream(seed, "audit moving"))
    with seeded(seed, "audit moving weights"):
        net = LocalNet(classes, 1 if images.shape[-1] <= 64 else 2)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    _train(net, images, y, kept[torch.randperm(len(kept), generator=stream(seed, "audit sample"))[:IMAGES]], seed)
    scores, place = places(net, images)
    label = strongest_class(scores[held], y[held], classes)
    return Moving(
        balanced=told_by(scores[held], y[held]),
        separation=float(separation_of(scores[held], y[held])),
        label=label,
        place=(place[:, label].float() + 0.5) * net.stride / images.shape[-1],
        scores=scores,
        held=held,
        net=net,
    )


def told_by(scores: Tensor, y: Tensor) -> float:
    """The accuracy of a detector's scores, the mean over classes."""
    hit = scores.argmax(1) == y
    recall = [float(hit[y == label].float().mean()) for label in y.unique().tolist()]
    return sum(recall) / len(recall)


def strongest_class(scores: Tensor, y: Tensor, classes: int) -> int:
    """The class whose own images fire most above the other images, on average: the one that has the mark."""
    lift = [
        float((scores[y == label, label].mean() - scores[y != label, label].mean()).nan_to_num(0.0))
        for label in range(classes)
    ]
    return max(range(classes), key=lift.__getitem__)


def _train(net: LocalNet, images: Tensor, y: Tensor, chosen: Tensor, seed: int) -> None:
    weight = 1 / torch.bincount(y[chosen], minlength=int(y.max()) + 1).clamp_min(1).float()
    steps = EPOCHS * -(-len(chosen) // BATCH)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    generator = stream(seed, "audit moving order")
    net.train()
    for _ in range(EPOCHS):
        for index in chosen[torch.randperm(len(chosen), generator=generator)].split(BATCH):
            loss = functional.cross_entropy(net(images[index]), y[index], weight=weight * len(weight))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    net.eval()
