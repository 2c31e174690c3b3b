import pytest
import torch
from torch import nn

from unspur.core.options import to_json
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.train.recipe import SGD

X = torch.tensor([[1.0], [-1.0]] * 4)
TRAIN = Split(X, (X[:, 0] < 0).long())
OPPOSED = Split(X, (X[:, 0] > 0).long())  # what the training teaches is wrong here


def fitted(keep, val):
    model = nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-0.2], [0.2]]))  # right on the opposed samples, until the first steps
    return ERM(erm=SGD(lr=0.1, epochs=4, batch_size=8, momentum=0), keep=keep).fit(model, TRAIN, val=val)


def accuracy(fit):
    return float((fit.model(OPPOSED.x).argmax(1) == OPPOSED.y).double().mean())


def test_the_best_epoch_is_that_of_the_highest_validation_accuracy_and_not_the_last():
    # each step of rate 0.1 moves the logits' difference of 0.4 by about 0.1: after two epochs the samples still are
    # predicted as the validation labels say, after four as the training labels say
    assert accuracy(fitted("last", OPPOSED)) == 0
    best = fitted("best", OPPOSED)
    assert accuracy(best) == 1 and best.facts["val_accuracy"] == 1
    assert accuracy(fitted("best", TRAIN)) == 0  # by its own labels the last epochs are the best


def test_without_validation_images_there_is_no_best_epoch():
    with pytest.raises(UnspurError, match=r"keep=best chooses an epoch by validation images, but there are none"):
        fitted("best", None)


def test_runs_that_keep_the_last_epoch_have_the_key_that_they_had():
    assert "keep" not in to_json(ERM()) and to_json(ERM(keep="best"))["keep"] == "best"
