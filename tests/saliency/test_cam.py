import functools
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.errors import UnspurError
from unspur.models.base import batch_norms, cam_layer, head_of
from unspur.models.catalog import build_model
from unspur.models.torchvision_compat import import_torchvision
from unspur.saliency.cam import CamKind, cam

import_torchvision()  # which grad-cam imports

from pytorch_grad_cam import GradCAM, LayerCAM, ScoreCAM, XGradCAM  # noqa: E402
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget  # noqa: E402

PEERS = {"xgradcam": XGradCAM, "gradcam": GradCAM, "layercam": LayerCAM}
KINDS = get_args(CamKind)


@functools.cache
def lively(name, *shape):
    """A model whose batch norms have seen something and whose logits are large, and images for it."""
    generator = torch.Generator().manual_seed(0)
    model, x = build_model(name, blank(*shape)), torch.rand(6, *shape, generator=generator)
    with torch.no_grad():
        for _ in range(30 if batch_norms(model) else 0):
            model.train()(x + 0.1 * torch.rand(x.shape, generator=generator))
        head_of(model).weight.mul_(20 / model.eval()(x).std())
    return model, x


def peers_maps(kind, model, layer, x, target=None):
    """grad-cam's maps as they are before it scales and resizes them."""
    targets = None if target is None else [ClassifierOutputTarget(label) for label in target.tolist()]
    with PEERS[kind](model, [layer]) as peer:
        peer(x, targets)
        kept = peer.activations_and_grads
        activations, gradients = kept.activations[0].numpy().copy(), kept.gradients[0].numpy().copy()
        return np.maximum(peer.get_cam_image(x, layer, targets, activations, gradients, False), 0)


class Net(nn.Module):
    """A convolution, a ReLU that may work in place, and a head; the layer under test is the convolution."""

    def __init__(self, inplace=False):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.early = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
            self.conv = nn.Conv2d(4, 5, 3)
            self.relu = nn.ReLU(inplace=inplace)
            self.fc = nn.Linear(5, 3)

    def forward(self, x):
        return self.fc(self.relu(self.conv(self.early(x))).mean((2, 3)))


def some(n=4):
    return torch.rand(n, 3, 9, 9, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize(
    ("name", "shape"), [("small_cnn", (3, 28, 28)), ("cnn3", (3, 28, 28)), ("resnet18", (3, 64, 64))]
)
def test_maps_are_those_of_grad_cam_before_it_resizes_them(name, shape, kind):
    model, x = lively(name, *shape)
    layer = cam_layer(model, torch.Size(shape))
    largest = []
    for target in (None, *[(torch.arange(6) + first) % 10 for first in range(4)]):
        theirs = peers_maps(kind, model, layer, x, target)
        ours = cam(model, x, layer=layer, target=target, kind=kind).numpy()
        np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4)
        largest.append(theirs.max())
    assert max(largest) > 0.1  # so that a tolerance of 1e-4 means something


def test_maps_of_a_network_that_keeps_channels_last_are_those_of_its_transpose():
    # grad-cam must be told how to turn the layer's output; cam finds out.
    model, x = lively("swin_t", 3, 32, 32)
    layer = cam_layer(model, torch.Size((3, 32, 32)))
    with XGradCAM(model, [layer], reshape_transform=lambda output: output.permute(0, 3, 1, 2)) as peer:
        peer(x, None)
        kept = peer.activations_and_grads
        theirs = peer.get_cam_image(x, layer, None, kept.activations[0].numpy(), kept.gradients[0].numpy())
    ours = cam(model, x, layer=layer).numpy()
    assert ours.shape == (6, 2, 2)
    np.testing.assert_allclose(ours, np.maximum(theirs, 0), atol=1e-4)


def test_the_layer_is_found_when_none_is_given_and_the_class_is_the_predicted_one():
    model, x = lively("small_cnn", 3, 28, 28)
    given = cam(model, x, layer=model.net.features[12], target=model(x).argmax(1))
    assert torch.equal(cam(model, x), given)
    others = cam(model, x, target=(model(x).argmax(1) + 1) % 10)
    assert not torch.equal(others, given)


def test_a_map_by_hand():
    # One channel, A = x, S = sum of (1, 2) * A = 1 * 1 + 2 * 3: dS/dA = (1, 2).
    model = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.Flatten(), nn.Linear(2, 1, bias=False))
    model[0].weight.data.fill_(1)
    model[2].weight.data = torch.tensor([[1.0, 2.0]])
    x = torch.tensor([[[[1.0, 3.0]]]])
    # XGradCAM: w = (1 * 1 + 2 * 3) / (1 + 3) = 1.75; Grad-CAM: w = (1 + 2) / 2 = 1.5
    torch.testing.assert_close(cam(model, x), torch.tensor([[[1.75, 5.25]]]))
    torch.testing.assert_close(cam(model, x, kind="gradcam"), torch.tensor([[[1.5, 4.5]]]))
    # LayerCAM weighs pixel by pixel: (1 * 1, 2 * 3)
    torch.testing.assert_close(cam(model, x, kind="layercam"), torch.tensor([[[1.0, 6.0]]]))


