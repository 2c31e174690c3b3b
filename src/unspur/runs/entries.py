"""What a comparison consists of: methods on data sets, each with the same candidates to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from unspur.core.options import current_key
from unspur.data.base import Dataset
from unspur.data.catalog import dataset_named
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError, require
from unspur.methods.base import Method
from unspur.methods.catalog import METHODS, method_named
from unspur.runs.config import Config, configure, pairs
from unspur.runs.defaults import fitted, given_keys, photographs, with_value
from unspur.runs.estimate import size_of
from unspur.train.recipe import recipes

PLAIN = "erm"  # what all others are compared with; its mistakes are the groups where none are known


@dataclass(frozen=True)
class Entry:
    """A method on a data set: for each candidate a configuration for each seed."""

    method: str
    dataset: str
    candidates: tuple[tuple[Config, ...], ...]
    left_out: str = ""  # why it cannot run there

    @property
    def first(self) -> Config:
        return self.candidates[0][0]

    @property
    def configs(self) -> list[Config]:
        return [] if self.left_out else [config for own in self.candidates for config in own]


def enter(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: Sequence[int],
    *,
    arch: str | None = None,
    settings: Iterable[str] = (),
    rates: Sequence[float] = (1.0,),
    data_dir: Path | None = None,
) -> list[Entry]:
    """Every method on every data set; plain training is always among them.

    A setting reaches every method or data set that has it, and with a method's name before it that one alone, such as
    ``jtt:erm.epochs=1``. The candidates are each method's own rates times ``rates``. A method that cannot run on a data
    set is left out there, with the reason.
    """
    for what, given_names in (("method", methods), ("data set", datasets)):
        require(len(given_names) > 0, f"A comparison needs at least one {what}; separate several by commas.")
    require(len(seeds) > 0, "A comparison needs at least one seed, such as --seeds 0,1,2.")
    require(len(rates) > 0 and min(rates) > 0, f"--rates must be numbers above 0 but got {list(rates)}.")
    names = list(dict.fromkeys([PLAIN, *(METHODS if list(methods) == ["all"] else methods)]))
    for name in names:  # before any data are looked at, which may be missing
        method_named(name)
    for data in datasets:
        dataset_named(data)
    given, files = list(settings), DataFiles(data_dir)
    _require_reaching(given, names, datasets)
    entries = [
        _entry(name, data, seeds, arch, _reaching(given, name, data), rates, files)
        for data in dict.fromkeys(datasets)
        for name in names
    ]
    loaded = {spec: spec.load(files) for spec in dict.fromkeys(entry.first.data for entry in entries)}
    checked = [_checked(entry, loaded[entry.first.data]) for entry in entries]
    reasons = [entry.left_out for entry in checked if entry.method != PLAIN]
    if reasons and all(reasons):
        raise UnspurError(f"There is nothing to compare with plain training: {reasons[0]}")
    return checked


def _entry(
    method: str,
    data: str,
    seeds: Sequence[int],
    arch: str | None,
    settings: Sequence[str],
    rates: Sequence[float],
    files: DataFiles,
) -> Entry:
    def config(seed: int, rate: float) -> Config:
        made = configure(method, data, arch, seed, settings)
        if photographs(made.data):
            made = fitted(made, given_keys(made.method, arch, settings), size_of(made, files))
        return replace(made, method=_at_rate(made.method, rate))

    candidates = dict.fromkeys(tuple(config(seed, rate) for seed in seeds) for rate in rates)
    return Entry(method, data, tuple(candidates))


def _at_rate(method: Method, rate: float) -> Method:
    """``method`` with the rate of each of its recipes times ``rate``."""
    for key, recipe in recipes(method):
        method = with_value(method, f"{key}.lr", recipe.lr * rate)
    return method


def _checked(entry: Entry, data: Dataset) -> Entry:
    """The entry, left out where its method cannot work with the data."""
    first = entry.first
    try:
        first.method.require(first.arch.build(data), data.train, data.val)
    except UnspurError as error:
        return replace(entry, left_out=str(error))
    return entry


def _reaching(settings: Sequence[str], method: str, data: str) -> list[str]:
    """The settings that this method on this data set has, those of it alone last."""
    split = [_split(setting) for setting in settings]
    general = [setting for name, setting in split if name is None and _has(setting, method, data)]
    return [*general, *(setting for name, setting in split if name == method)]


def _require_reaching(settings: Sequence[str], methods: Sequence[str], datasets: Sequence[str]) -> None:
    for name, setting in map(_split, settings):
        require(name is None or name in methods, f"The setting {setting} is of {name}, which is not compared.")
        shared = name is None or not setting.startswith(("data.", "arch."))
        require(shared, f"{name}:{setting} would give {name} other data or another network; leave out '{name}:'.")
        known = name is not None or any(_has(setting, method, data) for method in methods for data in datasets)
        require(known, f"No method or data set that is compared has the setting {setting}; see `unspur methods NAME`.")


def _split(setting: str) -> tuple[str | None, str]:
    """The method that a setting is for, None for all, and the setting itself.

    >>> _split("jtt:erm.epochs=1"), _split("data.root=C:/photos")
    (('jtt', 'erm.epochs=1'), (None, 'data.root=C:/photos'))
    """
    name, colon, rest = setting.partition(":")
    return (name, rest) if colon and "=" not in name else (None, setting)


def _has(setting: str, method: str, data: str) -> bool:
    ((key, _),) = pairs([setting])
    head, _, rest = key.partition(".")
    if head == "arch":
        return True
    if key == "precision":
        return METHODS[method].mixes
    if head == "data":
        return rest.partition(".")[0] in {field.name for field in fields(dataset_named(data)())}  # type: ignore[arg-type]
    made = method_named(method)()
    return current_key(made, key).partition(".")[0] in {field.name for field in fields(made)}
