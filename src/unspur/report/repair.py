"""What a repair did between plain training and its result, from the stages and facts that a run holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspur.data.base import Dataset
from unspur.report.charts import Chart, stage_chart
from unspur.report.rows import Scored, Share

BEFORE = "erm"  # the stage of plain training


@dataclass(frozen=True)
class Mined:
    """Which training samples were taken for bias-conflicting, and how often that was right, where it is known."""

    count: int
    of: int
    by_class: tuple[tuple[str, int], ...]
    precision: Share | None
    recall: Share | None


@dataclass(frozen=True)
class Kept:
    """The share of weights that pruning left, in all and layer by layer."""

    whole: Share
    layers: tuple[tuple[str, Share], ...]


@dataclass(frozen=True)
class Repair:
    """What is drawn of a repair; ``drawn`` names the facts that need not be written out beside it."""

    charts: tuple[Chart, ...]
    mined: Mined | None
    kept: Kept | None
    chosen: str
    warnings: tuple[str, ...]
    drawn: frozenset[str]


def repair(
    facts: Mapping[str, Any], stages: Sequence[tuple[str, Sequence[Scored]]], tests: Sequence[Scored], data: Dataset
) -> Repair:
    """The repair of a run, each part empty if the run does not hold it."""
    mined, kept, chosen = _mined(facts, data), _kept(facts), _chosen(facts)
    parts = {
        ("mined", "mined_by_class", "mining"): mined,
        ("kept", "kept_by_layer"): kept,
        ("selection",): chosen,
        ("warnings",): "warnings" in facts,
    }
    drawn = frozenset(name for names, part in parts.items() if part for name in names)
    return Repair(_charts(stages, tests), mined, kept, chosen, tuple(facts.get("warnings", ())), drawn)


def _charts(stages: Sequence[tuple[str, Sequence[Scored]]], tests: Sequence[Scored]) -> tuple[Chart, ...]:
    """The accuracy on each test set from plain training to the result."""
    if BEFORE not in [name for name, _ in stages]:
        return ()
    charts = []
    for test in tests:
        scores = {name: own.accuracy.value for name, scored in stages for own in scored if own.name == test.name}
        charts.append(
            stage_chart(f"accuracy on test “{test.name}”", [*scores.items(), ("result", test.accuracy.value)])
        )
    return tuple(charts)


def _mined(facts: Mapping[str, Any], data: Dataset) -> Mined | None:
    if "mined_by_class" not in facts:
        return None
    quality = facts.get("mining", {})
    precision, recall = (None if quality.get(key) is None else Share(quality[key]) for key in ("precision", "recall"))
    by_class = tuple(zip(data.classes, facts["mined_by_class"], strict=False))
    return Mined(facts["mined"], len(data.train), by_class, precision, recall)


def _kept(facts: Mapping[str, Any]) -> Kept | None:
    layers = facts.get("kept_by_layer")
    return Kept(Share(facts["kept"]), tuple((name, Share(kept)) for name, kept in layers.items())) if layers else None


def _chosen(facts: Mapping[str, Any]) -> str:
    """How the weights of the result were chosen.

    >>> _chosen({"selection": {"by": "the last step", "why": "There is no validation set."}})
    'The result has the weights of the last step. There is no validation set.'
    >>> chosen = {"by": "mined validation samples", "step": 350, "loss": 0.0625, "mined": 42, "of": 5000}
    >>> _chosen({"selection": chosen})
    'The result has the weights of step 350, chosen by mined validation samples (loss 0.062; 42 of 5000 were mined).'
    >>> kept = {**chosen, "step": 0, "loss_before": 0.0625, "loss_after": 0.06}
    >>> _chosen({"selection": kept}).partition(", on")[0]
    'The result is the pruned network: fine-tuning lowered its loss from 0.062 to 0.060'
    >>> _chosen({"selection": kept}).partition(", on")[2]
    ' 42 mined ones of 5000 validation samples, which may be chance.'
    """
    selection = facts.get("selection")
    if not selection:
        return ""
    if "step" not in selection:
        return f"The result has the weights of {selection['by']}. {selection['why']}"
    if "loss_after" in selection and not selection["step"]:
        before, after = selection["loss_before"], selection["loss_after"]
        moved = "lowered" if after < before else "raised"
        why = ", which may be chance" if after < before else ""
        told = f"fine-tuning {moved} its loss from {before:.3f} to {after:.3f}"
        where = f"on {selection['mined']} mined ones of {selection['of']} validation samples"
        return f"The result is the pruned network: {told}, {where}{why}."
    judged = f"loss {selection['loss']:.3f}; {selection['mined']} of {selection['of']} were mined"
    return f"The result has the weights of step {selection['step']}, chosen by {selection['by']} ({judged})."
