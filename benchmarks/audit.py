"""The audit's own test: planted shortcuts found, clean sets not accused.

    UNSPUR_DATA=DIR python benchmarks/audit.py run [--part tuned|held|clean|all] [--limit N]
    python benchmarks/audit.py table
    UNSPUR_DATA=DIR python benchmarks/audit.py speed [--images 5000]

`run` writes a line a case to results/audit-benchmark.jsonl and goes on where it stopped. A case is a base set of two
real classes, a kind of shortcut (audit_plants.py) or none, and the share of images that go against it. Images are
written as files, so that file properties are part of it. Rules were set on the TUNED kinds with the bases of
TUNED_BASES and on the clean pairs of TUNED_CLEAN; the table reports the rest apart. A planted set counts as found when
the verdict is `leaks` or `leans`, as localised when a leak's cells hold the mark or its family is the planted one; a
clean set is accused by the same verdicts. The model part is left out unless --model is given.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from audit_plants import HELD_OUT, KINDS, TUNED, Pixels, Plant, Stored
from PIL import Image

from unspur.data.images.listing import list_folder
from unspur.data.sets.mnist import load_mini
from unspur.practice.audit.audit import Settings, audit
from unspur.practice.audit.findings import Audit, Finding
from unspur.practice.audit.image_source import listed

RESULTS = Path(__file__).resolve().parents[1] / "results" / "audit-benchmark.jsonl"
CONFLICTS = (0.0, 0.01, 0.05, 0.2)
EACH = 400  # images of a class
TUNED_BASES = ("cat_dog", "pets")
HELD_BASES = ("plane_ship", "deer_horse", "isic")
BASES = TUNED_BASES + HELD_BASES
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PAIRS = tuple(itertools.combinations(range(10), 2))
DIGIT_PAIRS = ((0, 1), (3, 8), (4, 9), (1, 7), (2, 5))
TUNED_CLEAN = tuple(f"cifar {a} {b}" for a, b in PAIRS if (a + b) % 2)  # looked at while rules were set
FAMILIES = {
    "colour": {"colour", "tone", "noise"},
    "brightness": {"brightness", "contrast", "tone"},
    "contrast": {"contrast", "brightness", "tone"},
    "noise": {"noise", "sharpness"},
    "sharpness": {"sharpness", "noise", "compression"},
    "compression": {"compression", "sharpness"},
    "trace": {"noise", "sharpness", "compression", "parity", "tone", "pattern"},
    "moving": {"moving"},
}


def data_dir() -> Path:
    return Path(os.environ["UNSPUR_DATA"])


def cifar(a: int, b: int, each: int = EACH) -> list[list[Pixels]]:
    with np.load(data_dir() / "cifar10" / "cifar10_jpeg.npz", allow_pickle=False) as arrays:
        header, payload, offsets, labels = (arrays[key] for key in ("header", "payload", "offsets", "labels"))
    chosen = [np.nonzero(labels == label)[0][:each] for label in (a, b)]
    head = header.tobytes()
    return [[_decoded(head + payload[offsets[i] : offsets[i + 1]].tobytes()) for i in numbers] for numbers in chosen]


def _decoded(content: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def table_images(
    folder: str, wanted: dict[str, str], column: str, values: Sequence[str], each: int
) -> list[list[Pixels]]:
    """Images of a table whose columns have the ``wanted`` values, by the value of ``column``."""
    found: dict[str, list[Pixels]] = {value: [] for value in values}
    with (data_dir() / folder / "metadata.csv").open() as file:
        for row in csv.DictReader(file):
            value = row[column]
            if all(row[key] == want for key, want in wanted.items()) and len(found[value]) < each:
                found[value].append(_decoded((data_dir() / folder / row["img_filename"]).read_bytes()))
    return list(found.values())


def base_images(base: str, each: int = EACH) -> list[list[Pixels]]:
    kind, *rest = base.split()
    if kind == "cifar":
        return cifar(int(rest[0]), int(rest[1]), each)
    if kind == "digits":
        digits = load_mini()[0]
        images = digits.x.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()
        return [list(images[(digits.y == int(label)).numpy()][:each]) for label in rest]
    return {
        "cat_dog": lambda: cifar(3, 5, each),
        "plane_ship": lambda: cifar(0, 8, each),
        "deer_horse": lambda: cifar(4, 7, each),
        # Its test images have backgrounds at random: cats and dogs without the shortcut.
        "pets": lambda: table_images("petscapes", {"split": "2"}, "y", ("0", "1"), each),
        "isic": lambda: table_images("isic2017", {"coloured_patch": "0"}, "label", ("benign", "melanoma"), each),
    }[kind]()


def write(images: list[list[Pixels]], plant: Plant | None, conflict: float, folder: Path, seed: int) -> None:
    """Class folders of images; a share ``conflict`` of each class shows what the other class should."""
    draw = np.random.default_rng(seed)
    for label, members in enumerate(images):
        place = folder / f"class{label}"
        place.mkdir(parents=True)
        against = set(draw.permutation(len(members))[: round(conflict * len(members))].tolist())
        names = draw.permutation(10 * len(members))
        for number, pixels in enumerate(members):
            value = label ^ int(number in against)
            change = (plant.apply if value else plant.otherwise) if plant else None
            image = Image.fromarray(pixels)
            made = change(image, draw) if change else image
            stored = made if isinstance(made, Stored) else Stored(made)
            name = f"{stored.prefix}{names[number]:05}.{'jpg' if stored.format == 'JPEG' else 'png'}"
            stored.image.save(place / name, stored.format, **stored.options)


def localised(plant: Plant, result: Audit) -> bool:
    """Whether a leak names the planted family, or its cells hold the mark."""
    leaks = [finding for finding in result.findings if finding.grade == "leaks"]
    if plant.where is not None:
        return any(finding.where and _holds(finding, plant.where) for finding in leaks)
    if plant.family == "file":
        return any(finding.kind == "file" for finding in leaks)
    return any(finding.family in FAMILIES[plant.family] for finding in leaks)


def _holds(finding: Finding, where: tuple[float, float, float, float]) -> bool:
    """Whether four of five of the finding's cells lie in the mark or within one cell of it."""
    top, left, bottom, right = where
    edge = 1 / 8
    inside = [
        top - edge <= (row + 0.5) / 8 <= bottom + edge and left - edge <= (column + 0.5) / 8 <= right + edge
        for row, column in finding.where or ()
    ]
    return sum(inside) >= 0.8 * len(inside)


