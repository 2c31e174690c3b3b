"""audit.html: what an audit found, with pictures of it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from unspur.practice.audit.audit import Examined
from unspur.practice.audit.collect import Collected
from unspur.practice.audit.evidence import Evidence
from unspur.practice.audit.findings import Finding
from unspur.practice.audit.suspects import contradiction
from unspur.practice.audit.swap_test import Swap, swap_examples
from unspur.report.audit_context import (
    AuditContext,
    ChecksContext,
    ClassExamples,
    EvidenceContext,
    Example,
    FindingContext,
    HiddenContext,
    JudgedImage,
    LookedAtContext,
    MeanImage,
    MinedContext,
    RelianceContext,
    SuspectsContext,
    SwapExample,
)
from unspur.report.audit_page import write_audit
from unspur.report.page import Failure
from unspur.report.scores import Share

CLASSES = 6  # shown at most
EXAMPLES = 6  # of each class
SWAPS = 4  # shown swaps that the model followed, and half as many that it did not
PICTURED = 4  # findings with pictures: the gravest
SUSPECTS = 120  # in the gallery
OVERALL = 0.95  # share of the image: an outline around more than this says nothing


def write_audit_page(out: Path, name: str, examined: Examined, *, seed: int = 0) -> list[Failure]:
    """Write the page of an audit to the file ``out``; returns which of its parts failed."""
    return write_audit(context_of(name, examined, seed), out)


def context_of(name: str, examined: Examined, seed: int = 0) -> AuditContext:
    """What the page shows."""
    audit, data, _ = examined
    grave = [finding for finding in audit.findings if finding.grade != "informative"]
    pictured = {id(finding) for finding in grave[:PICTURED]}
    first = next((finding for finding in grave if finding.suspects), None)
    return AuditContext(
        name=name,
        verdict=audit.verdict,
        sentence=audit.sentence,
        next=audit.next,
        images=audit.images,
        of=audit.of,
        model=audit.model,
        model_accuracy=audit.model_accuracy,
        estimated_worst_group=audit.estimated_worst_group,
        means=_means(data),
        leak_map=audit.leak_map,
        chance=1 / len(audit.classes),
        findings=tuple(_finding(each, examined, seed, id(each) in pictured) for each in audit.findings),
        suspects=_suspects(first, data) if first else None,
        tested=tuple(ChecksContext(*each) for each in audit.tested),
        notes=audit.notes,
        evidence=_evidence(audit.evidence),
    )


def _evidence(found: Evidence | None) -> EvidenceContext | None:
    """The evidence for the page; None if nothing was found out about the model."""
    if found is None or not (found.looked_at or found.hidden or found.mined):
        return None
    hidden = found.hidden
    return EvidenceContext(
        LookedAtContext(*found.looked_at) if found.looked_at else None,
        None
        if hidden is None
        else HiddenContext(
            hidden.accuracy,
            hidden.hidden,
            hidden.control,
            Share(hidden.control - hidden.hidden, *hidden.ci95),
            hidden.share,
            hidden.images,
        ),
        tuple(
            MinedContext(
                each.by,
                len(each.numbers),
                each.of,
                each.accuracy,
                each.elsewhere,
                each.loss,
                each.loss_elsewhere,
                each.suspects,
            )
            for each in found.mined
        ),
    )


def _means(data: Collected) -> tuple[MeanImage, ...]:
    labels = data.y[data.pictured]
    sizes = torch.bincount(data.y, minlength=len(data.classes))
    means = []
    for label, name in enumerate(data.classes[:CLASSES]):
        own = (labels == label).nonzero().squeeze(1)
        total = torch.zeros(data.pictures.shape[1:])
        for part in own.split(256):
            total += data.pictures[part].sum(0, dtype=torch.float)
        means.append(MeanImage(name, int(sizes[label]), (total / max(1, len(own))).round().to(torch.uint8)))
    return tuple(means)


def _finding(finding: Finding, examined: Examined, seed: int, pictured: bool) -> FindingContext:
    audit, data, model = examined
    looked = audit.evidence.looked_at if audit.evidence and finding.where else None
    swaps = swap_examples(model, finding, data, seed=seed) if pictured and model and finding.reliance else []
    accuracy, bounds = finding.accuracy_on_suspects, finding.suspects_ci95
    return FindingContext(
        what=finding.what,
        grade=finding.grade,
        tells=Share(finding.tells_label, *finding.ci95),
        p=finding.p,
        reliance=_reliance(finding),
        suspects=None if finding.suspects is None else len(finding.suspects),
        accuracy_on_suspects=None if accuracy is None or bounds is None else Share(accuracy, *bounds),
        classes=_typical(finding, data) if pictured else (),
        swaps=_shown(swaps, finding, data.classes),
        map_share=looked.share_of(finding.where) if looked and finding.where else None,
        area_share=len(finding.where) / looked.map.numel() if looked and finding.where else None,
    )


def _reliance(finding: Finding) -> RelianceContext | None:
    found = finding.reliance
    if found is None:
        return None
    difference = Share(found.follows_cue - found.control, *found.ci95)
    return RelianceContext(found.follows_cue, found.control, difference, found.leans, found.images)


def _typical(finding: Finding, data: Collected) -> tuple[ClassExamples, ...]:
    """Images of each class that show its usual cue most clearly."""
    if finding.cue is None:
        return ()
    against = torch.full((len(data.y),), torch.inf)
    against[finding.index] = contradiction(finding, data.y)
    rows = []
    for label, name in enumerate(data.classes[:CLASSES]):
        places = (data.y[data.pictured] == label).nonzero().squeeze(1)
        chosen = places[against[data.pictured[places]].argsort()[:EXAMPLES]]
        rows.append(ClassExamples(name, tuple(_examples(finding, data.pictures[chosen]))))
    return tuple(rows)


def _examples(finding: Finding, pictures: Tensor) -> list[Example]:
    if finding.cue is None or not len(pictures):
        return [Example(picture, None) for picture in pictures]
    outlines = finding.cue.outline(pictures.float() / 255)
    return [
        Example(picture, None if float(outline.float().mean()) > OVERALL else outline)
        for picture, outline in zip(pictures, outlines, strict=True)
    ]


def _shown(swaps: list[Swap], finding: Finding, classes: tuple[str, ...]) -> tuple[SwapExample, ...]:
    """The first swaps that changed the prediction to the donor's class, then the first that did not."""
    followed = [swap for swap in swaps if swap.after == swap.donor_label != swap.before]
    stayed = [swap for swap in swaps if swap.after != swap.donor_label]
    return tuple(
        SwapExample(
            _bytes(swap.image),
            _examples(finding, _bytes(swap.donor).unsqueeze(0))[0],
            _bytes(swap.changed),
            *(classes[code] for code in (swap.label, swap.donor_label, swap.before, swap.after)),
        )
        for swap in [*followed[:SWAPS], *stayed[: SWAPS // 2]]
    )


def _bytes(image: Tensor) -> Tensor:
    return (image.clamp(0, 1) * 255).round().to(torch.uint8)


def _suspects(finding: Finding, data: Collected) -> SuspectsContext:
    """All images that the finding was judged on, and pictures of its suspects."""
    numbers, shows = finding.index.tolist(), finding.margins.argmax(1).tolist()
    judged = tuple(
        JudgedImage(data.names[number], data.classes[int(data.y[number])], data.classes[shown])
        for number, shown in zip(numbers, shows, strict=True)
    )
    row = {number: place for place, number in enumerate(numbers)}
    place = {number: place for place, number in enumerate(data.pictured.tolist())}
    chosen = [number for number in finding.suspects or () if number in place][:SUSPECTS]
    pictures = data.pictures[torch.tensor([place[number] for number in chosen], dtype=torch.long)]
    examples = _examples(finding, pictures)
    return SuspectsContext(
        finding.what,
        judged,
        tuple((row[number], example) for number, example in zip(chosen, examples, strict=True)),
        len(finding.suspects or ()),
        data.facts is not None,
    )
