"""Models that were not trained here: torchvision's by name, timm's by what they say of themselves, any module."""

import pytest
import torch
from torch import nn

from unspur.core.files import write_tensors
from unspur.errors import UnspurError
from unspur.models.foreign import wrap
from unspur.models.torchvision_compat import import_torchvision

CLASSES = ("cat", "dog")


class Mean(nn.Module):
    """Scores of two classes from the mean of each channel."""

    def __init__(self, classes=2):
        super().__init__()
        self.fc = nn.Linear(3, classes)

    def forward(self, x):
        return self.fc(x.mean((2, 3)))


def test_a_module_is_used_as_it_is_and_normalised_as_told():
    net = Mean()
    model = wrap(net, CLASSES, size=8, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    x = torch.rand(3, 3, 8, 8)
    torch.testing.assert_close(model(x), net((x - 0.5) / 0.25))
    assert not model.training and model.classes == CLASSES and model.size == 8


def test_a_timm_model_says_itself_how_its_images_are_made():
    net = Mean()
    net.pretrained_cfg = {"input_size": (3, 12, 12), "mean": (0.1, 0.2, 0.3), "std": (1.0, 1.0, 0.5)}
    model = wrap(net, CLASSES)
    assert model.size == 12 and model.normalize.mean.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert wrap(net, CLASSES, mean=(0, 0, 0), std=(1, 1, 1)).normalize.mean.flatten().tolist() == [0, 0, 0]


@pytest.mark.parametrize("prefix", ["", "module.", "model."])
@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_weights_are_read_whatever_a_training_program_put_before_their_names(tmp_path, prefix, suffix):
    source, path = Mean(), tmp_path / f"weights.{suffix}"
    state = {prefix + name: value for name, value in source.state_dict().items()}
    if suffix == "safetensors":
        write_tensors(path, state)
    else:
        torch.save(state, path)
    assert torch.equal(wrap(Mean(), CLASSES, size=8, weights=path).net.fc.weight, source.fc.weight)


def test_an_architecture_by_name_gets_the_weights_of_the_file(tmp_path):
    source = import_torchvision().models.squeezenet1_1(num_classes=2).eval()
    torch.save(source.state_dict(), tmp_path / "squeeze.pth")
    state = torch.get_rng_state()
    model = wrap("squeezenet1_1", CLASSES, size=64, weights=tmp_path / "squeeze.pth")
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn from the global generator
    x = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(model(x), source(x))


class Pair(Mean):
    def forward(self, x):
        return super().forward(x), x


@pytest.mark.parametrize(
    ("network", "more", "sentence"),
    [
        (Mean(3), {}, r"Mean gives \(2, 3\) for two images instead of 2 scores each"),
        (Pair(), {}, "Pair gives tuple for two images"),
        (nn.Sequential(nn.Flatten(), nn.Linear(10, 2)), {}, "Sequential does not take images of 3x8x8"),
        (Mean(), {"mean": (0, 0, 0)}, "give both or neither"),
        (Mean(), {"mean": (0, 0), "std": (1, 1)}, "three numbers each"),
        (Mean(), {"weights": "nowhere.pth"}, r"nowhere\.pth does not exist"),
        ("resnet18", {"size": 32}, "has no weights yet"),
        ("resnet81", {}, "Unknown arch 'resnet81'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(network, more, sentence):
    with pytest.raises(UnspurError, match=sentence):
        wrap(network, CLASSES, **{"size": 8, **more})


def test_a_file_of_another_model_names_what_is_missing(tmp_path):
    write_tensors(tmp_path / "w.safetensors", nn.Linear(2, 2).state_dict())
    with pytest.raises(UnspurError, match=r"does not fit Mean: it lacks 'fc\.weight'"):
        wrap(Mean(), CLASSES, size=8, weights=tmp_path / "w.safetensors")


def test_classes_must_be_two_and_differ():
    with pytest.raises(UnspurError, match="at least two classes"):
        wrap(Mean(), ["cat"])
    with pytest.raises(UnspurError, match="same name"):
        wrap(Mean(), ["cat", "cat"])
