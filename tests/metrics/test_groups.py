import pytest
import torch

from unspur.metrics.groups import group_accuracy, weighted_group_accuracy, wilson_interval


@pytest.mark.parametrize(("correct", "n"), [(0, 5), (5, 5), (81, 263), (1, 1)])
def test_wilson_bounds_are_where_the_score_test_just_rejects(correct, n):
    # Its definition: the two p with |correct/n - p| = z sqrt(p (1 - p) / n), inside [0, 1].
    z = 1.959963984540054
    for bound in wilson_interval(correct, n):
        assert (correct / n - bound) ** 2 == pytest.approx(z * z * bound * (1 - bound) / n, abs=1e-12)


def test_group_accuracy_equals_a_loop():
    generator = torch.Generator().manual_seed(0)
    pred, y, group = (torch.randint(0, 3, (200,), generator=generator) for _ in range(3))
    for g, accuracy in group_accuracy(pred, y, group).items():
        rows = [i for i in range(200) if group[i] == g]
        assert accuracy == pytest.approx(sum(int(pred[i] == y[i]) for i in rows) / len(rows))


def test_training_weights_count_only_groups_that_the_test_has():
    # groups 0 and 1 weigh 90 and 10; group 2 (900 in training) is not in the test: (90 * 1 + 10 * 0) / 100
    assert weighted_group_accuracy({0: 1.0, 1: 0.0}, {0: 90, 1: 10, 2: 900}) == pytest.approx(0.9)
