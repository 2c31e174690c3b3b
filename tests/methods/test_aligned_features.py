"""coral and mmd between domains, causirl_coral and causirl_mmd between mixtures of them."""

import functools

import pytest
import torch

from methods.shortcuts import network, shortcut
from unspur.errors import UnspurError
from unspur.methods.causirl_coral import CausIRLCORAL
from unspur.methods.causirl_mmd import CausIRLMMD
from unspur.methods.coral import CORAL
from unspur.methods.erm import ERM
from unspur.methods.mmd import MMD
from unspur.models.base import with_features
from unspur.parts.domains import Seen
from unspur.parts.feature_distances import coral, mmd
from unspur.train.recipe import SGD

TRAINING = SGD(lr=0.02, epochs=6, batch_size=64)
BETWEEN_DOMAINS = [(CORAL, coral), (MMD, mmd)]
BETWEEN_MIXTURES = [(CausIRLCORAL, coral), (CausIRLMMD, mmd)]


@functools.cache
def data():
    return shortcut(600, conflicting=60)


@functools.cache
def plain():
    return ERM(erm=TRAINING).fit(network(), data())


def apart(fit, distance):
    """How far the features of the domains are apart, in units of their own spread."""
    with torch.no_grad():
        features, _ = with_features(fit.model, data().x)
    return float(distance(features / features.std(), data().attributes["told"]))


def seen(features, domain):
    return Seen(features, features, domain, domain, torch.zeros(int(domain.max()) + 1))


@pytest.mark.parametrize(("method", "distance"), BETWEEN_DOMAINS)
def test_the_penalty_compares_features_and_not_logits(method, distance):
    features, domain = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
    found = method().penalty(seen(features, domain)._replace(logits=torch.zeros(4, 2)))
    assert torch.equal(found, distance(features, domain)) and float(found) > 0


@pytest.mark.parametrize(("method", "distance"), BETWEEN_MIXTURES)
def test_the_penalty_compares_two_random_sides_and_not_the_domains(method, distance):
    # domains that are far apart: sides that mix them are nearer on average, and differ from draw to draw
    domain = torch.tensor([0, 1] * 50)
    features = torch.randn(100, 3, generator=torch.Generator().manual_seed(0)) + 4 * domain[:, None]
    torch.manual_seed(0)
    found = torch.stack([method().penalty(seen(features, domain)) for _ in range(30)])
    assert float(found.mean()) < 0.7 * float(distance(features, domain)) and float(found.std()) > 0


@pytest.mark.parametrize(("method", "share"), [(CausIRLCORAL, 0.2), (CausIRLMMD, 0.4)])
def test_without_a_difference_between_domains_the_sides_are_alike(method, share):
    features = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    domain = torch.tensor([0, 1] * 100)
    torch.manual_seed(0)
    far = torch.stack([method().penalty(seen(features + 4 * domain[:, None], domain)) for _ in range(20)]).mean()
    near = torch.stack([method().penalty(seen(features, domain)) for _ in range(20)]).mean()
    assert float(near) < share * float(far)


@pytest.mark.parametrize("method", [CausIRLCORAL, CausIRLMMD])
def test_a_side_that_is_empty_costs_nothing(method):
    features, domain = torch.randn(2, 3), torch.tensor([0, 1])  # one side has at most one sample
    assert float(method().penalty(seen(features, domain))) == 0.0


@pytest.mark.parametrize(
    ("method", "distance", "share"),
    [(CORAL, coral, 0.4), (MMD, mmd, 0.4), (CausIRLCORAL, coral, 0.8), (CausIRLMMD, mmd, 0.8)],
)
def test_features_of_the_domains_end_nearer_to_each_other_than_by_plain_training(method, distance, share):
    fit = method(training=TRAINING, gamma=3.0).fit(network(), data())
    assert apart(fit, distance) < share * apart(plain(), distance)


@pytest.mark.parametrize(("method", "distance"), [*BETWEEN_DOMAINS, *BETWEEN_MIXTURES])
def test_without_weight_the_distance_does_not_count(method, distance):
    free = method(training=TRAINING, gamma=0.0).fit(network(), data())
    assert apart(free, distance) > apart(method(training=TRAINING).fit(network(), data()), distance)


@pytest.mark.parametrize("method", [CORAL, MMD, CausIRLCORAL, CausIRLMMD])
def test_a_negative_weight_is_refused(method):
    with pytest.raises(UnspurError, match=r"gamma must be a number from 0 but got -1"):
        method(gamma=-1.0)
