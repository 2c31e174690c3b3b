from dataclasses import replace

import pytest
import torch

from methods.shortcuts import PLAIN, network, shortcut
from unspur.data.base import Batch
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.focal import Focal


def test_what_is_fitted_well_counts_for_less():
    logits = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    found = Focal().loss(logits, Batch(logits, torch.tensor([0, 0]), torch.arange(2)))
    p = logits.softmax(1)[:, 0]
    assert torch.allclose(found, (1 - p) ** 2 * -p.log())


def test_gamma_0_is_plain_training():
    whole = replace(PLAIN, batch_size=600)  # one batch: stages of other names see samples in another order
    plain = ERM(erm=whole).fit(network(), shortcut()).model.state_dict()
    fit = Focal(training=whole, gamma=0.0).fit(network(), shortcut()).model.state_dict()
    assert all(torch.allclose(plain[name], fit[name], atol=1e-5) for name in plain)


def test_the_name_is_the_setting_of_plain_training():
    first = ERM(erm=PLAIN, focal=2.0)
    assert torch.equal(first.loss(torch.eye(2), batch := Batch(torch.eye(2), torch.tensor([0, 0]), torch.arange(2))),
                       Focal().loss(torch.eye(2), batch))  # fmt: skip


def test_a_negative_gamma_is_refused():
    with pytest.raises(UnspurError, match=r"gamma must be a number from 0 but got -1"):
        Focal(gamma=-1.0)
