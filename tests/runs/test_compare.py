import json

import pytest
import torch

from unspur.data.base import groups_of
from unspur.evaluation.scores import predict
from unspur.parts.select import group_accuracies, mined_groups
from unspur.runs import compare as comparing
from unspur.runs import engines
from unspur.runs.compare import compare
from unspur.runs.engines import work
from unspur.runs.entries import enter
from unspur.runs.folder import Run
from unspur.runs.many import Many

TINY = ["arch.width=16", "erm.epochs=2", "training.epochs=2", "data.train=300", "data.test=200", "data.val=200"]


@pytest.fixture
def here(monkeypatch):
    """Do the runs in this process, and say which were done."""
    asked = []

    def engine(jobs, workers):
        for number, job in enumerate(jobs):
            asked.append(job)
            yield number, work(job)

    monkeypatch.setitem(engines.ENGINES, "local", engine)
    return asked


def entries(methods=("group_balanced", "w2d"), rates=(1.0, 30.0)):
    return enter(methods, ["parity"], [0, 1], settings=TINY, rates=rates)


def test_every_run_is_done_once_and_the_file_has_what_is_known_by_then(here, tmp_path):
    kept = tmp_path / "kept.json"
    found = compare(entries(), Many(tmp_path / "runs"), keep=kept)
    assert len(here) == found["done"] == found["of"] == 8  # two methods, two candidates, two seeds
    assert json.loads(kept.read_text()) == json.loads(json.dumps(found))
    again = compare(entries(), Many(tmp_path / "runs"))
    assert len(here) == 8 and again == found


def test_seeds_come_one_after_the_other(here, tmp_path):
    compare(entries(), Many(tmp_path / "runs"))
    assert [job.config["seed"] for job in here] == [0] * 4 + [1] * 4


def test_what_is_chosen_has_the_best_worst_group_of_the_validation_data(here, tmp_path):
    """By hand, for one method and seed."""
    planned = entries()
    found = compare(planned, Many(tmp_path / "runs"))
    (row,) = [row for row in found["datasets"][0]["rows"] if row["method"] == "group_balanced"]
    entry = next(entry for entry in planned if entry.method == "group_balanced")
    scores = []
    for candidate in entry.candidates:
        stored = Run.create(tmp_path / "runs", candidate[0])
        data = stored.config.data.load(comparing.DataFiles(None))
        right = predict(stored.load_model(data), data.val).argmax(1) == data.val.y
        group = groups_of(data.val).id
        scores.append(
            (min(float(right[group == g].double().mean()) for g in group.unique()), float(right.double().mean()))
        )
    best = max(range(2), key=lambda number: scores[number])
    chosen = row["chosen"]["groups"][0]
    assert chosen["candidate"] == best
    result = Run.create(tmp_path / "runs", entry.candidates[best][0]).result()
    assert chosen["worst"] == result["tests"]["unbiased"]["worst_group_accuracy"]
    assert row["worst"]["groups"]["n"] == 2


def test_the_choice_without_groups_does_not_look_at_them(here, tmp_path, monkeypatch):
    found = compare(entries(), Many(tmp_path / "runs"))
    load = comparing.Comparing._loaded

    def blank(self, config):
        from dataclasses import replace

        data = load(self, config)
        return replace(data, val=data.val.without_attributes())

    monkeypatch.setattr(comparing.Comparing, "_loaded", blank)
    blind = compare(entries(), Many(tmp_path / "runs"))
    for seeing, unseeing in zip(found["datasets"][0]["rows"], blind["datasets"][0]["rows"], strict=True):
        assert seeing["chosen"]["none"] == unseeing["chosen"]["none"]
        assert unseeing["chosen"]["groups"] == []


