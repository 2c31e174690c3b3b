import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.core.seeds import seeded
from unspur.models import inference
from unspur.models.base import batch_norms, with_features
from unspur.models.catalog import build_model
from unspur.models.inference import TOLERANCE, WORTH_CONVERTING, available, fastest, fastest_logits, fused


def trained(name, size, **options):
    """A network whose batch norm is not that of a new one, so that leaving it out would show."""
    model = build_model(name, blank(3, size, size, classes=3), **options).eval()
    for number, layer in enumerate(batch_norms(model)):
        with seeded(number), torch.no_grad():
            layer.running_mean.add_(torch.randn_like(layer.running_mean) / 10)
            layer.weight.mul_(1 + torch.rand_like(layer.weight) / 10)
    return model


def close(found, expected):
    return bool((found - expected).abs().max() <= TOLERANCE * expected.abs().max())


def pictures(size, n=5):
    return torch.rand(n, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("name", "size"), [("small_cnn", 28), ("resnet32", 32), ("efficientnet_lite0", 48)])
def test_a_fused_network_has_the_same_features_and_no_batch_norm_behind_a_convolution(name, size):
    model, x = trained(name, size), pictures(size)
    expected = with_features(model, x)[0]
    net = fused(model, x[:2])
    assert close(with_features(net, x)[0], expected)
    assert not [layer for layer in batch_norms(net) if isinstance(layer, nn.BatchNorm2d)]
    assert torch.equal(with_features(model, x)[0], expected)  # the model is as it was


class Branching(nn.Module):
    """The convolution's own output is used beside what batch norm makes of it: fusing would change it."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2)
        self.norm.running_mean.fill_(1.0)

    def forward(self, x):
        x = self.convolution(x)
        return self.head((x + self.norm(x)).mean((2, 3)))


def test_a_way_to_other_features_is_not_taken(monkeypatch):
    monkeypatch.setattr(inference, "_onnxruntime", lambda *_: None)
    with seeded(0):
        model = Branching().eval()
    x = pictures(8)
    assert not close(with_features(fused(model, x), x)[0], with_features(model, x)[0])
    way = fastest(model, x, samples=10_000)
    assert way.name == "as it is" and torch.equal(way.features(x), with_features(model, x)[0])


def test_without_onnxruntime_the_network_is_fused(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    model, x = trained("resnet32", 32), pictures(32)
    way = fastest(model, x[:2], samples=10_000)
    assert way.name == "fused" and close(way.features(x), with_features(model, x)[0])


def test_onnxruntime_is_taken_where_the_samples_are_many():
    pytest.importorskip("onnxruntime")
    model, x = trained("resnet32", 32), pictures(32)
    way = fastest(model, x[:2], samples=WORTH_CONVERTING)
    assert way.name == "onnxruntime" and close(way.features(x), with_features(model, x)[0])
    assert fastest(model, x[:2], samples=WORTH_CONVERTING - 1).name == "fused"
    assert "onnxruntime" in available()


def test_a_network_that_does_not_convolve_is_used_as_it_is():
    model = build_model("fcn", blank(1, 28, 28)).eval()
    assert fastest(model, torch.rand(2, 1, 28, 28), samples=10_000).name == "as it is"


def test_the_mode_that_a_model_is_in_makes_no_difference_and_is_put_back():
    model, x = trained("resnet32", 32), pictures(32)
    expected = with_features(model, x)[0]
    model.train()
    assert close(fastest(model, x[:2], samples=10).features(x), expected) and model.training


def test_logits_of_many_photographs_are_the_models_by_a_faster_way():
    pytest.importorskip("onnxruntime")
    model, x = trained("resnet18", 64), pictures(64)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    logits = fastest_logits(model, x[:2], samples=WORTH_CONVERTING)
    calls.clear()
    found = logits(x)
    assert not calls and close(found, model(x))


@pytest.mark.parametrize(("size", "samples"), [(63, WORTH_CONVERTING), (64, WORTH_CONVERTING - 1)])
def test_logits_of_small_or_few_images_are_the_models_bit_by_bit(size, samples):
    model, x = trained("resnet18", size), pictures(size)
    assert torch.equal(fastest_logits(model, x[:2], samples)(x), model(x))


def test_a_network_that_goes_on_after_its_head_is_used_as_it_is():
    class Doubled(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = trained("resnet18", 64)

        def forward(self, x):
            return self.net(x) * 2

    model, x = Doubled().eval(), pictures(64)
    assert torch.equal(fastest_logits(model, x[:2], WORTH_CONVERTING)(x), model(x))
