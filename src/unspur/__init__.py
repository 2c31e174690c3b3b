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
    from unspur.methods.afr import AFR
    from unspur.methods.asam import ASAM
    from unspur.methods.base import Fit
    from unspur.methods.causirl_coral import CausIRLCORAL
    from unspur.methods.causirl_mmd import CausIRLMMD
    from unspur.methods.cim import CIM
    from unspur.methods.class_balanced import ClassBalanced
    from unspur.methods.coral import CORAL
    from unspur.methods.cvar_dro import CVaRDRO
    from unspur.methods.dcwp import DCWP
    from unspur.methods.deep_gamblers import DeepGamblers
    from unspur.methods.dfr import DFR
    from unspur.methods.disent import DisEnt
    from unspur.methods.dispel import DISPEL
    from unspur.methods.divdis import DivDis
    from unspur.methods.ee import EE
    from unspur.methods.eiil import EIIL
    from unspur.methods.end import EnD
    from unspur.methods.erm import ERM
    from unspur.methods.fish import Fish
    from unspur.methods.focal import Focal
    from unspur.methods.group_balanced import GroupBalanced
    from unspur.methods.groupdro import GroupDRO
    from unspur.methods.irm import IRM
    from unspur.methods.jtt import JTT
    from unspur.methods.large_lr import LargeLR
    from unspur.methods.lff import LfF
    from unspur.methods.lisa import LISA
    from unspur.methods.masktune import MaskTune
    from unspur.methods.mixup import Mixup
    from unspur.methods.mmd import MMD
    from unspur.methods.mmd_aae import MMDAAE
    from unspur.methods.mrm import MRM
    from unspur.methods.osp import OSP
    from unspur.methods.randmask import RandMask
    from unspur.methods.rebias import ReBias
    from unspur.methods.selectivenet import SelectiveNet
    from unspur.methods.softmax_response import SoftmaxResponse
    from unspur.methods.spare import SPARE
    from unspur.methods.spectral_decoupling import SpectralDecoupling
    from unspur.methods.ssa import SSA
    from unspur.methods.ula import ULA
    from unspur.methods.ule import ULE
    from unspur.methods.ule_last_layer import ULELastLayer
    from unspur.methods.vrex import VREx
    from unspur.methods.w2d import W2D
    from unspur.methods.xrm import XRM
    from unspur.models.base import penultimate
    from unspur.models.catalog import build_model
    from unspur.models.foreign import wrap
    from unspur.runs.experiment import run
    from unspur.saliency.cam import cam
    from unspur.train.recipe import SGD, Adadelta, Adam, AdamW

_PUBLIC = {
    "AFR": "unspur.methods.afr",
    "ASAM": "unspur.methods.asam",
    "Adadelta": "unspur.train.recipe",
    "Adam": "unspur.train.recipe",
    "AdamW": "unspur.train.recipe",
    "Batch": "unspur.data.base",
    "CIM": "unspur.methods.cim",
    "CORAL": "unspur.methods.coral",
    "CVaRDRO": "unspur.methods.cvar_dro",
    "CausIRLCORAL": "unspur.methods.causirl_coral",
    "CausIRLMMD": "unspur.methods.causirl_mmd",
    "ClassBalanced": "unspur.methods.class_balanced",
    "DCWP": "unspur.methods.dcwp",
    "DFR": "unspur.methods.dfr",
    "DISPEL": "unspur.methods.dispel",
    "Dataset": "unspur.data.base",
    "DeepGamblers": "unspur.methods.deep_gamblers",
    "DisEnt": "unspur.methods.disent",
    "DivDis": "unspur.methods.divdis",
    "EE": "unspur.methods.ee",
    "EIIL": "unspur.methods.eiil",
    "ERM": "unspur.methods.erm",
    "EnD": "unspur.methods.end",
    "Fish": "unspur.methods.fish",
    "Fit": "unspur.methods.base",
    "Focal": "unspur.methods.focal",
    "GroupBalanced": "unspur.methods.group_balanced",
    "GroupDRO": "unspur.methods.groupdro",
    "IRM": "unspur.methods.irm",
    "JTT": "unspur.methods.jtt",
    "LISA": "unspur.methods.lisa",
    "LargeLR": "unspur.methods.large_lr",
    "LfF": "unspur.methods.lff",
    "MMD": "unspur.methods.mmd",
    "MMDAAE": "unspur.methods.mmd_aae",
    "MRM": "unspur.methods.mrm",
    "MaskTune": "unspur.methods.masktune",
    "Mixup": "unspur.methods.mixup",
    "OSP": "unspur.methods.osp",
    "Predictor": "unspur.evaluation.abstention",
    "RandMask": "unspur.methods.randmask",
    "ReBias": "unspur.methods.rebias",
    "SGD": "unspur.train.recipe",
    "SPARE": "unspur.methods.spare",
    "SSA": "unspur.methods.ssa",
    "SelectiveNet": "unspur.methods.selectivenet",
    "SoftmaxResponse": "unspur.methods.softmax_response",
    "SpectralDecoupling": "unspur.methods.spectral_decoupling",
    "Split": "unspur.data.base",
    "ULA": "unspur.methods.ula",
    "ULE": "unspur.methods.ule",
    "ULELastLayer": "unspur.methods.ule_last_layer",
    "VREx": "unspur.methods.vrex",
    "W2D": "unspur.methods.w2d",
    "XRM": "unspur.methods.xrm",
    "build_model": "unspur.models.catalog",
    "cam": "unspur.saliency.cam",
    "evaluate": "unspur.evaluation.scores",
    "load": "unspur.data.catalog",
    "penultimate": "unspur.models.base",
    "run": "unspur.runs.experiment",
    "wrap": "unspur.models.foreign",
}

__all__ = [
    "AFR",
    "ASAM",
    "CIM",
    "CORAL",
    "DCWP",
    "DFR",
    "DISPEL",
    "EE",
    "EIIL",
    "ERM",
    "IRM",
    "JTT",
    "LISA",
    "MMD",
    "MMDAAE",
    "MRM",
    "OSP",
    "SGD",
    "SPARE",
    "SSA",
    "ULA",
    "ULE",
    "W2D",
    "XRM",
    "Adadelta",
    "Adam",
    "AdamW",
    "Batch",
    "CVaRDRO",
    "CausIRLCORAL",
    "CausIRLMMD",
    "ClassBalanced",
    "Dataset",
    "DeepGamblers",
    "DisEnt",
    "DivDis",
    "EnD",
    "Fish",
    "Fit",
    "Focal",
    "GroupBalanced",
    "GroupDRO",
    "LargeLR",
    "LfF",
    "MaskTune",
    "Mixup",
    "Predictor",
    "RandMask",
    "ReBias",
    "SelectiveNet",
    "SoftmaxResponse",
    "SpectralDecoupling",
    "Split",
    "ULELastLayer",
    "UnspurError",
    "VREx",
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
