import json
import statistics

import pytest

import unspur.runs.sweep
from data.photos import class_folders
from unspur.errors import UnspurError
from unspur.runs.analyze import analyze
from unspur.runs.config import configure
from unspur.runs.convergence import Ended
from unspur.runs.engines import Outcome, work
from unspur.runs.folder import Run
from unspur.runs.summary import _scores, _usable, correlations, summary, with_accuracy
from unspur.runs.sweep import plan, sweep

TINY = ["arch.width=8", "erm.epochs=2", "data.train=200", "data.test=100", "data.val=0"]


def points(grid=("erm.lr=0.1,0.5",), seeds=(0, 1), settings=()):
    return plan("erm", "parity", list(grid), list(seeds), "fcn", [*TINY, *settings])


@pytest.fixture
def here(monkeypatch):
    """Do the runs in this process, and tell which were done."""
    asked = []

    def engine(jobs, workers):
        for number, job in enumerate(jobs):
            asked.append(job)
            yield number, work(job)

    monkeypatch.setitem(unspur.runs.engines.ENGINES, "local", engine)
    return asked


def test_a_grid_has_every_combination_for_every_seed():
    planned = points(["erm.lr=0.1,0.5", "arch.depth=1,2,3"], seeds=[4, 7])
    assert [point.settings for point in planned] == [
        {"erm.lr": lr, "arch.depth": depth} for lr in ("0.1", "0.5") for depth in ("1", "2", "3")
    ]
    assert [config.seed for config in planned[0].configs] == [4, 7]
    last = planned[-1].configs[0]
    assert (last.method.erm.lr, last.arch.depth, last.arch.width) == (0.5, 3, 8)


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ([], "A sweep needs a grid"),
        (["erm.lr="], "The grid of erm.lr is empty"),
        (["erm.lr=,"], "The grid of erm.lr is empty"),
        (["erm.lr"], "KEY=VALUE"),
        (["erm.lrr=1,2"], "Unknown key 'erm.lrr'. Did you mean 'erm.lr'"),
        (["erm.lr=0.1,fast"], "erm.lr must be a number but got 'fast'"),
        (["erm.lr=1", "erm.lr=2"], "The grid names erm.lr twice"),
    ],
)
def test_a_grid_that_makes_no_sense_is_an_error_before_any_run(grid, sentence):
    with pytest.raises(UnspurError, match=sentence):
        points(grid)


