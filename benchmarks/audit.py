"""The audit's own test: planted shortcuts found, clean sets not accused.

    UNSPUR_DATA=DIR python benchmarks/audit.py run [--limit N] [--shard I/N]
    UNSPUR_DATA=DIR python benchmarks/audit.py others           # cleanlab and deepchecks on some of the same sets
    UNSPUR_DATA=DIR python benchmarks/audit.py speed [--images 5000]

`run` writes a line a case to results/audit-benchmark.jsonl and goes on where it stopped; `make results` makes
docs/audit.md's tables of it. A case is a base set of two real classes (audit_sets.py), a kind of shortcut
(audit_plants.py) or none, and the share of images that go against it. Images are written as files, so that file
properties are part of it. The model part is left out: what is measured is what the audit sees in the data.

A planted set counts as found when the verdict is `leaks` or `leans` (a background: when it is named, as context), as
localised when four of five outlined cells lie in the mark or next to it, as named when a leak of the planted family is
among the findings. A clean set is accused by `leaks` or `leans`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from audit_others import OTHERS, environment, look
from audit_plants import FRESH, HELD_OUT, KINDS, TUNED, Plant
from audit_sets import AS_JPEG, backgrounds, base_images, each_of, foreground, write
from PIL import Image

from unspur.data.images.listing import list_folder
from unspur.practice.audit.audit import Settings, audit
from unspur.practice.audit.findings import Audit, Finding
from unspur.practice.audit.image_source import listed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "audit-benchmark.jsonl"
SEED = 2
HELD_BASES, TUNED_BASE = ("plane_ship", "deer_horse"), "cat_dog"
BASES = (*HELD_BASES, TUNED_BASE)
CLEAN = (
    *(f"cifar {a} {b}" for a, b in itertools.combinations(range(10), 2)),
    "pets",
    "isic",
    *(f"digits {a} {b}" for a, b in ((0, 1), (3, 8), (4, 9), (1, 7), (2, 5))),
)
BACKGROUND = "background"
FILES = tuple(kind for kind, plant in KINDS.items() if plant.family == "file")
FAMILIES = {  # of findings that name what was planted
    "colour": {"colour", "tone", "noise"},
    "brightness": {"brightness", "contrast", "tone"},
    "shading": {"brightness", "contrast", "tone", "pattern", "place"},
    "contrast": {"contrast", "brightness", "tone"},
    "noise": {"noise", "sharpness"},
    "sharpness": {"sharpness", "noise", "compression"},
    "compression": {"compression", "sharpness"},
    "trace": {"noise", "sharpness", "compression", "parity", "tone", "pattern"},
    "place": {"place", "pattern"},
    "pattern": {"pattern", "place", "noise"},
    "moving": {"moving"},
    "rare": {"rare"},
}
OTHERS_CASES = (
    *(("plane_ship", kind, 0.05) for kind in KINDS),
    *((base, "none", 0.0) for base in CLEAN[::4]),
)


def cases() -> Iterator[tuple[str, str, float]]:
    """(base, kind, conflict), the most telling first."""
    unseen = HELD_OUT | FRESH
    yield from ((base, kind, 0.05) for base in HELD_BASES for kind in unseen)
    yield from ((base, "none", 0.0) for base in CLEAN)
    yield from ((base, kind, 0.05) for base in HELD_BASES for kind in TUNED)
    yield from ((TUNED_BASE, kind, 0.05) for kind in KINDS)
    yield from ((f"deer_horse {AS_JPEG}", kind, 0.05) for kind in KINDS if kind not in FILES)
    yield from (("pets", BACKGROUND, conflict) for conflict in (0.05, 0.2, 0.0, 0.01))
    yield from (("pets", kind, 0.05) for kind in unseen)
    for conflict in (0.2, 0.0, 0.01):
        yield from ((base, kind, conflict) for base in BASES for kind in KINDS)
    yield from (("pets", kind, 0.05) for kind in TUNED)
    yield from (("isic", kind, 0.05) for kind in unseen)


def put(base: str, kind: str, conflict: float, folder: Path) -> None:
    """Write the files of a case."""
    images = backgrounds(conflict) if kind == BACKGROUND else base_images(base)
    write(images, KINDS.get(kind), 0.0 if kind == BACKGROUND else conflict, folder, SEED, AS_JPEG in base)


def holds(finding: Finding, plant: Plant) -> bool:
    """Whether four of five of the finding's cells lie in the mark or within one cell of it."""
    assert plant.where is not None
    top, left, bottom, right = plant.where
    edge = 1 / 8
    inside = [
        top - edge <= (row + 0.5) / 8 <= bottom + edge and left - edge <= (column + 0.5) / 8 <= right + edge
        for row, column in finding.where or ()
    ]
    return bool(inside) and sum(inside) >= 0.8 * len(inside)


def background_found(result: Audit) -> tuple[bool, bool]:
    """Whether the background is named, and whether its cells show the animal less often than the others do."""
    named = [each for each in result.findings if each.family == "background" and "background" in each.what]
    if not named or named[0].where is None:
        return bool(named), False
    shares = foreground()
    inside = np.zeros_like(shares, dtype=bool)
    for cell in named[0].where:
        inside[cell] = True
    return True, bool(shares[inside].mean() < shares[~inside].mean())


