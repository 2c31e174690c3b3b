"""A network that sees a few pixels at a time and answers by its strongest place: it finds a mark wherever it lies."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.files import read_tensors, user_path, write_tensors
from unspur.errors import UnspurError, require

SIDE = 96  # pixels; larger images are made smaller
SHARPNESS = 4.0  # of the soft maximum over places: log mean exp(SHARPNESS z) / SHARPNESS
WIDTHS = (12, 16, 16)
NAME = "detector-"  # of its file, before a hash of what it holds


class LocalNet(nn.Module):
    """Four convolutions, the first of stride 1 or 2, and class scores at each place."""

    def __init__(self, classes: int, stride: int) -> None:
        super().__init__()
        first = nn.Conv2d(3, WIDTHS[0], 3, stride=stride, padding=1)
        layers: list[nn.Module] = [first, nn.BatchNorm2d(WIDTHS[0]), nn.ReLU()]
        for before, after in ((WIDTHS[0], WIDTHS[1]), (WIDTHS[1], WIDTHS[2])):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.body, self.stride = nn.Sequential(*layers), stride
        self.last = nn.Conv2d(WIDTHS[2], classes, 3, padding=1)

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


def fitted(images: Tensor) -> Tensor:
    """Bytes at the size that the detector works in."""
    if images.shape[-1] <= SIDE:
        return images
    return functional.interpolate(images.float(), size=SIDE, mode="bilinear", antialias=True).round().to(torch.uint8)


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


@dataclass(frozen=True, eq=False)
class SpeaksLoudest:
    """Where each image (floats, n x 3 x h x w) most strongly suggests one class: a square, as booleans (n, h, w)."""

    net: LocalNet
    label: int
    file: Path | None = None  # where it is kept; None: nowhere yet

    def __call__(self, images: Tensor) -> Tensor:
        size = images.shape[2:]
        small = fitted((images.clamp(0, 1) * 255).round().to(torch.uint8))
        _, place = places(self.net, small)
        centre = (place[:, self.label].float() + 0.5) * self.net.stride
        far = [
            (torch.arange(small.shape[2 + axis]) + 0.5 - centre[:, axis : axis + 1]).abs() > self.net.field / 2
            for axis in (0, 1)
        ]
        inside = ~far[0].unsqueeze(2) & ~far[1].unsqueeze(1)
        if tuple(size) == tuple(small.shape[2:]):
            return inside
        return functional.interpolate(inside.unsqueeze(1).float(), size=size, mode="nearest").squeeze(1) > 0

    def kept_in(self, folder: Path) -> SpeaksLoudest:
        """The same, written to a file in ``folder`` whose name contains a hash of its content."""
        state = self.net.state_dict()
        about = {"label": self.label, "stride": self.net.stride, "classes": self.net.last.out_channels}
        file = folder / f"{NAME}{_digest(state, about)}.safetensors"
        write_tensors(file, state, about)
        return SpeaksLoudest(self.net, self.label, file)

    @staticmethod
    def read(file: str) -> SpeaksLoudest:
        """What ``kept_in`` wrote, checked against the hash in its name."""
        state, about = read_tensors(user_path(file))
        try:
            label, stride, classes = (int(about[name]) for name in ("label", "stride", "classes"))
            require(stride in (1, 2) and 0 <= label < classes <= 10_000, "out of range")
            with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten by loading
                net = LocalNet(classes, stride)
            net.load_state_dict(state)
            whole = Path(file).stem == f"{NAME}{_digest(state, {'label': label, 'stride': stride, 'classes': classes})}"
        except (KeyError, TypeError, ValueError, RuntimeError, UnspurError):
            whole = False
        require(whole, f"{file} is not a detector as an audit wrote it; audit the images again.")
        return SpeaksLoudest(net.eval(), label, Path(file))


def _digest(state: dict[str, Tensor], about: dict[str, int]) -> str:
    digest = hashlib.sha256(repr(sorted(about.items())).encode())
    for name, value in sorted(state.items()):
        digest.update(name.encode() + value.numpy().tobytes())
    return digest.hexdigest()[:12]
