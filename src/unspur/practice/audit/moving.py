"""Marks that move: a network that sees 15 pixels at a time and answers by its strongest place.

On held-out images it tells how well a small piece of an image gives the label away. Natural texture does that as well;
a mark differs in that it separates the classes far better (``separation``), whatever the images show.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import seeded, stream
from unspur.data.base import stratified_split
from unspur.practice.audit.leak_scores import separation_of

IMAGES = 1_200  # that are trained on, and half as many that are held out: enough for a mark that most images show
SIDE = 96  # pixels; larger images are made smaller
FIELD = 15  # pixels that one answer depends on where the first layer keeps every pixel's neighbour
SHARPNESS = 4.0  # of the soft maximum over places: log mean exp(SHARPNESS z) / SHARPNESS
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

    def region(self, images: Tensor) -> Tensor:
        """Where each image (floats, n x 3 x h x w) speaks loudest for the class with the mark: a square."""
        size = images.shape[2:]
        small = fitted((images.clamp(0, 1) * 255).round().to(torch.uint8))
        _, place = places(self.net, small)
        centre = (place[:, self.label].float() + 0.5) * self.net.stride
        side = small.shape[-1]
        far = [
            (torch.arange(small.shape[2 + axis]) + 0.5 - centre[:, axis : axis + 1]).abs() > self.net.field / 2
            for axis in (0, 1)
        ]
        inside = ~far[0].unsqueeze(2) & ~far[1].unsqueeze(1)
        if tuple(size) == (side, side):
            return inside
        return functional.interpolate(inside.unsqueeze(1).float(), size=size, mode="nearest").squeeze(1) > 0


class LocalNet(nn.Module):
    """Four convolutions, the first of stride 1 or 2, and class scores at each place."""

    def __init__(self, classes: int, stride: int) -> None:
        super().__init__()
        widths = (12, 16, 16)
        first = nn.Conv2d(3, widths[0], 3, stride=stride, padding=1)
        layers: list[nn.Module] = [first, nn.BatchNorm2d(widths[0]), nn.ReLU()]
        for before, after in ((widths[0], widths[1]), (widths[1], widths[2])):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.body, self.stride = nn.Sequential(*layers), stride
        self.last = nn.Conv2d(widths[2], classes, 3, padding=1)

    @property
    def field(self) -> int:
        """Pixels each side that one answer depends on."""
        return 3 + self.stride * 6

    def maps(self, images: Tensor) -> Tensor:
        """Class scores at each place, of bytes (n, 3, s, s)."""
        scores: Tensor = self.last(self.body(images.float() / 127.5 - 1))
        return scores

    def forward(self, images: Tensor) -> Tensor:
        return pooled(self.maps(images).flatten(2))


def pooled(scores: Tensor) -> Tensor:
    """The soft maximum over places (the last dimension)."""
    return (scores.mul(SHARPNESS).logsumexp(-1) - math.log(scores.shape[-1])) / SHARPNESS


def find_moving(images: Tensor, y: Tensor, classes: int, *, seed: int = 0) -> Moving:
    """Train the local detector on two thirds of ``images`` (bytes, n x 3 x s x s) and look at the rest."""
    images = fitted(images)
    kept, held = stratified_split(y, len(y) // 3, stream(seed, "audit moving"))
    with seeded(seed, "audit moving weights"):
        net = LocalNet(classes, 1 if images.shape[-1] <= 64 else 2)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    _train(net, images, y, kept[torch.randperm(len(kept), generator=stream(seed, "audit sample"))[:IMAGES]], seed)
    scores, place = places(net, images)
    hit = scores[held].argmax(1) == y[held]
    recall = [float(hit[y[held] == label].float().mean()) for label in y.unique().tolist()]
    label = strongest_class(scores[held], y[held], classes)
    return Moving(
        balanced=sum(recall) / len(recall),
        separation=float(separation_of(scores[held], y[held])),
        label=label,
        place=(place[:, label].float() + 0.5) * net.stride / images.shape[-1],
        scores=scores,
        held=held,
        net=net,
    )


def strongest_class(scores: Tensor, y: Tensor, classes: int) -> int:
    """The class whose own images fire most above the other images, on average: the one that has the mark."""
    lift = [
        float((scores[y == label, label].mean() - scores[y != label, label].mean()).nan_to_num(0.0))
        for label in range(classes)
    ]
    return max(range(classes), key=lift.__getitem__)


def fitted(images: Tensor) -> Tensor:
    """Bytes at the size that the detector works in."""
    if images.shape[-1] <= SIDE:
        return images
    return functional.interpolate(images.float(), size=SIDE, mode="bilinear", antialias=True).round().to(torch.uint8)


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


@torch.no_grad()
def places(net: LocalNet, images: Tensor) -> tuple[Tensor, Tensor]:
    """Class scores (n, classes), and where each class is strongest against the others' mean (n, classes, 2)."""
    scores, places = [], []
    for part in images.split(128):
        maps = net.maps(part)
        against = maps - (maps.sum(1, keepdim=True) - maps) / max(maps.shape[1] - 1, 1)
        flat = against.flatten(2).argmax(2)
        width = maps.shape[3]
        places.append(torch.stack([flat // width, flat % width], 2))
        scores.append(net(part))
    return torch.cat(scores), torch.cat(places)
