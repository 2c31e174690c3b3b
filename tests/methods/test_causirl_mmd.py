import pytest
import torch

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods.causirl_mmd import CausIRLMMD, penalty
from unspur.methods.erm import ERM
from unspur.models.base import with_features
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import mmd
from unspur.train.recipe import SGD

TRAINING = SGD(lr=0.02, epochs=6, batch_size=64)


def apart(fit, data):
    """How far the features of the domains are apart, in units of their own spread."""
    with torch.no_grad():
        features, _ = with_features(fit.model, data.x)
    return float(mmd(features / features.std(), data.attributes["told"]))


def seen(features, domain):
    return Seen(features, features, domain, domain, torch.zeros(int(domain.max()) + 1))


def test_the_penalty_compares_two_random_sides_and_not_the_domains():
    # domains that are far apart: sides that mix them are nearer on average, and differ from draw to draw
    domain = torch.tensor([0, 1] * 50)
    features = torch.randn(100, 3, generator=torch.Generator().manual_seed(0)) + 4 * domain[:, None]
    torch.manual_seed(0)
    found = torch.stack([penalty(seen(features, domain)) for _ in range(30)])
    assert float(found.mean()) < 0.7 * float(mmd(features, domain)) and float(found.std()) > 0


def test_without_a_difference_between_domains_the_sides_are_alike():
    features = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    domain = torch.tensor([0, 1] * 100)
    torch.manual_seed(0)
    far = torch.stack([penalty(seen(features + 4 * domain[:, None], domain)) for _ in range(20)]).mean()
    near = torch.stack([penalty(seen(features, domain)) for _ in range(20)]).mean()
    assert float(near) < 0.4 * float(far)


def test_a_side_that_is_empty_costs_nothing():
    features, domain = torch.randn(2, 3), torch.tensor([0, 1])  # one side has at most one sample
    assert float(penalty(seen(features, domain))) == 0.0


def test_features_of_the_domains_end_nearer_to_each_other_than_by_plain_training():
    data = shortcut(600, conflicting=60)
    plain = ERM(erm=TRAINING).fit(network(), data)
    fit = CausIRLMMD(training=TRAINING, gamma=3.0).fit(network(), data)
    assert apart(fit, data) < 0.8 * apart(plain, data)


def test_a_negative_weight_is_refused():
    with pytest.raises(UnspurError, match=r"gamma must be a number from 0 but got -1"):
        CausIRLMMD(gamma=-1.0)
