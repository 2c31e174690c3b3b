"""Data of which one half cannot be told, and how sure a result is in each half: for methods that learn to abstain."""

import torch

from unspur.data.base import Split
from unspur.metrics.selective import softmax_response
from unspur.models.base import with_features


def half_noise(n=800, seed=0):
    """Two classes by the sign of the first number where the second is positive, and by a coin elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 7, generator=generator)
    coin = torch.randint(0, 2, (n,), generator=generator)
    return Split(x, torch.where(x[:, 1] > 0, (x[:, 0] > 0).long(), coin), {"noisy": (x[:, 1] <= 0).long()})


def confidence(fit, data):
    """How sure a result is of each sample, by its selector or by its largest probability."""
    with torch.no_grad():
        features, logits = with_features(fit.model.eval(), data.x)
    return softmax_response(logits).confidence if fit.selector is None else fit.selector.confidence(features, logits)


def surer_where_it_can_be(fit):
    """The share of pairs, one of the clear half and one of the other, in which the clear one is the surer."""
    data = half_noise(400, seed=5)
    sure, noisy = confidence(fit, data), data.attributes["noisy"].bool()
    return float((sure[~noisy][:, None] > sure[noisy]).double().mean())
