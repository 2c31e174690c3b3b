import pytest
import torch
from torch import nn

from methods.shortcuts import SLOW, environments, small
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import with_features
from unspur.parts import domains
from unspur.parts.domains import domain_of, penalised, require_annealing, require_domains, train_annealed
from unspur.train.losses import cross_entropy
from unspur.train.session import Session


def columns(**values):
    n = len(next(iter(values.values())))
    return Split(torch.zeros(n, 1), torch.zeros(n).long(), {k: torch.tensor(v) for k, v in values.items()})


def test_domains_are_an_attribute_of_that_name_or_the_only_one_or_the_one_that_is_named():
    assert domain_of(columns(place=[0, 1], domain=[7, 3]), None).tolist() == [1, 0]  # numbered without gaps
    assert domain_of(columns(place=[4, 4, 2]), None).tolist() == [1, 1, 0]
    assert domain_of(columns(place=[0, 1], domain=[0, 0]), "place").tolist() == [0, 1]


def test_several_attributes_and_none_called_domain_must_be_chosen_from():
    with pytest.raises(
        UnspurError, match=r"any of several attributes: there are a, b; choose one \(--set domains=NAME"
    ):
        domain_of(columns(a=[0, 1], b=[0, 1]), None)
    with pytest.raises(UnspurError, match=r"No attribute is called 'c'; there are a, b"):
        domain_of(columns(a=[0, 1], b=[0, 1]), "c")


def test_one_domain_and_batches_that_are_too_small_are_refused():
    with pytest.raises(UnspurError, match="irm compares domains, but all training samples are of one"):
        require_domains("irm", columns(domain=[2, 2, 2]), None, 64)
    with pytest.raises(UnspurError, match=r"two samples of each of 3 domains.*has 5; use --set training.batch_size=6"):
        require_domains("irm", columns(domain=[0, 1, 2]), None, 5)


@pytest.mark.parametrize(("weight", "divisor"), [(0.5, 1.0), (100.0, 100.0)])
def test_the_objective_is_the_mean_risk_of_domains_plus_the_penalty_brought_to_the_size_of_one(weight, divisor):
    data, model = environments(30), small()
    batch = data.batch(torch.tensor([0, 1, 2, 4, 6, 8]))  # five samples of domain 0 and one of domain 1
    found = penalised(data.attributes["domain"], lambda seen: seen.features.sum(), weight)(model, batch, 0)
    losses, own = cross_entropy(model(batch.x), batch), data.attributes["domain"][batch.index]
    risk = (losses[own == 0].mean() + losses[own == 1].mean()) / 2  # not the mean over samples
    expected = (risk + weight * with_features(model, batch.x)[0].sum()) / divisor
    assert torch.isclose(found.loss, expected)


def test_the_weight_rises_after_so_many_steps_with_an_optimiser_that_begins_again(monkeypatch):
    calls, objectives = [], []

    def caught(*args, stage, order, objective, **rest):
        calls.append((stage, order.steps))
        objectives.append(objective)

    monkeypatch.setattr(domains, "train_model", caught)
    data, model = environments(1000), small()
    train_annealed(model, data, SLOW, domain_of(data, None), lambda seen: seen.risks.max(), (1.0, 50.0), 7, Session())
    assert calls == [("annealing", 7), ("training", 13)]  # 1,000 samples in batches of 500, ten times: 20 steps
    batch = data.batch(torch.arange(20))
    losses = cross_entropy(model(batch.x), batch)
    risks = torch.stack([losses[0::2].mean(), losses[1::2].mean()])  # domains alternate
    expected = [risks.mean() + risks.max(), (risks.mean() + 50 * risks.max()) / 50]  # brought to the size of one
    found = [objective(model, batch, 0).loss for objective in objectives]
    assert torch.allclose(torch.stack(found), torch.stack(expected))


def test_a_training_that_ends_before_the_penalty_begins_is_refused():
    data = environments(1000)
    require_annealing(data, SLOW, domain_of(data, None), 19)
    with pytest.raises(UnspurError, match=r"full weight after 20 steps, but the training has 20; use --set anneal=2"):
        require_annealing(data, SLOW, domain_of(data, None), 20)


def test_a_penalty_that_grows_without_bound_ends_as_diverged():
    from unspur.errors import Diverged

    data = environments(400)
    with pytest.raises(Diverged):
        train_annealed(
            nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), data, SLOW, domain_of(data, None),
            lambda seen: -seen.features.square().sum().exp(), (1.0, 1.0), 0, Session(),
        )  # fmt: skip
