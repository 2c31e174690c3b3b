"""Images that a small network masks before another one reads them, and how alike images look (CIM)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import seeded
from unspur.models.classifier import Classifier, Normalize

WIDTHS = (16, 32)  # channels at a half and at a quarter of the image's size
OPEN = 1.0  # what the mask's logits begin around: sigmoid(1) = 0.73 shows more than it hides, and can still close
STEADY = (0.01**2, 0.03**2)  # C1 and C2 of the index, for pixels in [0, 1]


class Morphing(nn.Module):
    """x times a mask in (0, 1) of x's own shape, which two convolutions down and one back up make of x."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half, quarter = WIDTHS
        self.down = nn.Sequential(
            nn.Conv2d(channels, half, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(half, quarter, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.up = nn.Conv2d(quarter, channels, 3, padding=1)
        self.mask = nn.Sigmoid()
        nn.init.constant_(self.up.bias, OPEN)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        logits = functional.interpolate(self.up(self.down(x)), x.shape[2:], mode="bilinear", align_corners=False)
        masked: Tensor = x * self.mask(logits)
        return masked


def with_morphing(model: Classifier, channels: int, seed: int) -> Classifier:
    """``model`` with a mask on its network's input, which is normalised: a hidden pixel has the mean colour."""
    channels = len(model.normalize.mean) if isinstance(model.normalize, Normalize) else channels
    with seeded(seed, "morphing"):
        model.net = nn.Sequential(Morphing(channels), model.net)
    return model


def as_pixels(model: Classifier, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """``x`` with the channels that the network reads, and the same masked: mean + mask (x - mean)."""
    mean = model.normalize.mean if isinstance(model.normalize, Normalize) else x.new_zeros(())
    x = x.expand_as(mask)
    return x, mean + mask.float() * (x - mean)


def ssim(a: Tensor, b: Tensor, window: int) -> Tensor:
    """The structural similarity of images a and b, -1 to 1: the mean over windows and channels (Wang et al., 2004).

    Each window gives l(a, b) cs(a, b), with l = (2 m_a m_b + C1) / (m_a^2 + m_b^2 + C1) from the means and cs =
    (2 c_ab + C2) / (v_a + v_b + C2) from covariance and variances. Windows are even, half a window apart.

    >>> x = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    >>> float(ssim(x, x, 4)), float(ssim(x, 1 - x, 4)) < 0
    (1.0, True)
    """

    def mean(x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, window, max(1, window // 2))

    m_a, m_b = mean(a), mean(b)
    v_a, v_b, c_ab = mean(a * a) - m_a**2, mean(b * b) - m_b**2, mean(a * b) - m_a * m_b
    c1, c2 = STEADY
    light = (2 * m_a * m_b + c1) / (m_a**2 + m_b**2 + c1)
    return (light * (2 * c_ab + c2) / (v_a + v_b + c2)).flatten(1).mean(1)


def drawn_from(allowed: Tensor) -> tuple[Tensor, Tensor]:
    """For each row a random column that is ``allowed``, by torch's own generator, and whether there is one.

    >>> drawn_from(torch.tensor([[False, True], [False, False]]))
    (tensor([1, 0]), tensor([ True, False]))
    """
    scores = torch.rand(allowed.shape).to(allowed.device).masked_fill(~allowed, -1.0)
    return scores.argmax(1), allowed.any(1)
