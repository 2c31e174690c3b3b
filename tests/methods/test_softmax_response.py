import torch

from methods.abstaining import half_noise, surer_where_it_can_be
from methods.shortcuts import PLAIN, network
from unspur.methods.softmax_response import SoftmaxResponse
from unspur.train.loop import train
from unspur.train.session import Session


def test_the_training_is_plain():
    fit, plain = SoftmaxResponse(training=PLAIN).fit(network(), half_noise()), network()
    train(plain, half_noise(), PLAIN, stage="training", session=Session())
    for value, same in zip(fit.model.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(value, same)
    assert fit.selector is None


def test_it_is_surer_where_labels_can_be_told():
    assert surer_where_it_can_be(SoftmaxResponse(training=PLAIN).fit(network(), half_noise())) > 0.6
