"""What predict and export did, for people; all but the rows is on stderr."""

from __future__ import annotations

from unspur.cli.shared import say
from unspur.cli.show.console import percent
from unspur.core.files import in_bytes
from unspur.practice.export.export import ExportedJSON
from unspur.practice.predict.predict import AbstentionJSON, SetsOfLabelsJSON, Summary


def print_expected(abstention: AbstentionJSON | None, sets: SetsOfLabelsJSON | None) -> None:
    """What to expect before the first image is read."""
    if abstention:
        _print_abstention(abstention)
    if sets:
        _print_sets(sets)


def _print_sets(sets: SetsOfLabelsJSON) -> None:
    """What sets promise, and how large they are."""
    say(
        f"Sets hold the right label of at least {percent(sets['share'])} of images like the validation data"
        f"{', also with the cue of another class' if sets['cue'] else ''}."
    )
    for each in sets["expected"]:
        say(
            f"Expect on images {each['images']}: {each['size']:.2f} labels in a set, {percent(each['coverage'])} of "
            f"the sets hold the right one (n {each['n']:,})."
        )


def _print_abstention(abstention: AbstentionJSON) -> None:
    """Where the threshold comes from, and what to expect on images with and without the cue."""
    say(
        f"Threshold {abstention['threshold']:.4f} from validation data, to answer {percent(abstention['coverage'])}. "
        f"Temperature {abstention['temperatures'][0]:.3f}: calibration error {abstention['ece_before']:.4f} before, "
        f"{abstention['ece_after']:.4f} after."
    )
    if abstention["cue"]:
        say(f"The audited cue: {abstention['cue']}.")
    for each in abstention["expected"]:
        error = f"error {percent(each['error'])}" if each["error"] is not None else "nothing answered"
        say(
            f"Expect on images {each['images']}: {percent(each['coverage'])} answered, {error} "
            f"({percent(each['error_answering_all'])} when answering all; n {each['n']:,})."
        )
    worst = min(abstention["expected"], key=lambda each: each["coverage"])
    if worst["coverage"] < abstention["coverage"] - 0.05:
        say(
            f"Note: images {worst['images']} are answered less often than asked, because the models disagree, the cue "
            "decides or confidence is low there."
        )


def print_predicted(done: Summary) -> None:
    """How many images, how fast, and how many without an answer."""
    new = done["images"] - done["found"]
    parts = [f"{new:,} images labelled at {done['images_per_second']:,.0f} a second"]
    if done["found"]:
        parts.append(f"{done['found']:,} were there already")
    if done["unreadable"]:
        parts.append(f"{done['unreadable']:,} could not be read (column why)")
    if done["abstention"]:
        parts.append(f"{done['abstained']:,} abstained")
    say("; ".join(parts) + (f". Wrote {done['out']}." if done["out"] else "."))


def print_exported(done: ExportedJSON) -> None:
    """The file, how near it is to the run and how fast."""
    say(f"Wrote {done['folder']}: {done['file']}, {in_bytes(done['bytes'])}.")
    if done["file_ms"] is not None:
        say(
            f"Largest difference from the run's model: {done['difference']:.1e}. A batch of 16 takes "
            f"{done['file_ms']:g} ms, in torch {done['torch_ms']:g} ms."
        )
    if done["ece_before"] is not None and done["ece_after"] is not None:
        say(f"Calibration error on validation data: {done['ece_before']:.4f} before, {done['ece_after']:.4f} after.")
    if small := done["shrunk"]:
        before, after = small["weights"]
        say(
            f"Removed {small['channels'][0]:,} dead channels: {before:,} weights became {after:,}; validation accuracy "
            f"{small['accuracy'][0]:.4f} became {small['accuracy'][1]:.4f}; a batch {small['ms'][0]:g} ms became "
            f"{small['ms'][1]:g} ms."
        )
