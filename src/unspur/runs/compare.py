"""Many methods on many data sets, all chosen by the same rules, ranked.

Two rules choose among a method's candidates, seed by seed, on validation data: ``groups`` by the worst group, which
somebody must have labelled, and ``none`` by the mean over groups that plain training's mistakes make (parts/select.py).
Plain training itself is judged by the mistakes of another seed's, and with one seed by its accuracy: on its own
mistakes it is never right. Nothing is chosen on test data.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unspur.core.files import write_json
from unspur.data.base import Dataset
from unspur.data.files.fetch import DataFiles
from unspur.data.spec import DataSpec
from unspur.evaluation.scores import predict
from unspur.methods.catalog import METHODS
from unspur.parts.select import Rule, choose, validation_groups
from unspur.runs.comparison import Block, Choice, Chosen, Comparison, Row, Spread
from unspur.runs.config import Config
from unspur.runs.entries import PLAIN, Entry
from unspur.runs.folder import Run
from unspur.runs.many import Many
from unspur.runs.ranking import Rank, Score, mean_ranks
from unspur.runs.result import Result
from unspur.version import commit

CHOICES: dict[Choice, Rule] = {"groups": "worst_group", "none": "mined_group"}
LOST = (-1.0, -1.0)  # the score, by which ranks go, of a method that diverged whatever the candidate
TESTS = ("unbiased", "biased", "test")  # the test set that counts: the first of these that there is, else the first


class Scored(NamedTuple):
    """A run that is done: its test scores, its seconds, and which validation samples it gets right."""

    worst: float | None
    mean: float
    seconds: float
    right: Tensor


class Comparing:
    """Scores runs as they end, each once."""

    def __init__(self, entries: Sequence[Entry], out: Path, data_dir: Path | None = None, command: str = "") -> None:
        self.entries, self.out, self.command = entries, out, command
        self._files = DataFiles(data_dir)
        self._data: dict[DataSpec, Dataset] = {}
        self._scored: dict[str, Scored] = {}

    def summary(self) -> Comparison:
        """What all runs that have ended by now say."""
        configs = [config for entry in self.entries for config in entry.configs]
        ended = [result for config in configs if (result := self._result(config))]
        commits = dict.fromkeys(known for result in ended if (known := result.get("commit")))
        datasets = [self._block(name) for name in dict.fromkeys(entry.dataset for entry in self.entries)]
        return {
            "command": self.command,
            "commit": ", ".join(commits) or commit(),  # runs may be of different times
            "seeds": sorted({config.seed for config in configs}),
            "candidates": max(len(entry.candidates) for entry in self.entries),
            "done": len(ended),
            "of": len(configs),
            "datasets": datasets,
            "ranks": ranked(datasets),
        }

    def _block(self, dataset: str) -> Block:
        own = [entry for entry in self.entries if entry.dataset == dataset]
        first = own[0].first
        plain = next(entry for entry in own if entry.method == PLAIN)
        rows = [self._row(entry, plain) for entry in own]
        return {"dataset": dataset, "test": self._test(first), "arch": first.arch.name, "rows": rows}

    def _row(self, entry: Entry, plain: Entry) -> Row:
        chosen: dict[Choice, list[Chosen]] = {choice: self._choose(entry, plain, choice) for choice in CHOICES}
        ended = [result for config in entry.configs if (result := self._result(config))]
        row: Row = {
            "method": entry.method,
            "groups": _reads(entry.method),
            "left_out": entry.left_out,
            "diverged": sum(result["status"] == "diverged" for result in ended),
            "lost": self._lost(entry),
            "cost": _ratio(self._seconds(entry), self._seconds(plain)),
            "chosen": chosen,
            "worst": {choice: _spread([c["worst"] for c in own]) for choice, own in chosen.items()},
            "mean": {choice: _spread([c["mean"] for c in own]) for choice, own in chosen.items()},
        }
        kept = [
            self._result(config)
            for one in chosen["none"]
            for config in entry.candidates[one["candidate"]]
            if config.seed == one["seed"]
        ]
        if mined := [facts["mining"] for result in kept if result and "mining" in (facts := result.get("facts", {}))]:
            row["mining"] = {
                "precision": _spread([one["precision"] for one in mined]),
                "recall": _spread([one["recall"] for one in mined]),
            }
        return row

    def _choose(self, entry: Entry, plain: Entry, choice: Choice) -> list[Chosen]:
        """For each seed all of whose candidates have ended, the best of them by the rule."""
        found: list[Chosen] = []
        for seed_number in range(len(plain.candidates[0])):
            own = [] if entry.left_out else [candidate[seed_number] for candidate in entry.candidates]
            reference = _reference(entry, plain, seed_number)
            if not own or any(self._result(config) is None for config in (*own, reference)):
                continue
            scored = {number: score for number, config in enumerate(own) if (score := self._score(config))}
            biased, val = self._score(reference), self._loaded(reference).val
            if not scored or (choice == "groups" and not val.attributes) or (choice == "none" and biased is None):
                continue
            # On its own mistakes a model is never right: where there is no other to make groups, all count alike.
            rule: Rule = "mean" if choice == "none" and reference in own else CHOICES[choice]
            group = validation_groups(rule, val, None if biased is None else ~biased.right)
            best = list(scored)[choose(rule, torch.stack([s.right for s in scored.values()]), group)]
            score, folder = scored[best], Run.create(self.out, own[best]).folder.name
            found.append(
                {"seed": own[best].seed, "folder": folder, "candidate": best, "worst": score.worst, "mean": score.mean}
            )
        return found

    def _lost(self, entry: Entry) -> list[int]:
        """Seeds with which every candidate diverged."""
        tried = [] if entry.left_out else list(zip(*entry.candidates, strict=True))
        return [own[0].seed for own in tried if all(self._diverged(config) for config in own)]

    def _diverged(self, config: Config) -> bool:
        result = self._result(config)
        return result is not None and result["status"] == "diverged"

    def _score(self, config: Config) -> Scored | None:
        """What a run that is done scores; None for one that diverged."""
        result = self._result(config)
        if result is None or result["status"] != "done":
            return None
        if config.key not in self._scored:
            data, tests = self._loaded(config), result["tests"][self._test(config)]
            model = Run.create(self.out, config).load_model(data)
            right = predict(model, data.val).argmax(1) == data.val.y
            mean = tests["mean_group_accuracy"]
            worst, mean = tests["worst_group_accuracy"], tests["accuracy"] if mean is None else mean
            self._scored[config.key] = Scored(worst, mean, result["seconds"], right)
        return self._scored[config.key]

    def _seconds(self, entry: Entry) -> list[float]:
        scored = [self._score(config) for config in entry.configs]
        return [score.seconds for score in scored if score]

    def _result(self, config: Config) -> Result | None:
        result = Run.create(self.out, config).result()
        return result if result and result["status"] in ("done", "diverged") else None

    def _loaded(self, config: Config) -> Dataset:
        if config.data not in self._data:
            self._data[config.data] = config.data.load(self._files)
        return self._data[config.data]

    def _test(self, config: Config) -> str:
        tests = self._loaded(config).tests
        return next((name for name in TESTS if name in tests), next(iter(tests)))


def compare(
    entries: Sequence[Entry],
    many: Many,
    *,
    command: str = "",
    keep: Path | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Comparison:
    """Do every run that has not ended and rank the methods; ``keep`` is a JSON file that has all known by then.

    ``command`` is what somebody typed to make it, for the result to say.
    """
    comparing = Comparing(entries, many.out, many.data_dir, command)
    for entry in entries:
        if entry.left_out:
            say(f"{entry.method} is left out on {entry.dataset}: {entry.left_out}")

    def ended(config: Config) -> None:
        if keep:
            write_json(keep, comparing.summary())

    # Seed by seed, so that what is known early compares all methods.
    configs = sorted((config for entry in entries for config in entry.configs), key=lambda config: config.seed)
    many.do(configs, "compare", progress=progress, say=say, ended=ended)
    found = comparing.summary()
    if keep:
        write_json(keep, found)
    return found


def ranked(datasets: Sequence[Block]) -> dict[Choice, dict[str, Rank]]:
    """Every method's mean rank, by either choice."""
    return {choice: mean_ranks(_blocks(datasets, choice)) for choice in CHOICES}


