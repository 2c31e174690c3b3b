import pytest
import torch

from unspur.errors import UnspurError
from unspur.metrics.shortcut import shortcut_effect


def test_a_model_that_does_not_see_the_shortcut_shows_no_effect():
    logits = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    assert shortcut_effect(logits, logits) == (0.0, 0.0, 0.0)


def test_a_constant_added_to_all_logits_changes_nothing():
    logits = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    assert shortcut_effect(logits, logits + 7) == pytest.approx((0.0, 0.0, 0.0), abs=1e-5)


def test_the_effect_is_that_on_the_class_predicted_with_the_shortcut():
    # One image, three classes. With the shortcut class 0 leads by 3 - (0 + 0)/2 = 3, without it by 0 - (6 + 0)/2 = -3.
    effect = shortcut_effect(torch.tensor([[3.0, 0.0, 0.0]]), torch.tensor([[0.0, 6.0, 0.0]]))
    assert effect.flipped == 1.0
    assert effect.logit == pytest.approx(6.0)
    on, off = torch.tensor([3.0, 0.0, 0.0]).softmax(0)[0], torch.tensor([0.0, 6.0, 0.0]).softmax(0)[0]
    assert effect.probability == pytest.approx(float(on - off))


@pytest.mark.parametrize("shape", [(3, 4), (2, 5)])
def test_tables_of_different_shapes_are_refused(shape):
    with pytest.raises(UnspurError, match=r"two tables of logits of one shape .* but got \(3, 5\)"):
        shortcut_effect(torch.zeros(3, 5), torch.zeros(shape))
