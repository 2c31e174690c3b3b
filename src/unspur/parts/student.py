"""A student beside a teacher: the biased network that unlearning starts from."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from unspur.core.seeds import derive
from unspur.data.base import Dataset, Split
from unspur.models.base import evaluating, head_of
from unspur.models.catalog import arch_named
from unspur.models.classifier import Normalize
from unspur.models.spec import ArchSpec


def new_student(arch: str | None, teacher: nn.Module, train: Split, seed: int, weights: str | None = None) -> nn.Module:
    """A student for ``teacher``: of ``arch``, or a copy of the teacher with a new random head.

    It begins with ``weights``, as `arch.weights` names them (None: the architecture's default). It normalises its input
    as these weights were trained; without weights as the teacher does, if that is possible.
    """
    seed = derive(seed, "student")
    if arch is None:
        student = copy.deepcopy(teacher)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            head_of(student).reset_parameters()
        return student
    some = train.batch(torch.arange(min(2, len(train)))).x
    classes = tuple(str(label) for label in range(classes_of(teacher, some)))
    first = next((layer for layer in teacher.modules() if isinstance(layer, Normalize)), None)
    mean, std = (None, None) if first is None else (tuple(v.flatten().tolist()) for v in (first.mean, first.std))
    if mean is not None and len(mean) != train.sample_shape[0]:
        mean, std = None, None  # the teacher repeats grey images
    spec: ArchSpec = arch_named(arch)
    if weights is not None:
        spec = replace(spec, weights=weights)
    return spec.build(Dataset("train", train, train, {}, classes, mean=mean, std=std), seed=seed)


def classes_of(model: nn.Module, x: Tensor) -> int:
    """The number of classes that ``model`` tells apart."""
    device = next((p.device for p in model.parameters()), x.device)
    with evaluating(model), torch.no_grad():
        return int(model(x.to(device)).shape[1])
