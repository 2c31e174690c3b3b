"""Find the shortcuts that image classifiers take, train classifiers that do not need them, and measure both honestly.

>>> import unspur
>>> data = unspur.load("biased_mnist", base="mini", conflict=0.01)
>>> sorted(data.tests)
['biased', 'original']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unspur.errors import UnspurError
from unspur.version import __version__

if TYPE_CHECKING:
    from unspur.data.base import Batch, Dataset, Split
    from unspur.data.catalog import load
    from unspur.evaluation.abstention import Predictor
    from unspur.evaluation.scores import evaluate
    from unspur.methods.base import Fit
    from unspur.methods.dcwp import DCWP
    from unspur.methods.erm import ERM
    from unspur.methods.jtt import JTT
    from unspur.methods.large_lr import LargeLR
    from unspur.methods.masktune import MaskTune
    from unspur.methods.mrm import MRM
    from unspur.methods.randmask import RandMask
    from unspur.methods.ule import ULE
    from unspur.methods.ule_last_layer import ULELastLayer
    from unspur.models.base import penultimate
    from unspur.models.catalog import build_model
    from unspur.models.foreign import wrap
    from unspur.runs.experiment import run
    from unspur.saliency.cam import cam
    from unspur.train.recipe import SGD, Adadelta, Adam, AdamW

_PUBLIC = {
    "Adadelta": "unspur.train.recipe",
    "Adam": "unspur.train.recipe",
    "AdamW": "unspur.train.recipe",
    "Batch": "unspur.data.base",
    "DCWP": "unspur.methods.dcwp",
    "Dataset": "unspur.data.base",
    "ERM": "unspur.methods.erm",
    "Fit": "unspur.methods.base",
    "JTT": "unspur.methods.jtt",
    "LargeLR": "unspur.methods.large_lr",
    "MRM": "unspur.methods.mrm",
    "MaskTune": "unspur.methods.masktune",
    "Predictor": "unspur.evaluation.abstention",
    "RandMask": "unspur.methods.randmask",
    "SGD": "unspur.train.recipe",
    "Split": "unspur.data.base",
    "ULE": "unspur.methods.ule",
    "ULELastLayer": "unspur.methods.ule_last_layer",
    "build_model": "unspur.models.catalog",
    "cam": "unspur.saliency.cam",
    "evaluate": "unspur.evaluation.scores",
    "load": "unspur.data.catalog",
    "penultimate": "unspur.models.base",
    "run": "unspur.runs.experiment",
    "wrap": "unspur.models.foreign",
}

__all__ = [
    "DCWP",
    "ERM",
    "JTT",
    "MRM",
    "SGD",
    "ULE",
    "Adadelta",
    "Adam",
    "AdamW",
    "Batch",
    "Dataset",
    "Fit",
    "LargeLR",
    "MaskTune",
    "Predictor",
    "RandMask",
    "Split",
    "ULELastLayer",
    "UnspurError",
    "__version__",
    "build_model",
    "cam",
    "evaluate",
    "load",
    "penultimate",
    "run",
    "wrap",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `unspur --help` need not wait for torch."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'unspur' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)
