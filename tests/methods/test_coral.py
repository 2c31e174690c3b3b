import pytest
import torch

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods.coral import CORAL, penalty
from unspur.methods.erm import ERM
from unspur.models.base import with_features
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import coral
from unspur.train.recipe import SGD

TRAINING = SGD(lr=0.02, epochs=6, batch_size=64)


def apart(fit, data):
    """How far the features of the domains are apart, in units of their own spread."""
    with torch.no_grad():
        features, _ = with_features(fit.model, data.x)
    return float(coral(features / features.std(), data.attributes["told"]))


def seen(features, domain):
    return Seen(features, features, domain, domain, torch.zeros(int(domain.max()) + 1))


def test_the_penalty_compares_features_and_not_logits():
    features, domain = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
    blind = seen(features, domain)._replace(logits=torch.zeros(4, 2))
    assert torch.equal(penalty(blind), coral(features, domain)) and float(penalty(blind)) > 0


def test_features_of_the_domains_end_nearer_to_each_other_than_by_plain_training():
    data = shortcut(600, conflicting=60)
    plain = ERM(erm=TRAINING).fit(network(), data)
    fit = CORAL(training=TRAINING, gamma=3.0).fit(network(), data)
    assert apart(fit, data) < 0.4 * apart(plain, data)


def test_without_weight_the_distance_does_not_count():
    data = shortcut(600, conflicting=60)
    free = CORAL(training=TRAINING, gamma=0.0).fit(network(), data)
    assert apart(free, data) > apart(CORAL(training=TRAINING).fit(network(), data), data)


def test_a_negative_weight_is_refused():
    with pytest.raises(UnspurError, match=r"gamma must be a number from 0 but got -1"):
        CORAL(gamma=-1.0)
