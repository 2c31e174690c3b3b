"""What the model uses, beside the swap test: where it looks, what hiding that costs, what it misses."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unspur.report.audit_context import AuditContext, HiddenContext, LookedAtContext, MinedContext
from unspur.report.pictures import enlarged, picture
from unspur.report.section import Section
from unspur.report.sections.audit_leak_map import Cell, cells_of

MINERS = {"gce": "GCE (learns what is easy)", "twins": "XRM's twins (each tested on the other's images)"}


@dataclass(frozen=True)
class MinedRow:
    """One miner's images."""

    by: str
    mined: int
    of: int
    accuracy: float | None
    elsewhere: float | None
    loss: str
    loss_elsewhere: str
    suspects: int | None


@dataclass(frozen=True)
class ModelView:
    """The mean image under two maps, the hiding test, and mined images."""

    model: str | None
    mean: str
    rows: int
    columns: int
    leak_cells: tuple[Cell, ...]
    map_cells: tuple[Cell, ...]
    looked_at: LookedAtContext | None
    agrees: str
    hidden: HiddenContext | None
    mined: tuple[MinedRow, ...]


def view(audit: AuditContext) -> ModelView:
    evidence = audit.evidence
    assert evidence is not None  # the page leaves this section out
    looked = evidence.looked_at
    mean = torch.stack([each.mean.float() for each in audit.means]).mean(0).round().to(torch.uint8)
    rows, columns = audit.leak_map.shape
    map_cells = cells_of(looked.map, 0.0, float(looked.map.max())) if looked else ()
    return ModelView(
        audit.model,
        picture(enlarged(mean)),
        rows,
        columns,
        cells_of(audit.leak_map, audit.chance, 1.0),
        map_cells,
        looked,
        "unknown" if looked is None or looked.agrees is None else f"{looked.agrees:+.2f}",
        evidence.hidden,
        tuple(_row(each) for each in evidence.mined),
    )


def _row(each: MinedContext) -> MinedRow:
    return MinedRow(
        MINERS[each.by],
        each.mined,
        each.of,
        each.accuracy,
        each.elsewhere,
        _number(each.loss),
        _number(each.loss_elsewhere),
        each.suspects,
    )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


AUDIT_MODEL = Section("audit_model", view)
