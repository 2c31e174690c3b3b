import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.errors import UnspurError
from unspur.models.base import evaluating, head_of, memory_format, penultimate, with_features
from unspur.models.catalog import ARCHS, build_model


class HeadFirst(nn.Module):
    """Registers its head before its body, and a linear layer after both."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.body = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.body(x).relu())


@pytest.mark.parametrize("name", [*ARCHS, "resnet18", "mobilenet_v3_small", "swin_t", "densenet121"])
def test_the_head_makes_the_logits_of_the_features(name):
    model = build_model(name, blank(3, 32, 32, classes=7)).eval()
    x = torch.rand(2, 3, 32, 32)
    features, logits = with_features(model, x)
    assert head_of(model).out_features == 7
    assert features.shape == (2, head_of(model).in_features)
    torch.testing.assert_close(head_of(model)(features), logits)
    torch.testing.assert_close(model(x), logits)


def test_a_head_is_known_by_its_name_when_it_is_not_the_last_layer_registered():
    model = HeadFirst()
    x = torch.rand(5, 4)
    assert head_of(model) is model.fc
    assert torch.equal(penultimate(model, x), model.body(x).relu())


def test_features_are_what_the_last_linear_layer_sees_after_the_activation():
    model = build_model("fcn", blank(3, 8, 8), depth=2, width=5)
    features = penultimate(model, torch.rand(9, 3, 8, 8))
    assert features.shape == (9, 5)
    assert features.min() == 0  # ReLU has been applied


def test_gradients_flow_through_features():
    model = build_model("cnn3", blank(3, 28, 28))
    penultimate(model, torch.rand(2, 3, 28, 28)).sum().backward()
    assert model.net[0].weight.grad is not None
    assert head_of(model).weight.grad is None


def test_a_network_without_a_linear_end_is_refused_by_name():
    with pytest.raises(UnspurError, match="squeezenet1_1 does not end in a linear layer"):
        head_of(build_model("squeezenet1_1", blank(3, 64, 64)))


def test_a_head_that_is_never_called_is_an_error_not_an_index_error():
    class Unused(HeadFirst):
        def forward(self, x):
            return self.body(x)

    with pytest.raises(UnspurError, match="does not call the linear layer"):
        penultimate(Unused(), torch.rand(1, 4))


def test_no_hook_is_left_behind_even_by_a_pass_that_fails():
    model = HeadFirst()
    with pytest.raises(RuntimeError):
        penultimate(model, torch.rand(1, 5))
    penultimate(model, torch.rand(1, 4))
    assert not model.fc._forward_pre_hooks


def test_evaluation_mode_ends_with_each_layer_in_the_mode_it_had():
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)).train()
    model[1].eval()  # frozen statistics, as in fine-tuning
    with pytest.raises(ZeroDivisionError), evaluating(model):
        assert not model[0].training
        raise ZeroDivisionError
    assert (model.training, model[0].training, model[1].training) == (True, True, False)


def test_networks_that_convolve_keep_channels_last():
    assert memory_format(build_model("cnn3", blank(3, 28, 28))) == torch.channels_last
    assert memory_format(build_model("fcn", blank(3, 28, 28))) == torch.contiguous_format
