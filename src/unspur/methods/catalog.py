"""Every method by name."""

from __future__ import annotations

from unspur.errors import unknown
from unspur.methods.afr import AFR
from unspur.methods.asam import ASAM
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import Method
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
from unspur.methods.swap import Swap
from unspur.methods.ula import ULA
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.methods.vrex import VREx
from unspur.methods.w2d import W2D
from unspur.methods.xrm import XRM

METHODS: dict[str, type[Method]] = {
    "afr": AFR,
    "asam": ASAM,
    "balanced_last_layer": BalancedLastLayer,
    "causirl_coral": CausIRLCORAL,
    "causirl_mmd": CausIRLMMD,
    "cim": CIM,
    "class_balanced": ClassBalanced,
    "coral": CORAL,
    "cvar_dro": CVaRDRO,
    "dcwp": DCWP,
    "deep_gamblers": DeepGamblers,
    "dfr": DFR,
    "disent": DisEnt,
    "dispel": DISPEL,
    "divdis": DivDis,
    "ee": EE,
    "eiil": EIIL,
    "end": EnD,
    "erm": ERM,
    "fish": Fish,
    "focal": Focal,
    "group_balanced": GroupBalanced,
    "groupdro": GroupDRO,
    "irm": IRM,
    "jtt": JTT,
    "large_lr": LargeLR,
    "lff": LfF,
    "lisa": LISA,
    "masktune": MaskTune,
    "mixup": Mixup,
    "mmd": MMD,
    "mmd_aae": MMDAAE,
    "mrm": MRM,
    "osp": OSP,
    "randmask": RandMask,
    "rebias": ReBias,
    "selectivenet": SelectiveNet,
    "softmax_response": SoftmaxResponse,
    "spare": SPARE,
    "spectral_decoupling": SpectralDecoupling,
    "ssa": SSA,
    "swap": Swap,
    "ula": ULA,
    "ule": ULE,
    "ule_last_layer": ULELastLayer,
    "vrex": VREx,
    "w2d": W2D,
    "xrm": XRM,
}


def method_named(name: str) -> type[Method]:
    """The method's class, or an error that names the nearest one."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
