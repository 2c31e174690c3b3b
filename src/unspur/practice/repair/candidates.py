"""What a repair tries, in the order of expected gain per minute by kind of cue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from unspur.core.progress import duration
from unspur.data.sets.folder import Folder
from unspur.data.spec import DataSpec
from unspur.errors import RunFailed, require, unknown
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import LogitsMethod, Method
from unspur.methods.catalog import METHODS, method_named
from unspur.methods.erm import ERM
from unspur.methods.shown import KindOfCue, shown
from unspur.methods.swap import Swap
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.models.catalog import arch_named
from unspur.parts.cues.texts import CELLS, DETECTED, MARK
from unspur.runs.config import Config
from unspur.runs.defaults import SetSize, fitted, photographs, usual_network
from unspur.runs.estimate import images_trained
from unspur.runs.estimate import seconds as estimated

THOROUGH = "thorough"  # swap also trains all layers of a pretrained network
PRESETS = ("usual", THOROUGH)
ALL_LAYERS = "swap, all layers"  # the candidate that the preset thorough adds
UNKNOWN = 0.5  # points that a method without a measured gain is expected to gain
MOST = 3  # candidates unless they are named: each further one makes the test stricter for all
OF_THE_BASELINE = frozenset({"arch", "data.size", "data.augment.flip"})  # what candidates take over from the baseline
PLACES = (CELLS, MARK, DETECTED)
TRACES = ("tone", "noise", "sharpness", "compression")


@dataclass(frozen=True)
class Candidate:
    """A method with its configuration, its expected gain and its expected time."""

    name: str
    config: Config
    gain: float
    seconds: float


def kind_of(cues: Sequence[str]) -> KindOfCue | None:
    """The kind of the first cue, by which expectations are looked up.

    >>> kind_of(["mark:blue:0.12"]), kind_of(["cast"]), kind_of(["noise", "cast"]), kind_of([])
    ('place', 'scene', 'trace', None)
    """
    if not cues:
        return None
    return "place" if cues[0].partition(":")[0] in PLACES else "trace" if cues[0] in TRACES else "scene"


def expected_gains(kind: KindOfCue | None, *, photographs: bool) -> dict[str, float]:
    """The mean points that each method gained on this kind of cue where the shortcut misleads.

    Only gains on the same kind of images (photographs or others) count, unless none are known.
    """
    gains = {}
    for method, rows in shown().items():
        own = [row for row in rows if row["cue"] == kind]
        same = [row for row in own if row["images"].startswith("photographs") == photographs] or own
        if same:
            gains[method] = fmean(row["after"] - row["before"] for row in same)
    return gains


def plain_training(data: DataSpec, seed: int) -> Config:
    """The plain training with which a repair begins: of the head alone if the network is pretrained."""
    if photographs(data) and (network := usual_network()).weights != "none":
        return Config(ERM(), data, replace(network, freeze="backbone"), seed)
    return Config(ERM(), data, arch_named(data.usual_arch), seed)


def require_known(methods: Sequence[str], preset: str = "usual") -> None:
    """Raise an error for a name that no candidate has, and for an unknown preset."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    for name in methods:
        require(method_named(name) is not ERM, "erm is what candidates are compared with; name other methods.")


def require_trainable(methods: Sequence[str], *, groups: bool, some: bool) -> None:
    """Raise an error for methods that need group labels where there are none, or only for ``some`` (ticked) images."""
    for name in methods:
        method = METHODS[name]
        require(
            groups or (some and not method.needs_groups) or not (method.needs_groups or method.needs_val_groups),
            f"{name} needs data with group labels, and these have none; leave it out.",
        )


def candidates(
    base: Config,
    cues: Sequence[str],
    size: SetSize,
    seconds: float,
    methods: Sequence[str] = (),
    *,
    groups: bool,
    ticked: Path | None = None,
    preset: str = "usual",
) -> list[Candidate]:
    """What to try on the data and network of ``base``, whose plain training took ``seconds``.

    ``methods`` names them. The default is swap if there is a cue, and the best of the methods that gained on this kind
    of cue and either need no group labels or can get them. ``ticked`` is a table of groups: methods that need some
    group labels, or images that go against the cue, hold out the training images that a person ticked in it.
    """
    gains = expected_gains(kind_of(cues), photographs=photographs(base.data))
    usual = [name for name, gain in gains.items() if gain > 0 and (groups or _group_free(name, ticked))]
    usual = [name for name in usual if _pretrained(base) or METHODS[name].network != "pretrained"]
    found = []
    for name in dict.fromkeys(methods or (*(["swap"] if cues else []), *usual)):
        config = _configured(name, base, cues, size)
        method = METHODS[name]
        held_out = method.takes_ticked or (method.needs_val_groups and not groups)
        if ticked and held_out and isinstance(config.data, Folder):
            config = replace(config, data=replace(config.data, groups=str(ticked)))
        found.append(Candidate(name, config, gains.get(name, UNKNOWN), _takes(config, base, size, seconds)))
    if preset == THOROUGH and cues and _pretrained(base):
        config = _all_layers(base, cues, size)
        found.append(Candidate(ALL_LAYERS, config, gains.get(Swap.name, UNKNOWN), _takes(config, base, size, seconds)))
    found.sort(key=lambda each: -each.gain / max(each.seconds, 1.0))
    swaps = [each for each in found if each.name in (Swap.name, ALL_LAYERS)]  # only these use what the audit found
    others = [each for each in found if each not in swaps]
    kept = found if methods else [*swaps, *others[: MOST - len(swaps)]]
    return [each for each in found if each in kept]


def _group_free(name: str, ticked: Path | None) -> bool:
    method = METHODS[name]
    return not method.needs_groups and (ticked is not None or not method.needs_val_groups)


def _takes(config: Config, base: Config, size: SetSize, seconds: float) -> float:
    """About how long a candidate takes: as measured for photographs; for others by the number of images to process."""
    if photographs(config.data):
        return estimated(config, size)
    plain = images_trained(base.method, size.images)
    return seconds * images_trained(config.method, size.images) / plain


def require_one_fits(tried: Sequence[Candidate], left: float) -> None:
    """Raise an error if the budget is too small for any candidate; baseline and audit are kept."""
    if tried and all(each.seconds > left for each in tried):
        least = min(tried, key=lambda each: each.seconds)
        raise RunFailed(
            f"A budget with {duration(left)} left is too small for any candidate: {least.name} takes about "
            f"{duration(least.seconds)}; give it that with --budget."
        )


def _configured(name: str, base: Config, cues: Sequence[str], size: SetSize) -> Config:
    method: Method = METHODS[name]()
    if isinstance(method, Swap):
        method = replace(method, cues=tuple(cues), layers="last" if _pretrained(base) else "all")
    # Only methods on features leave a frozen body as it is; the others fine-tune all of the network.
    frozen = isinstance(method, Swap | LogitsMethod | ULELastLayer | BalancedLastLayer)
    arch = base.arch if frozen else replace(base.arch, freeze="auto")
    return fitted(replace(base, method=method, arch=arch), OF_THE_BASELINE, size)


def _all_layers(base: Config, cues: Sequence[str], size: SetSize) -> Config:
    """Swap that trains the whole network. It can see the edges of pasted parts, so every image gets a swapped cue."""
    method = Swap(cues=tuple(cues), layers="all", share=1.0)
    config = replace(base, method=method, arch=replace(base.arch, freeze="auto"))
    return fitted(config, OF_THE_BASELINE | {"layers", "share"}, size)


def _pretrained(config: Config) -> bool:
    return photographs(config.data) and config.arch.weights != "none"
