"""One run, fully specified. Equal configurations are the same run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from unspur.core.options import current_key, from_json, require_choices, to_json, with_option
from unspur.data.catalog import dataset_named
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError, require
from unspur.methods.base import Method
from unspur.methods.catalog import method_named
from unspur.models.catalog import arch_from_json, arch_named
from unspur.models.spec import ArchSpec

Precision = Literal["full", "bf16"]  # bf16: the networks' products in 16 bits, weights and losses in 32


@dataclass(frozen=True)
class Config:
    """A method, a data set, an architecture, a seed and a precision: all that the weights depend on but the machine."""

    method: Method
    data: DataSpec
    arch: ArchSpec
    seed: int = 0
    precision: Precision = "full"

    def __post_init__(self) -> None:
        require(-(2**63) <= self.seed < 2**64, f"The seed must be a number of 64 bits but got {self.seed}.")
        require_choices(self)
        mixes = self.precision == "full" or self.method.mixes
        require(mixes, f"{self.method.name} trains in full precision only.")

    @property
    def key(self) -> str:
        """A short hash of everything: the end of the run folder's name."""
        return key_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        parts = {"method": self.method, "data": self.data, "arch": self.arch}
        # Full precision is not written, so that runs made before there was a choice keep their keys.
        mixed = {} if self.precision == "full" else {"precision": self.precision}
        return {name: to_json(spec) for name, spec in parts.items()} | {"seed": self.seed, **mixed}

    @staticmethod
    def from_json(value: Any) -> Config:
        """The configuration that ``to_json`` described; what does not fit is an UnspurError."""
        try:
            return Config(
                from_json(value["method"], method_named(value["method"]["name"])),
                from_json(value["data"], dataset_named(value["data"]["name"])),
                arch_from_json(value["arch"]),
                int(value["seed"]),
                value.get("precision", "full"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnspurError(f"This is not a run's configuration ({error!r}).") from None


def key_of(config: Mapping[str, Any]) -> str:
    """The key of a configuration as JSON; that of an older version is its own, whatever fields are called now."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def configure(
    method: str,
    data: str,
    arch: str | None = None,
    seed: int = 0,
    settings: Iterable[str] = (),
    say: Callable[[str], None] = lambda sentence: None,
) -> Config:
    """A configuration from names and ``KEY=VALUE`` settings.

    Keys begin with ``data.``, ``arch.`` or a method's field, or are ``precision``. Without ``arch`` the data set's
    usual one is taken. What a key is part of is set before it, in whatever order they come: ``erm=adam`` brings its own
    rate, and ``erm.lr=0.1`` is then that of ``adam``. A key by its old name works, and is said to have a new one.
    """
    spec = dataset_named(data)
    config = Config(method_named(method)(), spec(), arch_named(arch or spec.usual_arch), seed)
    for key, text in sorted(pairs(settings), key=lambda pair: _comes_first(pair[0])):
        if (now := current_key(config.method, key)) != key:
            say(f"The setting {key} of {method} is now called {now}.")
        config = _with_setting(config, now, text)
    return replace(config, method=config.method.settled())


def _with_setting(config: Config, key: str, text: str) -> Config:
    part, _, rest = key.partition(".")
    if part in ("data", "arch") and rest:
        changed: Mapping[str, Any] = {part: with_option(getattr(config, part), rest, text, key)}
    elif key == "precision":
        changed = {"precision": text}
    else:
        changed = {"method": with_option(config.method, key, text, others=("precision",))}
    return replace(config, **changed)


def configure_data(name: str, settings: Iterable[str] = ()) -> DataSpec:
    """A data set alone, from its name and ``data.KEY=VALUE`` settings."""
    return with_data_settings(dataset_named(name)(), settings)


def with_data_settings(spec: DataSpec, settings: Iterable[str]) -> DataSpec:
    """``spec`` changed by ``data.KEY=VALUE`` settings; no others are allowed."""
    for key, text in sorted(pairs(settings), key=lambda pair: _comes_first(pair[0])):
        part, _, rest = key.partition(".")
        if part != "data" or not rest:
            raise UnspurError(
                f"Only settings of the data can be given here, such as data.conflict=0.1, but got '{key}'."
            )
        spec = with_option(spec, rest, text, key)
    return spec


def _comes_first(key: str) -> tuple[int, bool]:
    """In what order keys are set: what others are part of first, and a table before its columns."""
    return key.count("."), key != "data.csv"


def pairs(settings: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Keys and values of ``KEY=VALUE`` settings."""
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UnspurError(f"A setting is KEY=VALUE, such as erm.lr=0.1, but got '{setting}'.")
        yield key, text
