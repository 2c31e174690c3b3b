from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import Split, groups_of
from unspur.errors import UnspurError
from unspur.methods import ssa
from unspur.methods.erm import ERM
from unspur.methods.ssa import SSA
from unspur.parts import pseudo_attributes as parts
from unspur.parts.mining import mining_quality
from unspur.parts.new_heads import with_new_head
from unspur.parts.pseudo_attributes import Joined, attribute_of, confident, pseudo_attributes, spreading
from unspur.train.recipe import SGD
from unspur.train.session import Session

QUICK = SSA(training=PLAIN, attribute=SGD(lr=0.05, epochs=3, batch_size=64))


def held():
    return shortcut(120, conflicting=20, seed=7)


def test_an_attribute_is_learnt_from_where_its_probability_and_not_its_logit_is_high():
    # logits 3 and 0 exceed 0.95, but the probability of 3 against 0 is 0.953 and that of 1.5 against 0 is 0.82
    chance = torch.tensor([[3.0, 0.0], [1.5, 0.0]]).softmax(1)
    assert confident(chance, torch.tensor([0, 0]), torch.tensor([[1, 0]]), 0, 0.95).tolist() == [True, False]


def test_groups_are_filled_by_the_surest_until_all_are_as_large_as_the_smallest():
    # labelled: 1 of (0, 0), 3 of (0, 1). Two samples without attributes seem to be (0, 0): 1 + 2 = 3, so that of the
    # three that seem to be (0, 1) none is taken; with one labelled of it two are, the surest ones
    chance = torch.tensor([[0.96, 0.04], [0.97, 0.03], [0.04, 0.96], [0.01, 0.99], [0.02, 0.98]])
    y = torch.zeros(5, dtype=torch.long)
    assert confident(chance, y, torch.tensor([[1, 3]]), 0, 0.95).tolist() == [True, True, False, False, False]
    assert confident(chance, y, torch.tensor([[1, 1]]), 0, 0.95).tolist() == [True, True, False, True, True]
    # (1, 0) is another group than (0, 0): no sample seems to be it, and there is nothing to fill up to
    assert confident(chance, y, torch.tensor([[9, 9], [1, 0]]), 2, 0.95).tolist() == [False] * 5


def test_a_batch_without_the_smallest_group_does_not_fill_up_to_another():
    # (0, 0) is the smallest of all labelled data; this batch has 0 of it and 4 of (0, 1): 0 + 2 = 2 are fewer than 4
    chance = torch.tensor([[0.96, 0.04], [0.97, 0.03], [0.04, 0.96], [0.01, 0.99]])
    y = torch.zeros(4, dtype=torch.long)
    assert confident(chance, y, torch.tensor([[0, 4]]), 0, 0.95).tolist() == [True, True, False, False]


