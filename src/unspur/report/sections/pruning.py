"""The share of weights that pruning left, in all and layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

from unspur.report.context import RunContext
from unspur.report.scores import Share
from unspur.report.section import Section


@dataclass(frozen=True)
class PruningView:
    whole: Share
    layers: tuple[tuple[str, Share], ...]


def view(run: RunContext) -> PruningView:
    layers = tuple((name, Share(kept)) for name, kept in run.facts["kept_by_layer"].items())
    return PruningView(Share(run.facts["kept"]), layers)


PRUNING = Section("pruning", view, lambda run: bool(run.facts.get("kept_by_layer")), facts=("kept", "kept_by_layer"))
