import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, network, shortcut
from unspur.data.base import Batch, Split
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.spectral_decoupling import SpectralDecoupling
from unspur.train.recipe import SGD

LOGITS = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
BATCH = Batch(LOGITS, torch.tensor([0, 2]), torch.arange(2))


def cross_entropy(row, y):
    return -torch.tensor(row).log_softmax(0)[y]


def test_the_penalty_is_the_mean_square_of_a_samples_logits():
    found = SpectralDecoupling().loss(LOGITS, BATCH)
    expected = [
        cross_entropy([1.0, -2.0, 0.5], 0) + 0.1 * (1 + 4 + 0.25) / 3,  # not the sum, nor the weights' decay
        cross_entropy([0.0, 3.0, 1.0], 2) + 0.1 * (0 + 9 + 1) / 3,
    ]
    assert torch.allclose(found, torch.stack(expected))


def test_by_class_the_labels_logit_is_drawn_to_its_own_gamma_with_its_own_strength():
    found = SpectralDecoupling(lams=(0.1, 0.2, 0.3), gammas=(2.0, 5.0, -1.0)).loss(LOGITS, BATCH)
    expected = [
        cross_entropy([1.0, -2.0, 0.5], 0) + 0.1 * (1 - 2) ** 2,
        cross_entropy([0.0, 3.0, 1.0], 2) + 0.3 * (1 + 1) ** 2,
    ]
    assert torch.allclose(found, torch.stack(expected))


def test_a_linear_model_ends_where_the_slope_of_both_terms_is_zero():
    # one input, one label: d/dz of log(1 + exp(-2z)) + 0.1 z^2, both logits being z and -z, is zero at z = 1.3406
    recipe = SGD(lr=0.3, epochs=400, batch_size=8, momentum=0.0)
    data = Split(torch.ones(8, 1), torch.zeros(8).long())
    logits = SpectralDecoupling(training=recipe).fit(nn.Linear(1, 2), data).model(torch.ones(1, 1))[0]
    z = float(logits[0].detach())
    slope = -2 / (1 + torch.tensor(2 * z).exp()) + 0.2 * z
    assert abs(float(slope)) < 1e-3 and float(logits[1].detach()) == pytest.approx(-z, abs=1e-3)


def test_logits_end_smaller_than_by_plain_training():
    data = shortcut()
    plain = ERM(erm=PLAIN).fit(network(), data).model
    fit = SpectralDecoupling(training=PLAIN, lams=(0.5,)).fit(network(), data).model
    assert fit(data.x).square().mean() < 0.7 * plain(data.x).square().mean()


def test_values_for_another_number_of_classes_are_refused():
    with pytest.raises(UnspurError, match="gammas has 3 values for 2 classes; give none, or one for each class"):
        SpectralDecoupling(gammas=(1.0, 2.0, 3.0)).fit(network(), shortcut())
    with pytest.raises(UnspurError, match=r"lams must be numbers from 0 but got \[-1"):
        SpectralDecoupling(lams=(-1.0,))
