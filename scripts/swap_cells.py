"""How much of the leak map to swap, and whether with soft edges: results/swap-cells.json.

    python scripts/swap_cells.py [--sets petscapes,tagged] [--seeds 0,1,2] [--runs runs] [--data-dir DIR]

Heads on frozen features, as `swap` with layers=last fits and chooses them, with two copies of each image. The cells are
those that the audit found, or the leakiest share of its map; soft edges blend the copy with its donor over the width of
a cell. Rows that are there already are not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from swap_figures import SETS, audit_of, made_case
from swap_selection import data_of
from torch import Tensor
from torch.nn import functional

from unspur.core.files import read_json, write_json
from unspur.core.seeds import derive
from unspur.data.base import groups_of
from unspur.papers.reproduce import parse_seeds
from unspur.parts.cues.cells import GRID, Cells
from unspur.parts.cues.texts import cue_of
from unspur.parts.features import features_of
from unspur.parts.last_logistic import STRENGTHS, Judged
from unspur.parts.logistic_path import logistic_path
from unspur.parts.select import group_accuracies
from unspur.parts.swapping import CueExchange, with_copies
from unspur.runs.defaults import usual_network
from unspur.train.session import Session
from unspur.version import commit

FILE = Path(__file__).parents[1] / "results" / "swap-cells.json"
COPIES, JUDGED = 2, 3
SHARES = (0.1, 0.25, 0.4, 0.55, 0.7)  # of the map's cells


@dataclass(frozen=True)
class Soft:
    """Cells whose edges are blended over the width of a cell."""

    cells: Cells

    def swap(self, images: Tensor, donors: Tensor) -> Tensor:
        height, width = images.shape[2:]
        size = height // GRID // 2 * 2 + 1
        mask = self.cells.mask(height, width).float()[None, None]
        mask = functional.avg_pool2d(mask, size, stride=1, padding=size // 2, count_include_pad=False)
        return images * (1 - mask) + donors * mask


def variants(found: Any) -> Iterator[tuple[str, Any]]:
    """What is swapped, by its name."""
    own = cue_of(found["cues"][0])
    yield "the audit's cells", own
    yield "the audit's cells, soft edges", Soft(own)
    order = torch.tensor(found["leak_map"]).flatten().argsort(descending=True).tolist()
    for share in SHARES:
        chosen = sorted(order[: round(share * GRID * GRID)])
        yield f"the leakiest {share:.0%}", Cells(GRID, GRID, tuple(divmod(place, GRID) for place in chosen))


def row(data: Any, model: Any, session: Session, plain: Tensor, test_x: Tensor, name: str, cue: Any) -> dict[str, Any]:
    exchange, train, test = CueExchange((cue,)), data.train, data.tests["test"]
    copies = with_copies(train, exchange, COPIES, derive(session.seed, "swap"), share=0.5, originals=False)
    x = torch.cat([plain, features_of(model, copies, session, f"{name} copies")])
    y = train.y.repeat(1 + COPIES)
    weight = torch.cat([torch.full((len(train),), 1 / len(train)), torch.full((len(copies),), 1 / len(copies))])
    heads = logistic_path(x, y, STRENGTHS, 2, weight=(weight / torch.bincount(y, weight)[y]).float())
    val = with_copies(data.val, exchange, JUDGED, derive(session.seed, "swap", "val"), originals=False)
    chosen = Judged.of(model, val, session, f"{name} val", JUDGED).steadiest(heads, STRENGTHS)
    right = functional.linear(test_x, *heads[chosen]).argmax(1) == test.y
    by_group = group_accuracies(right.unsqueeze(0), groups_of(test).id)[0]
    return {"swapped": name, "l2": STRENGTHS[chosen], "worst": float(by_group.min()), "mean": float(by_group.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="petscapes,tagged")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for on in args.sets.split(","):
        found = audit_of(made_case(SETS[on][0], args), args).findings
        data = data_of(on, args)
        model = usual_network().build(data, seed=0)
        plain, test_x = (features_of(model, part, Session(), "") for part in (data.train, data.tests["test"]))
        for seed in parse_seeds(args.seeds):
            for name, cue in variants(found):
                stored = read_json(FILE) if FILE.exists() else {"command": "python scripts/swap_cells.py", "rows": []}
                if any((old["set"], old["seed"], old["swapped"]) == (on, seed, name) for old in stored["rows"]):
                    continue
                done = row(data, model, Session(seed=seed), plain, test_x, name, cue)
                place = {"set": on, "seed": seed, "commit": commit(), "sizes": {"train": len(data.train)}}
                write_json(FILE, {**stored, "rows": [*stored["rows"], {**place, **done}]})
                print(on, seed, name, f"{100 * done['worst']:.1f} {100 * done['mean']:.1f}", done["l2"], flush=True)


if __name__ == "__main__":
    main()
