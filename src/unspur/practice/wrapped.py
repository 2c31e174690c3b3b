"""A wrapped model (models/foreign.py), in the forms that audits and predictions take."""

from __future__ import annotations

import hashlib

from unspur.data.images.decode import SquareFit
from unspur.models.foreign import Wrapped
from unspur.practice.audit.model import ModelToTest, given_model, module_predict
from unspur.practice.predict.classifier import ImageClassifier, OfModule


def to_audit(model: Wrapped) -> ModelToTest:
    """For ``practice.audit.audit.audit(source, model=...)``; it has seen none of the images."""
    shape = (3, model.size, model.size)
    return given_model(model.arch, module_predict(model, shape), model.classes, _content(model), model.size)


def to_predict(model: Wrapped, fit: SquareFit = "stretch") -> ImageClassifier:
    """For ``practice.predict.predict.predict_into``; ``fit`` says how its images were made square."""
    return ImageClassifier(model.arch, _content(model), model.classes, model.size, fit, OfModule(model, 3))


def _content(model: Wrapped) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]