def test_a_sweep_without_seeds_is_an_error():
    with pytest.raises(UnspurError, match="at least one seed"):
        points(seeds=())


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"engine": "slurm"}, "Unknown engine 'slurm'. There are: local, ray"),
        ({"jobs": 0}, "--jobs must be at least 1"),
    ],
)
def test_an_engine_or_a_number_that_does_not_exist_is_an_error(tmp_path, more, sentence):
    with pytest.raises(UnspurError, match=sentence):
        sweep(points(), tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


def test_an_architecture_that_does_not_fit_stops_everything_before_it_begins(tmp_path, here):
    wrong = plan("erm", "parity", ["erm.lr=0.1,0.5"], [0], "small_cnn")
    with pytest.raises(UnspurError, match="small_cnn needs images"):
        sweep(wrong, tmp_path / "out")
    assert not here and not (tmp_path / "out").exists()


def test_the_summary_has_mean_and_deviation_over_seeds(tmp_path, here):
    found = sweep(points(), tmp_path)
    assert len(here) == 4 and found["seeds"] == [0, 1]
    for point in found["points"]:
        accuracies = []
        for row in point["runs"]:
            result = json.loads((tmp_path / row["folder"] / "result.json").read_text())
            assert row["status"] == "done" and result["seed"] == row["seed"]
            accuracies.append(result["tests"]["unbiased"]["accuracy"])
        score = point["scores"]["unbiased accuracy"]
        assert score["mean"] == pytest.approx(sum(accuracies) / 2) and score["n"] == 2
        assert score["deviation"] == pytest.approx(statistics.stdev(accuracies))
    assert set(found["correlations"]) == {"erm.lr"}
    assert json.dumps(found)


def test_what_has_ended_is_not_repeated_and_what_failed_is(tmp_path, here):
    planned = points(["erm.lr=0.1,1e30"])
    sweep(planned, tmp_path)
    assert len(here) == 4
    failed = Run.create(tmp_path, planned[0].configs[1])
    failed.end("failed", 0.0, 1, reason="The disk was full.")
    here.clear()
    found = sweep(planned, tmp_path)
    assert [job.config["seed"] for job in here] == [1]
    assert [row["status"] for point in found["points"] for row in point["runs"]] == ["done"] * 2 + ["diverged"] * 2


def test_a_rate_that_diverges_is_not_usable_and_costs_the_others_nothing(tmp_path, here):
    said = []
    found = sweep(points(["erm.lr=0.1,1e30"], seeds=[0]), tmp_path, say=said.append)
    assert [point["usable"] for point in found["points"]] == [True, False]
    assert found["points"][1]["scores"] == {}
    assert len(said) == 1 and "diverged: The loss was not finite" in said[0]


def test_a_rate_that_fits_25_points_worse_than_the_best_is_not_usable(tmp_path, here):
    planned = points(["erm.lr=0.1,0.2,0.3"], seeds=[0])
    sweep(planned, tmp_path)
    for point, accuracy in zip(planned, (0.9, 0.66, 0.64), strict=True):
        folder = Run.create(tmp_path, point.configs[0]).folder
        (folder / "metrics.jsonl").write_text(json.dumps({"stage": "erm", "epoch": 1, "accuracy": accuracy}) + "\n")
    assert [point["usable"] for point in summary(planned, tmp_path)["points"]] == [True, True, False]


def test_a_mistake_found_by_a_run_alone_is_told_with_the_others(tmp_path, monkeypatch):
    def engine(jobs, workers):
        yield 0, Outcome("failed", "Out of luck.")
        yield 1, work(jobs[1])

    monkeypatch.setitem(unspur.runs.engines.ENGINES, "local", engine)
    found = sweep(points(seeds=[0]), tmp_path)
    assert [point["runs"][0]["status"] for point in found["points"]] == ["failed", "done"]
    assert found["points"][0]["runs"][0]["reason"] == "Out of luck."


def test_runs_are_analysed_on_request_even_when_they_were_done_before(tmp_path, here):
    planned = points(["erm.lr=0.1,0.2,0.5"], seeds=[0])
    assert "CSI" not in sweep(planned, tmp_path)["points"][0]["scores"]
    found = sweep(planned, tmp_path, analyze=True)
    assert {"CSI", "prunability", "core attribution"} <= set(found["points"][0]["scores"])
    assert found["correlations"]["erm.lr"]["CSI"] is not None
    here.clear()
    sweep(planned, tmp_path, analyze=True)
    assert not here


def test_an_analysis_that_is_not_like_the_others_is_made_again(tmp_path, here):
    planned = points(seeds=[0])
    whole = sweep(planned, tmp_path, analyze=True)
    folder = Run.create(tmp_path, planned[0].configs[0]).folder
    for other in (lambda: analyze(folder, samples=1), lambda: age(folder / "analysis.json")):
        other()
        assert "CSI" not in summary(planned, tmp_path)["points"][0]["scores"]
        here.clear()
        assert sweep(planned, tmp_path, analyze=True)["points"] == whole["points"]
        assert len(here) == 1


def age(file):
    """Make an analysis one of another version."""
    found = json.loads(file.read_text())
    found["made"]["format"] -= 1
    file.write_text(json.dumps(found))


def test_two_ways_to_write_a_value_are_one_point(tmp_path, here):
    found = sweep(points(["erm.lr=0.1,0.10,0.5"], seeds=[0]), tmp_path)
    assert len(here) == 2 and [point["settings"]["erm.lr"] for point in found["points"]] == ["0.1", "0.5"]


def test_a_grid_over_a_name_keeps_what_is_set_of_its_parts():
    planned = points(["erm.lr=0.7", "erm=sgd,adam"], settings=["erm.batch_size=20"])
    recipes = [point.configs[0].method.erm for point in planned]
    assert [(erm.name, erm.lr, erm.epochs, erm.batch_size) for erm in recipes] == [
        ("sgd", 0.7, 2, 20),
        ("adam", 0.7, 2, 20),
    ]


def test_a_run_tells_where_and_by_what_it_was_made(tmp_path, here):
    planned = points(seeds=[0])
    row = sweep(planned, tmp_path)["points"][0]["runs"][0]
    result = Run.create(tmp_path, planned[0].configs[0]).result()
    assert {name: row[name] for name in ("commit", "machine", "seconds")} == {
        name: result[name] for name in ("commit", "machine", "seconds")
    }


def test_a_network_with_one_answer_for_all_is_not_usable(tmp_path, here):
    planned = points(seeds=[0])
    sweep(planned, tmp_path)
    stored = Run.create(tmp_path, planned[1].configs[0])
    result = stored.result()
    result["tests"]["unbiased"]["only_class"] = 1
    (stored.folder / "result.json").write_text(json.dumps(result))
    assert [point["usable"] for point in summary(planned, tmp_path)["points"]] == [True, False]


RATES = ("0.001", "0.01", "0.1", "1", "10")


def ended(well):
    tests = {"test": {"groups": [{"y": 0, "accuracy": 0.9}, {"y": 1, "accuracy": 0.9}]}}
    return [Ended({"status": "done", "tests": tests} if well else {"status": "diverged"}, 1.0)]


@pytest.mark.parametrize(
    ("well", "numbers", "span"),
    [
        ((True, True, True, True, True), {0, 1, 2, 3, 4}, [0.001, 10.0]),
        ((True, True, False, True, False), {0, 1}, [0.001, 0.01]),  # up to the first failure, whatever is behind it
        ((False, True, True, False, False), {1, 2}, [0.01, 0.1]),
        ((False,) * 5, set(), None),
    ],
)
def test_rates_are_usable_up_to_the_first_that_fails(well, numbers, span):
    settings, runs = [{"erm.lr": rate} for rate in RATES], [ended(good) for good in well]
    assert _usable(settings, runs) == (numbers, span)
    assert _usable(settings[::-1], runs[::-1]) == ({4 - number for number in numbers}, span)  # in whatever order


def test_names_and_several_keys_have_no_order_and_no_range():
    runs = [ended(True), ended(False), ended(True)]
    assert _usable([{"erm": name} for name in ("sgd", "adam", "kron")], runs) == ({0, 2}, None)
    assert _usable([{"a": "1", "b": str(number)} for number in range(3)], runs) == ({0, 2}, None)


def test_scores_are_correlated_with_the_unbiased_accuracy_over_usable_points():
    # ranks of the accuracy 1, 2, 3, 4; of the ratio 2, 1, 4, 3: 1 - 6 (1 + 1 + 1 + 1) / (4 * 15) = 0.6
    scores = [(0.5, 0.3), (0.6, 0.2), (0.7, 0.9), (0.8, 0.8)]
    rows = [{"scores": {"a accuracy": 0.1, "unbiased accuracy": a, "max loss ratio": r}} for a, r in scores]
    lost = {"scores": {"unbiased accuracy": 0.9, "max loss ratio": 0.0}}
    found = with_accuracy(
        [
            {"usable": True, "runs": rows[:2]},
            {"usable": True, "runs": [*rows[2:], {"scores": {}}]},
            {"usable": False, "runs": [lost]},
        ]
    )
    assert found["max loss ratio"] == pytest.approx(0.6)
    assert "unbiased accuracy" not in found and found["a accuracy"] is None  # which never changes
    assert with_accuracy([{"usable": True, "runs": [{"scores": {}}]}]) == {}


def test_scores_are_correlated_with_the_key_over_usable_points():
    points = [
        {"settings": {"erm.lr": lr}, "usable": lr != "9", "runs": [{"scores": {"CSI": csi}}]}
        for lr, csi in (("0.1", 0.3), ("1", 0.2), ("3", 0.1), ("9", 0.9))
    ]
    assert correlations(points)["erm.lr"]["CSI"] == pytest.approx(-1)


def test_a_method_that_cannot_work_with_the_model_is_refused_before_any_run(tmp_path):
    points = plan("masktune", "mnist", ["erm.lr=0.01,0.1"], [0], "fcn", ["data.base=mini"])
    with pytest.raises(UnspurError, match="has no layer that is a map of the image"):
        sweep(points, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_training_accuracy_of_an_earlier_stage_is_not_taken_for_the_results(tmp_path):
    lines = [{"stage": "erm", "epoch": 1, "accuracy": 0.9}, {"stage": "tuning", "step": 50, "loss": 0.1}]
    stored = Run(tmp_path, configure("erm", "parity", "fcn", 0, []))
    for count, known in ((1, {"epochs": 1.0, "training accuracy": 0.9}), (2, {"epochs": 1.0})):
        (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:count]))
        assert _scores(stored, Ended({"tests": {}}, stored.training_accuracy())) == known


def test_a_sweep_of_photographs_has_the_settings_that_fit_them(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "photos", cat=20, dog=20)
    points = plan("erm", "folder", ["erm.lr=0.1,1"], [0, 1], "small_cnn", [f"data.root={root}", "data.size=32"])
    recipes = [config.method.erm for point in points for config in point.configs]
    # 40 images less 8 for test and a tenth of 32 for validation; an eighth of 29 is a batch of 3, and the least is 4
    assert [(r.name, r.lr, r.batch_size) for r in recipes] == [("adamw", lr, 4) for lr in (0.1, 0.1, 1.0, 1.0)]
    assert [config.seed for config in points[0].configs] == [0, 1]
