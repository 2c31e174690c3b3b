"""The features of a frozen network, computed once and kept."""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from unspur.core.files import read_tensors, write_tensors
from unspur.core.progress import Done, of_stage
from unspur.data.augment import Augment
from unspur.data.base import Split
from unspur.data.files.fetch import cache_folder
from unspur.errors import UnspurError
from unspur.models.base import evaluating, head_of, hooked, with_features
from unspur.models.inference import available, fastest
from unspur.train.session import Session

BATCH = 50  # batches that fit into a CPU's cache are faster
WORTH_KEEPING = 5.0  # features that took more seconds than this are kept for other runs


def features_of(model: nn.Module, split: Split, session: Session, stage: str) -> Tensor:
    """What goes into the head of ``model`` for every sample of ``split``, in evaluation mode: (samples, features).

    A fit that is started again finds them under ``stage``.
    """
    if (state := session.load(stage)) is not None:
        found: Tensor = state["features"]
        return found.to(session.device)
    model.to(session.device)
    session.counts(stage, len(split), "images")
    features = kept_features(model, split, session.device, of_stage(session.progress, stage))
    session.save(stage, {"features": features})
    return features.to(session.device)


def kept_features(model: nn.Module, split: Split, device: torch.device, progress: Done | None = None) -> Tensor:
    """What goes into the head of ``model``, which is on ``device``, for every sample of ``split``, on the CPU.

    They are computed in the fastest available way (models/inference.py), which differs from the model's own in the last
    digits. Features that took long to compute are kept in the user's cache, under a key of everything they depend on
    (the frozen weights, the samples, threads and versions). Another seed or another method with the same frozen network
    finds them there. The cache can be deleted at any time.
    """
    path = cache_folder() / "features" / f"{_key(model, split, device)}.safetensors"
    features = _kept(path)
    if features is None:
        begin = time.monotonic()
        features = _compute(model, split, device, progress)
        if time.monotonic() - begin > WORTH_KEEPING:
            _keep(path, features)
    return features


def frozen_body(model: nn.Module, train: Split | None = None) -> bool:
    """Whether only the head of ``model`` changes in training, so that fixed features can replace the images.

    They cannot where images of ``train`` are augmented at random: these give other features each time.
    """
    return getattr(model, "frozen", None) == "backbone" and (train is None or train.augment in (None, Augment()))


def on_features(model: nn.Module, split: Split, session: Session, stage: str) -> Split:
    """``split`` with the features of ``model`` in place of its images."""
    return replace(split, x=features_of(model, split, session, stage).cpu(), mask=None, augment=None)


def with_head(model: nn.Module, head: nn.Module) -> nn.Module:
    """``model`` with the weights of ``head``, for evaluation."""
    head_of(model).load_state_dict(head.state_dict())
    return model.eval()


def linear_head(model: nn.Module, x: Tensor) -> nn.Linear | None:
    """The head of ``model`` if there is one and its output is the model's for every sample of ``x``; else None.

    The negated output of the head must come out of the model, too: a ReLU behind the head may have had nothing to cut.
    """
    try:
        head = head_of(model)
    except UnspurError:
        return None
    with evaluating(model), torch.no_grad():
        features, logits = with_features(model, x)
        with hooked([head], lambda module, inputs, output: -output):
            opposite = model(x)
        direct = features.ndim == 2 and torch.equal(head(features), logits) and torch.equal(-logits, opposite)
    return head if direct else None


def require_linear_head(model: nn.Module, x: Tensor) -> nn.Linear:
    """The head of ``model``, after checking on ``x`` that nothing follows it."""
    head_of(model)  # an error where there is none
    head = linear_head(model, x)
    if head is None:
        raise UnspurError(
            "Cached features need a model that ends in one linear layer, but this one does something after its last "
            "linear layer; use the method ule with a layer instead."
        )
    return head


def _compute(model: nn.Module, split: Split, device: torch.device, progress: Done | None) -> Tensor:
    parts = []
    order = torch.arange(len(split)).split(BATCH)
    way = fastest(model, split.batch(order[0][:2], device).x, len(split))
    for number, batch in enumerate(split.batches(order, device), 1):
        parts.append(way.features(batch.x).cpu())
        if progress:
            progress(number / len(order))
    return torch.cat(parts)


def _keep(path: Path, features: Tensor) -> None:
    try:
        write_tensors(path, {"features": features})
    except OSError as error:  # losing the cache costs time, but must not stop the run
        reason = error.strerror or error
        print(
            f"Features cannot be kept in {path.parent} ({reason}), so the next run computes them again; free it or let "
            "UNSPUR_CACHE name a folder that can be written.",
            file=sys.stderr,
        )


def _kept(path: Path) -> Tensor | None:
    if not path.exists():
        return None
    try:
        return read_tensors(path)[0]["features"]
    except (UnspurError, KeyError):  # deleted just now, or damaged: features are computed again and replace it
        return None


def _key(model: nn.Module, split: Split, device: torch.device) -> str:
    """A hash of everything that the features depend on."""
    digest = hashlib.sha256()
    digest.update(f"{model} {device.type} {available()}".encode())
    head = {id(p) for p in head_of(model).parameters()}
    for name, value in model.state_dict(keep_vars=True).items():
        if id(value) not in head:
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    for batch in split.batches(torch.arange(len(split)).split(1000)):
        digest.update(batch.x.contiguous().numpy().data)
    return digest.hexdigest()[:32]
