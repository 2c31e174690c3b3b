"""How the weights of a result were chosen."""

from __future__ import annotations

from unspur.parts.select import Selection
from unspur.report.context import RunContext
from unspur.report.section import Section


def sentence(selection: Selection) -> str:
    """
    >>> sentence({"by": "the last step", "why": "There is no validation set."})
    'The result has the weights of the last step. There is no validation set.'
    >>> chosen: Selection = {"by": "mined validation samples", "step": 350, "loss": 0.0625, "mined": 42, "of": 5000}
    >>> sentence(chosen)
    'The result has the weights of step 350, chosen by mined validation samples (loss 0.062; 42 of 5000 were mined).'
    >>> kept: Selection = {**chosen, "step": 0, "loss_before": 0.0625, "loss_after": 0.06}
    >>> sentence(kept).partition(", on")[0]
    'The result is the pruned network: fine-tuning lowered its loss from 0.062 to 0.060'
    >>> sentence(kept).partition(", on")[2]
    ' 42 mined ones of 5000 validation samples, which may be chance.'
    """
    if "step" not in selection:
        return f"The result has the weights of {selection['by']}. {selection['why']}"
    if "loss_after" in selection and not selection["step"]:
        before, after = selection["loss_before"], selection["loss_after"]
        moved = "lowered" if after < before else "raised" if after > before else "did not change"
        why = ", which may be chance" if after < before else ""
        told = f"fine-tuning {moved} its loss" + ("" if after == before else f" from {before:.3f} to {after:.3f}")
        where = f"on {selection['mined']} mined ones of {selection['of']} validation samples"
        return f"The result is the pruned network: {told}, {where}{why}."
    judged = f"loss {selection['loss']:.3f}; {selection['mined']} of {selection['of']} were mined"
    return f"The result has the weights of step {selection['step']}, chosen by {selection['by']} ({judged})."


SELECTION = Section[RunContext](
    "selection",
    lambda run: sentence(run.facts["selection"]),
    lambda run: bool(run.facts.get("selection")),
    facts=("selection",),
)
