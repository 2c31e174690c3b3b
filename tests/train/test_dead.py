"""A network that died is not trained to its last epoch, and one that only looks so is."""

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.methods.deep_gamblers import DeepGamblers
from unspur.methods.divdis import DivDis
from unspur.methods.erm import ERM
from unspur.methods.selectivenet import SelectiveNet
from unspur.train.dead import is_dead
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session


def points():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    return Split(x, (x[:, 0] > 0).long())


def network(bias):
    """One hidden layer with the given bias: at -100 its ReLU lets nothing through."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    nn.init.constant_(made[0].bias, bias)
    return made


def test_a_dead_network_stops_after_two_epochs_and_says_so():
    session = Session()
    fit = ERM(erm=SGD(epochs=9, batch_size=10)).fit(network(-100.0), points(), session=session)
    assert [line["epoch"] for line in session.history["erm"]] == [1, 2]
    # 40 samples in batches of 10 are 4 steps an epoch
    assert fit.warnings[0].startswith("Stage 'erm' stopped 8 steps into its 36: its network is dead")


def test_a_dead_stage_that_is_gone_through_again_says_so_again(tmp_path):
    method = ERM(erm=SGD(epochs=9, batch_size=10))
    said = [method.fit(network(-100.0), points(), session=Session(folder=tmp_path)).warnings for _ in range(2)]
    assert said[0] == said[1] and "is dead" in said[0][0]


def test_a_living_network_trains_to_its_end_and_nothing_is_said():
    session = Session()
    assert not ERM(erm=SGD(epochs=5, batch_size=10)).fit(network(0.0), points(), session=session).warnings
    assert len(session.history["erm"]) == 5


def test_a_network_without_gradient_that_knows_everything_is_not_dead():
    x = torch.tensor([[1.0], [-1.0]] * 5)
    split, model = Split(x, (x[:, 0] < 0).long()), nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))
        model[0].bias.zero_()
        model[2].weight.copy_(torch.eye(2) * 1e4)  # margins of 10,000: every probability is exactly 0 or 1
    session = Session()
    train(model, split, SGD(lr=0.1, epochs=4, batch_size=5), stage="erm", session=session)
    assert not model[0].weight.grad.any() and len(session.history["erm"]) == 4 and not session.stopped


def test_a_head_of_zeros_is_not_dead():
    model, split = network(0.0), points()
    nn.init.zeros_(model[2].weight)
    model(split.x).logsumexp(1).sum().backward()
    assert not model[0].weight.grad.any() and not is_dead(model, split, list(model.parameters()), torch.device("cpu"))


@pytest.mark.parametrize("method", [SelectiveNet, DeepGamblers, DivDis])
@pytest.mark.parametrize("named", [True, False])  # whether the network's own head is found by its name
def test_a_dead_network_with_further_outputs_stops_as_well(method, named):
    inner = network(-100.0)
    inner[2].bias.data.fill_(1.0)
    inner.insert(2, Shift())  # dead features that are not zero: the further outputs still learn
    model = Named(inner) if named else inner
    quick = SGD(epochs=9, batch_size=10)
    made = method(**{name: quick for name in ("erm", "training") if name in method.__dataclass_fields__})
    fit = made.fit(model, points(), val=points())
    assert any("its network is dead" in said for said in fit.warnings)


class Shift(nn.Module):
    def forward(self, x):
        return x + 1


class Named(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.body, self.fc = inner[:-1], inner[-1]

    def forward(self, x):
        return self.fc(self.body(x))
