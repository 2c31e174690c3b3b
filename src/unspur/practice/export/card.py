"""The model card: what is known about an exported model, all from the run, its audits and its validation data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import in_bytes
from unspur.evaluation.scores import TestScores
from unspur.practice.audit.findings import AuditJSON
from unspur.practice.export.formats import Checked
from unspur.practice.export.graph import OUTPUTS, RULE_OUTPUTS
from unspur.practice.export.layout import ONNX
from unspur.practice.predict.abstention import Calibration
from unspur.runs.config import Config
from unspur.runs.result import Result

COVERAGES = (1.0, 0.95, 0.9, 0.8)
SPARSE = 0.01  # a network with at least this share of zeros counts as pruned


class Shrinking(NamedTuple):
    """What removing dead channels did, on validation images."""

    channels: int
    weights: tuple[int, int]
    accuracy: tuple[float, float]
    milliseconds: tuple[float, float]


class Facts(NamedTuple):
    """Everything that a card says."""

    config: Config
    result: Result
    classes: tuple[str, ...]
    size: int
    fit: str
    note: str  # of the data
    checked: Checked
    bytes: int  # of the model's file
    calibration: Calibration | None
    coverage: float | None  # of the rule inside the file
    audits: Sequence[tuple[str, AuditJSON]]
    shrinking: Shrinking | None
    zeros: float  # the share of weights that are zero, as pruning leaves them


def card(facts: Facts) -> str:
    """README.md of an exported folder."""
    parts = [_head(facts), _use(facts), _training(facts), _scores(facts), _audits(facts), _abstention(facts)]
    return "\n\n".join([*parts, _limits(facts)]) + "\n"


def _head(facts: Facts) -> str:
    result = facts.result
    return "\n".join(
        [
            f"# {_text(result['arch'])}, trained with {_text(result['method'])} on {_text(result['dataset'])}",
            "",
            f"A classifier of {len(facts.classes)} classes: {_listed(facts.classes)}.",
            "",
            f"Written by unspur {_text(result['version'])} from the run `{_text(result['key'])}`. Every figure here is "
            "measured.",
        ]
    )


def _use(facts: Facts) -> str:
    checked = facts.checked
    lines = ["## Use", "", f"`{checked.file}`, {in_bytes(facts.bytes)}."]
    if checked.file == ONNX:
        rule = f"; {', '.join(RULE_OUTPUTS)}" if facts.coverage is not None else ""
        lines += [
            f"Input `images`: RGB bytes (n, {facts.size}, {facts.size}, 3). Outputs: {', '.join(OUTPUTS)}{rule}.",
            "",
            "```python",
            "import json, numpy, onnxruntime",
            f'session = onnxruntime.InferenceSession("{ONNX}")',
            'labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])',
            f"images = numpy.zeros((1, {facts.size}, {facts.size}, 3), numpy.uint8)  # your own",
            'print([labels[i] for i in session.run(["logits"], {"images": images})[0].argmax(1)])',
            "```",
        ]
    fits = {"stretch": "stretched to the square", "crop": "their middle cropped", "pad": "padded with black"}
    lines += [
        "",
        f"Images are made {facts.size} pixels square, {fits.get(facts.fit, facts.fit)}, by bilinear resizing.",
    ]
    if checked.file_ms is not None:
        lines.append(
            f"It differs from the run's model by at most {checked.difference:.1e} of the largest logit on validation "
            f"images. 16 images take {checked.file_ms:g} ms, and {checked.torch_ms:g} ms in torch, on the machine that "
            "exported it."
        )
    if facts.zeros > SPARSE:
        lines.append(f"{_share(facts.zeros)} of the weights are zero: pruned, and so in the file.")
    if small := facts.shrinking:
        lines.append(
            f"{small.channels:,} dead channels were removed: {small.weights[0]:,} weights became {small.weights[1]:,}, "
            f"validation accuracy {small.accuracy[0]:.4f} became {small.accuracy[1]:.4f}, a batch of 16 in torch "
            f"{small.milliseconds[0]:g} ms became {small.milliseconds[1]:g} ms."
        )
    return "\n".join(lines)


def _training(facts: Facts) -> str:
    result = facts.result
    lines = ["## Training", ""]
    if sizes := result.get("sizes"):
        lines.append(
            f"{sizes['train']:,} training and {sizes['val']:,} validation images of `{_text(result['dataset'])}`."
        )
    if facts.note:
        lines.append(_text(facts.note))
    lines.append(f"Seed {result['seed']}, {result['seconds']:g} s, {_text(result['machine'])}.")
    return "\n".join(lines)


def _scores(facts: Facts) -> str:
    lines = ["## Accuracy on test images", ""]
    for name, scores in facts.result.get("tests", {}).items():
        lines += [*_test(name, scores, facts.classes), ""]
    baseline = facts.result.get("baseline")
    if baseline and baseline["role"] == "before":
        earlier = facts.result.get("stages", {}).get(baseline["stage"])
        for name, scores in earlier["tests"].items() if earlier else ():
            lines.append(f"Before the repair (`{baseline['stage']}`) on `{_text(name)}`: {_share(scores['accuracy'])}.")
    return "\n".join(lines).rstrip()


def _test(name: str, scores: TestScores, classes: Sequence[str]) -> Iterator[str]:
    low, high = scores["ci95"]
    yield f"`{_text(name)}`: {_share(scores['accuracy'])} of {scores['n']:,} (95 %: {_share(low)} to {_share(high)})."
    yield ""
    yield "| class | group | n | accuracy | 95 % |"
    yield "| --- | --- | --- | --- | --- |"
    for group in scores["groups"]:
        own = ", ".join(f"{key} {value}" for key, value in group["attributes"].items()) or "all"
        low, high = group["ci95"]
        yield (
            f"| {_text(classes[group['y']])} | {_text(own)} | {group['n']:,} | {_share(group['accuracy'])} | "
            f"{_share(low)} to {_share(high)} |"
        )


def _audits(facts: Facts) -> str:
    lines = ["## Shortcuts", ""]
    if not facts.audits:
        return "\n".join([*lines, "No audit was given, so nothing is known here of shortcuts (`unspur audit`)."])
    for name, audit in facts.audits:
        lines.append(
            f"- `{_text(Path(name).name)}`, of {_text(audit['model'] or 'the images alone')}: "
            f"**{audit['verdict']}**. {_text(audit['sentence'])}"
        )
    return "\n".join(lines)


def _abstention(facts: Facts) -> str:
    lines = ["## Abstention", ""]
    calibration = facts.calibration
    if calibration is None:
        return "\n".join([*lines, "The run has no validation data, so there is no threshold and no calibration."])
    stored = calibration.stored
    lines += [
        f"From {stored['n']:,} validation images. Temperature {stored['temperatures'][0]:.3f}: the calibration "
        f"error (ECE) on them is {stored['ece_before']:.4f} without it and {stored['ece_after']:.4f} with it.",
        "",
        "| asked | threshold | images | answered | error | 95 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for coverage in COVERAGES:
        for each in calibration.expected(coverage):
            error, ci95 = each["error"], each["ci95"]
            shares = (
                f"{_share(error)} | {_share(ci95[0])} to {_share(ci95[1])}" if ci95 and error is not None else "- | -"
            )
            lines.append(
                f"| {_share(coverage)} | {calibration.threshold(coverage):.4f} | {each['images']} | "
                f"{_share(each['coverage'])} | {shares} |"
            )
    if stored["two_models"]:
        lines += ["", "The model before the repair answers with it: where they disagree it abstains."]
    if facts.coverage is not None:
        lines += ["", f"The file holds this rule at {_share(facts.coverage)}: its output `abstain`."]
    return "\n".join(lines)


def _limits(facts: Facts) -> str:
    lines = ["## Limitations", ""]
    lines += [f"- {_text(warning)}" for warning in facts.result.get("warnings", ())]
    lines.append("- Whatever an image shows, it gets one of the classes above.")
    lines.append(f"- Measured on images like those of `{_text(facts.result['dataset'])}`, and on no others.")
    if not any(group["attributes"] for test in facts.result.get("tests", {}).values() for group in test["groups"]):
        lines.append("- The test images have no group labels, so that accuracy by group is accuracy by class.")
    return "\n".join(lines)


def _share(value: float) -> str:
    return f"{100 * value:.2f} %"


def _listed(names: Sequence[str], most: int = 20) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(_text, names[:most])) + more


def _text(text: str) -> str:
    """Names unchanged, but on one line and without effect as Markdown or HTML.

    >>> _text("a|b <i>\\nc")
    'a\\\\|b &lt;i> c'
    """
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
