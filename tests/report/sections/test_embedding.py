import builtins
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from report.examples import tiny
from unspur.data.base import Dataset, Split
from unspur.report.sections.embedding import MARGIN, SAMPLES, SIDE, alike, embedding


def dataset(n=60, classes=3):
    """Vectors whose first number tells the class and whose second tells the side."""
    y, side = torch.arange(n) % classes, torch.arange(n) // classes % 2
    noise = 0.1 * torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    x = torch.stack([10.0 * y, 10.0 * side], 1) + noise
    split = Split(x, y, {"side": side})
    names = tuple(f"class {number}" for number in range(classes))
    return Dataset("vectors", split, split, {"test": split}, names, {"side": ("left", "right")})


class Reads(nn.Module):
    """A model whose features are one of the two numbers."""

    def __init__(self, number):
        super().__init__()
        self.choice, self.head = nn.Linear(2, 1, bias=False), nn.Linear(1, 3)
        self.choice.weight = nn.Parameter(torch.eye(2)[number : number + 1])

    def forward(self, x):
        return self.head(self.choice(x))


def dots(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"M([\d.]+) ([\d.]+)h0", path)]


@pytest.fixture(scope="module")
def drawn():
    return embedding([("erm", Reads(1)), ("result", Reads(0))], dataset())


def test_every_stage_is_painted_by_the_class_and_by_each_attribute(drawn):
    assert [(row.by, [panel.stage for panel in row.panels]) for row in drawn.rows] == [
        ("class", ["erm", "result"]),
        ("side", ["erm", "result"]),
    ]
    assert drawn.rows[0].names == ((0, "class 0"), (1, "class 1"), (2, "class 2"))
    assert (drawn.tests, drawn.samples, drawn.reason) == (("test",), 60, "")


def test_every_sample_is_a_dot_inside_its_panel_and_has_the_same_place_in_both_paintings(drawn):
    by_class, by_side = drawn.rows
    for one, other in zip(by_class.panels, by_side.panels, strict=True):
        places = [sorted(dot for cloud in panel.clouds for dot in dots(cloud.path)) for panel in (one, other)]
        assert len(places[0]) == 60 and places[0] == places[1]
        assert all(MARGIN <= number <= SIDE - MARGIN for dot in places[0] for number in dot)


def test_what_the_features_tell_is_near_its_like(drawn):
    (erm_class, result_class), (erm_side, result_side) = ([panel.alike for panel in row.panels] for row in drawn.rows)
    # The features of the first model are the side: all ten neighbours share it, and a third or so the class.
    assert erm_side == 1.0 and erm_class < 0.6
    assert result_class == 1.0 and result_side < 0.7


def test_neighbours_are_counted_without_the_sample_itself():
    # Two pairs far apart, each of two kinds: with itself counted, half would be alike.
    z, label = torch.tensor([[0.0], [0.1], [9.0], [9.1]]), torch.tensor([0, 1, 0, 1])
    assert alike(z, label, nearest=1) == 0.0
    assert alike(z, label, nearest=3) == pytest.approx(1 / 3)


def test_a_large_test_set_is_sampled_the_same_each_time():
    pictures = [embedding([("erm", Reads(0))], dataset(SAMPLES + 200)) for _ in range(2)]
    assert pictures[0].samples == SAMPLES and pictures[0] == pictures[1]


def test_samples_are_from_the_test_set_with_most_groups_and_from_all_when_none_tells_class_and_attribute_apart():
    whole = dataset().tests["test"]
    some = {value: whole.subset((whole.attributes["side"] == value).nonzero().squeeze(1)) for value in (0, 1)}

    def of(**tests):
        return embedding([("erm", Reads(0))], replace(dataset(), tests=tests)).tests

    assert of(left=some[0], all=whole) == ("all",)
    # each class on one side only in both: the side is the test set's, and told apart only together
    assert of(left=some[0], right=some[1]) == ("left", "right")
    assert of(one=some[0].without_attributes(), two=some[1].without_attributes()) == ("one",)


def test_too_many_classes_to_tell_apart_are_not_painted():
    data = dataset(60, classes=20)
    assert [row.by for row in embedding([("erm", Reads(0))], data).rows] == ["side"]


def test_without_scikit_learn_a_sentence_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    found = embedding([("erm", Reads(0))], dataset())
    assert found.rows == () and "needs the package scikit-learn" in found.reason and "unspur[tsne]" in found.reason


@pytest.mark.parametrize("model", [nn.Sequential(nn.Flatten(), nn.ReLU()), None], ids=["no head", "constant features"])
def test_features_that_cannot_be_laid_out_are_a_sentence(model):
    if model is None:
        model = Reads(0)
        model.forward = lambda x: model.head(torch.ones(len(x), 1))
    model.register_parameter("some", nn.Parameter(torch.zeros(1)))
    found = embedding([("erm", model)], dataset())
    assert found.rows == () and found.reason.endswith(".")


def test_images_have_features_too():
    head = nn.Sequential(nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    assert len(embedding([("erm", head)], tiny()).rows) == 2
