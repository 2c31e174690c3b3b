"""Every method by name."""

from __future__ import annotations

from unspur.errors import unknown
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import Method
from unspur.methods.dcwp import DCWP
from unspur.methods.erm import ERM
from unspur.methods.groupdro import GroupDRO
from unspur.methods.jtt import JTT
from unspur.methods.large_lr import LargeLR
from unspur.methods.masktune import MaskTune
from unspur.methods.mrm import MRM
from unspur.methods.randmask import RandMask
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer

METHODS: dict[str, type[Method]] = {
    "balanced_last_layer": BalancedLastLayer,
    "dcwp": DCWP,
    "erm": ERM,
    "groupdro": GroupDRO,
    "jtt": JTT,
    "large_lr": LargeLR,
    "masktune": MaskTune,
    "mrm": MRM,
    "randmask": RandMask,
    "ule": ULE,
    "ule_last_layer": ULELastLayer,
}


def method_named(name: str) -> type[Method]:
    """The method's class, or an error that names the nearest one."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
