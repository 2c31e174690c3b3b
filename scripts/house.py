"""Measure the house: files, lines, layers and imports, room by room, and what existed before against what is new.

    python scripts/house.py                # this checkout
    python scripts/house.py old/src        # that of another one

"Before" is the function of version 0.1, whose 162 files had 19,300 lines; ``NEW`` names every module that does
something which that version could not do, and why it is there.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

NEW = {  # what is new: modules, or folders that end with a slash
    "audit": (
        "practice/audit/", "parts/cues/", "report/audit_context.py", "report/audit_page.py", "report/sections/audit_",
        "cli/audit.py", "cli/show/audit.py",
    ),
    "photographs": (
        "runs/defaults.py", "runs/estimate.py", "models/inference.py", "core/memory.py",
        "train/batch_norm.py", "data/sets/petscapes.py", "data/sets/isic.py", "data/shortcuts/disc.py",
        "data/images/foreground.py",
    ),
    "any images scored, letters of any language drawn": ("runs/every_image.py", "data/lettering.py"),
    "lists without torch, one line a name": ("core/outline.py", "cli/listing.py"),
    "stored files checked field by field": ("core/shapes.py", "runs/result.py"),
    "repair, predict, export": (
        "practice/repair/", "practice/predict/", "practice/export/", "practice/wrapped.py", "parts/swapping.py",
        "parts/logistic_path.py", "parts/last_logistic.py", "cli/repair.py", "cli/ship.py", "cli/show/predictions.py",
        "cli/show/repair.py", "report/repair_", "report/sections/repair_", "metrics/calibration.py",
        "models/foreign.py", "models/onnx_file.py", "runs/machines.py",
    ),
    "comparisons and searches": (
        "runs/compare.py", "runs/entries.py", "runs/ranking.py", "runs/search", "cli/compare.py",
        "cli/show/comparisons.py", "report/compare_page.py", "report/sections/method_",
    ),
    "parts of more methods": (
        "parts/adversarial_codes.py", "parts/balanced_heads.py", "parts/domains.py", "parts/feature_distances.py",
        "parts/group_losses.py", "parts/logistic.py", "parts/lookahead.py", "parts/mixing.py",
    ),
    "more methods": ("methods/",),  # but for these
}  # fmt: skip
METHODS = (
    "base", "catalog", "facts", "last_layer", "erm", "masktune", "randmask", "dcwp", "mrm", "ule", "ule_last_layer",
    "balanced_last_layer", "large_lr",
)  # fmt: skip


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def imported(path: Path, known: set[str]) -> set[str]:
    """The modules among ``known`` that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def depths(edges: dict[str, set[str]]) -> dict[str, int]:
    """How many layers are above each node and itself; an error where imports go in a circle."""
    found: dict[str, int] = {}

    def depth(node: str, above: tuple[str, ...] = ()) -> int:
        if node in above:
            sys.exit(f"A circle of imports: {' -> '.join([*above, node])}")
        if node not in found:
            found[node] = 1 + max((depth(other, (*above, node)) for other in edges.get(node, ())), default=0)
        return found[node]

    for node in list(edges):
        depth(node)
    return found


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "src") / "unspur"
    files = {path.relative_to(root).as_posix(): lines_of(path) for path in sorted(root.rglob("*.py"))}
    files = {name: count for name, count in files.items() if count}  # an empty __init__ is no file to read
    modules = {"unspur." + name.removesuffix(".py").replace("/", "."): name for name in files}
    edges = {name: imported(root / path, set(modules) - {name}) for name, path in modules.items()}
    rooms, between = defaultdict(list), defaultdict(set)
    for name, path in modules.items():
        room = path.partition("/")[0] if "/" in path else "(top)"
        rooms[room].append(path)
        between[room] |= {other.split(".")[1] for other in edges[name] if other.count(".") > 1} - {room}
    fan_out = [len(others) for others in edges.values()]
    del between["(top)"]
    print(f"{len(files)} files, {sum(files.values()):,} lines, median {median(files.values()):g}")
    print(f"{len(rooms) - 1} rooms in {max(depths(between).values())} layers, no circle between modules", end="; ")
    print(f"{sum(fan_out)} imports, {sum(fan_out) / len(fan_out):.1f} a module, at most {max(fan_out)}")
    assert depths(edges)
    for room, paths in sorted(rooms.items(), key=lambda item: -sum(files[path] for path in item[1])):
        counts = [files[path] for path in paths]
        print(
            f"  {room:12} {len(paths):3} files {sum(counts):6,} lines, median {median(counts):3g}, most {max(counts)}"
        )
    known = {f"methods/{name}.py" for name in METHODS}
    new = {
        why: [path for path in files if path.startswith(starts) and path not in known] for why, starts in NEW.items()
    }
    added = sum(files[path] for paths in new.values() for path in paths)
    print(f"Before: {sum(files.values()) - added:,} lines. New since: {added:,}, of which")
    for reason, paths in new.items():
        print(f"  {reason}: {sum(files[path] for path in paths):,} lines in {len(paths)} files")
    for path, count in files.items():
        if count > 300:
            print(f"Over 300 lines: {path} ({count})")


if __name__ == "__main__":
    main()
