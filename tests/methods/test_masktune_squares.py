"""Where MaskTune's masks lie on squares that the paper does not have: other corners, sizes, colours, and one inset.

The network is made by hand: it fires for the square's colour and has the convolutions of `small_cnn`, which do not pad.
"""

from pathlib import Path

import pytest
import torch
from torch import nn

from unspur.core.options import to_json
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.planted_mnist import BiasedMNIST
from unspur.data.shortcuts.drawn import Square
from unspur.errors import UnspurError
from unspur.methods.masktune import MaskTune
from unspur.saliency.threshold import MeanStd, Soft
from unspur.train.recipe import SGD

SQUARES = {
    "blue, top left": Square(),
    "green, bottom right": Square(row=-4, column=-4, colour=(0, 255, 0)),
    "white, 3x3, top right": Square(column=-3, size=3, colour=(255, 255, 255)),
    "red, 6x6, inset": Square(row=3, column=3, size=6, colour=(255, 0, 0)),
}
IMAGES = torch.arange(300)
NOTES = Path(__file__).parents[2] / "results/notes/masktune.md"


class Planted(BiasedMNIST):
    """Biased MNIST with another square."""

    square = Square()

    @property
    def shortcuts(self):
        return {"square": self.square}


class SquareDetector(nn.Module):
    """Class 0 where a 3x3 patch has the colour and no other; cells of 14 pixels, two apart, as `small_cnn` has."""

    def __init__(self, colour):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 1, 3), nn.ReLU(), nn.Conv2d(1, 1, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(1, 1, 3), nn.ReLU(), nn.Conv2d(1, 1, 3), nn.ReLU()),
        )
        self.head = nn.Linear(1, 2)
        shown = torch.tensor(colour) / 255
        with torch.no_grad():
            for layer in (self.features[2], self.features[5], self.features[7]):
                layer.weight.fill_(1 / 9)
                layer.bias.zero_()
            self.features[0].weight.copy_((2 * shown - 1)[None, :, None, None] / (9 * shown.sum()))
            self.features[0].bias.fill_(-0.95)
            self.head.weight.copy_(torch.tensor([[1e4], [-1e4]]))
            self.head.bias.copy_(torch.tensor([0.0, 1e-3]))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def square_hidden(square, **settings):
    """The share of the square's pixels that masks hide, of images in which nothing else has its colour."""
    data = type("Own", (Planted,), {"square": square})(base="mini", seed=5).load(DataFiles(None))
    train = data.train.subset(IMAGES)
    region, detector = square.region(train.sample_shape), SquareDetector(square.colour)
    fires = (detector.features[:2](train.batch(IMAGES).x) > 0).flatten(1).sum(1)
    alone = (train.attributes["square"] == 1) & (fires == (square.size - 2) ** 2)
    assert alone.sum() > 30
    fit = MaskTune(erm=SGD(lr=1e-9, epochs=1), **settings).fit(detector, train, seed=5)
    return float((fit.masks.mask.keep(IMAGES)[alone][:, region] == 0).float().mean())


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("place", ["stretched", "centred"])
def test_a_square_is_hidden_if_it_lies_in_a_corner_or_maps_lie_where_their_cells_look(name, place):
    # cells begin 6.5 pixels from the edge; stretched over 28 pixels the first lies at 1.75, as a corner's square does,
    # and the inset one, at 3 to 8, is hidden in part alone
    share = square_hidden(SQUARES[name], place=place)
    assert share < 0.6 if (name, place) == ("red, 6x6, inset", "stretched") else share > 0.85


RED = (255, 0, 0)
HIDDEN = {  # row and column, size, deviations above the mean: per cent hidden with maps stretched, and centred
    (0, 4, 2): (100, 100),
    (0, 6, 2): (67, 100),
    (3, 4, 2): (38, 100),
    (3, 6, 2): (28, 92),
    (3, 6, 1): (67, 100),
    (3, 6, 0): (100, 100),
}


@pytest.mark.parametrize(("at", "size", "num_std"), HIDDEN)
def test_place_size_and_threshold_each_decide_how_much_is_hidden_as_the_notes_say(at, size, num_std):
    square = Square(row=at, column=at, size=size, colour=RED)
    both = [
        square_hidden(square, place=place, threshold=MeanStd(num_std=num_std)) for place in ("stretched", "centred")
    ]
    assert [100 * share for share in both] == pytest.approx(HIDDEN[at, size, num_std], abs=0.6)  # whole per cent
    where, above = "inset" if at else "corner", ("mean", "mean + 1 sd", "mean + 2 sd")[num_std]
    shares = " | ".join(f"{share} %" for share in HIDDEN[at, size, num_std])
    assert f"| {size}x{size}, {where} | {above} | {shares} |" in NOTES.read_text(encoding="utf-8")


def test_what_is_hidden_grows_by_pixels():
    square = SQUARES["red, 6x6, inset"]
    assert square_hidden(square) < square_hidden(square, grow=2)
    assert square_hidden(square, place="centred", grow=1) > 0.99


def test_settings_that_came_later_leave_older_runs_their_keys_and_soft_masks_refuse_them():
    assert not {"place", "grow"} & set(to_json(MaskTune()))
    with pytest.raises(UnspurError, match="Soft masks have no edges"):
        MaskTune(threshold=Soft(), grow=1)
