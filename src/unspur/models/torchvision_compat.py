"""torchvision, also where a build of it for CUDA lies beside a torch without CUDA."""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType

import torch

# Such a build cannot load its compiled operators, and its import then stops at the first one that it looks up by name:
# "operator torchvision::nms does not exist". Classifiers and transforms need none of them, so it is enough that these
# two names exist. Calling them still fails, as it should: there is nothing behind them.
_MISSING = "operator torchvision::nms does not exist"
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def import_torchvision() -> ModuleType:
    """The module torchvision; everything here gets it through this function.

    An ordinary installation is imported as it is: the operators are declared only if the import failed because they
    were missing.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if _MISSING not in str(error):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # the failed import leaves submodules behind, which the next import would reuse
    _declare_operators()
    return importlib.import_module("torchvision")


@functools.cache  # declaring an operator twice is an error
def _declare_operators() -> None:
    for operator in ("nms", "qnms"):
        torch.library.define(f"torchvision::{operator}", _SIGNATURE)
