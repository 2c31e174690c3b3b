import pytest
import torch

from unspur.data.base import Split
from unspur.data.masks import BitMask, BothMasks, GrownMask, MapMask, SoftMask, hidden_shares, upsampled


def random_hidden(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.3


def white(n, size=4):
    return Split(torch.full((n, 3, size, size), 255, dtype=torch.uint8), torch.zeros(n, dtype=torch.long))


def first(split):
    return split.batch(torch.tensor([0])).x[0]


def test_packed_pixels_come_back_and_cost_a_bit_each():
    hidden = random_hidden(50, 14, 14)  # 196 pixels: 24.5 bytes, so 25
    mask = BitMask.of(hidden)
    assert torch.equal(mask.keep(torch.arange(50)), 1 - hidden.float())
    assert torch.equal(mask.keep(torch.tensor([7, 3])), 1 - hidden[[7, 3]].float())
    assert mask.bytes_each == 25
    assert torch.allclose(hidden_shares(mask, part=7), hidden.flatten(1).float().mean(1))


def test_what_is_hidden_is_black_in_every_channel_and_the_rest_is_untouched():
    hidden = torch.zeros(1, 4, 4, dtype=torch.bool)
    hidden[0, :2, :2] = True
    x = first(white(1).masked(BitMask.of(hidden)))
    assert (x[:, :2, :2] == 0).all()
    assert (x[:, 2:] == 1).all() and (x[:, :, 2:] == 1).all()


def test_a_coarse_map_hides_where_its_smooth_enlargement_exceeds_the_level():
    # {0, 200} over four pixels: 0, 50, 150, 200 (bilinear, corners not aligned), in every row
    mask = MapMask(torch.tensor([[[0, 200]]], dtype=torch.uint8), torch.tensor([100.0]), (4, 4))
    assert upsampled(mask.maps, (4, 4))[0, 0].tolist() == [0, 50, 150, 200]
    assert mask.keep(torch.tensor([0]))[0].tolist() == [[1, 1, 0, 0]] * 4
    assert mask.bytes_each == 2 + 4


def test_an_infinite_level_hides_nothing():
    mask = MapMask(torch.full((1, 2, 2), 255, dtype=torch.uint8), torch.tensor([torch.inf]), (4, 4))
    assert (mask.keep(torch.tensor([0])) == 1).all()


def test_features_of_vectors_are_hidden_one_by_one():
    split = Split(torch.ones(2, 3), torch.zeros(2, dtype=torch.long))
    hidden = torch.tensor([[True, False, False], [False, False, True]])
    assert split.masked(BitMask.of(hidden)).batch(torch.tensor([1, 0])).x.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_two_masks_hide_what_either_hides():
    left, right = random_hidden(5, 4, 4, seed=1), random_hidden(5, 4, 4, seed=2)
    both = BothMasks(BitMask.of(left), BitMask.of(right))
    assert torch.equal(both.keep(torch.arange(5)) == 0, left | right)
    assert both.bytes_each == 4


def test_a_subset_takes_its_masks_along():
    maps = torch.randint(0, 256, (6, 2, 2), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    bits, coarse = BitMask.of(random_hidden(6, 4, 4)), MapMask(maps, torch.linspace(0, 255, 6), (4, 4))
    for mask in (bits, coarse, SoftMask(maps, (4, 4)), BothMasks(bits, coarse)):
        part = white(6).masked(mask).subset(torch.tensor([4, 1]))
        assert torch.equal(part.mask.keep(torch.tensor([0, 1])), mask.keep(torch.tensor([4, 1])))


def test_a_soft_mask_scales_what_it_covers():
    mask = SoftMask(torch.full((1, 2, 2), 51, dtype=torch.uint8), (4, 4))  # a fifth
    assert torch.allclose(first(white(1).masked(mask)), torch.tensor(0.2))


@pytest.mark.parametrize(("old", "new"), [((8, 8), (28, 28)), ((3, 5), (28, 56)), ((7, 7), (224, 224))])
def test_maps_are_enlarged_as_torch_enlarges_them(old, new):
    maps = torch.randint(256, (6, *old), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    theirs = torch.nn.functional.interpolate(maps.unsqueeze(1).float(), size=new, mode="bilinear")[:, 0]
    torch.testing.assert_close(upsampled(maps, new), theirs, rtol=1e-5, atol=1e-4)


def test_a_map_over_the_middle_of_an_image_goes_on_with_its_last_cells():
    # two cells of two pixels over the middle four of eight: cell 0 at 2.5, cell 1 at 4.5, half way between them at 3.5
    (line,) = upsampled(torch.tensor([[[0, 100]] * 2], dtype=torch.uint8), (8, 8), covered=(4, 4))[0][:1]
    assert line.tolist() == [0, 0, 0, 25, 75, 100, 100, 100]
    stretched = upsampled(torch.tensor([[[0, 100]] * 2], dtype=torch.uint8), (8, 8))[0, 0].tolist()
    assert stretched == [0, 0, 12.5, 37.5, 62.5, 87.5, 100, 100]


def test_a_grown_mask_hides_what_lies_within_so_many_pixels_corners_included():
    hidden = torch.zeros(2, 5, 5, dtype=torch.bool)
    hidden[0, 2, 2] = True
    mask = GrownMask(BitMask.of(hidden), 1)
    keep = mask.keep(torch.arange(2))
    assert (keep[0, 1:4, 1:4] == 0).all() and keep[0].sum() == 25 - 9 and keep[1].all()
    assert mask.subset(torch.tensor([0])).keep(torch.arange(1)).sum() == 16 and mask.bytes_each == 4
