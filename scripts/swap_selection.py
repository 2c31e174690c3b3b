"""How well rules without group labels rank models by their true worst group: results/swap-selection.json and a plot.

    python scripts/swap_selection.py [--sets petscapes,tagged] [--seeds 0,1,2] [--runs runs] [--data-dir DIR]

The models are heads on frozen features, with the cue that the set's audit finds: plain, with classes or true groups
counting the same, swap with 1, 2 or 4 copies in three shares, and swap with a penalty on what an image's and its
copy's scores differ by (agreement), each with seven strengths of L2. Copies of validation images have cues of every
class as often, as swap's own choice has them, or of other classes alone. Validation images are once as published, every
group alike often, and once drawn like the training images, 95 % aligned, as a user's are. Seeds draw donors and the
images of the latter. Rank correlation is Spearman's with the worst group of the test set; regret is what the chosen
model lacks to the best one there, in points.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from photographs import tagged
from torch import Tensor
from torch.nn import functional

from unspur.core.files import read_json, write_json, write_text
from unspur.core.seeds import derive, stream
from unspur.data.base import Dataset, Split, aligned_with, groups_of
from unspur.data.catalog import load
from unspur.data.files.fetch import DataFiles
from unspur.metrics.correlation import rank_correlation
from unspur.papers.reproduce import parse_seeds
from unspur.parts.cues.texts import cues_of
from unspur.parts.features import features_of
from unspur.parts.heads import Head
from unspur.parts.last_logistic import STRENGTHS, Judged
from unspur.parts.logistic_path import SMALLEST, STEPS, logistic_path
from unspur.parts.select import Rule, choose, group_accuracies, mined_groups, scores, validation_groups
from unspur.parts.swapping import CueExchange, with_copies
from unspur.runs.config import configure_data
from unspur.runs.defaults import PIXELS, usual_network
from unspur.train.session import Session
from unspur.version import commit

FILE, PLOT = Path("results/swap-selection.json"), Path("docs/swap-selection.svg")
COPIES, JUDGED = 4, 3
# The audits' cues, as results/swap.json has them.
CUES = {"petscapes": "cells:8x8:ffe7c3c3c3c38383", "tagged": "cells:8x8:0000000000000707"}
AGREEMENT = (0.1, 1.0)  # lambda of the penalty on differences
TWIN_L2 = 1.0
SHOWN = ("petscapes", 0)  # the set and seed that the plot shows


class Named(NamedTuple):
    """A head, and how it was trained."""

    name: str
    head: Head


def heads(x: Tensor, y: Tensor, copies: Tensor, group: Tensor) -> Iterator[Named]:
    """Every model of the study."""
    n = len(x)
    weights = {"plain": None, "classes": _alike(y), "true groups": _alike(group)}
    for name, weight in weights.items():
        for l2, head in zip(STRENGTHS, logistic_path(x, y, STRENGTHS, 2, weight=weight), strict=True):
            yield Named(f"{name}, L2 {l2:g}", head)
    for count in (1, 2, COPIES):
        for share in (0.25, 0.5, 0.75):
            both, labels = torch.cat([x, copies[: count * n]]), y.repeat(1 + count)
            weight = torch.full((len(both),), share / (count * n))
            weight[:n] = (1 - share) / n
            weight = weight / torch.bincount(labels, weight)[labels]
            path = logistic_path(both, labels, STRENGTHS, 2, weight=weight.float())
            for l2, head in zip(STRENGTHS, path, strict=True):
                yield Named(f"swap, copies {count}, share {share}, L2 {l2:g}", head)
    for strength in AGREEMENT:
        for l2, head in zip(STRENGTHS, agreeing(x, y, copies, strength), strict=True):
            yield Named(f"agreement {strength:g}, L2 {l2:g}", head)


def agreeing(x: Tensor, y: Tensor, copies: Tensor, strength: float) -> list[Head]:
    """Swap with every copy and half the weight on copies, plus strength / 2 times the mean squared difference."""
    count = len(copies) // len(x)
    both, labels = torch.cat([x, copies]), y.repeat(1 + count)
    weight = torch.cat([torch.full((len(x),), 1 / len(x)), torch.full((len(copies),), 1 / len(copies))])
    share = weight / torch.bincount(labels, weight)[labels]
    share = (share / share.sum()).float()
    mean = share @ both
    scale = (share @ (both - mean).square()).sqrt().clamp_min(SMALLEST)
    scaled, apart = (both - mean) / scale, (x.repeat(count, 1) - copies) / scale
    spread = apart.T @ apart / len(apart)
    w = torch.zeros(2, x.shape[1], requires_grad=True)
    b = torch.zeros(2, requires_grad=True)
    found = {}
    for l2 in sorted(STRENGTHS, reverse=True):
        optimiser = torch.optim.LBFGS([w, b], max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss(optimiser: torch.optim.Optimizer = optimiser, l2: float = l2) -> Tensor:
            optimiser.zero_grad()
            losses = functional.cross_entropy(scaled @ w.T + b, labels, reduction="none")
            penalty = l2 / 2 * w.square().sum() + strength / 2 * ((w @ spread) * w).sum()
            value = share @ losses + penalty
            value.backward()
            return value

        optimiser.step(loss)
        own = w.detach() / scale
        found[l2] = Head(own, b.detach() - own @ mean)
    return [found[l2] for l2 in STRENGTHS]


def twins(x: Tensor, y: Tensor, seed: int) -> list[Head]:
    """Two heads, each of one half of the training images: what either gets wrong counts as against the shortcut."""
    halves = torch.randperm(len(x), generator=stream(seed, "twins")).chunk(2)
    return [logistic_path(x[half], y[half], (TWIN_L2,), 2)[0] for half in halves]


def _alike(group: Tensor) -> Tensor:
    return 1 / torch.bincount(group)[group].float()


def right(models: list[Named], x: Tensor, y: Tensor) -> Tensor:
    """(models, samples): what each gets right."""
    return torch.stack([functional.linear(x, *each.head).argmax(1) == y for each in models])


def like_training(val: Split, train: Split, seed: int) -> Tensor:
    """Validation images of which 5 % conflict, as in training: all aligned ones, and so many of the others."""
    aligned = aligned_with(train, val)
    assert aligned is not None
    follow, against = aligned.nonzero().squeeze(1), (~aligned).nonzero().squeeze(1)
    some = torch.randperm(len(against), generator=stream(seed, "conflicting"))[: round(len(follow) / 19)]
    return torch.cat([follow, against[some]]).sort().values


class Validation(NamedTuple):
    """Features of validation images, and of their copies with cues of every class, and of other classes alone."""

    x: Tensor
    every: Tensor
    other: Tensor


def study(models: list[Named], pair: list[Head], part: Split, known: Validation, truth: Tensor) -> list[Any]:
    """Each rule's rank correlation and regret, on validation images and their copies."""
    correct = right(models, known.x, part.y)
    either = ~right([Named("twin", head) for head in pair], known.x, part.y).all(0)
    every, other = (right(models, copies, part.y.repeat(JUDGED)) for copies in (known.every, known.other))
    strongest = next(number for number, each in enumerate(models) if each.name == f"plain, L2 {max(STRENGTHS):g}")
    by_label = validation_groups("swapped", part)
    judged: dict[str, tuple[Rule, Tensor, Tensor]] = {
        "cues of every class, mean": ("swapped", every, by_label.repeat(JUDGED)),
        "cues of every class, worst": ("swapped_worst", every, by_label.repeat(JUDGED)),
        "cues of other classes, mean": ("swapped", other, by_label.repeat(JUDGED)),
        "mined groups": ("mined_group", correct, mined_groups(part.y, ~correct[strongest])),
        "twins": ("mined_group", correct, mined_groups(part.y, either)),
        "worst class": ("worst_class", correct, by_label),
        "average": ("mean", correct, torch.zeros(len(part), dtype=torch.long)),
        "worst group (needs group labels)": ("worst_group", correct, groups_of(part).id),
    }
    rows = []
    for name, (rule, hits, group) in judged.items():
        score = scores(rule, hits, group)
        chosen = choose(rule, hits, group)
        rows.append(
            {
                "rule": name,
                "rank correlation": round(rank_correlation(score.tolist(), truth.tolist()) or 0.0, 3),
                "regret": round(100 * float(truth.max() - truth[chosen]), 1),
                "chosen": models[chosen].name,
                "worst group": round(100 * float(truth[chosen]), 1),
                "scores": [round(100 * value, 2) for value in score.tolist()],
            }
        )
    return rows


