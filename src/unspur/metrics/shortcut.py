"""What a shortcut does to a model's answers when it is taken away: a finite difference.

Saliency is local: a network can look away from a shortcut at the data (ULE, Eq. 2) and still use it in between. So the
same images are shown with the shortcut and without it.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from unspur.errors import require


class ShortcutEffect(NamedTuple):
    """Means over images of what changes when the shortcut is taken away."""

    flipped: float  # the share of images whose prediction changes
    probability: float  # how much of the probability of the class that was predicted with the shortcut is lost
    logit: float  # how much of that class's lead over the other classes' mean logit is lost


def shortcut_effect(on: Tensor, off: Tensor) -> ShortcutEffect:
    """How logits of images with a shortcut (``on``) differ from those of the same images without it (``off``).

    With c the class predicted with the shortcut: mean 1[argmax off != c], mean p_on(c) - p_off(c), and the mean of
    l_on(c) - l_off(c) where l(c) = z(c) - mean of the other z. All are 0 for a model that does not see it.

    >>> from torch import tensor
    >>> on, off = tensor([[3.0, 0.0], [0.0, 2.0]]), tensor([[0.0, 0.0], [1.0, 0.0]])
    >>> [round(value, 4) for value in shortcut_effect(on, off)]  # p: 0.9526 - 0.5, 0.8808 - 0.2689; l: 3 - 0, 2 + 1
    [0.5, 0.5322, 3.0]
    """
    require(
        on.shape == off.shape and on.ndim == 2 and on.shape[1] >= 2,
        f"A shortcut's effect needs two tables of logits of one shape (images, at least two classes), but got "
        f"{tuple(on.shape)} and {tuple(off.shape)}.",
    )
    predicted = on.argmax(1, keepdim=True)
    classes = on.shape[1]

    def of(values: Tensor) -> Tensor:
        return values.gather(1, predicted).squeeze(1).double()

    lost = of(on.softmax(1)) - of(off.softmax(1))
    lead = (of(z) - (z.sum(1).double() - of(z)) / (classes - 1) for z in (on, off))
    before, after = lead
    flipped = (off.argmax(1, keepdim=True) != predicted).double()
    return ShortcutEffect(float(flipped.mean()), float(lost.mean()), float((before - after).mean()))
