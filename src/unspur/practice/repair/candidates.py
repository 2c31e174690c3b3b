"""What a repair tries, in the order of expected gain per minute by kind of cue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict

from unspur.core.files import read_json
from unspur.core.progress import duration
from unspur.data.spec import DataSpec
from unspur.errors import UnspurError, require
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.base import LogitsMethod, Method
from unspur.methods.catalog import METHODS, method_named
from unspur.methods.erm import ERM
from unspur.methods.swap import Swap
from unspur.methods.ule_last_layer import ULELastLayer
from unspur.models.catalog import arch_named
from unspur.parts.cues.texts import CELLS
from unspur.runs.config import Config
from unspur.runs.defaults import SetSize, fitted, photographs, usual_network
from unspur.runs.estimate import seconds as estimated

EXPECTED = Path(__file__).parent / "expected.json"  # from committed tables
HEADS = ("ule_last_layer", "balanced_last_layer")  # of a frozen network, which must know something
UNKNOWN = 0.5  # points that a method without a figure is expected to gain

KindOfCue = Literal["place", "scene", "trace", "none"]
TRACES = ("tone", "noise", "sharpness", "compression")


class Expected(TypedDict):
    """What a method gained where it was measured."""

    kind: KindOfCue
    method: str
    gain: float  # points of accuracy where the shortcut misleads
    cost: float  # in units of plain training; of photographs it is measured instead
    source: str  # the file that has it


@dataclass(frozen=True)
class Candidate:
    """A method with its configuration, and what is expected of it."""

    name: str
    config: Config
    gain: float
    seconds: float


def kind_of(cues: Sequence[str]) -> KindOfCue:
    """The kind of the first cue, by which expectations are looked up.

    >>> kind_of(["cells:8x8:c0c0000000000000"]), kind_of(["cast"]), kind_of(["noise", "cast"]), kind_of([])
    ('place', 'scene', 'trace', 'none')
    """
    if not cues:
        return "none"
    return "place" if cues[0].startswith(CELLS) else "trace" if cues[0] in TRACES else "scene"


def expectations() -> list[Expected]:
    """Every committed figure."""
    found: list[Expected] = read_json(EXPECTED)["rows"]
    return found


def plain_training(data: DataSpec, seed: int) -> Config:
    """Plain training as a repair begins with it: of the head alone where the network is pretrained."""
    if photographs(data) and (network := usual_network()).weights != "none":
        return Config(ERM(), data, replace(network, freeze="backbone"), seed)
    return Config(ERM(), data, arch_named(data.usual_arch), seed)


def require_known(methods: Sequence[str]) -> None:
    """Refuse names that no candidate has."""
    for name in methods:
        require(method_named(name) is not ERM, "erm is what candidates are compared with; name other methods.")


def require_trainable(methods: Sequence[str], *, groups: bool) -> None:
    """Refuse methods that read group labels where there are none."""
    for name in methods:
        method = METHODS[name]
        require(
            groups or not (method.needs_groups or method.needs_val_groups),
            f"{name} needs data with group labels, and these have none; leave it out.",
        )


def candidates(
    base: Config, cues: Sequence[str], size: SetSize, seconds: float, methods: Sequence[str] = (), *, groups: bool
) -> list[Candidate]:
    """What to try on the data and network of ``base``, whose plain training took ``seconds``.

    ``methods`` names them; by default swap where there is a cue, and all with a figure for this kind of cue that need
    no group labels, or may have them.
    """
    kind = kind_of(cues)
    known = {row["method"]: row for row in expectations() if row["kind"] == kind}
    usual = [name for name in known if groups or not METHODS[name].needs_groups]
    usual = [name for name in usual if _pretrained(base) or name not in HEADS]
    named = list(dict.fromkeys(methods or (*(["swap"] if cues else []), *usual)))
    found = []
    for name in named:
        row, config = known.get(name), _configured(name, base, cues, size)
        takes = estimated(config, size) if photographs(config.data) else (row["cost"] if row else 2.0) * seconds
        found.append(Candidate(name, config, row["gain"] if row else UNKNOWN, takes))
    return sorted(found, key=lambda each: -each.gain / max(each.seconds, 1.0))


def require_one_fits(tried: Sequence[Candidate], left: float) -> None:
    """Stop where the budget is too small for any candidate."""
    if tried and all(each.seconds > left for each in tried):
        least = min(tried, key=lambda each: each.seconds)
        raise UnspurError(
            f"A budget with {duration(left)} left is too small for any candidate: {least.name} takes about "
            f"{duration(least.seconds)}; give it that with --budget."
        )


def _configured(name: str, base: Config, cues: Sequence[str], size: SetSize) -> Config:
    method: Method = METHODS[name]()
    if isinstance(method, Swap):
        method = replace(method, cues=tuple(cues), layers="last" if _pretrained(base) else "all")
    given = frozenset({"arch", "data.size", "data.augment.flip"})  # of the baseline, as they are
    # Only methods on features leave a frozen body as it is; the others fine-tune all of the network.
    frozen = isinstance(method, Swap | LogitsMethod | ULELastLayer | BalancedLastLayer)
    arch = base.arch if frozen else replace(base.arch, freeze="auto")
    return fitted(replace(base, method=method, arch=arch), given, size)


def _pretrained(config: Config) -> bool:
    return photographs(config.data) and config.arch.weights != "none"


def train_command(config: Config, words: str) -> str:
    """The command that does the same run by itself."""
    method, settings = config.method, []
    if config.arch.freeze != "auto":
        settings.append(f"arch.freeze={config.arch.freeze}")
    if isinstance(method, Swap) and method.layers == "last":
        settings.append("layers=last")
    if isinstance(method, Swap) and method.cues:
        settings.append(f"cues={','.join(method.cues)}")
    chosen = "".join(f" --set {setting}" for setting in settings)
    return f"unspur train {method.name} {words} --arch {config.arch.name}{chosen} --seed {config.seed}"
