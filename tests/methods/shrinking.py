"""Any method with settings that take a moment: whatever counts epochs, steps or samples becomes small."""

import dataclasses

# A field of one of these names, wherever it is nested, gets the value if it is larger.
SMALL = {
    "epochs": 2,
    "steps": 3,
    "tries": 1,
    "iterations": 2,
    "every": 2,
    "samples": 100,
    "batch_size": 64,
}
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
    return dataclasses.replace(spec, **changed)
