import torch

from methods.abstaining import half_noise, surer_where_it_can_be
from methods.shortcuts import PLAIN, network
from unspur.methods.erm import ERM
from unspur.methods.softmax_response import SoftmaxResponse
from unspur.train.recipe import SGD


def test_the_training_is_plain():
    # the same data order needs the same stage's name, so that they are compared without steps and by their loss
    fit = SoftmaxResponse(training=SGD(epochs=0)).fit(network(), half_noise())
    for value, first in zip(fit.model.state_dict().values(), network().state_dict().values(), strict=True):
        assert torch.equal(value, first)
    assert SoftmaxResponse().loss is ERM().loss and fit.selector is None


def test_it_is_surer_where_labels_can_be_told():
    assert surer_where_it_can_be(SoftmaxResponse(training=PLAIN).fit(network(), half_noise())) > 0.6
