import pytest
import torch

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.metrics.groups import group_accuracy
from unspur.parts.select import FEW, choose, group_accuracies, mined_groups, scores, validation_groups

VAL = Split(torch.zeros(6, 1), torch.tensor([0, 0, 0, 1, 1, 1]), {"a": torch.tensor([0, 0, 1, 1, 1, 0])})


def test_each_rule_has_its_own_groups():
    assert validation_groups("mean", VAL).tolist() == [0] * 6
    assert validation_groups("worst_class", VAL).tolist() == [0, 0, 0, 1, 1, 1]
    assert validation_groups("worst_group", VAL).tolist() == [0, 0, 1, 3, 3, 2]


def test_rules_can_disagree():
    # VAL's samples 2 and 5 break the rule a = y. The first candidate follows the rule: right on the other four.
    follows, looks = torch.tensor([[1, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 0]]).bool()
    both = torch.stack([looks, follows])
    assert choose("mean", both, validation_groups("mean", VAL)) == 1  # 3/6 against 4/6
    assert scores("worst_class", both, validation_groups("worst_class", VAL)).tolist() == pytest.approx([1 / 3, 2 / 3])
    # Groups (0,0), (0,1), (1,0), (1,1): looks 1/2, 1, 0, 1/2; follows 1, 0, 0, 1. Of equal scores the mean decides.
    group = validation_groups("worst_group", VAL)
    assert choose("worst_group", both, group) == 1
    looks[5] = True  # now 1/2, 1, 1, 1/2
    assert choose("worst_group", torch.stack([looks, follows]), group) == 0


def test_mined_groups_count_by_their_mean():
    # Groups of accuracy 0 and 1 against 0.4 and 0.5: the worst says the second, the mean the first.
    group = torch.tensor([0] * 10 + [1] * 10)
    right = torch.tensor([[0] * 10 + [1] * 10, [1] * 4 + [0] * 6 + [1] * 5 + [0] * 5]).bool()
    assert choose("mined_group", right, group) == 0
    assert choose("worst_group", right, group) == 1


def test_group_accuracies_are_those_of_the_metric():
    generator = torch.Generator().manual_seed(0)
    group = torch.randint(4, (50,), generator=generator)
    pred, y = torch.randint(3, (50,), generator=generator), torch.randint(3, (50,), generator=generator)
    expected = group_accuracy(pred, y, group)
    ours = group_accuracies((pred == y)[None], group)[0].tolist()
    assert ours == pytest.approx([expected[g] for g in range(4)])


def test_a_biased_models_mistakes_make_groups_only_when_there_are_enough():
    y = torch.zeros(3 * FEW, dtype=torch.long)
    y[2 * FEW :] = 1
    wrong = torch.zeros(len(y), dtype=torch.bool)
    wrong[:FEW] = True  # ten mistakes in class 0: a group
    wrong[-3:] = True  # three in class 1: in no group
    assert mined_groups(y, wrong).tolist() == [1] * FEW + [0] * FEW + [2] * (FEW - 3) + [-1] * 3


def test_samples_in_no_group_do_not_count():
    right = torch.tensor([[True, False]])
    assert scores("mean", right, torch.tensor([0, -1])).tolist() == [1.0]


def test_equal_candidates_go_to_the_first():
    assert choose("mean", torch.ones(3, 4, dtype=torch.bool), torch.zeros(4, dtype=torch.long)) == 0


def test_a_rule_that_cannot_be_followed_says_what_can():
    with pytest.raises(UnspurError, match=r"worst_group needs .* use one that does not, such as worst_class"):
        validation_groups("worst_group", VAL.without_attributes())
    with pytest.raises(UnspurError, match="no validation data to choose on"):
        validation_groups("mean", VAL.subset(torch.arange(0)))
    with pytest.raises(UnspurError, match="mined_group needs a biased model's mistakes"):
        validation_groups("mined_group", VAL)
