"""What a run on photographs is about to do, in one line with the time that it will take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import nn

from unspur.core.progress import duration
from unspur.data.base import Dataset, Split
from unspur.data.files.fetch import DataFiles
from unspur.data.images.layout import ImageSet
from unspur.data.images.listing import Listing
from unspur.data.images.splitting import codes, names_in_order, partition
from unspur.data.sets.folder import Folder
from unspur.errors import UnspurError
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import LogitsMethod, Method
from unspur.methods.ee import EE
from unspur.methods.jtt import JTT
from unspur.methods.large_lr import LargeLR
from unspur.methods.masktune import MaskTune
from unspur.methods.mrm import MRM
from unspur.methods.randmask import RandMask
from unspur.methods.ssa import SSA
from unspur.methods.swap import Swap
from unspur.methods.ula import ULA
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.methods.xrm import XRM
from unspur.models.base import head_of, memory_format
from unspur.parts.heads import Head, HeadBatch, Pairs
from unspur.parts.last_layer import Plan
from unspur.runs.config import Config
from unspur.runs.defaults import BATCH, NETWORK, SetSize, fitted, photographs
from unspur.train.recipe import Steps, recipes
from unspur.train.session import Session

TIMED = 8  # images of a step that is timed
FORWARD = 0.3  # of the time of a step: a pass that only looks
HEAD_STEP = 1e-3  # seconds of a step of one head on features
MINED = 0.05  # share of the images that JTT shows more often
RATES = 8  # that large_lr tries
COSTS = {"masks": 1.5, "ule": 3.5}  # of a step with gates, and of ULE's two networks with a second derivative
# Of a step with more than one pass, or with a network beside. What cim and rebias add is the same for any network, so
# that small ones pay most: 1.2 to 2.2 and 2.5 to 6.1 in results/compare-*.json, of which this is the middle.
BESIDE = {"asam": 2.0, "cim": 1.6, "disent": 2.0, "divdis": 2.0, "lff": 2.0, "rebias": 4.0}
ENOUGH, ENOUGH_EACH = 100, 10  # training images, in all and of each class, below which figures are mostly chance


def prepared(config: Config, given: frozenset[str], files: DataFiles, say: Callable[[str], None]) -> Config:
    """``config`` with defaults that fit, said in one line; data sets that are not of image files are left alone."""
    if not photographs(config.data):
        return config
    size = size_of(config, files)
    config = fitted(config, given, size)
    model, shape = blank_model(config, size)
    coarse = config.method.coarse(model, shape) if isinstance(config.method, MaskTune | RandMask) else []
    for sentence in [*doubts(size), *blind(config), *coarse]:
        say(sentence)
    about = duration(max(1.0, seconds(config, size, model)))
    say(f"{summary(config, size)}; about {about}. --set changes any of it.")
    return config


def fitted_to(files: DataFiles, config: Config, given: frozenset[str]) -> Config:
    """``config`` with defaults that fit, without a word: where many runs or short ones are made of it."""
    return fitted(config, given, size_of(config, files)) if photographs(config.data) else config


def size_of(config: Config, files: DataFiles) -> SetSize:
    """The number of training images and classes; no image is decoded."""
    spec = config.data
    if isinstance(spec, Folder):
        listing = spec.listed(files)
        require_different(listing)
        classes = names_in_order(listing.labels)
        parts, _ = partition(listing, codes(listing.labels, classes), spec.val, spec.test, spec.seed)
        return SetSize(len(parts["train"]), len(classes))
    assert isinstance(spec, ImageSet)
    outline = spec.outline(files)
    return SetSize(len(outline.train), len(outline.classes))


def require_different(listing: Listing) -> None:
    """Stop where every image is the same file, byte for byte."""
    if len({file.size for file in listing.files}) > 1 or len(listing) < 2:
        return
    try:
        contents = ((listing.root / file.name).read_bytes() for file in listing.files)
        first = next(contents)
        same = all(content == first for content in contents)
    except OSError:  # the loader says which file and why
        return
    if same:
        raise UnspurError(
            f"All {len(listing):,} images of {listing.root} are the same picture, so that nothing tells the classes "
            "apart; check data.root."
        )


def doubts(size: SetSize) -> list[str]:
    """A sentence on a set that is too small for its figures to mean much.

    >>> doubts(SetSize(1800, 2))
    []
    """
    each = size.images / size.classes
    if size.images < ENOUGH:
        return [f"{size.images} training images are few: a repair cannot be told from chance; add images."]
    if each < ENOUGH_EACH:
        return [
            f"{size.classes} classes have {each:.1f} training images each, too few to learn them or to tell a repair "
            "from chance; add images, or put classes together."
        ]
    return []


def blind(config: Config) -> list[str]:
    """A sentence on features of a network that has learned nothing, where it is frozen or the method reads them."""
    arch, method = config.arch, config.method
    if arch.weights != "none":
        return []
    if arch.frozen == "backbone":
        why = f"arch.freeze=backbone keeps all layers of {arch.name} but the last at their random weights"
    elif method.network == "pretrained":
        why = f"{method.name} reads the features of an untrained network: the weights of {arch.name} are random"
    else:
        return []
    return [f"{why}; use a pretrained network (--arch {NETWORK}, or --set arch.weights=FILE)."]


def summary(config: Config, size: SetSize) -> str:
    """The network, the data and the main training of a run."""
    arch, method = config.arch, config.method
    weights = {"none": "from scratch", "default": "ImageNet weights"}.get(arch.weights, f"weights {arch.weights}")
    frozen = "" if arch.frozen == "none" else f", {arch.frozen} frozen"
    pixels = getattr(config.data, "size", None)
    start = f"{arch.name} ({weights}{frozen}), {pixels} px, {size.images:,} images"
    if isinstance(method, ULELastLayer | BalancedLastLayer):
        plan = method.plan
        settings = len(plan.lams) * len(plan.lrs) * len(plan.l2s)
        return f"{start}: {settings} heads on its features, {plan.epochs} epochs of batches of {plan.batch_size}"
    if isinstance(method, Swap) and method.layers == "last":
        return f"{start}: logistic regression on its features and those of {method.copies} copies of each"
    _, main = max(recipes(method), key=lambda found: found[1].epochs)
    epochs = f"{main.epochs} epoch{'' if main.epochs == 1 else 's'} of batches of {main.batch_size}"
    return f"{start}: {type(main).__name__} {main.lr:g} {main.schedule.name}, {epochs}"


def blank_model(config: Config, size: SetSize) -> tuple[nn.Module, torch.Size]:
    """The run's network, where it will be trained, and the shape of an image."""
    pixels = int(getattr(config.data, "size", 0))
    blank = Split(torch.zeros(2, 3, pixels, pixels, dtype=torch.uint8), torch.zeros(2, dtype=torch.long))
    stub = Dataset("blank", blank, blank, {}, tuple(str(number) for number in range(size.classes)))
    with torch.random.fork_rng():
        model = config.arch.build(stub).to(Session().device)
    return model.to(memory_format=memory_format(model)), blank.sample_shape  # type: ignore[call-overload]


