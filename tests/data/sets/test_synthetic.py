import pytest
import torch

from unspur.data.base import aligned_with, groups_of
from unspur.data.catalog import load
from unspur.data.sets.synthetic import draw_shapes
from unspur.errors import UnspurError


def test_parity_is_the_class_in_the_core_bits_and_the_attribute_in_the_spurious_ones():
    data = load("parity", core=5, spurious=3, noise=4)
    for split in (data.train, data.val, data.tests["unbiased"]):
        assert split.x.shape == (len(split), 12) and split.x.unique().tolist() == [-1, 1]
        ones = split.x > 0
        assert torch.equal(ones[:, :5].sum(1) % 2, split.y)
        assert torch.equal(ones[:, 5:8].sum(1) % 2, split.attributes["spurious"])


def test_all_vectors_of_a_parity_are_equally_likely():
    # 16 vectors of 5 bits have even parity, 16 odd: about 312 of 10,000 samples each, standard deviation 17
    bits = load("parity").train.x[:, :5] > 0
    counts = (bits.long() * 2 ** torch.arange(5)).sum(1).bincount(minlength=32)
    assert (counts - 312.5).abs().max() < 5 * 17.4


def test_no_bit_alone_tells_anything():
    data = load("parity")
    for label in (data.train.y, data.train.attributes["spurious"]):
        signs = (label * 2 - 1).float()
        # a mean of 10,000 independent signs has a standard deviation of 0.01
        assert (data.train.x * signs.unsqueeze(1)).mean(0).abs().max() < 0.05


@pytest.mark.parametrize("name", ["parity", "moon_star"])
def test_a_tenth_conflicts_in_training_and_half_in_the_test_set(name):
    data = load(name)
    assert (len(data.train), len(data.val), len(data.tests["unbiased"])) == (10_000, 1_000, 10_000)
    for split, share in ((data.train, 0.1), (data.val, 0.1), (data.tests["unbiased"], 0.5)):
        against = ~aligned_with(data.train, split)
        for label in (0, 1):
            assert against[split.y == label].float().mean() == pytest.approx(share)


@pytest.mark.parametrize("name", ["parity", "moon_star"])
def test_a_count_is_exact_in_training_and_val_follows_its_share(name):
    data = load(name, train=1000, val=100, test=10, conflict_count=30)
    counts = [int((~aligned_with(data.train, split)).sum()) for split in (data.train, data.val)]
    assert counts == [30, 3]


@pytest.mark.parametrize("name", ["parity", "moon_star"])
def test_the_same_seed_gives_the_same_samples_and_splits_differ(name):
    first, again, other = (load(name, train=50, val=50, test=50, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.train.x, again.train.x) and not torch.equal(first.train.x, other.train.x)
    assert not torch.equal(first.train.x, first.val.x) and not torch.equal(first.train.x, first.tests["unbiased"].x)


def test_moons_and_stars_lie_in_the_quadrants_that_the_attribute_names():
    data = load("moon_star", train=400, val=0, test=10)
    x = data.train.x.float()
    half = 16
    quadrants = torch.stack(
        [part.flatten(1).sum(1) for row in x[:, 0].split(half, 1) for part in row.split(half, 2)], 1
    )
    assert ((quadrants > 0).sum(1) == 1).all()  # one shape, wholly inside one quadrant
    place = quadrants.argmax(1)  # 0 top left, 1 top right, 2 bottom left, 3 bottom right
    diagonal = torch.tensor([0, 1, 1, 0])[place]
    assert torch.equal(diagonal, data.train.attributes["quadrants"])
    assert place.bincount().min() > 50  # each of the four is used
    assert len(groups_of(data.train).keys) == 4 and data.attribute_values["quadrants"][0] == "top left, bottom right"


def test_moons_and_stars_are_equally_bright():
    generator = torch.Generator().manual_seed(0)
    kinds = torch.arange(2).repeat(2000)
    area = draw_shapes(kinds, 24, generator).float().flatten(1).mean(1)
    moon, star = area[kinds == 0].mean(), area[kinds == 1].mean()
    # the standard error of either mean is about 0.6 %
    assert abs(float(moon / star) - 1) < 0.03


def test_shapes_do_not_touch_the_border_of_their_quadrant():
    drawn = draw_shapes(torch.arange(2).repeat(500), 16, torch.Generator().manual_seed(0))
    border = torch.cat([drawn[:, 0], drawn[:, -1], drawn[:, :, 0], drawn[:, :, -1]], dim=1)
    assert border.max() < 255 and drawn.flatten(1).amax(1).min() > 200


def test_a_star_has_five_points_and_a_moon_has_a_hole_on_one_side():
    from unspur.data.sets.synthetic import _moon, _star

    turn = torch.arange(3600) / 3600 * 2 * torch.pi
    ring = torch.cos(turn) * 0.8, torch.sin(turn) * 0.8
    inside = _star(*ring) > 0
    assert (inside != inside.roll(1)).sum() == 10  # in and out five times
    inside = _moon(*ring) > 0
    assert (inside != inside.roll(1)).sum() == 2
    assert _moon(torch.tensor(0.5), torch.tensor(0.0)) < 0 < _moon(torch.tensor(-0.9), torch.tensor(0.0))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("parity", {"core": 0}, "core must be at least 1 but got 0"),
        ("parity", {"noise": -1}, "noise must be at least 0 but got -1"),
        ("parity", {"train": 0}, "train must be at least 1 but got 0"),
        ("moon_star", {"val": -5}, "val must be at least 0 but got -5"),
        ("moon_star", {"size": 31}, "size must be even and at least 16 but got 31"),
    ],
)
def test_what_makes_no_sense_is_an_error(name, options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        load(name, **options)