def own_choice(
    models: list[Named], part: Split, swapped_x: Tensor, test_right: Tensor, group: Tensor
) -> dict[str, Any]:
    """What swap itself keeps of its default setting's strengths, and the groups of the test set with that."""
    places = [n for n, each in enumerate(models) if each.name.startswith(f"swap, copies {COPIES}, share 0.5, ")]
    by_label = validation_groups("swapped", part).repeat(JUDGED)
    judged = Judged(swapped_x, part.y.repeat(JUDGED), by_label, JUDGED)
    chosen = places[judged.steadiest([models[place].head for place in places], STRENGTHS)]
    accuracy = group_accuracies(test_right[chosen : chosen + 1], group)[0]
    return {
        "chosen": models[chosen].name,
        "worst group": round(100 * float(accuracy.min()), 1),
        "mean of groups": round(100 * float(accuracy.mean()), 1),
    }


def plot(rows: list[Any], truth: list[float]) -> str:
    """The score of each rule against the true worst group, a panel a rule."""
    side, gap, panels = 180, 46, []
    for number, row in enumerate(rows):
        left, top = gap + (number % 3) * (side + gap), gap + (number // 3) * (side + gap + 14)
        low, high = min(row["scores"]), max(row["scores"])
        points = "".join(
            f'<circle cx="{left + side * (x - low) / max(high - low, 1e-9):.1f}" '
            f'cy="{top + side * (1 - (y - min(truth)) / (max(truth) - min(truth))):.1f}" r="2.5"/>'
            for x, y in zip(row["scores"], truth, strict=True)
        )
        label = f"{row['rule']}: {row['rank correlation']:+.2f}"
        panels.append(
            f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" stroke="#999"/>'
            f'<text x="{left}" y="{top - 6}">{label}</text><text x="{left}" y="{top + side + 13}">{low:.0f}</text>'
            f'<text x="{left + side}" y="{top + side + 13}" text-anchor="end">{high:.0f}</text>{points}'
        )
    size = 3 * (side + gap) + gap, 3 * (side + gap + 14) + gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" font-family="sans-serif" '
        f'font-size="11" fill="#246"><title>Score of each rule (across) against the true worst group (up, '
        f"{min(truth):.0f} to {max(truth):.0f} %), a dot a model; beside the rule its rank correlation</title>"
        f"{''.join(panels)}</svg>\n"
    )