def seconds(config: Config, size: SetSize, model: nn.Module | None = None) -> float:
    """About how long the run will take on this machine, from a few steps that are timed on blank images."""
    pixels = int(getattr(config.data, "size", 0))
    model = model or blank_model(config, size)[0]
    with torch.random.fork_rng():
        image = _step_time(model, torch.zeros(TIMED, 3, pixels, pixels, device=Session().device)) / TIMED
    if isinstance(config.method, Swap) and config.method.layers == "last":
        return FORWARD * image * size.images * (1 + config.method.copies)
    if isinstance(config.method, ULELastLayer | BalancedLastLayer):
        return FORWARD * image * size.images + _heads_time(model, config.method.plan, size)
    if isinstance(config.method, LogitsMethod) and config.arch.frozen == "backbone":
        epochs = sum(recipe.epochs for _, recipe in recipes(config.method))
        return FORWARD * image * size.images + HEAD_STEP * epochs * size.images / BATCH
    return image * images_trained(config.method, size.images)


def _step_time(model: nn.Module, x: torch.Tensor) -> float:
    """The time of a forward and backward pass, the second of two."""
    model.train()
    for _ in range(2):
        begin = time.perf_counter()
        loss = model(x).square().mean()
        loss.backward()
        loss.item()  # waits for a device
        took = time.perf_counter() - begin
    return took


def _heads_time(model: nn.Module, plan: Plan, size: SetSize) -> float:
    head = head_of(model)
    start = Head(head.weight.detach(), None if head.bias is None else head.bias.detach())
    x = torch.rand(plan.batch_size, head.in_features, generator=torch.Generator().manual_seed(0)).to(head.weight)
    targets = torch.zeros(size.classes, plan.batch_size).to(x)
    targets[0] = 1
    grid = Pairs(plan.lams, plan.lrs, plan.l2s, start, start, momentum=plan.momentum, loss=plan.loss)
    with torch.inference_mode():
        for _ in range(2):
            begin = time.perf_counter()
            grid.step(HeadBatch(x, targets, 1.0))
            took = time.perf_counter() - begin
    return took * plan.epochs * math.ceil(size.images / plan.batch_size)


def images_trained(method: Method, images: int) -> float:
    """How many images pass forward and backward, in units of a plain training's.

    >>> from unspur.methods.erm import ERM
    >>> images_trained(ERM(), 1000)  # four epochs
    4000.0
    """
    epochs = {key: float(recipe.epochs) for key, recipe in recipes(method)}
    if isinstance(method, MaskTune | RandMask):
        rounds = method.iterations if isinstance(method, MaskTune) else 1
        tuning = epochs["erm"] if method.restart else 1
        epochs["masked"] = rounds * (tuning + 2 * FORWARD)  # maps, fine-tuning and a look at the result
    elif isinstance(method, Swap):
        epochs["erm"] *= not method.cues  # a biased model, where nobody says what to swap
    elif isinstance(method, ULELastLayer | BalancedLastLayer):
        epochs["features"] = FORWARD
    elif isinstance(method, EE):
        epochs["training"] = FORWARD  # its last layer trains on features
    elif isinstance(method, ULA):
        epochs["proxy"] = FORWARD  # so does its linear head
    elif isinstance(method, XRM):
        epochs["twins"] *= 2 * len(method.rates)
    elif isinstance(method, SSA):
        epochs["attribute"] *= method.folds - 1  # each fold's network sees the others
    elif isinstance(method, JTT):
        epochs["training"] *= 1 + MINED * (method.up - 1)
    elif isinstance(method, ULE):
        epochs["training"] *= COSTS["ule"]
    elif method.name in BESIDE:
        epochs["training"] *= BESIDE[method.name]
    elif isinstance(method, MRM):
        epochs["again"] = epochs["erm"] if method.epochs_again is None else method.epochs_again
        epochs["mining.training"] *= method.debias
    total = images * sum(epochs.values())
    if isinstance(method, LargeLR):
        total += RATES * method.probe.steps * method.erm.batch_size
    return total + sum(COSTS.get(part.name, 1.0) * part.steps * part.batch_size for part in _counted(method))


def _counted(spec: Any) -> Iterator[Steps]:
    """The trainings of a method that count steps."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, Steps):
            yield value
        elif is_dataclass(value):
            yield from _counted(value)
