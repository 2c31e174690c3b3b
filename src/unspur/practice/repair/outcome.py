"""What a repair concludes: sentences that claim no more than its evidence supports."""

from __future__ import annotations

from collections.abc import Mapping

from unspur.practice.audit.findings import AuditJSON, FindingJSON
from unspur.practice.repair.choice import Difference, Judgement
from unspur.practice.repair.state import DifferenceJSON, RelianceChange, RepairJSON

EVIDENCE_WORDS = {
    "swapped": "validation images with the cue of another class",
    "mined": "validation images that a shortcut seems to mislead",
    "classes": "each class's validation images",
    "groups": "the groups that you labelled",
}
NOTHING = "Nothing here is reliably better; your model is kept."


def keep(state: RepairJSON, sentence: str) -> None:
    """Keep the baseline, for the reason that ``sentence`` gives."""
    _forget_choice(state)
    state["sentence"] = sentence


def _forget_choice(state: RepairJSON) -> None:
    """Remove what an earlier command chose, and what the second audit found about it."""
    state["chosen"] = state["run"] = state["second_audit"] = state["second_verdict"] = None
    state["reliance"], state["notes"] = [], []


def conclude(state: RepairJSON, found: Mapping[str, Judgement]) -> None:
    """Write each candidate's judgement into the state, and the sentence about all of them."""
    _forget_choice(state)
    for row in state["tried"]:
        if row["name"] not in found:
            continue
        judgement = found[row["name"]]
        row["gain"], row["ordinary"] = _json(judgement.gain), _json(judgement.ordinary)
        row["reason"] = judgement.reason
        if judgement.reason == "chosen":
            state["chosen"], state["run"] = row["name"], row["run"]
    state["sentence"] = _sentence(state, found)


def _sentence(state: RepairJSON, found: Mapping[str, Judgement]) -> str:
    words = EVIDENCE_WORDS[state["evidence"] or "classes"]
    if state["chosen"] is not None:
        best = found[state["chosen"]]
        return (
            f"Repaired by {state['chosen']}: {_points(best.gain.mean)} points on {words} "
            f"(p = {best.gain.p:.2g}, {len(found)} candidate{'s' * (len(found) != 1)}), {_points(best.ordinary.mean)} "
            f"on {_ordinary(state)}."
        )
    harming = {name: each for name, each in found.items() if each.reason == "harms"}
    if not harming:
        return NOTHING
    name, each = max(harming.items(), key=lambda item: item[1].gain.mean)
    loss = -100 * each.ordinary.low(len(found))
    return (
        f"{NOTHING} {name} gains {_points(each.gain.mean)} points on {words}, but a loss of up to {loss:.1f} on "
        f"{_ordinary(state)} cannot be ruled out, more than the margin of {100 * state['margin']:.1f}; if the cue must "
        f"not count, accept that with --margin {loss / 100:.3f}."
    )


def _ordinary(state: RepairJSON) -> str:
    leak = state["verdict"] in ("leaks", "leans") and state["cues"]
    return "validation images without the leak" if leak else "ordinary validation images"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _json(difference: Difference) -> DifferenceJSON:
    return {"mean": difference.mean, "error": difference.error, "p": difference.p}


def reliance_change(before: AuditJSON, after: AuditJSON) -> list[RelianceChange]:
    """The swap test of every finding that was more than informative, before and after the repair."""
    later = {each["what"]: each for each in after["findings"]}
    changes: list[RelianceChange] = []
    for each in before["findings"]:
        if each["grade"] == "informative" or each["reliance"] is None:
            continue
        now = later.get(each["what"])
        changes.append(
            {
                "what": each["what"],
                "before": _follows(each),
                "after": None if now is None else _follows(now),
                "after_ci95": None if now is None or now["reliance"] is None else now["reliance"]["ci95"],
            }
        )
    return changes


def has_moving_mark(found: AuditJSON) -> bool:
    """Whether a mark that may lie anywhere gives labels away."""
    marks = [each for each in found["findings"] if each["kind"] == "place" and each["where"] is None]
    return any(each["grade"] == "leaks" for each in marks)


def _follows(finding: FindingJSON) -> float | None:
    found = finding["reliance"]
    return None if found is None else found["follows_cue"] - found["control"]
