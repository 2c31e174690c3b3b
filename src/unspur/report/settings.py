"""A run's settings as the page writes them, and what to call a run beside others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspur.core.options import options
from unspur.runs.config import Config, configure


@dataclass(frozen=True)
class Setting:
    """One setting of a run, as ``--set`` would name it."""

    key: str
    value: str
    changed: bool  # differs from the default
    comment: str


def settings(config: Config) -> tuple[Setting, ...]:
    """Every setting of the run, those that differ from the defaults marked."""
    default = configure(config.method.name, config.data.name, config.arch.name)
    usual = {key: value for key, value, _ in _flat(default)}
    return tuple(
        Setting(key, plain(value), key not in usual or usual[key] != value, comment)
        for key, value, comment in _flat(config)
    )


def labels(configs: Sequence[Config]) -> list[str]:
    """What to call each run beside the others: its method, and what sets it apart from its like on the same data.

    Where networks differ all are named, or methods would be compared that did not have the same. The seed is left out:
    runs that differ by it alone are the same thing done again.
    """
    flat = [{key: value for key, value, _ in _flat(config) if key != "seed"} for config in configs]
    names = []
    for own in flat:
        like = [other for other in flat if all(other[key] == own[key] for key in ("method", "data.name"))]
        archs = {other["arch.name"] for other in flat if other["data.name"] == own["data.name"]}
        words = [own["method"], *([own["arch.name"]] if len(archs) > 1 else ())]
        for key, value in own.items():
            # Another architecture has other options; its name has said so.
            peers = [o for o in like if not key.startswith("arch.") or o["arch.name"] == own["arch.name"]]
            if any(key not in other or other[key] != value for other in peers):
                words.append(f"{key}={plain(value)}")
        names.append(" ".join(words))
    return names


def plain(value: Any) -> str:
    """A setting's or a fact's value as a person would write it.

    >>> plain((1, 2)), plain(None), plain(1e-05), plain(True), plain({"lam": 0.5, "epoch": 10})
    ('1,2', 'none', '1e-05', 'true', 'lam 0.5, epoch 10')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ",".join(plain(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items())
    return str(value)


def _flat(config: Config) -> Iterable[tuple[str, Any, str]]:
    yield "method", config.method.name, ""
    yield from options(config.method)
    yield "data.name", config.data.name, ""
    yield from options(config.data, "data.")
    yield "arch.name", config.arch.name, ""
    yield from options(config.arch, "arch.")
    yield "seed", config.seed, "fixes everything random"
    yield "precision", config.precision, "full, or bf16: the networks' products in 16 bits"