def data_of(name: str, args: argparse.Namespace) -> Dataset:
    """A set of the catalogue, or cats and dogs with a tag, as scripts/photographs.py makes them."""
    if name != "tagged":
        return load(name, args.data_dir, size=PIXELS)
    return configure_data("folder", tagged(args.runs, args.data_dir)).load(DataFiles(args.data_dir))


def examined(name: str, seed: int, args: argparse.Namespace) -> list[Any]:
    """Every rule on both kinds of validation images of a set."""
    data, session = data_of(name, args), Session(seed=seed)
    model, exchange = usual_network().build(data, seed=0), CueExchange(cues_of([CUES[name]]))
    test = data.tests["test"]
    splits = {
        "train": data.train,
        "val": data.val,
        "test": test,
        "copies": with_copies(data.train, exchange, COPIES, derive(seed, "swap"), originals=False),
    }
    # Donors are of the same validation images: of those like training, most show the cue of their class.
    every, biased = torch.arange(len(data.val)), like_training(data.val, data.train, seed)
    kept = {"as published": every, "like training": biased}
    if len(biased) == len(every):
        del kept["as published"]  # they are like training as they are
    for kind, index in kept.items():
        part, draw = data.val.subset(index), derive(seed, "swap", "val")
        splits[f"{kind}, every"] = with_copies(part, exchange, JUDGED, draw, share=1.0, originals=False)
        splits[f"{kind}, other"] = with_copies(part, exchange, JUDGED, draw, originals=False)
    features = {each: features_of(model, split, session, each) for each, split in splits.items()}
    models = list(heads(features["train"], data.train.y, features["copies"], groups_of(data.train).id))
    pair = twins(features["train"], data.train.y, seed)
    test_right, test_group = right(models, features["test"], test.y), groups_of(test).id
    truth = scores("worst_group", test_right, test_group)
    rows = []
    for kind, index in kept.items():
        part = data.val.subset(index)
        known = Validation(features["val"][index], features[f"{kind}, every"], features[f"{kind}, other"])
        rows.append(
            {
                "set": name,
                "seed": seed,
                "validation": kind,
                "models": [each.name for each in models],
                "worst groups": [round(100 * value, 2) for value in truth.tolist()],
                "sizes": {"train": len(data.train), "val": len(index), "test": len(test)},
                "rules": study(models, pair, part, known, truth),
                "own choice": own_choice(models, part, known.every, test_right, test_group),
                "commit": commit(),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(CUES))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    stored = read_json(FILE)["rows"] if FILE.exists() else []
    for name in args.sets.split(","):
        for seed in parse_seeds(args.seeds):
            if any((row["set"], row["seed"]) == (name, seed) for row in stored):
                continue
            stored += examined(name, seed, args)
            write_json(FILE, {"command": "python scripts/swap_selection.py", "rows": stored})
            for row in (row for row in stored if (row["set"], row["seed"]) == (name, seed)):
                for rule in row["rules"]:
                    print(name, seed, row["validation"], *(rule[key] for key in list(rule)[:5]), flush=True)
    shown = [row for row in stored if (row["set"], row["seed"], row["validation"]) == (*SHOWN, "like training")]
    if shown:
        write_text(PLOT, plot(shown[0]["rules"], shown[0]["worst groups"]))


if __name__ == "__main__":
    main()
