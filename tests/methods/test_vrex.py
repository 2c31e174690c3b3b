import pytest
import torch

from methods.shortcuts import SLOW, environments, reversed_rule, small
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.vrex import VREx, penalty
from unspur.parts.domains import Seen


def test_the_penalty_is_the_mean_squared_distance_from_the_mean_risk():
    nothing, risks = torch.zeros(1), torch.tensor([1.0, 2.0, 6.0])
    # mean 3; (4 + 1 + 9) / 3, and not / 2 as of a sample
    assert float(penalty(Seen(nothing, nothing, nothing, nothing, risks))) == pytest.approx(14 / 3)


def test_what_differs_between_domains_is_not_used():
    plain = ERM(erm=SLOW).fit(small(), environments())
    fit = VREx(training=SLOW, anneal=20).fit(small(), environments())
    assert reversed_rule(plain) < 0.25 and reversed_rule(fit) > 0.65  # the other number tells 75 %


def test_risks_end_nearer_to_each_other_than_by_plain_training():
    data = environments()

    def difference(fit):
        losses = torch.nn.functional.cross_entropy(fit.model(data.x), data.y, reduction="none")
        domain = data.attributes["domain"]
        return float((losses[domain == 0].mean() - losses[domain == 1].mean()).abs().detach())

    plain, fit = ERM(erm=SLOW).fit(small(), data), VREx(training=SLOW, anneal=20).fit(small(), data)
    assert difference(fit) < 0.7 * difference(plain)


def test_negative_settings_are_refused():
    with pytest.raises(UnspurError, match=r"beta must be a number from 0 but got -2"):
        VREx(beta=-2.0)
    with pytest.raises(UnspurError, match="anneal must be at least 0 but got -5"):
        VREx(anneal=-5)
