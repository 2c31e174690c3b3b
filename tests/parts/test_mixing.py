import pytest
import torch
from torch import nn

from unspur.data.base import Batch
from unspur.parts.mixing import beta, blended, mixed, partners, pasted


def test_a_blend_has_both_samples_in_shares():
    x = torch.tensor([[0.0], [10.0]])
    assert blended(x, torch.tensor([1, 0]), torch.tensor(0.7)).x.flatten().tolist() == pytest.approx([3.0, 7.0])


def test_a_pasted_box_counts_by_its_pixels():
    torch.manual_seed(0)
    x = torch.zeros(2, 1, 10, 10)
    x[1] = 1
    for _ in range(30):
        mixture = pasted(x, torch.tensor([1, 0]), beta(1.0))
        assert float(mixture.share) == pytest.approx(1 - float(mixture.x[0].mean()))  # also where it sticks out
        assert torch.equal(mixture.x[0], 1 - mixture.x[1])
    assert x[0].sum() == 0  # the batch itself is left alone


def test_partners_share_the_one_and_differ_in_the_other_and_all_that_do_are_drawn():
    torch.manual_seed(0)
    y, a = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 1, 0, 0])
    drawn = torch.stack([partners(y, a) for _ in range(100)])
    assert set(drawn[:, 0].tolist()) == {1, 2} and set(drawn[:, 1].tolist()) == {0}
    assert set(drawn[:, 3].tolist()) == {3}  # class 1 has one attribute alone: the sample stays as it is


def test_the_loss_has_both_labels_in_shares():
    model, batch = nn.Linear(1, 2), Batch(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1]), torch.arange(2))
    partner = torch.tensor([1, 0])
    mixture = blended(batch.x, partner, torch.tensor(0.25))
    log = model(mixture.x).log_softmax(1)
    expected = -0.25 * torch.stack([log[0, 0], log[1, 1]]) - 0.75 * torch.stack([log[0, 1], log[1, 0]])
    assert torch.allclose(mixed(model, batch, partner, mixture).loss, expected)


def test_shares_are_of_a_beta_distribution():
    torch.manual_seed(0)
    drawn = torch.stack([beta(0.2) for _ in range(2000)])
    # Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)) = 0.1786
    assert float(drawn.mean()) == pytest.approx(0.5, abs=0.03) and float(drawn.var()) == pytest.approx(0.1786, abs=0.01)
