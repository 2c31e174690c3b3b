"""repair.html: the result of a repair, with the same images before and after."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.progress import duration
from unspur.core.seeds import derive
from unspur.metrics.groups import wilson_interval
from unspur.parts.cues.texts import cues_of
from unspur.parts.swapping import CueExchange
from unspur.practice.repair.outcome import EVIDENCE_WORDS
from unspur.practice.repair.scoring import Referee
from unspur.practice.repair.state import DifferenceJSON, RepairJSON, ScoresJSON, TriedJSON
from unspur.report.maps import explainer
from unspur.report.page import Failure
from unspur.report.pictures import drawable
from unspur.report.repair_context import PictureRow, RelianceRow, RepairContext, ScoreRow, TriedRow
from unspur.report.repair_page import write_repair
from unspur.report.scores import Share
from unspur.runs.folder import Run

PICTURES = 12  # validation images that are shown


class Shown(NamedTuple):
    """What the page shows pictures of."""

    referee: Referee
    base: Run
    chosen: Run | None


def write_repair_page(out: Path, name: str, state: RepairJSON, shown: Shown | None) -> list[Failure]:
    """Write the page of a finished repair; return which of its parts failed."""
    return write_repair(context_of(name, state, shown), out)


def context_of(name: str, state: RepairJSON, shown: Shown | None) -> RepairContext:
    """What the page shows."""
    before = state["baseline"]["scores"] if state["baseline"] else None
    chosen = next((row for row in state["tried"] if row["name"] == state["chosen"]), None)
    after = chosen["scores"] if chosen else None
    images = len(shown.referee.data.val) if shown else 0
    explained, pictures = _pictures(shown) if shown and chosen else ("", ())
    return RepairContext(
        name=name,
        sentence=state["sentence"] or "",
        repaired=chosen is not None,
        finding=state["finding"] or "",
        facts=_facts(state, images),
        next=tuple(state["next"]),
        result=state["chosen"] or "your model",
        scores=_scores(before, after, images),
        classes=_by_class(before, after, 0),
        classes_swapped=_by_class(before, after, 1),
        reliance=tuple(
            RelianceRow(
                row["what"],
                row["before"],
                None if row["after"] is None else Share(row["after"], *(row["after_ci95"] or (None, None))),
            )
            for row in state["reliance"]
        ),
        second=state["second_verdict"],
        tried=tuple(_tried(row, state) for row in state["tried"]),
        explained=explained,
        pictures=pictures,
        notes=tuple(state["notes"]),
    )


def _facts(state: RepairJSON, images: int) -> tuple[tuple[str, str], ...]:
    facts = [("took", duration(state["seconds"])), ("margin", f"{100 * state['margin']:.1f} points")]
    if state["evidence"]:
        facts.append(("chosen by", f"{EVIDENCE_WORDS[state['evidence']]} ({state['images']:,} of {images:,})"))
    if state["baseline"]:
        facts.append(("before", "your run" if state["baseline"]["yours"] else "plain training"))
    if state["run"]:
        facts.append(("the model now", state["run"]))
    return tuple(facts)


def _scores(before: ScoresJSON | None, after: ScoresJSON | None, images: int) -> tuple[ScoreRow, ...]:
    if before is None:
        return ()
    rows = [ScoreRow("images as they are", *(_share(each and each["ordinary"], images) for each in (before, after)))]
    if before["swapped"] is not None:
        pair = [_share(each and each["swapped"], images) for each in (before, after)]
        rows.append(ScoreRow("with the cue of another class, mean over classes", *pair))
    if before["removed"] is not None:
        pair = [_share(each and each["removed"], images) for each in (before, after)]
        rows.append(ScoreRow("with the cue taken away", *pair))
    return tuple(rows)


def _share(value: float | None, images: int) -> Share | None:
    return None if value is None else Share(value, *wilson_interval(round(value * images), images), images)


def _by_class(before: ScoresJSON | None, after: ScoresJSON | None, column: int) -> tuple[ScoreRow, ...]:
    rows = []
    for label, values in (before["by_class"] if before else {}).items():
        now = after["by_class"].get(label) if after else None
        first, second = values[column], now[column] if now else None
        if first is not None:
            rows.append(ScoreRow(label, Share(first), None if second is None else Share(second)))
    return tuple(rows)


def _tried(row: TriedJSON, state: RepairJSON) -> TriedRow:
    scores = row["scores"]
    return TriedRow(
        row["name"],
        (row["reason"] if row["status"] == "done" else f"{row['status']}: {row['reason']}") or row["status"],
        row["name"] == state["chosen"],
        scores["evidence"] if scores else None,
        scores["ordinary"] if scores else None,
        _points(row["gain"]),
        _points(row["ordinary"]),
        row["seconds"],
        row["command"],
    )


def _points(difference: DifferenceJSON | None) -> str | None:
    return None if difference is None else f"{100 * difference['mean']:+.1f} ± {100 * difference['error']:.1f}"


def _pictures(shown: Shown) -> tuple[str, tuple[PictureRow, ...]]:
    """Validation images that the model before got wrong once their cue was swapped, then others."""
    referee, base, chosen = shown
    data, val = referee.data, referee.data.val
    if chosen is None or not referee.cues or not drawable(val.sample_shape):
        return "", ()
    order = torch.randperm(len(val), generator=torch.Generator().manual_seed(derive(referee.seed, "pictures") >> 1))
    index = order[: 4 * PICTURES]
    exchange = CueExchange(cues_of(referee.cues))
    donor = exchange.donors(val, 1, None, torch.Generator().manual_seed(derive(referee.seed, "donor") >> 1))[0][index]
    x, other = val.batch(index).x, val.batch(donor).x
    changed = exchange(x, other, index)
    models = [run.load_model(data) for run in (base, chosen)]
    said = [_said(model, changed) for model in models]
    misled = (said[0] != val.y[index]).long()
    keep = misled.argsort(descending=True, stable=True)[:PICTURES]
    explains = [explainer(model, val.sample_shape) for model in models]
    maps = [each.maps(x[keep]).detach() for each in explains]
    rows = [
        PictureRow(
            _bytes(x[at]),
            _bytes(changed[at]),
            maps[0][place],
            maps[1][place],
            data.classes[int(val.y[index[at]])],
            data.classes[int(val.y[donor[at]])],
            data.classes[int(said[0][at])],
            data.classes[int(said[1][at])],
        )
        for place, at in enumerate(keep.tolist())
    ]
    return explains[0].sentence, tuple(rows)


@torch.no_grad()
def _said(model: torch.nn.Module, x: Tensor) -> Tensor:
    return torch.cat([model(part).argmax(1) for part in x.split(50)])


def _bytes(image: Tensor) -> Tensor:
    return (image.clamp(0, 1) * 255).round().to(torch.uint8)
