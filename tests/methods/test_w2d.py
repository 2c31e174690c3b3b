import pytest
import torch
from torch import nn

from methods.shrinking import small_network
from unspur.data.base import Batch
from unspur.data.catalog import load
from unspur.errors import UnspurError
from unspur.methods import w2d
from unspur.methods.erm import ERM
from unspur.methods.w2d import W2D, keep_mask, most
from unspur.models.base import cam_layer, hooked
from unspur.parts.layers import scaled_at, with_output
from unspur.train.recipe import SGD


def test_the_worst_are_taken_and_not_the_best():
    assert sorted(most(torch.tensor([0.1, 5.0, 0.2, 3.0, 0.0, 0.3]), 1 / 3).tolist()) == [1, 3]
    assert len(most(torch.rand(5), 0.01)) == 1


def test_the_cells_that_add_most_to_the_labels_logit_are_hidden_in_all_channels():
    # before global pooling the slope is the same in every cell, and what a cell adds is the map times it: channel 1,
    # which is large where channel 0 is small, counts for nothing
    rising = torch.arange(16.0).view(1, 4, 4)
    maps = torch.cat([rising, 100 - 5 * rising]).expand(2, 2, 4, 4).clone().requires_grad_()
    up = maps.mean((2, 3))[:, 0]
    keep = keep_mask(torch.stack([-up, up], 1), maps, torch.tensor([1, 0]), 0.25, torch.Size([3, 16, 16]))
    assert keep.shape == (2, 1, 4, 4)
    assert keep[0].flatten().tolist() == [1.0] * 12 + [0.0] * 4  # the largest
    assert keep[1].flatten().tolist() == [0.0] * 4 + [1.0] * 12  # for class 0 they are the smallest


def test_maps_with_channels_last_are_hidden_cell_by_cell_too():
    maps = torch.arange(16.0).view(1, 4, 4, 1).expand(1, 4, 4, 8).clone().requires_grad_()
    logits = maps.mean((1, 2, 3))[:, None]
    keep = keep_mask(logits, maps, torch.tensor([0]), 0.25, torch.Size([3, 16, 16]))
    assert keep.shape == (1, 4, 4, 1) and keep.flatten().tolist() == [1.0] * 12 + [0.0] * 4


def test_the_objective_is_the_algorithm_written_as_a_loop(monkeypatch):
    data = load("biased_mnist", base="mini").train.subset(torch.arange(24))
    model, found = small_network().eval(), []  # batch norm and dropout as constants, so that passes can be compared
    monkeypatch.setattr(w2d, "train_model", lambda *args, objective, **rest: found.append(objective))
    W2D().fit(model, data)
    batch = data.batch(torch.arange(24))
    layer = cam_layer(model, data.sample_shape)
    # noise, so that no two cells are alike, and digits enough to order them alike
    noise = 0.1 * torch.randn(batch.x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model, batch = model.double(), Batch(batch.x + noise, batch.y, batch.index)
    loss = found[0](model, batch, 0).loss
    losses = nn.functional.cross_entropy(model(batch.x), batch.y, reduction="none")
    worst = losses.argsort(descending=True)[:8]
    rows = []
    for place in worst.tolist():
        x, y = batch.x[place : place + 1], batch.y[place : place + 1]
        logits, maps = with_output(model, layer, x)
        slope = torch.autograd.grad(logits[0, y], maps)[0][0]
        adds = sum(slope[channel].mean() * maps[0, channel].detach() for channel in range(len(slope))).flatten()
        keep = torch.ones_like(adds)
        keep[adds.argsort(descending=True)[: round(0.25 * len(adds))]] = 0
        handle = layer.register_forward_hook(lambda m, i, o, k=keep: o * k.view(1, 1, *o.shape[2:]))
        masked = model(x)
        handle.remove()
        rows.append((logits[0].log_softmax(0)[y], masked[0].log_softmax(0)[y]))
    fall = torch.stack([(before.exp() - after.exp()).detach() for before, after in rows]).flatten()
    hidden = set(fall.argsort(descending=True)[: round(8 / 3)].tolist())
    expected = torch.stack([-(after if at in hidden else before) for at, (before, after) in enumerate(rows)]).mean()
    assert torch.isclose(loss.double(), expected, atol=1e-5)


def test_answers_depend_less_on_the_cells_that_matter_most_than_after_plain_training():
    digits, recipe = load("biased_mnist", base="mini").tests["original"], SGD(lr=0.01, epochs=6, batch_size=64)
    data, test = digits.subset(torch.arange(1000)), digits.batch(torch.arange(1000, 1600))

    def fall(model):
        """What hiding a quarter of the cells takes from the label's probability."""
        layer = cam_layer(model, data.sample_shape)
        before, maps = with_output(model, layer, test.x)
        keep = keep_mask(before, maps, test.y, 0.25, data.sample_shape)
        with hooked([layer], lambda module, inputs, output: output * keep):
            after = model(test.x)
        first, second = (logits.softmax(1).gather(1, test.y[:, None]).mean() for logits in (before, after))
        return float((first - second).detach())

    plain, fit = (method.fit(small_network(), data).model for method in (ERM(erm=recipe), W2D(training=recipe)))
    assert fall(fit) < 0.8 * fall(plain)
    assert float((fit(test.x).argmax(1) == test.y).double().mean()) > 0.75


def test_a_layer_that_runs_several_times_is_hidden_at_its_last_run_alone():
    # one ReLU for the whole network, as in EfficientNet-Lite: its first output is 14x14, its last one 7x7
    relu = nn.ReLU()
    body = [nn.Conv2d(3, 4, 3, stride=2, padding=1), relu, nn.Conv2d(4, 4, 3, stride=2, padding=1), relu]
    model = nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    data = load("biased_mnist", base="mini").train.subset(torch.arange(24))
    assert cam_layer(model, data.sample_shape) is relu
    x = data.batch(torch.arange(24)).x
    nothing = scaled_at(model, relu, x, torch.zeros(1, 1, 7, 7))
    assert torch.equal(nothing, model[-1].bias.expand(24, 2))
    before = [weight.clone() for weight in model.parameters()]
    W2D(training=SGD(epochs=1, batch_size=8)).fit(model, data)
    assert not any(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_a_network_without_a_map_is_refused_before_anything_is_trained():
    data = load("biased_mnist", base="mini").train.subset(torch.arange(8))
    with pytest.raises(UnspurError, match="has no layer that is a map of the image"):
        W2D().fit(nn.Sequential(nn.Flatten(), nn.Linear(2352, 2)), data)
    with pytest.raises(UnspurError, match=r"hide must lie in \(0, 1\] but got 0"):
        W2D(hide=0.0)
