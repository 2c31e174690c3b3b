import shutil

import pytest
import torch
from torch import nn

from models.blank import blank
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.evaluation.scores import predict
from unspur.models.base import penultimate
from unspur.models.catalog import build_model
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


ALL = torch.arange(12)


def pictures(n=12):
    return Split(
        torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)),
        torch.zeros(n, dtype=torch.long),
    )


def test_features_of_a_network_that_convolves_are_its_own_to_a_thousandth():
    model, split = build_model("resnet32", blank(3, 32, 32)), pictures()
    found, expected = features_of(model, split, Session(), "features"), penultimate(model.eval(), split.batch(ALL).x)
    assert bool((found - expected).abs().max() <= 1e-3 * expected.abs().max())


def test_a_cache_that_is_deleted_in_mid_run_is_computed_again(monkeypatch, tmp_path):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    found = features_of(network(), SPLIT, Session(), "features")
    shutil.rmtree(tmp_path / "cache")
    again = network()
    assert torch.equal(features_of(again, SPLIT, Session(), "features"), found) and again.seen == 7
    assert list((tmp_path / "cache" / "features").iterdir())  # and kept again


def test_a_cache_that_is_deleted_between_a_look_and_the_reading_is_computed_again(monkeypatch, tmp_path):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    found = features_of(network(), SPLIT, Session(), "features")
    read = features.read_tensors

    def gone(path):
        path.unlink()
        return read(path)

    monkeypatch.setattr(features, "read_tensors", gone)
    assert torch.equal(features_of(network(), SPLIT, Session(), "features"), found)


def test_a_cache_that_cannot_be_written_is_one_sentence_and_nothing_is_lost(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    (tmp_path / "cache").write_text("a file where the folder should be")
    found = features_of(network(), SPLIT, Session(), "features")
    assert torch.equal(found, penultimate(network().eval(), SPLIT.x).detach())
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("Features cannot be kept in") and said.endswith("that can be written.")


def test_whoever_shows_progress_learns_how_many_images_there_are():
    class Bar:
        def __init__(self):
            self.told = []

        def __call__(self, stage, done):
            self.told.append((stage, done))

        def counts(self, stage, total, what):
            self.told.append((stage, total, what))

    bar = Bar()
    features_of(network(), SPLIT, Session(progress=bar), "features")
    assert bar.told == [("features", 7, "images"), ("features", 1.0)]


def test_predictions_of_heads_on_one_frozen_network_share_its_features(monkeypatch):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    first, again, whole = network(), network(), network()
    nn.init.ones_(again[4].weight)
    first.frozen = again.frozen = "backbone"
    found = predict(first, SPLIT)
    assert torch.equal(found, whole.eval()(SPLIT.x)) and torch.equal(predict(first, SPLIT), found)
    again.seen = 0
    expected = again[4](penultimate(whole, SPLIT.x))
    assert torch.equal(predict(again, SPLIT), expected) and again.seen == 4  # two samples, twice, show what its head is


def test_predictions_of_a_frozen_network_that_does_not_end_in_a_head_are_its_own(monkeypatch):
    monkeypatch.setattr(features, "WORTH_KEEPING", -1.0)
    for model in (nn.Sequential(network(), nn.Tanh()).eval(), nn.Sequential(nn.Tanh())):  # which has no head at all
        model.frozen = "backbone"
        assert torch.equal(predict(model, SPLIT), model(SPLIT.x))
