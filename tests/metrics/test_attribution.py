import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from unspur.errors import UnspurError
from unspur.metrics.attribution import attribution_entropy, attribution_share, background_share, mean_shares


def attributions():
    return torch.randn(5, 3, 4, 6, generator=torch.Generator().manual_seed(0))


def test_shares_equal_a_loop_over_pixels():
    a = attributions()
    mask = torch.rand(4, 6, generator=torch.Generator().manual_seed(1)) > 0.5
    for number, share in enumerate(attribution_share(a, mask).tolist()):
        inside = outside = 0.0
        for row in range(4):
            for column in range(6):
                size = abs(sum(float(a[number, channel, row, column]) for channel in range(3)))
                inside, outside = (inside + size, outside) if mask[row, column] else (inside, outside + size)
        assert share == pytest.approx(inside / (inside + outside), abs=1e-6)


def test_channels_of_a_pixel_add_up_before_their_magnitude_counts():
    # pixel 0: 3 - 3 = 0; pixel 1: 1 + 1 = 2. Magnitudes first would give pixel 0 a share of 6/8.
    a = torch.tensor([[[[3.0, 1.0]], [[-3.0, 1.0]]]])
    assert attribution_share(a, torch.tensor([[True, False]])).tolist() == [0.0]


def test_evidence_against_counts_as_much_as_evidence_for():
    # |-3| / (|-3| + |1|); positive parts alone would give 0, the plain sum 3/2
    a = torch.tensor([[-3.0, 1.0]])
    assert attribution_share(a, torch.tensor([True, False])).tolist() == [0.75]


def test_core_spurious_and_noise_add_up_to_1_over_samples_that_have_attribution():
    a = attributions().sum(1).flatten(1)
    a[2] = 0
    place = torch.arange(24) % 3
    shares = mean_shares(a, {"core": place == 0, "spurious": place == 1, "noise": place == 2})
    assert sum(shares.values()) == pytest.approx(1)
    rows = [a[i].abs().double() for i in (0, 1, 3, 4)]
    assert shares["core"] == pytest.approx(np.mean([float(r[place == 0].sum() / r.sum()) for r in rows]))


def test_mean_shares_weigh_samples_alike_however_large_their_attributions():
    # shares 1 and 0: mean 1/2; pooled, 1/101
    assert mean_shares(torch.tensor([[1.0, 0], [0, 100]]), {"core": torch.tensor([True, False])}) == {"core": 0.5}


def test_a_share_of_no_attribution_at_all_is_unknown():
    assert mean_shares(torch.zeros(2, 3), {"core": torch.ones(3, dtype=torch.bool)}) == {"core": None}


def test_background_is_what_each_image_has_outside_its_own_foreground():
    a = torch.tensor([[[[1.0, 3.0]]], [[[1.0, 3.0]]]])
    foreground = torch.tensor([[[True, False]], [[False, True]]])
    assert background_share(a, foreground).tolist() == [0.75, 0.25]


def test_entropy_equals_scipys():
    a = attributions()
    expected = entropy(a.double().sum(1).abs().flatten(1).numpy(), axis=1)
    np.testing.assert_allclose(attribution_entropy(a).numpy(), expected, atol=1e-12)


def test_entropy_is_highest_for_an_even_map_and_unknown_for_an_empty_one():
    even, empty = attribution_entropy(torch.stack([torch.full((8,), -0.2), torch.zeros(8)])).tolist()
    assert even == pytest.approx(math.log(8)) and math.isnan(empty)


def test_a_mask_of_another_size_or_kind_is_refused():
    with pytest.raises(UnspurError, match=r"shape \(4, 6\) or \(5, 4, 6\), but got torch.bool of shape \(6, 4\)"):
        attribution_share(attributions(), torch.ones(6, 4, dtype=torch.bool))
    with pytest.raises(UnspurError, match=r"must be boolean .* torch.uint8"):
        attribution_share(attributions(), torch.full((4, 6), 255, dtype=torch.uint8))


def test_attributions_of_another_shape_are_refused():
    with pytest.raises(UnspurError, match=r"but got \(5, 4, 6\)"):
        attribution_entropy(torch.ones(5, 4, 6))