def test_what_speaks_against_the_class_is_cut_to_zero():
    model = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.Flatten(), nn.Linear(2, 1, bias=False))
    model[0].weight.data.fill_(1)
    model[2].weight.data = torch.tensor([[-1.0, -1.0]])
    assert cam(model, torch.tensor([[[[1.0, 3.0]]]])).tolist() == [[[0.0, 0.0]]]


@pytest.mark.parametrize(("name", "shape"), [("cnn3", (3, 28, 28)), ("resnet32", (3, 32, 32))])
def test_score_cam_is_that_of_grad_cam_before_it_resizes_it(name, shape):
    model, x = lively(name, *shape)
    x = x[:2]  # each takes a pass for every channel
    layer, target = cam_layer(model, torch.Size(shape)), torch.arange(2) + 1
    with ScoreCAM(model, [layer]) as peer:
        targets = [ClassifierOutputTarget(label) for label in target.tolist()]
        peer.activations_and_grads(x)
        activations = peer.activations_and_grads.activations[0].numpy()
        theirs = np.maximum(peer.get_cam_image(x, layer, targets, activations, None), 0)
    ours = cam(model, x, layer=layer, target=target, kind="scorecam").numpy()
    assert theirs.max() > 1e-2
    np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-3)


def test_score_cam_by_hand():
    # Two channels, A = x and A = 1 - x. Shown through the first, (0, 1) stays (0, 1); through the second it is empty.
    # S = 3 * the second pixel: scores 3 and 0, weights e^3 / (e^3 + 1) and the rest, on channels (0, 1) and (1, 0).
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(4, 1, bias=False))
    model[0].weight.data, model[0].bias.data = torch.tensor([1.0, -1.0]).reshape(2, 1, 1, 1), torch.tensor([0.0, 1.0])
    model[2].weight.data = torch.tensor([[0.0, 3.0, 0.0, 0.0]])
    first = torch.tensor(3.0).sigmoid()
    expected = torch.stack([1 - first, first]).reshape(1, 1, 2)
    torch.testing.assert_close(cam(model, torch.tensor([[[[0.0, 1.0]]]]), layer=model[0], kind="scorecam"), expected)


def test_a_channel_that_is_zero_everywhere_adds_nothing():
    model, x = lively("small_cnn", 3, 28, 28)
    assert cam(model, torch.zeros_like(x)).isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_that_works_in_place_afterwards_changes_no_map(kind):
    plain, inplace = Net(), Net(inplace=True)
    expected = cam(plain, some(), layer=plain.conv, kind=kind)
    assert torch.equal(cam(inplace, some(), layer=inplace.conv, kind=kind), expected)


def test_nothing_before_the_layer_is_differentiated():
    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise AssertionError("went back too far")

    model = Net()
    model.early[0].register_forward_hook(lambda module, inputs, output: NoBackward.apply(output))
    cam(model, some(), layer=model.conv)
    with pytest.raises(AssertionError, match="went back too far"):  # the trap works
        model(some()).sum().backward()


def test_the_model_is_left_as_it_was():
    model = Net().train()
    model.early[1].eval()  # some layers are frozen
    model.early[0].weight.requires_grad_(False)
    model.fc(torch.ones(1, 5)).sum().backward()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = {name: p.grad if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    wanted = {name: p.requires_grad for name, p in model.named_parameters()}
    modes = {name: module.training for name, module in model.named_modules()}
    random = torch.get_rng_state()
    cam(model, some(), layer=model.conv)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == wanted[name]
        assert (parameter.grad is None) == (gradients[name] is None)
        assert parameter.grad is None or torch.equal(parameter.grad, gradients[name])
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.equal(torch.get_rng_state(), random)


def test_a_pass_that_fails_leaves_the_model_as_it_was_too():
    model = Net().train()
    with pytest.raises(RuntimeError):
        cam(model, torch.rand(1, 4, 9, 9), layer=model.conv)
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_works_where_gradients_are_off(mode):
    model = Net()
    expected = cam(model, some(), layer=model.conv)
    with mode():
        x = some()
        assert torch.equal(cam(model, x, layer=model.conv), expected)


def test_dropout_is_off_and_batch_norm_does_not_mix_samples():
    model, x = Net().train(), some()
    alone = torch.cat([cam(model, one, layer=model.conv) for one in x.split(1)])
    torch.testing.assert_close(cam(model, x, layer=model.conv), alone)


def test_a_layer_of_another_model_is_refused():
    with pytest.raises(UnspurError, match="was not used by the model"):
        cam(Net(), some(), layer=nn.ReLU())


def test_an_unknown_kind_is_answered_with_the_nearest():
    with pytest.raises(UnspurError, match=r"Unknown kind of map 'xgradcm'\. Did you mean 'xgradcam'\?"):
        cam(Net(), some(), kind="xgradcm")


def test_a_model_without_a_map_offers_input_gradients():
    with pytest.raises(UnspurError, match="use input gradients"):
        cam(build_model("fcn", blank(3, 9, 9)), some())


def test_rectified_maps_are_those_of_the_relu_behind_the_layer():
    # Of a layer with channel sums near or below 0, weights that divide by them have any size and sign.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(256, 2))
    x = torch.rand(5, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    before, behind = (cam(model, x, layer=model[number], rectified=number == 0) for number in (0, 1))
    torch.testing.assert_close(before, behind)
    assert not torch.allclose(cam(model, x, layer=model[0]), behind)
