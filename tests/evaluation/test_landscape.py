import json

import pytest
import torch
from torch import nn
from torch.nn import functional

from unspur.data.base import Dataset, Split
from unspur.evaluation.landscape import surroundings
from unspur.metrics.represent import average_selectivity


def made(n=60, attributes=True):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 2
    bias = torch.arange(n) // 2 % 2
    x = torch.randn(n, 4, generator=generator) + torch.stack([y, bias, y * 0, y * 0], 1) * 2.0
    split = Split(x, y, {"bias": bias} if attributes else {})
    return Dataset("made", split, split, {"test": split}, ("a", "b"), {"bias": ("x", "y")} if attributes else {})


def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


MASKS = {"spurious": torch.tensor([False, True, False, False])}


def test_the_solution_itself_is_in_the_middle():
    model, data = network(), made()
    found = surroundings(model, data, "test", {}, points=3)
    split = data.train
    with torch.no_grad():
        logits, hidden = model(split.x), model[:2](split.x)
    assert found["axis"] == [-1.0, 0.0, 1.0]
    assert found["loss"][1][1] == pytest.approx(float(functional.cross_entropy(logits, split.y)))
    assert found["accuracy"][1][1] == pytest.approx(float((logits.argmax(1) == split.y).double().mean()))
    assert found["spurious_by"] == "selectivity"
    bias = split.attributes["bias"]
    assert found["spurious_use"][1][1] == pytest.approx(average_selectivity(hidden, bias, 2))
    assert len({value for row in found["loss"] for value in row}) == 9  # every place has another loss


def test_where_the_shortcut_has_its_own_place_attribution_tells_its_use():
    # a linear model: Integrated Gradients are weight times input, so the share can be worked out by hand
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    data = made(20)
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[1.0, -2.0, 0.5, 0.0], [0.5, 1.0, -1.0, 3.0]]))
    own = model[1].weight.detach()[model(data.train.x).argmax(1)] * data.train.x
    share = own[:, 1].abs() / own.abs().sum(1)
    found = surroundings(model, data, "test", MASKS, points=1)
    assert found["spurious_by"] == "attribution"
    assert found["spurious_use"][0][0] == pytest.approx(float(share.mean()), abs=1e-5)


def test_the_selectivity_of_a_linear_models_inputs_is_not_its_spurious_use():
    found = surroundings(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), made(), "test", {}, points=1)
    assert found["spurious_by"] is None and found["spurious_use"] is None
    assert "penultimate" in found["unknown"]["spurious_use"]


def test_without_mask_or_attribute_spurious_use_is_unknown_and_the_rest_is_there():
    found = surroundings(network(), made(attributes=False), "test", {}, points=1)
    assert found["spurious_use"] is None and found["spurious_by"] is None
    assert found["unknown"] == {"spurious_use": "The data has no attributes, and the shortcut no place of its own."}
    assert found["loss"][0][0] > 0


def test_a_value_that_is_not_finite_is_unknown_and_not_an_error():
    model = network()
    with torch.no_grad():
        model[0].weight.mul_(1e30)
        model[2].weight.mul_(1e30)
    found = surroundings(model, made(), "test", {}, points=1)
    assert found["loss"] == [[None]] and found["unknown"]["loss"] == "Not a finite number at 1 of 1 places."
    assert json.dumps(found, allow_nan=False)
