import pytest
import torch

from unspur.core.files import write_tensors
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.evaluation.abstention import Predictor, selective_scores
from unspur.evaluation.scores import Predictions, predict
from unspur.metrics.selective import product_response
from unspur.models.catalog import arch_from_json
from unspur.runs.config import configure


@pytest.fixture(scope="module")
def trained():
    config = configure("masktune", "biased_mnist", settings=["data.base=mini", "erm.epochs=5"])
    data = config.data.load(DataFiles(None))
    fit = config.method.fit(config.arch.build(data), data.train.subset(torch.arange(1500)))
    return fit.stages["erm"], fit.model, config.arch, data


@pytest.fixture(scope="module")
def predicted(trained):
    """What the models before and after predict, each image once for all tests."""
    before, after, _, _ = trained
    return Predictions(before), Predictions(after)


def test_the_threshold_comes_from_validation_data(trained, predicted):
    before, after, _, data = trained
    scores = selective_scores(*predicted, data, 0.8)["biased"]["product"]
    held = product_response(predict(before, data.val), predict(after, data.val)).confidence
    answered = (held >= scores["threshold"]).double().mean()
    assert 0.8 <= answered < 0.8 + 2 / len(held)


def test_every_group_is_reported(trained, predicted):
    *_, data = trained
    block = selective_scores(*predicted, data, 0.9)["biased"]["product"]
    assert sum(group["n"] for group in block["groups"]) == block["n"] == 2000
    assert sum(group["answered"] for group in block["groups"]) == block["answered"]
    assert [point["target"] for point in block["at_coverages"]] == [1.0, 0.95, 0.9, 0.85, 0.8]


def test_agreement_answers_where_both_models_agree(trained, predicted):
    before, after, _, data = trained
    test = data.tests["biased"]
    agree = predict(before, test).argmax(1) == predict(after, test).argmax(1)
    block = selective_scores(*predicted, data, 0.9)["biased"]["agreement"]
    assert block["answered"] == int(agree.sum())


def test_a_predictor_answers_abstains_and_survives_saving(trained, tmp_path):
    predictor = Predictor.choose(*trained, coverage=0.7)
    images = trained[3].val.x[torch.arange(300)]
    answers = predictor.predict(images)
    assert set(answers) == {"0-4", "5-9", None}
    predictor.save(tmp_path / "p.safetensors")
    assert Predictor.load(tmp_path / "p.safetensors").predict(images) == answers


def test_images_of_another_size_are_refused(trained):
    with pytest.raises(UnspurError, match="takes images of"):
        Predictor.choose(*trained, coverage=0.9).predict(torch.zeros(1, 1, 28, 28))


def test_a_file_that_is_no_predictor_is_refused(tmp_path):
    write_tensors(tmp_path / "w.safetensors", {"a": torch.zeros(1)}, note={"arch": {"name": "small_cnn"}})
    with pytest.raises(UnspurError, match="not a predictor's file"):
        Predictor.load(tmp_path / "w.safetensors")


def test_an_architecture_comes_back_from_json():
    assert arch_from_json({"name": "small_cnn", "hidden": 0, "weights": "none"}).hidden == 0


def test_too_little_validation_data_is_said(trained):
    import dataclasses

    before, after, _, data = trained
    few = dataclasses.replace(data, val=data.val.subset(torch.arange(5)))
    with pytest.raises(UnspurError, match="validation set is too small"):
        selective_scores(Predictions(before), Predictions(after), few, 0.95)
    none = dataclasses.replace(data, val=data.val.subset(torch.arange(0)))
    with pytest.raises(UnspurError, match="no validation set"):
        selective_scores(Predictions(before), Predictions(after), none, 0.95)
