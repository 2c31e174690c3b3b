"""Any method with settings that take a moment, and a network that does: whatever counts becomes small."""

import dataclasses

from torch import nn

from unspur.core.seeds import seeded
from unspur.models.classifier import Classifier

# A field of one of these names, wherever it is nested, gets the value if it is larger.
SMALL = {
    "epochs": 2,
    "steps": 4,
    "anneal": 1,
    "tries": 3,
    "iterations": 2,
    "every": 2,
    "samples": 100,
    "fits": 2,
    "batch_size": 64,
}
LARGE = {"patch": 20}  # if it is smaller: of patches of pixels each image has hundreds
FEW = 2  # values of a setting that is searched


def shrunk(spec):
    """``spec``, a frozen dataclass, made small."""
    changed = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if dataclasses.is_dataclass(value):
            changed[field.name] = shrunk(value)
        elif isinstance(value, tuple) and len(value) > FEW:
            changed[field.name] = (value[len(value) // 2], value[-1]) if isinstance(value[0], float) else value[:FEW]
        elif field.name in SMALL and isinstance(value, int) and not isinstance(value, bool):
            changed[field.name] = min(value, SMALL[field.name])
        elif field.name in LARGE:
            changed[field.name] = max(value, LARGE[field.name])
    return dataclasses.replace(spec, **changed)


def small_network(seed=0):
    """A network for 28x28 colour images with all that methods look for: maps, batch norm, dropout, a linear head."""
    with seeded(seed, "network"):
        net = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2, padding=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.2),  # the global generator is tempting
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 7 * 7, 2),
        )
    return Classifier("small", nn.Identity(), net)