def test_the_smallest_group_is_that_of_all_labelled_samples_and_not_of_the_batch():
    # labelled, all of class 0: five of attribute 1 and one of attribute 0, which the batch lacks. Its other samples are
    # sure of attribute 1 and would be learnt from if this were the smallest group of the batch
    model, x = nn.Linear(1, 2), torch.tensor([[1.0]] * 6 + [[-9.0]] * 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model.bias.zero_()
    known, truth = torch.tensor([True] * 6 + [False] * 2), torch.tensor([0, 1, 1, 1, 1, 1, 0, 0])
    objective = spreading(torch.zeros(8, dtype=torch.long), truth, known, 2, 0.95)
    found = objective(model, Split(x, truth).batch(torch.tensor([1, 2, 3, 6, 7])), 0)
    assert float(found.logged["pseudo"]) == 0.0


@pytest.mark.parametrize("bias", [0.0, 5.0])  # the same probabilities; all logits exceed 0.6, or those of 7 do not
def test_the_objective_is_written_as_a_loop(bias):
    model, x = nn.Linear(1, 2), torch.tensor([[1.0], [2.0], [0.5], [-3.0], [0.2], [0.1], [-1.0], [0.4]])
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model.bias.fill_(bias)
    known, truth = torch.tensor([True, False] * 4), torch.tensor([0, 0, 1, 0, 1, 0, 1, 0])
    y = torch.zeros(8, dtype=torch.long)
    loss = spreading(y, truth, known, 2, 0.6)(model, Split(x, truth).batch(torch.arange(8)), 0).loss
    chance = model(x).softmax(1)
    supervised = sum(-chance[i, truth[i]].log() for i in (0, 2, 4, 6)) / 4
    # labelled: 1 and 3 of the attributes; of the others 1 and 7 are sure of the first, 5 has 0.55, and 3 is sure of the
    # second, of which there are as many already: 1 + 2 = 3
    pseudo = -(chance[1, 0].log() + chance[7, 0].log()) / 4
    assert torch.isclose(loss, supervised + pseudo)


def test_no_network_learns_from_the_fold_whose_attributes_it_predicts(monkeypatch):
    data, seen = shortcut(90, 9), []
    real = parts.all_logits
    monkeypatch.setattr(parts, "train_model", lambda network, joined, *given, **rest: seen.append([joined.x.second]))
    monkeypatch.setattr(
        parts, "all_logits", lambda network, split, *rest: seen[-1].append(split.x) or real(network, split, *rest)
    )
    pseudo_attributes(network(), data, held(), 3, 0.95, SGD(), Session())
    assert len(seen) == 3
    for parts_of_data in seen:
        rows = torch.cat(parts_of_data)
        assert len(rows) == 90 and len(rows.unique(dim=0)) == 90


def test_the_round_of_a_fold_is_the_best_by_its_worst_labelled_group(monkeypatch):
    judged = []

    class Best(parts.BestRound):
        def __init__(self, network, judge, group, session, **others):
            super().__init__(network, judge, group, session, **others)
            judged.append((judge, group, self.mean))

    monkeypatch.setattr(parts, "BestRound", Best)
    replace(QUICK, training=SGD(epochs=0), attribute=SGD(epochs=1, batch_size=64)).fit(
        network(), shortcut(), val=held()
    )
    for judge, group, mean in judged[:3]:
        # it is scored on attributes, in four groups of label and attribute, and by the worst of these, not their mean
        assert not mean and len(group.unique()) == 4 and torch.equal(judge.y, group % 2)
    assert len(judged) == 3


def test_groups_of_the_result_are_labels_with_predicted_attributes_and_its_round_is_chosen_by_the_labelled_ones(
    monkeypatch,
):
    data, val, seen = shortcut(), held(), []
    found = torch.arange(len(data)) % 2
    monkeypatch.setattr(ssa, "pseudo_attributes", lambda *given: found)
    monkeypatch.setattr(ssa, "train_on_groups", lambda *given: seen.append(given[3]) or {})
    QUICK.fit(network(), data, val=val)
    assert seen[0].train.tolist() == (2 * data.y + found).tolist()
    assert torch.equal(seen[0].val, groups_of(val).id)


def test_two_sources_are_read_as_one():
    joined = Joined(torch.arange(3)[:, None], torch.arange(10, 12)[:, None])
    assert joined[torch.tensor([4, 0, 3])].flatten().tolist() == [11, 0, 10] and joined.shape == (5, 1)


def test_several_attributes_are_one_number_whatever_the_label():
    split = Split(
        torch.zeros(3, 1), torch.tensor([0, 1, 1]), {"a": torch.tensor([0, 0, 1]), "b": torch.tensor([5, 5, 5])}
    )
    assert attribute_of(split).tolist() == [0, 0, 1]


def test_a_new_head_leaves_the_model_alone():
    model = network()
    other = with_new_head(model, 5, seed=0)
    assert other(torch.zeros(2, 7)).shape == (2, 5) and model(torch.zeros(2, 7)).shape == (2, 2)


def test_attributes_are_found_and_conflicting_samples_classified_better_than_by_plain_training():
    data = shortcut()
    plain, fit = ERM(erm=PLAIN).fit(network(), data), QUICK.fit(network(), data.without_attributes(), val=held())
    assert misled(fit) > misled(plain) + 0.2
    quality = mining_quality(fit.mining.train.nonzero().squeeze(1), data)
    assert quality["recall"] > 0.9 and quality["precision"] > 0.9


def test_what_cannot_work_is_refused():
    with pytest.raises(UnspurError, match="folds must be at least 2 but got 1"):
        SSA(folds=1)
    with pytest.raises(UnspurError, match=r"attribute.batch_size must be at least 2 but got 1: half of a batch"):
        SSA(attribute=SGD(batch_size=1))
    same = replace(held(), attributes={"told": torch.zeros(120, dtype=torch.long)})
    with pytest.raises(UnspurError, match=r"all samples have the same one; label more, or use .* such as xrm"):
        QUICK.fit(network(), shortcut(), val=same)


@pytest.mark.parametrize("early", [{"until_accuracy": 0.9}, {"until_loss": 0.1}])
def test_a_stop_rule_that_would_look_at_labels_that_nobody_gave_is_refused(early):
    with pytest.raises(UnspurError, match=r"leave attribute.until_accuracy and attribute.until_loss unset"):
        SSA(attribute=SGD(**early))


def test_the_logged_accuracy_is_that_of_labelled_samples_alone():
    model, x = nn.Linear(1, 2), torch.tensor([[1.0], [2.0], [-3.0], [-1.0]])
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model.bias.zero_()
    known, truth = torch.tensor([True, False, False, True]), torch.tensor([0, 0, 0, 0])
    found = spreading(torch.zeros(4, dtype=torch.long), truth, known, 2, 0.6)(
        model, Split(x, truth).batch(torch.arange(4)), 0
    )
    assert float(found.logged["labelled_accuracy"]) == 0.5 and found.logits is None
