import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from unspur.practice.audit.leak_scores import fold_of, leak_scores, separation_of, standardised


def draw(classes, each=300, tests=3, width=5, shift=0.8):
    generator = torch.Generator().manual_seed(classes)
    y = torch.arange(classes).repeat_interleave(each)
    centres = shift * torch.randn(tests, classes, width, generator=generator)
    return centres[:, y] + torch.randn(tests, len(y), width, generator=generator), y


@pytest.mark.parametrize("classes", [2, 5])
def test_accuracies_are_those_of_scikit_learn(classes):
    x, y = draw(classes)
    ours = leak_scores(x, y, classes, permutations=0).balanced
    fold = fold_of(y, 0).numpy()
    for test, accuracy in zip(standardised(x).numpy(), ours.tolist(), strict=True):
        recalls = np.zeros(classes)
        for number in range(3):
            model = LinearDiscriminantAnalysis(solver="lsqr", priors=np.full(classes, 1 / classes))
            model.fit(test[fold != number], y.numpy()[fold != number])
            hit = model.predict(test[fold == number]) == y.numpy()[fold == number]
            recalls += np.bincount(y.numpy()[fold == number], weights=hit, minlength=classes)
        assert accuracy == pytest.approx((recalls / 300).mean(), abs=1e-3)


def test_labels_at_random_are_not_significant_and_a_shift_is():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 400, 4, generator=generator), torch.arange(400) % 2
    assert float(leak_scores(x, y, 2).p_values().min()) > 0.02  # 40 tests, corrected over all
    x[7, :, 0] += 1.5 * y
    p = leak_scores(x, y, 2).p_values()
    assert int(p.argmin()) == 7 and float(p[7]) == pytest.approx(1 / 201)


def test_a_rare_class_counts_as_much_as_a_common_one():
    generator = torch.Generator().manual_seed(0)
    y = torch.cat([torch.zeros(570), torch.ones(30)]).long()
    x = torch.randn(1, 600, 3, generator=generator)
    assert float(leak_scores(x, y, 2, permutations=0).balanced) < 0.65  # always the common class would be 0.5, not 0.95


def test_images_against_the_rule_cost_accuracy_but_not_separation():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(2).repeat_interleave(500)
    cue = y.clone()
    cue[::5] = 1 - cue[::5]  # 20 % conflict
    x = (6.0 * cue + torch.randn(1000, generator=generator)).reshape(1, -1, 1)
    scores = leak_scores(x, y, 2, permutations=0)
    assert float(scores.balanced) == pytest.approx(0.8, abs=0.01)
    assert float(scores.separation) > 3


def test_constant_features_separate_nothing():
    y = torch.arange(2).repeat_interleave(50)
    assert float(separation_of(torch.zeros(100, 2), y)) == 0
    assert float(leak_scores(torch.ones(1, 100, 3), y, 2, permutations=0).balanced) == 0.5


def test_global_random_state_is_left_alone():
    state = torch.random.get_rng_state()
    leak_scores(*draw(2), 2, permutations=5)
    assert torch.equal(state, torch.random.get_rng_state())
