import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.catalog import build_model
from unspur.saliency.cam import cam
from unspur.saliency.gradients import input_gradients
from unspur.saliency.maps import maps_of


def digits(n=10, shape=(3, 28, 28)):
    x = torch.randint(256, (n, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return Split(x, torch.zeros(n, dtype=torch.long))


def test_a_map_is_kept_at_its_own_size_in_half_precision():
    maps = maps_of(build_model("small_cnn", blank(3, 28, 28)), digits())
    assert (maps.shape, maps.dtype) == ((10, 8, 8), torch.float16)
    assert maps.nbytes / len(maps) == 128  # 8 * 8 cells of 2 bytes; the image has 3 * 28 * 28 = 2352


@pytest.mark.parametrize("kind", ["xgradcam", "gradcam"])
def test_maps_are_cams_over_their_largest_value_whatever_the_batches(kind):
    model, split = build_model("small_cnn", blank(3, 28, 28)), digits()
    raw = cam(model, split.batch(torch.arange(10)).x, kind=kind)
    peak = raw.flatten(1).amax(1)[:, None, None]
    assert peak.max() > 0
    wanted = torch.where(peak > 0, raw / peak, 0.0)
    for size in (3, 256):
        maps = maps_of(model, split, kind, batch_size=size)
        torch.testing.assert_close(maps.float(), wanted, atol=1e-3, rtol=0)


def test_a_map_that_is_zero_everywhere_stays_zero():
    model = build_model("small_cnn", blank(3, 28, 28), hidden=0)
    torch.nn.init.zeros_(model.net.head[-1].weight)
    assert maps_of(model, digits()).abs().max() == 0  # and not 0 / 0


def test_gradient_maps_are_the_largest_absolute_gradient_of_a_pixels_channels():
    model, split = build_model("small_cnn", blank(3, 28, 28)).train(), digits()
    maps = maps_of(model, split, "gradient")
    assert maps.shape == (10, 28, 28)
    assert model.training
    raw = input_gradients(model.eval(), split.batch(torch.arange(10)).x).abs().amax(1)
    torch.testing.assert_close(maps.float(), raw / raw.flatten(1).amax(1)[:, None, None], atol=1e-3, rtol=0)


def test_gradient_maps_exist_where_there_is_no_class_activation_map():
    model = build_model("fcn", blank(3, 28, 28))
    with pytest.raises(UnspurError, match="saliency=gradient"):
        maps_of(model, digits())
    assert maps_of(model, digits(), "gradient").shape == (10, 28, 28)


def test_vectors_have_gradients_too():
    split = Split(torch.rand(5, 22), torch.zeros(5, dtype=torch.long))
    maps = maps_of(build_model("fcn", blank(22)), split, "gradient")
    assert maps.shape == (5, 22)
    assert maps.amax(1).tolist() == [1.0] * 5


def test_maps_of_an_earlier_layer_are_layercams_and_rectified():
    # 16 pixels, halved twice. The ReLU runs last on 4x4, so that the last map of 8x8 is what goes into its first run.
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.norm = nn.Conv2d(3, 4, 2, stride=2), nn.BatchNorm2d(4)
            self.two, self.relu, self.fc = nn.Conv2d(4, 4, 2, stride=2), nn.ReLU(), nn.Linear(64, 2)

        def forward(self, x):
            return self.fc(self.relu(self.two(self.relu(self.norm(self.one(x))))).flatten(1))

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Shared().eval()
        x = torch.randint(0, 256, (6, 3, 16, 16), dtype=torch.uint8)
    split = Split(x, torch.zeros(6, dtype=torch.long))
    maps = maps_of(model, split, least=7)
    wanted = cam(model, split.batch(torch.arange(6)).x, layer=model.norm, kind="layercam", rectified=True)
    wanted = wanted / wanted.flatten(1).amax(1).clamp_min(1e-30)[:, None, None]
    torch.testing.assert_close(maps.float(), wanted, atol=1e-3, rtol=1e-3)