def cases(part: str) -> Iterator[tuple[str, str, float]]:
    """(base, kind, conflict), the most telling first."""
    clean = [f"cifar {a} {b}" for a, b in PAIRS] + ["pets", "isic"] + [f"digits {a} {b}" for a, b in DIGIT_PAIRS]
    for conflict in (0.05, 0.2, 0.0, 0.01):
        if part in ("held", "all"):
            yield from ((base, kind, conflict) for base in HELD_BASES for kind in HELD_OUT)
        if conflict == 0.05 and part in ("clean", "all"):
            yield from ((base, "none", 0.0) for base in clean)
        if part in ("tuned", "all"):
            yield from ((base, kind, conflict) for kind in TUNED for base in (TUNED_BASES[0], HELD_BASES[1]))
            yield from ((base, kind, conflict) for kind in TUNED for base in TUNED_BASES[1:])


def run(part: str, limit: int | None, model: bool, shard: tuple[int, int]) -> None:
    path = RESULTS.with_name("audit-benchmark-model.jsonl") if model else RESULTS
    done = set()
    if path.exists():
        done = {tuple(json.loads(line)[key] for key in ("base", "kind", "conflict")) for line in path.open()}
    left = [case for case in cases(part) if case not in done][:limit]
    for base, kind, conflict in left[shard[0] :: shard[1]]:
        folder = Path(tempfile.mkdtemp(prefix="audit-"))
        try:
            plant = KINDS.get(kind)
            write(base_images(base), plant, conflict, folder / "images", seed=1)
            began = time.monotonic()
            result = audit(listed(list_folder(folder / "images")), target=base, settings=Settings(model=model))
            line = {
                "base": base,
                "kind": kind,
                "conflict": conflict,
                "verdict": result.verdict,
                "localised": localised(plant, result) if plant else None,
                "seconds": round(time.monotonic() - began, 1),
                "parts": {name: round(value, 1) for name, value in result.seconds.items()},
                "findings": [
                    [each.grade, each.family, round(each.tells_label, 3), round(each.separation, 2)]
                    for each in result.findings
                ],
                "reliance": [each.reliance.as_json() if each.reliance else None for each in result.findings[:2]],
                "estimated_worst_group": result.estimated_worst_group,
            }
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(base, kind, conflict, line["verdict"], line["localised"], line["seconds"], flush=True)
        finally:
            shutil.rmtree(folder)


