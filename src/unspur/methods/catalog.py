"""Every method by name."""

from __future__ import annotations

from unspur.errors import unknown
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import Method
from unspur.methods.causirl_coral import CausIRLCORAL
from unspur.methods.causirl_mmd import CausIRLMMD
from unspur.methods.coral import CORAL
from unspur.methods.dcwp import DCWP
from unspur.methods.erm import ERM
from unspur.methods.fish import Fish
from unspur.methods.groupdro import GroupDRO
from unspur.methods.irm import IRM
from unspur.methods.jtt import JTT
from unspur.methods.large_lr import LargeLR
from unspur.methods.masktune import MaskTune
from unspur.methods.mmd import MMD
from unspur.methods.mrm import MRM
from unspur.methods.randmask import RandMask
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.methods.vrex import VREx

METHODS: dict[str, type[Method]] = {
    "balanced_last_layer": BalancedLastLayer,
    "causirl_coral": CausIRLCORAL,
    "causirl_mmd": CausIRLMMD,
    "coral": CORAL,
    "dcwp": DCWP,
    "erm": ERM,
    "fish": Fish,
    "groupdro": GroupDRO,
    "irm": IRM,
    "jtt": JTT,
    "large_lr": LargeLR,
    "masktune": MaskTune,
    "mmd": MMD,
    "mrm": MRM,
    "randmask": RandMask,
    "ule": ULE,
    "ule_last_layer": ULELastLayer,
    "vrex": VREx,
}


def method_named(name: str) -> type[Method]:
    """The method's class, or an error that names the nearest one."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