def judged(kind: str, result: Audit) -> dict[str, bool | None]:
    """Found, localised (None: it has no fixed place) and named."""
    leaks = [finding for finding in result.findings if finding.grade == "leaks"]
    if kind == "none":
        return {"found": bool(leaks), "localised": None, "named": None}
    if kind == BACKGROUND:
        found, at_place = background_found(result)
        return {"found": found, "localised": at_place, "named": found}
    plant = KINDS[kind]
    named = any(
        finding.kind == "file" if plant.family == "file" else finding.family in FAMILIES[plant.family]
        for finding in leaks
    )
    # The gravest finding with a place is what the page outlines.
    placed = [finding for finding in leaks if finding.where]
    localised = None if plant.where is None else bool(placed) and holds(placed[0], plant)
    return {"found": bool(leaks), "localised": localised, "named": named}


def commit() -> str:
    """The commit that is measured, marked where files differ from it."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True).strip()
    changed = subprocess.check_output([*git, "status", "--porcelain", "src", "benchmarks"], text=True).strip()
    return f"{name}, changed" if changed else name


def run(limit: int | None, shard: tuple[int, int]) -> None:
    done, made_by = set(), commit()
    if RESULTS.exists():
        done = {tuple(json.loads(line)[key] for key in ("base", "kind", "conflict")) for line in RESULTS.open()}
    left = [case for case in list(cases())[:limit] if case not in done]
    for base, kind, conflict in left[shard[0] :: shard[1]]:
        folder = Path(tempfile.mkdtemp(prefix="audit-"))
        try:
            put(base, kind, conflict, folder / "images")
            began, busy = time.monotonic(), time.process_time()
            result = audit(listed(list_folder(folder / "images")), target=base, settings=Settings(model=False))
            line = {
                "base": base,
                "kind": kind,
                "conflict": conflict,
                "each": each_of(base),
                "seed": SEED,
                "commit": made_by,
                "verdict": result.verdict,
                **judged(kind, result),
                "seconds": round(time.monotonic() - began, 1),
                "processor": round(time.process_time() - busy, 1),
                "findings": [
                    [each.grade, each.family, round(each.tells_label, 3), round(each.separation, 2)]
                    for each in result.findings
                    if each.grade != "informative" or each.separation > 1
                ],
            }
            with RESULTS.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(base, kind, conflict, line["verdict"], line["localised"], line["named"], line["seconds"], flush=True)
        finally:
            shutil.rmtree(folder)


def others() -> None:
    """cleanlab's and deepchecks' own checks on some of the same sets, each in an environment of its own."""
    path = RESULTS.with_name("audit-others.jsonl")
    done = (
        {tuple(json.loads(line)[key] for key in ("tool", "base", "kind")) for line in path.open()}
        if path.exists()
        else set()
    )
    for tool in OTHERS:
        problem = environment(tool)
        for base, kind, conflict in OTHERS_CASES:
            if (tool, base, kind) in done:
                continue
            line: dict[str, object] = {"tool": tool, "base": base, "kind": kind, "conflict": conflict, "seed": SEED}
            if problem:
                line = {"tool": tool, "base": "", "kind": "", "problem": problem}
            else:
                folder = Path(tempfile.mkdtemp(prefix="audit-"))
                try:
                    put(base, kind, conflict, folder / "images")
                    line |= look(tool, folder / "images")
                finally:
                    shutil.rmtree(folder)
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(*line.values(), flush=True)
            if problem:
                break


def speed(count: int) -> None:
    """A whole audit of ``count`` photographs of 256 pixels with a tag, and one plain decode of them.

    With a tag, since what leaks is what the model is tested with: that is the longest part of an audit.
    """
    folder = Path(tempfile.mkdtemp(prefix="audit-"))
    try:
        draw = np.random.default_rng(0)
        images = [
            [members[place] for place in draw.integers(len(members), size=count // 2)]
            for members in base_images("isic", each=400)
        ]
        write(images, KINDS["text_tag"], 0.05, folder, SEED, jpeg=True)
        listing = list_folder(folder)
        began, busy = time.monotonic(), time.process_time()
        for file in listing.files:
            np.asarray(Image.open(listing.root / file.name).convert("RGB"))
        plain, plain_busy = time.monotonic() - began, time.process_time() - busy
        before, busy = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.process_time()
        seconds = audit(listed(listing), target="speed").seconds
        busy = time.process_time() - busy
        data, parts = (
            seconds["images"] + seconds["data"],
            ", ".join(f"{part} {value:.1f}" for part, value in seconds.items()),
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{len(listing):,} images of 256 pixels with a tag, {torch.get_num_threads()} threads:")
        print(f"plain decode {plain:.1f} s ({plain_busy:.1f} s of processor time)")
        print(f"audit {sum(seconds.values()):.1f} s ({parts}; {busy:.1f} s of processor time); data part {data:.1f} s")
        print(f"data part {data / plain:.1f} x the decode; bounds for 5,000 images: data 60 s, all 300 s")
        print(f"peak memory {peak:,.0f} MB, {peak - before:,.0f} MB above what was used before the audit")
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", default="speed", choices=("run", "others", "speed"))
    parser.add_argument("--limit", type=int, help="only the first of all cases")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th case, from the I-th")
    parser.add_argument("--images", type=int, default=5_000)
    options = parser.parse_args()
    if options.command == "run":
        part, of = options.shard.split("/")
        run(options.limit, (int(part), int(of)))
    elif options.command == "others":
        others()
    else:
        speed(options.images)


if __name__ == "__main__":
    sys.exit(main())
