"""A model from elsewhere is audited, labels images, is analysed and repaired like one of our own."""

import pytest
import torch
from torch import nn

from practice.conftest import DOG, ODD, SIDE
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.evaluation.analysis import analyse
from unspur.methods.masktune import MaskTune
from unspur.models.foreign import wrap
from unspur.practice.audit.audit import Settings, audit
from unspur.practice.audit.sources import source_of
from unspur.practice.predict.predict import Wanted, predict_into
from unspur.practice.wrapped import to_audit, to_predict
from unspur.train.recipe import SGD


class Halves(nn.Module):
    """Compares the upper half of an image with the lower, which is what tells these pictures apart."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d((2, 1))
        self.fc = nn.Linear(8, 2)
        with torch.no_grad():
            self.conv.weight.fill_(1 / 27)
            self.conv.bias.zero_()
            self.fc.weight.copy_(torch.tensor([[-1.0, 1.0] * 4, [1.0, -1.0] * 4]))
            self.fc.bias.zero_()

    def forward(self, x):
        return self.fc(self.pool(self.conv(x)).flatten(1))


@pytest.fixture
def model():
    return wrap(Halves(), (ODD, DOG), size=SIDE)


@pytest.fixture
def spec(photos):
    return Folder(root=str(photos), size=SIDE, val=0.3)


def test_it_labels_images(model, new_photos):
    rows = predict_into(to_predict(model), (str(new_photos),), Wanted(), None)["rows"]
    whole = [row for row in rows if row["label"]]
    assert [row["label"] for row in whole] == [(ODD, DOG)[int(row["filename"][-6:-4]) % 2] for row in whole]


def test_it_is_audited(model, spec):
    found = audit(source_of(spec), target="folder", model=to_audit(model), settings=Settings(local=False))
    assert found.model == "Halves" and found.model_accuracy == 1


def test_it_is_analysed_and_repaired(model, spec):
    data = spec.load(DataFiles(None))
    found, _ = analyse(model, data, "test", {}, samples=20)
    # weights: 4 filters of 27 times 1/27, and 16 of 1 or -1
    assert found["samples"] == 20 and found["norms"]["parameters"] == pytest.approx((4 / 27 + 16) ** 0.5, rel=1e-4)
    fit = MaskTune(erm=SGD(epochs=1, batch_size=16)).fit(model, data.train, val=data.val)
    assert set(fit.stages) == {"erm"} and fit.model.classes == (ODD, DOG)
