import torch

from unspur.metrics.agreement import won_by


def right(shares, models=20):
    """Samples that so many of the models get right."""
    return torch.stack([torch.arange(models) < share for share in shares], dim=1)


def test_both_bounds_are_strict():
    # of 20 models 16 are more than three quarters and 15 are not; 4 are fewer than a quarter and 5 are not
    assert won_by(right([16, 15, 20, 16]), right([4, 0, 5, 0])).tolist() == [0, 3]


def test_what_the_others_win_does_not_count():
    assert won_by(right([0, 4]), right([20, 16])).tolist() == []
