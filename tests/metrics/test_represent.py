import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity

from unspur.errors import UnspurError
from unspur.metrics.represent import average_selectivity, class_separation, selectivity


def sample(n=60, neurons=8, classes=3, seed=0):
    """Activations after a ReLU of classes with different means and different sizes."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=generator) ** 2 * classes).long()
    centre = torch.randn(classes, neurons, generator=generator)
    return (centre[y] + torch.randn(n, neurons, generator=generator)).relu(), y


def pairwise(z, y, classes):
    """The definition, word for word."""
    distance = 1 - cosine_similarity(z.double().numpy())
    of = [np.flatnonzero(y.numpy() == k) for k in range(classes)]
    within = sum(distance[np.ix_(of[k], of[k])].sum() / (classes * len(of[k]) ** 2) for k in range(classes))
    total = sum(
        distance[np.ix_(of[j], of[k])].sum() / (classes**2 * len(of[j]) * len(of[k]))
        for j in range(classes)
        for k in range(classes)
    )
    return 1 - within / total


@pytest.mark.parametrize(("n", "seed"), [(60, 0), (60, 1), (60, 2), (1300, 3)])
def test_class_separation_equals_the_pairwise_definition(n, seed):
    z, y = sample(n, seed=seed)
    assert len(set(torch.bincount(y).tolist())) > 1  # unequal classes: weighting samples alike would differ
    assert class_separation(z, y, 3) == pytest.approx(pairwise(z, y, 3), abs=1e-6)


def test_class_separation_equals_the_pairwise_definition_with_vectors_of_zeros():
    z, y = sample()
    z[:7] = 0
    assert class_separation(z, y, 3) == pytest.approx(pairwise(z, y, 3), abs=1e-6)


def test_class_separation_is_of_directions_not_of_lengths():
    z, y = sample()
    length = torch.rand(len(z), 1, generator=torch.Generator().manual_seed(1)) + 0.1
    assert class_separation(z * length, y, 3) == pytest.approx(class_separation(z, y, 3), abs=1e-6)


def test_collapsed_classes_are_separated_completely_and_shared_ones_not_at_all():
    y = torch.tensor([0, 0, 1, 1])
    assert class_separation(torch.tensor([[1.0, 0], [2, 0], [0, 1], [0, 3]]), y, 2) == pytest.approx(1)
    assert class_separation(torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1]]), y, 2) == pytest.approx(0)


def test_class_separation_is_unknown_when_all_point_the_same_way():
    z = torch.tensor([[0.1, 0.3], [0.2, 0.6], [0.7, 2.1]])
    assert class_separation(z, torch.tensor([0, 1, 1]), 2) is None


def selectivity_by_loop(z, label, values):
    result = []
    for neuron in z.double().T.numpy():
        means = [np.mean([a for a, k in zip(neuron, label, strict=True) if k == v]) for v in range(values)]
        best = int(np.argmax(means))
        rest = np.mean([m for v, m in enumerate(means) if v != best])
        fires = np.mean([a > 0 for a, k in zip(neuron, label, strict=True) if k == best])
        result.append(fires * (means[best] - rest) / (means[best] + rest + 1e-6))
    return result


@pytest.mark.parametrize(("n", "seed"), [(60, 0), (60, 1), (1300, 2)])
def test_selectivity_equals_a_loop_over_neurons(n, seed):
    z, y = sample(n, seed=seed)
    z[:, 5] = 0  # a neuron that never fires
    expected = selectivity_by_loop(z, y.tolist(), 3)
    np.testing.assert_allclose(selectivity(z, y, 3).numpy(), expected, atol=1e-9)
    assert expected[5] == 0
    assert average_selectivity(z, y, 3) == pytest.approx(np.mean(expected), abs=1e-9)


def test_coverage_is_of_the_preferred_class_alone():
    # class means 2, 1, 0: rest 1/2, and (2 - 1/2) / (2 + 1/2) = 0.6; a quarter of class 0 fires: 0.15.
    # Firing among all samples would be 5/12; leaving coverage out, 0.6.
    z = torch.tensor([8.0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0])[:, None]
    label = torch.arange(3).repeat_interleave(4)
    assert float(selectivity(z, label, 3)) == pytest.approx(0.15, abs=1e-6)


def test_the_rest_is_a_mean_of_class_means_not_of_samples():
    # means 4, 2 (one sample), 0 (three samples): rest (2 + 0) / 2 = 1, not 2/4: (4 - 1) / (4 + 1) = 0.6
    z, label = torch.tensor([4.0, 2, 0, 0, 0])[:, None], torch.tensor([0, 1, 2, 2, 2])
    assert float(selectivity(z, label, 3)) == pytest.approx(0.6, abs=1e-6)


def test_bias_labels_give_the_bias_selectivity_of_the_same_neurons():
    # neuron 0 follows the class, neuron 1 the bias; in an unbiased sample neither follows the other
    y, b = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    z = torch.stack([y, b], dim=1).float()
    torch.testing.assert_close(selectivity(z, y, 2), torch.tensor([1.0, 0.0]).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(selectivity(z, b, 2), torch.tensor([0.0, 1.0]).double(), atol=1e-5, rtol=0)


def test_selectivity_of_negative_activations_stays_within_0_and_1():
    z = torch.randn(90, 40, generator=torch.Generator().manual_seed(0))
    index = selectivity(z, torch.arange(90) % 3, 3)
    assert float(index.min()) >= 0 and float(index.max()) <= 1


@pytest.mark.parametrize("metric", [class_separation, selectivity, average_selectivity])
def test_a_class_absent_from_the_sample_is_named(metric):
    with pytest.raises(UnspurError, match=r"none of 2 samples has label 1, 3\. Draw more samples"):
        metric(torch.ones(2, 5), torch.tensor([0, 2]), 4)


def test_labels_that_fit_no_class_are_refused():
    with pytest.raises(UnspurError, match=r"from 0 to 1, but got \[-1, 7\]"):
        class_separation(torch.ones(4, 5), torch.tensor([0, 1, 7, -1]), 2)


def test_activations_that_are_not_a_table_are_refused():
    with pytest.raises(UnspurError, match=r"\(samples, neurons\).*\(2, 5, 4, 4\)"):
        class_separation(torch.ones(2, 5, 4, 4), torch.tensor([0, 1]), 2)


def test_selectivity_needs_another_class():
    with pytest.raises(UnspurError, match="at least 2, but got 1"):
        selectivity(torch.ones(2, 5), torch.tensor([0, 0]), 1)