def table() -> None:
    """Shares found, localised and accused, tuned and held-out cases apart, in Markdown."""
    lines = [json.loads(line) for line in RESULTS.open()]
    planted = [line for line in lines if line["kind"] != "none"]
    print("| part | conflict | cases | found | localised |\n| --- | --- | --- | --- | --- |")
    for name in ("tuned", "held out"):
        for conflict in CONFLICTS:
            chosen = [line for line in planted if line["conflict"] == conflict and _part(line) == name]
            if chosen:
                found = [line for line in chosen if line["verdict"] in ("leaks", "leans")]
                right = [line for line in found if line["localised"]]
                print(
                    f"| {name} | {conflict:.0%} | {len(chosen)} | {len(found)} ({len(found) / len(chosen):.0%}) | "
                    f"{len(right)} ({len(right) / max(len(found), 1):.0%}) |"
                )
    clean = [line for line in lines if line["kind"] == "none"]
    print("\n| clean sets | count | accused | context | clean |\n| --- | --- | --- | --- | --- |")
    for name, chosen in (
        ("tuned", [line for line in clean if line["base"] in TUNED_CLEAN or line["base"] in TUNED_BASES]),
        ("held out", [line for line in clean if line["base"] not in TUNED_CLEAN and line["base"] not in TUNED_BASES]),
    ):
        verdicts = [line["verdict"] for line in chosen]
        accused = sum(verdict in ("leaks", "leans") for verdict in verdicts)
        print(f"| {name} | {len(chosen)} | {accused} | {verdicts.count('context')} | {verdicts.count('clean')} |")
    missed = [line for line in planted if line["conflict"] == 0.05 and line["verdict"] not in ("leaks", "leans")]
    print("\nMissed at 5 %: " + "; ".join(f"{line['kind']} on {line['base']} ({line['verdict']})" for line in missed))
    wrong = [line["base"] for line in clean if line["verdict"] in ("leaks", "leans")]
    print("Accused: " + (", ".join(wrong) or "none"))


def _part(line: dict[str, object]) -> str:
    """Held out: kinds that the rules were not set on, on base sets that they were not set on."""
    return "held out" if line["kind"] in HELD_OUT and line["base"] in HELD_BASES else "tuned"


def speed(count: int) -> None:
    """A whole audit of ``count`` noisy photographs of 256 pixels, and one plain decode of them."""
    folder = Path(tempfile.mkdtemp(prefix="audit-"))
    try:
        images = base_images("isic", each=10_000)
        draw = np.random.default_rng(0)
        for number in range(count):
            label = number % 2
            place = folder / f"class{label}"
            place.mkdir(exist_ok=True)
            pixels = images[label][int(draw.integers(len(images[label])))]
            Image.fromarray(pixels).save(place / f"{number:06}.jpg", quality=90)
        listing = list_folder(folder)
        began = time.monotonic()
        for file in listing.files:
            np.asarray(Image.open(listing.root / file.name).convert("RGB"))
        plain = time.monotonic() - began
        busy = time.process_time()
        result = audit(listed(listing), target="speed")
        busy = time.process_time() - busy
        seconds = result.seconds
        data = seconds["images"] + seconds["data"]
        whole = sum(seconds.values())
        print(f"{count:,} images of 256 pixels, {torch.get_num_threads()} threads: plain decode {plain:.1f} s;")
        parts = ", ".join(f"{part} {value:.1f}" for part, value in seconds.items())
        print(f"data part {data:.1f} s, whole {whole:.1f} s ({parts}); {busy:.1f} s of processor time;")
        print(f"data part {data / plain:.1f} x the decode; bounds for 5,000 images: 60 s and 300 s")
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "table", "speed"))
    parser.add_argument("--part", default="all", choices=("tuned", "held", "clean", "all"))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--model", action="store_true", help="also test the audit's quick model")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th case, from the I-th")
    parser.add_argument("--images", type=int, default=5_000)
    options = parser.parse_args()
    if options.command == "run":
        part, of = options.shard.split("/")
        run(options.part, options.limit, options.model, (int(part), int(of)))
    elif options.command == "table":
        table()
    else:
        speed(options.images)


if __name__ == "__main__":
    sys.exit(main())
