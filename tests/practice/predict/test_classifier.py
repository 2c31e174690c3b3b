"""What can predict: a run, an exported folder (tests/practice/export), an ONNX file; anything else is one sentence."""

import json
from types import SimpleNamespace

import pytest
import torch

from data.photos import photo
from unspur.data.base import Dataset, Split
from unspur.errors import UnspurError
from unspur.practice.predict import classifier as module
from unspur.practice.predict.classifier import OfModule, of_onnx, open_classifier, square_of


class File:
    """An ONNX file that scores class k with k."""

    side, labels, content, outputs = 8, (), "hash", ("scores",)

    def __init__(self, path):
        self.metadata = dict(SimpleNamespace(**vars(type(self))).__dict__.get("stored", {}))

    def __call__(self, images):
        return torch.arange(3.0).expand(len(images), 3)


def opened(monkeypatch, tmp_path, **changed):
    monkeypatch.setattr(module, "OnnxFile", type("Changed", (File,), changed))
    return of_onnx(tmp_path / "m.onnx")


def test_a_file_without_labels_has_numbers_for_classes(monkeypatch, tmp_path):
    found = opened(monkeypatch, tmp_path)
    assert found.classes == ("0", "1", "2") and found.size == 8 and found.fit == "stretch"


def test_a_file_says_its_size_where_its_input_does_not(monkeypatch, tmp_path):
    assert opened(monkeypatch, tmp_path, side=None, stored={"size": "32", "fit": "crop"}).size == 32
    assert opened(monkeypatch, tmp_path, side=None, stored={"fit": "crop"}).fit == "crop"
    assert opened(monkeypatch, tmp_path, side=None).size == 224


def test_labels_that_do_not_match_the_scores_are_one_sentence(monkeypatch, tmp_path):
    with pytest.raises(UnspurError, match="names 2 labels but gives 3 scores"):
        opened(monkeypatch, tmp_path, labels=("a", "b"))


def test_what_is_no_model_is_one_sentence(tmp_path):
    photo(tmp_path / "x.png")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "findings.json").write_text("{}")
    for path, sentence in (
        (tmp_path / "nothing", "does not exist; name a run"),
        (tmp_path / "x.png", "is a file, but no ONNX file"),
        (tmp_path / "audit", "is an audit; name a run"),
        (tmp_path, "is not a run folder"),
    ):
        with pytest.raises(UnspurError, match=sentence):
            open_classifier(path)


def test_a_run_that_diverged_has_no_model(plain_run, tmp_path):
    folder = tmp_path / plain_run.name
    folder.mkdir()
    (folder / "config.json").write_bytes((plain_run / "config.json").read_bytes())
    result = json.loads((plain_run / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"status": "diverged", "reason": "not finite"}))
    with pytest.raises(UnspurError, match="diverged, so no model"):
        open_classifier(folder)


@pytest.mark.parametrize("shape", [(10,), (3, 28, 56), (2, 8, 8)])
def test_inputs_that_files_cannot_give_are_one_sentence(shape):
    blank = Split(torch.zeros(0, *shape), torch.zeros(0, dtype=torch.long))
    with pytest.raises(UnspurError, match="files are read as square images of 1 or 3 channels"):
        square_of(Dataset("set", blank, blank, {}, ("a",)), "run")


def test_a_model_of_grey_images_gets_the_mean_of_the_channels():
    images = torch.tensor([30, 60, 90], dtype=torch.uint8).view(1, 3, 1, 1)
    assert float(OfModule(torch.nn.Flatten(), 1)(images)) == pytest.approx(60 / 255)
    assert OfModule(torch.nn.Flatten(), 3)(images).shape == (1, 3)


def test_the_fastest_way_gives_the_same_scores(plain_run):
    found = open_classifier(plain_run)
    images = torch.randint(0, 256, (5, 3, found.size, found.size), dtype=torch.uint8)
    torch.testing.assert_close(found.ready_for(10_000).logits(images), found.logits(images), rtol=1e-3, atol=1e-3)
