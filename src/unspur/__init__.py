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
    from unspur.evaluation import evaluate
    from unspur.experiment import run
    from unspur.methods.base import Fit
    from unspur.methods.erm import ERM
    from unspur.models.base import penultimate
    from unspur.models.catalog import build_model
    from unspur.saliency.cam import cam
    from unspur.train.recipe import SGD, Adam, AdamW

_PUBLIC = {
    "ERM": "unspur.methods.erm",
    "SGD": "unspur.train.recipe",
    "Adam": "unspur.train.recipe",
    "AdamW": "unspur.train.recipe",
    "Batch": "unspur.data.base",
    "Dataset": "unspur.data.base",
    "Fit": "unspur.methods.base",
    "Split": "unspur.data.base",
    "build_model": "unspur.models.catalog",
    "cam": "unspur.saliency.cam",
    "evaluate": "unspur.evaluation",
    "load": "unspur.data.catalog",
    "penultimate": "unspur.models.base",
    "run": "unspur.experiment",
}

__all__ = [
    "ERM",
    "SGD",
    "Adam",
    "AdamW",
    "Batch",
    "Dataset",
    "Fit",
    "Split",
    "UnspurError",
    "__version__",
    "build_model",
    "cam",
    "evaluate",
    "load",
    "penultimate",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `unspur --help` need not wait for torch."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'unspur' has no attribute '{name}'")
    return getattr(import_module(_PUBLIC[name]), name)
