"""Which strength of L2 is kept."""

import torch

from unspur.parts.heads import Head
from unspur.parts.last_logistic import Judged


def judged(n=100):
    """Half of each class; the feature is the label for all but what a head turns round."""
    y = torch.arange(n) % 2
    return Judged(torch.stack([y * 2.0 - 1, torch.arange(n) / n], 1), y, y)


def head(wrong):
    """Right but for the last images of class 0, the share ``wrong`` of them."""
    return Head(torch.tensor([[0.0, 0.0], [100.0, 100.0]]), torch.tensor([0.0, 100 * wrong + 0.5]))


def test_the_strongest_is_kept_that_is_within_a_standard_error_of_the_best():
    data = judged()
    heads = [head(0.06), head(0.10), head(0.40)]
    # 3, 5 and 20 of 50 wrong in one class, none in the other
    assert [round(score, 2) for score in data.scores(heads)] == [0.97, 0.95, 0.8]
    # two more of 50 wrong: 0.02 behind, variance 0.0392 over 50, its root halved: an error of 0.014
    assert data.steadiest(heads, [0.1, 1.0, 10.0]) == 0
    assert data.steadiest([head(0.06), head(0.08), head(0.40)], [0.1, 1.0, 10.0]) == 1
    assert data.best([head(0.08), head(0.06)]) == 1


def test_what_both_get_wrong_says_nothing_of_their_difference():
    # 20 and 23 of 50 wrong: 0.03 behind; the best's own error is 0.035, that of the difference 0.017
    assert judged().steadiest([head(0.40), head(0.46)], [0.1, 1.0]) == 0


def test_copies_of_an_image_are_no_more_evidence_than_one():
    data = judged()
    twice = Judged(data.x.repeat(2, 1), data.y.repeat(2), data.group.repeat(2), copies=2)
    heads = [head(0.06), head(0.09)]  # 3 and 4 of 50: 0.01 behind and an error of 0.01, however often it is counted
    assert data.steadiest(heads, [0.1, 1.0]) == twice.steadiest(heads, [0.1, 1.0]) == 1
    heads = [head(0.06), head(0.10)]  # 0.02 apart
    assert data.steadiest(heads, [0.1, 1.0]) == twice.steadiest(heads, [0.1, 1.0]) == 0


def test_without_images_to_judge_by_the_first_is_kept():
    none = torch.zeros(0, dtype=torch.long)
    assert Judged(None, none, none).steadiest([head(0.5), head(0.1)], [1.0, 2.0]) == 0


def test_a_class_of_one_image_does_not_say_how_much_images_vary():
    data = judged()
    one = Judged(data.x[:51], torch.cat([torch.zeros(50).long(), torch.ones(1).long()]), torch.arange(51) // 50)
    assert one.steadiest([head(0.1), head(0.1)], [0.1, 1.0]) == 1  # equally good: the stronger L2
    lone = Judged(data.x[:2], data.y[:2], data.group[:2])
    assert lone.steadiest([head(0.1), head(0.1)], [1.0, 0.1]) == 0
