"""Dead channels are removed: without a trace where nothing reads them, and measured where they were constants."""

import pytest
import torch

from models.blank import blank
from unspur.errors import UnspurError
from unspur.models.catalog import build_model
from unspur.practice.export import export as module
from unspur.practice.export.export import Wanted, export_run

pytest.importorskip("torch_pruning")
from unspur.practice.export.shrink import shrink


def pictures(n=4, side=32):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    return build_model("cnn3", blank(3, 32, 32)).eval()  # channels 64, 128, 256


def convolutions(model):
    return [layer for layer in model.modules() if isinstance(layer, torch.nn.Conv2d)]


@torch.no_grad()
def test_channels_that_nothing_reads_go_without_a_trace(model):
    first, second, _ = convolutions(model)
    second.weight[:, :10] = 0  # the second layer reads nothing of the first one's channels 0 to 9
    expected = model(pictures())
    small = shrink(model, pictures(2))
    assert small.removed == 10 and convolutions(small.model)[0].weight.shape[0] == 54
    # 10 filters of 3x4x4, their scale and shift, and 10 columns of 4x4 in each of 128 filters (cnn3 has no biases)
    bias = 10 * (first.bias is not None)
    assert small.weights_before - small.weights_after == 10 * 48 + 20 + bias + 10 * 128 * 16
    torch.testing.assert_close(small.model(pictures()), expected, rtol=1e-4, atol=1e-5)
    assert first.weight.shape[0] == 64  # the model itself is as it was


@torch.no_grad()
def test_channels_that_nothing_makes_go_too(model):
    _, second, third = convolutions(model)
    second.weight[5:9] = 0
    small = shrink(model, pictures(2))
    assert small.removed == 4 and convolutions(small.model)[2].weight.shape[1] == third.weight.shape[1] - 4


@torch.no_grad()
def test_a_layer_that_is_dead_as_a_whole_keeps_one_channel(model):
    convolutions(model)[1].weight.zero_()
    small = shrink(model, pictures(2))
    assert convolutions(small.model)[1].weight.shape[0] == 1 and small.model(pictures()).shape == (4, 10)


def test_a_model_without_dead_channels_stays_as_it_is(model):
    small = shrink(model, pictures(2))
    assert small.removed == 0 and small.weights_after == small.weights_before


@torch.no_grad()
def test_layers_that_add_up_lose_a_channel_only_where_all_of_them_are_dead():
    model = build_model("resnet18", blank(3, 32, 32)).eval()
    model.net.conv1.weight[:8] = 0  # the blocks behind it still add to these channels
    assert shrink(model, pictures(2)).removed == 0


def test_shrinking_that_costs_too_much_is_refused_and_leaves_nothing(plain_run, tmp_path, monkeypatch):
    accuracies = iter([0.9, 0.88])
    monkeypatch.setattr(module, "_accuracy", lambda logits, val: next(accuracies))
    with pytest.raises(
        UnspurError, match=r"0\.8800 of the validation images instead of 0\.9000, more than --margin 0\.01"
    ):
        export_run(plain_run, tmp_path / "out", Wanted("torch", shrink=True))
    assert not list(tmp_path.iterdir())


def test_a_shrunk_model_is_exported_with_its_figures(plain_run, tmp_path):
    done = export_run(plain_run, tmp_path / "out", Wanted("torch", shrink=True))
    assert done["shrunk"]["channels"] == [0]
    assert "0 dead channels were removed" in (tmp_path / "out" / "README.md").read_text()
