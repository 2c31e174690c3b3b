import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.errors import UnspurError
from unspur.models.base import cam_layer, channels_first, hooked, map_layer
from unspur.models.catalog import build_model
from unspur.models.torchvision_compat import import_torchvision


def chosen(model, *shape, least=1):
    """The name of the layer, and the shape of what it gives."""
    layer = cam_layer(model, torch.Size(shape), least)
    outputs = []
    with hooked([layer], lambda module, inputs, output: outputs.append(tuple(output.shape[1:]))):
        model.eval()(torch.zeros(1, *shape))
    return next(name for name, module in model.named_modules() if module is layer), outputs[-1]


@pytest.mark.parametrize(
    ("name", "shape", "layer", "output"),
    [
        ("small_cnn", (3, 28, 28), "net.features.12", (32, 8, 8)),  # the last ReLU, not the pooling after it
        ("small_cnn", (3, 28, 56), "net.features.12", (32, 8, 22)),
        ("cnn3", (3, 28, 28), "net.8", (256, 3, 3)),
        ("cnn2", (1, 28, 28), "net.3", (64, 24, 24)),
        ("vgg11", (3, 32, 32), "net.19", (512, 2, 2)),
        ("resnet32", (3, 32, 32), "net.17", (64, 8, 8)),
        ("resnet18", (3, 64, 64), "net.layer4", (512, 2, 2)),
        ("resnet18", (3, 32, 32), "net.layer3", (256, 2, 2)),  # layer4 has shrunk to one pixel
        ("resnet50", (3, 32, 32), "net.layer3", (1024, 2, 2)),  # and not a layer inside layer4's first block
        ("densenet121", (3, 64, 64), "net.features", (1024, 2, 2)),
        ("swin_t", (3, 64, 64), "net.permute", (768, 2, 2)),
        ("swin_t", (3, 32, 32), "net.features.5", (2, 2, 384)),  # channels last
        ("efficientnet_lite0", (3, 64, 64), "net._swish", (1280, 2, 2)),
    ],
)
def test_the_layer_is_the_last_that_is_a_map_of_the_image(name, shape, layer, output):
    assert chosen(build_model(name, blank(*shape)), *shape) == (layer, output)


@pytest.mark.parametrize(
    ("name", "shape", "layer", "output"),
    [
        ("small_cnn", (3, 28, 28), "net.features.12", (32, 8, 8)),  # fine enough as it is
        ("resnet18", (3, 128, 128), "net.layer3", (256, 8, 8)),  # layer4 has 4x4
        ("resnet18", (3, 224, 224), "net.layer4", (512, 7, 7)),
        ("resnet18", (3, 64, 64), "net.layer2", (128, 8, 8)),
        ("resnet18", (3, 8, 8), "net.relu", (64, 4, 4)),  # nothing has 7x7; the next map, pooled, has 2x2
    ],
)
def test_a_map_of_at_least_so_many_cells_may_be_of_an_earlier_layer(name, shape, layer, output):
    assert chosen(build_model(name, blank(*shape)), *shape, least=7) == (layer, output)


@pytest.mark.parametrize(
    ("name", "shape", "covered"),
    [
        ("small_cnn", (3, 28, 28), (16, 16)),  # 8 cells, two pixels apart: no convolution pads
        ("small_cnn", (3, 32, 32), (20, 20)),
        ("resnet18", (3, 64, 64), (64, 64)),
    ],
)
def test_a_map_covers_as_much_of_the_image_as_strides_say(name, shape, covered):
    assert map_layer(build_model(name, blank(*shape)), torch.Size(shape)).covered == covered


def test_a_layer_beside_a_shortcut_is_not_all_that_the_head_sees():
    class Shortcut(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 3, padding=1)
            self.branch = nn.Conv2d(4, 4, 3, padding=1)
            self.fc = nn.Linear(4, 2)

        def forward(self, x):
            x = self.stem(x)
            return self.fc((x + self.branch(x)).mean((2, 3)))

    assert chosen(Shortcut(), 3, 8, 8)[0] == "stem"


def test_a_layer_that_runs_twice_is_judged_by_its_last_run():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 6)
            self.relu, self.fc = nn.ReLU(), nn.Linear(5, 2)

        def forward(self, x):
            x = self.relu(self.one(x))  # 6x6
            return self.fc(self.relu(self.two(x)).flatten(1))  # 1x1

    assert chosen(Twice(), 3, 8, 8)[0] == "one"


@pytest.mark.parametrize("name", ["fcn"])
def test_a_network_that_never_convolves_has_no_map_and_says_what_to_use(name):
    with pytest.raises(UnspurError, match=r"fcn on inputs of 3x28x28 has no layer.*use input gradients"):
        cam_layer(build_model(name, blank(3, 28, 28, mean=(0.5,) * 3, std=(0.5,) * 3)), torch.Size((3, 28, 28)))


def test_vectors_have_no_map():
    with pytest.raises(UnspurError, match="fcn on inputs of 22 has no layer"):
        cam_layer(build_model("fcn", blank(22)), torch.Size((22,)))


def test_a_network_that_reads_its_image_as_a_sequence_has_no_map():
    # Its patches come from a convolution, whose output is a map; what follows is not.
    transformer = import_torchvision().models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=16, num_classes=2
    )
    with pytest.raises(UnspurError, match="VisionTransformer on inputs of 3x32x32 has no layer"):
        cam_layer(transformer, torch.Size((3, 32, 32)))


def test_looking_for_the_layer_changes_nothing():
    model = build_model("resnet18", blank(3, 32, 32))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cam_layer(model, torch.Size((3, 32, 32)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(
    ("output", "image", "wanted"),
    [
        ((96, 8, 8), (3, 32, 32), (96, 8, 8)),
        ((8, 8, 96), (3, 32, 32), (96, 8, 8)),
        ((56, 56, 96), (3, 224, 224), (96, 56, 56)),
        ((8, 8, 8), (3, 32, 32), (8, 8, 8)),  # either way: as torch has it
        ((32, 8, 22), (3, 28, 56), (32, 8, 22)),
        ((2, 4, 384), (3, 32, 64), (384, 2, 4)),
    ],
)
def test_channels_are_told_from_pixels_by_the_images_shape(output, image, wanted):
    assert channels_first(torch.zeros(2, *output), torch.Size(image)).shape == (2, *wanted)