def test_plain_training_is_not_judged_by_its_own_mistakes(here, tmp_path):
    """By hand: seed 0 by what seed 1 gets wrong and the reverse; a single seed by its accuracy."""
    planned = entries()
    entry = next(entry for entry in planned if entry.method == "erm")

    def right(config):
        stored = Run.create(tmp_path / "runs", config)
        data = stored.config.data.load(comparing.DataFiles(None))
        return predict(stored.load_model(data), data.val).argmax(1) == data.val.y, data.val.y

    def chosen(found):
        (row,) = [row for row in found["datasets"][0]["rows"] if row["method"] == "erm"]
        return [seed["candidate"] for seed in row["chosen"]["none"]]

    found = compare(planned, Many(tmp_path / "runs"))
    best = []
    for seed in (0, 1):
        other, y = right(entry.candidates[0][1 - seed])
        group = mined_groups(y, ~other)
        candidates = torch.stack([right(candidate[seed])[0] for candidate in entry.candidates])
        best.append(int(group_accuracies(candidates, group).mean(1).argmax()))
    assert chosen(found) == best
    alone = compare(
        enter(["group_balanced"], ["parity"], [0], settings=TINY, rates=(1.0, 30.0)), Many(tmp_path / "runs")
    )
    accuracies = [float(right(candidate[0])[0].double().mean()) for candidate in entry.candidates]
    assert chosen(alone) == [accuracies.index(max(accuracies))]


def test_rows_of_methods_that_mine_say_how_well_in_the_runs_that_were_chosen(here, tmp_path):
    found = compare(enter(["jtt"], ["parity"], [0, 1], settings=TINY, rates=(1.0, 30.0)), Many(tmp_path / "runs"))
    rows = {row["method"]: row for row in found["datasets"][0]["rows"]}
    assert "mining" not in rows["erm"]
    stored = {path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("runs/jtt-*/result.json")}
    quality = {name: result["facts"]["mining"] for name, result in stored.items()}
    assert len({one["recall"] for one in quality.values()}) > 1  # or any runs would do
    kept = [quality[one["folder"]] for one in rows["jtt"]["chosen"]["none"]]
    for name, spread in rows["jtt"]["mining"].items():
        known = [one[name] for one in kept if one[name] is not None]
        assert spread["n"] == len(known) and spread["mean"] == pytest.approx(sum(known) / len(known))


def test_methods_that_cannot_run_or_diverge_are_said(here, tmp_path):
    said = []
    found = compare(entries(rates=(1.0, 1e30)), Many(tmp_path / "runs"), say=said.append)
    rows = {row["method"]: row for row in found["datasets"][0]["rows"]}
    assert rows["w2d"]["left_out"] and said[0].startswith("w2d is left out on parity: ")
    assert rows["erm"]["diverged"] == 2 and all(chosen["candidate"] == 0 for chosen in rows["erm"]["chosen"]["none"])
    assert set(found["ranks"]["none"]) == {"erm", "group_balanced"}
    assert rows["group_balanced"]["groups"] == "training"


def test_a_method_that_diverges_whatever_the_candidate_has_the_last_rank(here, tmp_path):
    wild = [*TINY, "group_balanced:training.lr=1e30"]
    found = compare(enter(["group_balanced"], ["parity"], [0, 1], settings=wild), Many(tmp_path / "runs"))
    rows = {row["method"]: row for row in found["datasets"][0]["rows"]}
    assert rows["group_balanced"]["lost"] == [0, 1] and rows["erm"]["lost"] == []
    assert rows["group_balanced"]["chosen"]["none"] == []
    assert {name: rank["rank"] for name, rank in found["ranks"]["none"].items()} == {"erm": 1.0, "group_balanced": 2.0}


def test_a_run_that_failed_leaves_its_seed_out(here, tmp_path, monkeypatch):
    def failing(jobs, workers):
        for number, job in enumerate(jobs):
            if job.config["method"]["name"] == "group_balanced" and job.config["seed"] == 1:
                yield number, engines.Outcome("failed", "no reason")
            else:
                yield number, work(job)

    monkeypatch.setitem(engines.ENGINES, "local", failing)
    found = compare(entries(), Many(tmp_path / "runs"))
    rows = {row["method"]: row for row in found["datasets"][0]["rows"]}
    assert found["done"] == 6 and [c["seed"] for c in rows["group_balanced"]["chosen"]["groups"]] == [0]


def test_the_cost_is_in_units_of_plain_training_and_unknown_where_that_took_no_time():
    assert comparing._ratio([2.0, 4.0], [1.0, 2.0]) == 2.0 and comparing._ratio([1.0], [0.0]) is None


def test_spreads_are_over_seeds():
    assert comparing._spread([0.5, None, 0.7]) == {
        "mean": pytest.approx(0.6),
        "deviation": pytest.approx(torch.tensor([0.5, 0.7]).std().item()),
        "n": 2,
    }
    assert comparing._spread([None]) is None
