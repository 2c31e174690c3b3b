import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.models.base import penultimate
from unspur.parts import features
from unspur.parts.features import features_of, require_linear_head
from unspur.train.session import Session


class Counting(nn.Sequential):
    """Counts the samples that pass."""

    seen = 0

    def forward(self, x):
        self.seen += len(x)
        return super().forward(x)


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Counting(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


SPLIT = Split(torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(7, dtype=torch.long))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))


def test_they_are_what_goes_into_the_head_in_evaluation_mode_which_is_put_back():
    model = network().train()
    found = features_of(model, SPLIT, Session(), "features")
    assert model.training and model[1].training
    assert torch.equal(found, penultimate(model.eval(), SPLIT.x).detach())


def test_a_fit_that_is_started_again_computes_nothing(tmp_path):
    first, again = network(), network()
    found = features_of(first, SPLIT, Session(folder=tmp_path), "features")
    assert torch.equal(features_of(again, SPLIT, Session(folder=tmp_path), "features"), found)
    assert (first.seen, again.seen) == (7, 0)


def test_what_took_long_is_found_by_another_run_with_another_head(monkeypatch):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    first, again = network(), network()
    nn.init.zeros_(again[4].weight)
    found = features_of(first, SPLIT, Session(), "features")
    assert torch.equal(features_of(again, SPLIT, Session(), "features"), found)
    assert again.seen == 0


def test_other_weights_or_other_samples_are_computed_anew(monkeypatch):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    features_of(network(), SPLIT, Session(), "features")
    other, same = network(seed=1), network()
    features_of(other, SPLIT, Session(), "features")
    features_of(same, Split(SPLIT.x + 1, SPLIT.y), Session(), "features")
    assert (other.seen, same.seen) == (7, 7)


def test_a_damaged_cache_is_computed_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    found = features_of(network(), SPLIT, Session(), "features")
    (path,) = (tmp_path / "cache" / "features").iterdir()
    path.write_bytes(b"cut short")
    assert torch.equal(features_of(network(), SPLIT, Session(), "features"), found)


def test_a_model_that_goes_on_after_its_linear_layer_has_no_cached_form():
    assert require_linear_head(network(), SPLIT.x).out_features == 2
    with pytest.raises(UnspurError, match=r"ends in one linear layer.*use the method ule"):
        require_linear_head(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), SPLIT.x)
    with pytest.raises(UnspurError, match="does not end in a linear layer"):
        require_linear_head(nn.Sequential(nn.Identity()), SPLIT.x)
