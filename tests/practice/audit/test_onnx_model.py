"""A classifier in an ONNX file; the runtime is played by a stand-in, so that these tests need no package."""

import json
import sys
from types import SimpleNamespace
from typing import ClassVar
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from unspur.errors import UnspurError
from unspur.practice.audit.onnx_model import onnx_model

CLASSES = ("cat", "dog")


class Session:
    """A model whose score of class k is k times the mean of the image."""

    shape, kind, classes, fault = ["n", 3, "h", "w"], "tensor(float)", 2, None

    metadata: ClassVar[dict[str, str]] = {}

    def __init__(self, path, options, providers):
        self.seen = []

    def get_outputs(self):
        return [SimpleNamespace(name="scores")]

    def get_modelmeta(self):
        return SimpleNamespace(custom_metadata_map=self.metadata)

    def get_inputs(self):
        return [SimpleNamespace(name="x", shape=self.shape, type=self.kind)]

    def run(self, names, given):
        self.seen.append(given["x"].shape)
        if self.fault:
            raise RuntimeError(self.fault)
        return [given["x"].mean((1, 2, 3))[:, None] * np.arange(self.classes, dtype=np.float32)]


@pytest.fixture
def model(tmp_path, monkeypatch):
    path = tmp_path / "my.onnx"
    path.write_bytes(b"weights")

    def load(**changed):
        kind = type("Changed", (Session,), changed)
        runtime = SimpleNamespace(InferenceSession=kind, SessionOptions=MagicMock)
        monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
        return onnx_model(path, CLASSES)

    return load


def predicted(model, images):
    data = SimpleNamespace(classes=CLASSES, pictures=images)
    return model.make(data).predict[0](images)


def test_scores_are_those_of_the_file(model):
    images = torch.stack([torch.zeros(3, 16, 16), torch.ones(3, 16, 16)])
    assert predicted(model(), images).tolist() == [[0, 0], [0, 1]]


def test_a_file_of_a_fixed_size_and_batch_gets_images_of_that_size_in_such_batches(model):
    made = model(shape=[2, 1, 24, 20])
    assert made.side == 24
    # 3 images in batches of 2: the last is filled up, and its score dropped
    assert predicted(made, torch.rand(3, 3, 32, 32)).shape == (3, 2)


@pytest.mark.parametrize("shape", [["n", 8, 8, 3], ["n", 3, 8, 8]])
def test_a_file_that_takes_bytes_gets_bytes_in_its_own_layout(model, shape):
    made = model(shape=shape, kind="tensor(uint8)")
    # 0.2 is byte 51 in each channel, whatever its place
    assert predicted(made, torch.full((2, 3, 8, 8), 0.2)).tolist() == [[0, 51], [0, 51]]


def test_a_file_that_names_its_labels_is_read_in_their_order(model):
    images = torch.stack([torch.zeros(3, 16, 16), torch.ones(3, 16, 16)])
    # the file's second score is of cat, which the data has first
    made = model(metadata={"labels": json.dumps(["dog", "cat"])})
    assert predicted(made, images).tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"classes": 3}, r"my\.onnx gives 3 scores an image, but the data has 2 classes \(cat, dog\); name a model of"),
        ({"shape": ["n", 784]}, r"the first tensor\(float\) of shape \['n', 784\], but it must take one batch"),
        ({"shape": ["n", 32, 32, 3]}, "export it with such an input"),
        ({"kind": "tensor(int64)"}, r"the first tensor\(int64\)"),
        ({"kind": "tensor(uint8)", "shape": ["n", 4, 32, 32]}, "export it with such an input"),
        ({"metadata": {"labels": '["cat", "cow"]'}}, "does not know the class 'dog'"),
        ({"fault": "size 128 is not 64"}, r"fails on images of shape \(2, 3, 128, 128\) \(size 128 is not 64\)"),
    ],
)
def test_a_model_that_does_not_fit_is_one_sentence(model, changed, sentence):
    with pytest.raises(UnspurError, match=sentence):
        model(**changed)


def test_a_file_that_is_no_model_is_one_sentence(model):
    def refuse(self, path, options, providers):
        raise ValueError("Protobuf\nparsing failed")

    with pytest.raises(UnspurError, match=r"is not an ONNX model that can be read \(Protobuf parsing failed\)"):
        model(__init__=refuse)


def test_without_the_runtime_its_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "my.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UnspurError, match="pip install onnxruntime"):
        onnx_model(tmp_path / "my.onnx", CLASSES)
