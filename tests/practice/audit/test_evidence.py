"""Where a model looks, what it loses without that, and which images a biased one misses."""

import pytest
import torch
from torch import nn

from practice.audit.pictures import write_set
from unspur.data.images.listing import list_folder
from unspur.practice.audit.collect import collect
from unspur.practice.audit.evidence import LookedAt
from unspur.practice.audit.image_source import listed
from unspur.practice.audit.looking import look_into
from unspur.practice.audit.mined_images import held_out_mistakes, mined_tests
from unspur.practice.audit.model import Insight, Model, given_model, module_predict
from unspur.practice.audit.quick_model import fit_head


def corner(pixels, value):
    pixels[:8, :8] = (30, 60, 220) if value else (220, 60, 30)
    return pixels


class AtCorner(nn.Module):
    """Says 1 for blue in the corner, by a layer that is a map of the image."""

    def __init__(self):
        super().__init__()
        self.blue = nn.Conv2d(3, 2, 4, stride=4, bias=False)
        self.head = nn.Linear(2, 2)
        with torch.no_grad():
            self.blue.weight.copy_(torch.tensor([[1.0, 0, -1], [-1, 0, 1]])[:, :, None, None].expand(2, 3, 4, 4) / 16)
            self.head.weight.copy_(torch.eye(2))
            self.head.bias.copy_(torch.tensor([0.01, 0.0]))  # without blue it says 0

    def forward(self, x):
        corner = torch.zeros_like(x)
        corner[:, :, :8, :8] = x[:, :, :8, :8]  # of 8 x 8 cells those of the corner
        return self.head(self.blue(corner).relu().mean((2, 3)))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return collect(listed(list_folder(write_set(tmp_path_factory.mktemp("set"), each=40, change=corner))))


def test_a_model_that_looks_at_the_corner_is_seen_to_and_loses_all_without_it(data):
    net = AtCorner()
    everything = torch.arange(len(data.pictures))
    model = Model("m", (module_predict(net, (3, 32, 32)),), (everything,), Insight((net,), (3, 32, 32)))
    leak_map = torch.full((8, 8), 0.5)
    leak_map[:2, :2] = 1.0
    looked, hidden = look_into(model, data, leak_map)
    assert looked.images == 80 and float(looked.map.sum()) == pytest.approx(1, abs=1e-4)
    assert looked.share_of(((0, 0), (0, 1), (1, 0), (1, 1))) > 0.8 and looked.agrees > 0.8
    assert hidden.accuracy == 1.0 and hidden.hidden == 0.5 and hidden.share < 0.2  # only images of class 0 are left


def test_of_a_model_that_only_answers_nothing_is_seen(data):
    model = given_model("m", lambda images: torch.zeros(len(images), 2), data.classes).make(data)
    assert look_into(model, data, torch.rand(8, 8)) == (None, None)
    assert mined_tests(model, torch.zeros(80, 2), data, ()) == ()


def test_the_share_of_maps_in_cells_is_their_sum():
    assert LookedAt(torch.tensor([[0.1, 0.2], [0.3, 0.4]]), None, 1).share_of(((0, 1), (1, 1))) == pytest.approx(0.6)


@pytest.mark.parametrize("loss", ["gce", "twins"])
def test_images_that_go_against_the_easy_feature_are_mined(loss):
    from unspur.practice.audit.mined_images import MINERS

    draw = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 2
    against = torch.arange(400) < 20
    shown = torch.where(against, 1 - y, y)
    features = torch.randn(400, 5, generator=draw)
    features[:, 0] += 8.0 * shown
    wrong = held_out_mistakes(features, y, 2, MINERS[loss], torch.Generator().manual_seed(1))
    assert wrong[against].all() and int(wrong[~against].sum()) <= 4


def test_the_tested_models_accuracy_is_of_the_mined_images(data):
    # The features are the labels but for eight images, whose features are of the other class: these are mined.
    y = data.y[data.pictured]
    shown = y.clone()
    shown[:4], shown[-4:] = 1 - y[:4], 1 - y[-4:]
    features = 6.0 * torch.nn.functional.one_hot(shown, 2).float() + 0.01 * torch.randn(
        80, 2, generator=torch.Generator().manual_seed(0)
    )
    scores = torch.nn.functional.one_hot(shown, 2).float()  # a model that follows the features
    halves = torch.arange(80).tensor_split(2)
    model = Model("m", (lambda x: x, lambda x: x), halves, Insight((), (3, 32, 32), features))
    for test in mined_tests(model, scores, data, ()):
        assert sorted(test.numbers) == [*range(4), *range(76, 80)]
        assert (test.accuracy, test.elsewhere, test.suspects) == (0.0, 1.0, None) and test.loss > test.loss_elsewhere


def test_a_head_gives_its_answers_to_a_networks_last_layer():
    draw = torch.Generator().manual_seed(0)
    features, y = torch.randn(60, 4, generator=draw), torch.arange(60) % 3
    head = fit_head(features, y, 3)
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.Linear(4, 3))
    given = head.give(net)
    assert torch.allclose(given[2](features), head(features), atol=1e-4)
    assert not torch.equal(net[2].weight, given[2].weight)  # the network itself is left alone