def _blocks(datasets: Sequence[Block], choice: Choice) -> list[dict[str, Score]]:
    """The worst group's accuracy and the mean of every method, by data set and seed."""
    blocks: dict[tuple[str, int], dict[str, Score]] = {}
    for block in datasets:
        for row in block["rows"]:
            for chosen in row["chosen"][choice]:
                worst = chosen["mean"] if chosen["worst"] is None else chosen["worst"]
                scores = blocks.setdefault((block["dataset"], chosen["seed"]), {})
                scores[row["method"]] = (
                    round(worst, 9),
                    round(chosen["mean"], 9),
                )  # the last digit is not a difference
            for seed in row["lost"]:
                blocks.setdefault((block["dataset"], seed), {})[row["method"]] = LOST
    return list(blocks.values())


def _reference(entry: Entry, plain: Entry, seed_number: int) -> Config:
    """The plain training whose mistakes make groups: that of the same seed, and for plain training of the next one."""
    seeds = plain.candidates[0]
    return seeds[(seed_number + (entry.method == PLAIN)) % len(seeds)]


def _reads(method: str) -> str:
    cls = METHODS[method]
    return "training" if cls.needs_groups else "validation" if cls.needs_val_groups else "none"


def _spread(values: Sequence[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return {"mean": statistics.fmean(known), "deviation": deviation, "n": len(known)}


def _ratio(own: Sequence[float], plain: Sequence[float]) -> float | None:
    return statistics.fmean(own) / statistics.fmean(plain) if own and plain and min(plain) > 0 else None
