import pytest
import torch

from unspur.parts.opposition import normalised, opposition, scalar_of, similarities


def test_opposite_saliency_of_any_size_costs_nothing():
    g = torch.randn(4, 1, 3, 3, generator=torch.Generator().manual_seed(0))
    assert float(opposition(g, -7 * g, "batch", "mse")) == pytest.approx(0, abs=1e-12)
    assert float(opposition(g, -7 * g, "batch", "l1")) == pytest.approx(0, abs=1e-6)


def test_over_the_batch_a_weak_sample_stays_weak_and_over_samples_it_does_not():
    # Peaks 4 and 1: over the batch the second sample becomes 1/4, over samples 1.
    z = torch.tensor([[4.0, -2.0], [1.0, 0.0]])
    assert normalised(z, "batch").tolist() == [[1.0, -0.5], [0.25, 0.0]]
    assert normalised(z, "sample").tolist() == [[1.0, -0.5], [1.0, 0.0]]


def test_the_maximum_is_of_magnitudes():
    assert normalised(torch.tensor([[1.0, -4.0]]), "batch").tolist() == [[0.25, -1.0]]


@pytest.mark.parametrize("over", ["batch", "sample"])
def test_a_sample_without_saliency_gives_finite_gradients(over):
    teacher = torch.tensor([[0.0, 0.0], [1.0, 2.0]], requires_grad=True)
    opposition(torch.ones(2, 2), teacher, over, "mse").backward()
    assert teacher.grad.isfinite().all()


def test_the_mean_is_over_everything():
    # N(-s) = (-1, 0), N(t) = (1, 1): differences -2 and -1; squares 4 and 1, mean 2.5; magnitudes' mean 1.5
    student, teacher = torch.tensor([[3.0, 0.0]]), torch.tensor([[2.0, 2.0]])
    assert float(opposition(student, teacher, "batch", "mse")) == 2.5
    assert float(opposition(student, teacher, "batch", "l1")) == 1.5


def test_similarities_do_not_depend_on_the_layers_size():
    assert similarities(torch.zeros(5, 3)).shape == similarities(torch.zeros(5, 7, 2, 2)).shape == (5, 5)


def test_the_scalar_is_that_of_each_sample():
    logits, y = torch.tensor([[1.0, 2.0], [5.0, 0.0]]), torch.tensor([0, 1])
    assert scalar_of(logits, y, "logit").tolist() == [2.0, 5.0]
    assert scalar_of(logits, y, "label").tolist() == [1.0, 0.0]
    assert scalar_of(logits, y, "probability").tolist() == pytest.approx(logits.softmax(1).max(1).values.tolist())
