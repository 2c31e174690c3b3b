"""The `unspur train` command that makes a given run."""

from __future__ import annotations

import shlex
from typing import Any

from unspur.core.options import options
from unspur.runs.config import Config, configure
from unspur.runs.defaults import SetSize, fitted, given_keys


def train_command(config: Config, size: SetSize) -> str:
    """The command that does the same run on a set of this ``size``, with what its defaults would not give.

    >>> config = configure("erm", "biased_mnist", None, 3, ["data.base=mini", "erm.lr=0.2"])
    >>> train_command(config, SetSize(9167, 2))
    'unspur train erm biased_mnist --arch small_cnn --set data.base=mini --set erm.lr=0.2 --seed 3'
    """
    start = ["unspur", "train", config.method.name, config.data.name, "--arch", config.arch.name]
    chosen = [word for key, text in _settings(config, size).items() for word in ("--set", f"{key}={text}")]
    return shlex.join([*start, *chosen, "--seed", str(config.seed)])


def _settings(config: Config, size: SetSize) -> dict[str, str]:
    """What to set: a setting changes what fits the rest, so that differences are looked for again until none is new."""
    chosen: dict[str, str] = {}
    while True:
        made = _flat(_made(config, chosen, size))
        differs = {key: text for key, text in _flat(config).items() if made.get(key) != text and key not in chosen}
        if not differs:
            return chosen
        chosen |= differs


def _made(config: Config, chosen: dict[str, str], size: SetSize) -> Config:
    """What the command makes of the settings ``chosen``."""
    words, arch = [f"{key}={text}" for key, text in chosen.items()], config.arch.name
    made = configure(config.method.name, config.data.name, arch, config.seed, words)
    return fitted(made, given_keys(made.method, arch, words), size)


def _flat(config: Config) -> dict[str, str]:
    """Every setting as `--set` takes it, what others are part of before them."""
    parts = {"data.": config.data, "arch.": config.arch, "": config.method}
    found = {each.key: _text(each.default) for prefix, spec in parts.items() for each in options(spec, prefix)}
    return found | {"precision": config.precision}


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ",".join(_text(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
