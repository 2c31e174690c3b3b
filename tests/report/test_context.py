"""A page builds each model once and takes the logits that its run kept; an earlier run's model predicts once."""

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import unspur.report
from report.examples import config, opened, rewrite, run_in, tiny
from unspur.data.catalog import dataset_named
from unspur.evaluation import scores
from unspur.models.spec import ArchSpec
from unspur.report import context
from unspur.report.runs_page import write_report
from unspur.runs.config import configure
from unspur.runs.folder import LOGITS


@pytest.fixture
def counts(monkeypatch):
    """How often models are built and predict, and data is loaded."""
    found = Counter()

    def counted(name, function):
        def count(*args, **kwargs):
            found[name] += 1
            return function(*args, **kwargs)

        return count

    monkeypatch.setattr(ArchSpec, "restore", counted("builds", ArchSpec.restore))
    monkeypatch.setattr(context, "predict", counted("predictions", scores.predict))
    data = tiny(bare=True)
    two = replace(data, tests={name: data.tests[name] for name in ("biased", "bare")})
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", counted("loads", lambda self, files: two))
    return found


def page_of(counts, folder, *configs, kept=False):
    runs = [run_in(folder, wanted) for wanted in configs]
    if not kept:  # as version 0.1 left them
        for run in runs:
            (run / LOGITS).unlink()
    counts.clear()
    assert write_report(runs, folder / "page.html")["failed"] == {}
    return dict(counts)


def test_nothing_is_predicted_again_that_the_run_has_kept(counts, tmp_path):
    repair = configure("masktune", "biased_mnist", "small_cnn", 0, ["erm.epochs=1"])
    assert page_of(counts, tmp_path, repair, kept=True) == {"loads": 1, "builds": 2}  # the maps need both models


def test_a_page_shows_the_same_from_kept_logits_as_from_predictions(tiny_run):
    kept, again = opened(tiny_run), opened(tiny_run)
    again.run.kept_logits = lambda data: {}
    assert all(bool((kept.logits(test.name) == again.logits(test.name)).all()) for test in kept.tests)


def test_logits_of_other_images_are_not_used(tiny_run):
    run = opened(tiny_run)
    fewer = {f"result/{test.name}": torch.zeros(1, 2) for test in run.tests}
    run.run.kept_logits = lambda data: fewer
    splits = run.data.data.tests
    assert all(len(run.logits(test.name)) == len(splits[test.name]) for test in run.tests)


def test_a_page_of_plain_training_builds_one_model_that_predicts_each_test_set_once(counts, tmp_path):
    # gallery, hero and shortcut effect ask for the same predictions of both test sets
    assert page_of(counts, tmp_path, config()) == {"loads": 1, "builds": 1, "predictions": 2}


def test_a_page_of_a_repair_builds_two_models_that_predict_each_test_set_once(counts, tmp_path):
    repair = configure("masktune", "biased_mnist", "small_cnn", 0, ["erm.epochs=1"])
    assert page_of(counts, tmp_path, repair) == {"loads": 1, "builds": 2, "predictions": 4}


def test_without_a_pair_to_compare_what_came_before_predicts_one_test_set(counts, tmp_path, monkeypatch):
    # The result predicts both test sets for the gallery; before and after are shown on one.
    data = tiny()
    monkeypatch.setattr(dataset_named("biased_mnist"), "load", lambda self, files: data)
    repair = configure("masktune", "biased_mnist", "small_cnn", 0, ["erm.epochs=1"])
    assert page_of(counts, tmp_path, repair) == {"builds": 2, "predictions": 3}


def test_runs_on_the_same_data_share_it(counts, tmp_path):
    assert page_of(counts, tmp_path, config(), config(seed=1)) == {"loads": 1, "builds": 2, "predictions": 4}


def test_nothing_is_predicted_for_vectors_without_such_a_pair(counts, tmp_path):
    wanted = configure("erm", "parity", "fcn", 0, ["erm.epochs=0", "arch.width=8"])
    assert page_of(counts, tmp_path, wanted) == {}


def test_no_part_of_the_page_builds_or_predicts_by_itself():
    for path in Path(unspur.report.__path__[0]).rglob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        calls = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert path.name == "context.py" or not {"predict", "load_model"} & (names | calls), path


def test_an_old_run_that_predicts_one_class_is_warned_of_as_a_new_one_is(tiny_run):
    run = opened(tiny_run)
    tests = {}
    for name, block in run.result["tests"].items():
        groups = [group | {"accuracy": float(group["y"] == 0)} for group in block["groups"]]
        tests[name] = {key: value for key, value in block.items() if key != "only_class"} | {"groups": groups}
    rewrite(tiny_run / "result.json", tests=tests, warnings=["Besides."])
    assert opened(tiny_run).warnings == (
        "The model predicts the class 'low' for every image of test 'original' and 'biased': it tells no classes apart "
        "there.",
        "Besides.",
    )
