import pytest
import torch

from unspur.data.masks import BitMask, BothMasks, MapMask, hidden_shares
from unspur.errors import UnspurError
from unspur.saliency.threshold import DatasetMean, MeanStd, TopK, hide, soften


def rows(*maps):
    """Maps of one row each."""
    return torch.tensor(maps, dtype=torch.float32).unsqueeze(1)


def hidden(threshold, *values):
    """What is hidden of a map that has the image's own size."""
    maps = rows(values)
    return (hide(threshold, maps, (1, len(values))).keep(torch.tensor([0])) == 0).flatten().tolist()


def test_a_pixel_is_hidden_only_above_mean_plus_two_std():
    # map {0 x 9, 10}: mean 1, std 3, threshold 7: the peak is hidden, and nothing else
    assert hidden(MeanStd(), *[0] * 9, 10) == [False] * 9 + [True]


def test_the_deviation_is_the_populations():
    # {0, 0, 0, 4}: mean 1, population std 1.732, threshold 3.6 < 4; the sample's std would be 2, its threshold 4
    assert hidden(MeanStd(num_std=1.5), 0, 0, 0, 4) == [False] * 3 + [True]


def test_what_is_hidden_is_high_not_low():
    values = [9.0] * 9 + [0.0]  # mean 8.1, std 2.7: the low value is 3 deviations away, on the wrong side
    assert hidden(MeanStd(), *values) == [False] * 10


def test_each_map_has_its_own_threshold():
    mask = hide(MeanStd(), rows([0] * 9 + [10], [0] * 9 + [1000]), (1, 10))
    assert hidden_shares(mask).tolist() == pytest.approx([0.1, 0.1])


def test_fewer_deviations_hide_more():
    maps = torch.rand(20, 7, 7, generator=torch.Generator().manual_seed(0))
    shares = [float(hidden_shares(hide(MeanStd(num_std=k), maps, (28, 28))).mean()) for k in (0, 1, 2)]
    assert shares[0] > shares[1] > shares[2] > 0


def test_few_positive_values_hide_nothing_over_positives_only():
    # {0 x 9, 1, 5}: over all, mean 6/11, std 1.44, threshold 3.4 < 5. Over {1, 5}: mean 3, std 2, threshold 7 > 5.
    values = [0] * 9 + [1, 5]
    assert hidden(MeanStd(over="all"), *values) == [False] * 10 + [True]
    assert hidden(MeanStd(over="positive"), *values) == [False] * 11


def test_over_positives_the_zeros_do_not_count():
    # {0 x 20, 1 x 9, 10}: positives have mean 1.9, std 2.7, threshold 7.3 < 10
    assert hidden(MeanStd(over="positive"), *[0] * 20, *[1] * 9, 10) == [False] * 29 + [True]


@pytest.mark.parametrize("threshold", [MeanStd(num_std=0), MeanStd(), TopK(), DatasetMean()])
@pytest.mark.parametrize("value", [0.0, 0.1, 7.3])
@pytest.mark.parametrize("size", [(5, 5), (28, 28)])
def test_a_constant_map_hides_nothing(threshold, value, size):
    assert (hidden_shares(hide(threshold, torch.full((3, 5, 5), value), size)) == 0).all()


def test_the_data_sets_mean_is_one_threshold_for_all():
    # scaled to their peaks {0, 1, 1, 1} and {0, 0, 0, 1}: mean 1/2: three pixels of the first, one of the second
    mask = hide(DatasetMean(), rows([0, 2, 2, 2], [0, 0, 0, 6]), (1, 4))
    assert hidden_shares(mask).tolist() == pytest.approx([0.75, 0.25])


def test_top_k_hides_the_strongest_pixels():
    assert hidden(TopK(share=0.4), 5, 1, 4, 2, 3) == [True, False, True, False, False]


def test_the_map_is_enlarged_before_it_is_thresholded():
    # {0, 255} over four columns is 0, 64, 191, 255; mean 127.5, std 100: 191 and 255 exceed it at no deviation,
    # 255 alone at one. Thresholded at its own size the second cell would hide two columns either way.
    maps = rows([0, 255])
    for num_std, share in ((0.0, 0.5), (1.0, 0.25)):
        mask = hide(MeanStd(num_std=num_std), maps, (2, 4))
        assert isinstance(mask, MapMask)
        assert hidden_shares(mask).tolist() == pytest.approx([share])


def test_a_mask_is_kept_at_map_resolution():
    mask = hide(MeanStd(), torch.rand(3, 14, 14), (224, 224))
    assert mask.bytes_each <= 200


def test_a_sample_is_never_hidden_whole():
    before = BitMask.of(torch.tensor([[[True, True, True, False]]]))
    mask = hide(TopK(share=0.25), rows([0, 0, 0, 1]), (1, 4), before)
    assert mask.keep(torch.tensor([0])).flatten().tolist() == [0, 0, 0, 1]


def test_masks_add_up():
    before = BitMask.of(torch.tensor([[[True, False, False, False]]]))
    mask = hide(TopK(share=0.25), rows([0, 0, 0, 1]), (1, 4), before)
    assert isinstance(mask, BothMasks)
    assert mask.keep(torch.tensor([0])).flatten().tolist() == [0, 1, 1, 0]


def test_a_soft_mask_blackens_the_peak_and_keeps_what_is_not_looked_at():
    mask = soften(rows([0, 1, 2, 4], [0, 0, 0, 0]), (1, 4))
    assert mask.weights.squeeze(1).tolist() == [[255, 191, 127, 0], [255] * 4]  # 255 - 255 v / 4, rounded


def test_a_share_out_of_range_is_refused():
    with pytest.raises(UnspurError, match=r"between 0 and 1 but got 1\.0"):
        TopK(share=1.0)
