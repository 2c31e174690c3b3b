"""unspur sweep and unspur analyze as people type them."""

import json

import pytest
from rich.console import Console

from cli.mistakes import is_a_mistake
from data.photos import class_folders
from unspur.cli.show.sweeps import print_sweep
from unspur.runs import engines
from unspur.runs.engines import Outcome, work

TINY = ["arch.width=8", "erm.epochs=2", "data.train=200", "data.test=100", "data.val=0"]
VAL = ["--set", "data.val=50"]  # a search chooses by it


@pytest.fixture
def here(monkeypatch):
    """Do a sweep's runs in this process."""
    monkeypatch.setitem(
        engines.ENGINES,
        "local",
        lambda jobs, workers: ((number, work(job)) for number, job in enumerate(jobs)),
    )


def sweeping(out, grid, *more):
    settings = [part for setting in TINY for part in ("--set", setting)]
    return ["sweep", "erm", "parity", "--grid", grid, "--seeds", "0,1", "--out", out, *settings, *more]


def test_a_sweep_prints_its_scores_and_draws_them(here, unspur, tmp_path):
    code, said, errors = unspur(
        *sweeping(tmp_path / "runs", "erm.lr=0.1,0.5", "--analyze", "--figure", tmp_path / "lr.svg")
    )
    assert code == 0 and errors.startswith("Next: unspur report ") and errors.count("\n") == 1
    assert "erm.lr=0.1" in said and "unbiased accuracy" in said and "class separation" in said and "±" in said
    assert "Usable erm.lr: from 0.1 to 0.5." in said and "Rank correlation over usable points" in said
    assert "prunability" in (tmp_path / "lr.svg").read_text()


def test_a_sweep_in_json_is_one_document(here, unspur, tmp_path):
    code, said, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1,1e30", "--json"))
    assert code == 0
    assert [len(point["runs"]) for point in json.loads(said)["points"]] == [2, 2]
    assert errors.count("diverged: The loss was not finite") == 2


@pytest.mark.parametrize(
    ("grid", "name", "sentence"),
    [
        (["erm.lr=0.1,0.5"], "lr.png", "name a file that ends in .svg"),
        (["erm.lr=0.1", "--grid", "erm.batch_size=10,20"], "lr.svg", "needs a grid over one key"),
        (["erm.schedule=constant,cosine"], "lr.svg", "whose values are numbers"),
        (["erm.lr=0.1,0.5"], "file/lr.svg", "Cannot write"),
        (["erm.lr=0.1,0.5"], "folder.svg", "is a folder; name a file"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_told_before_any_run(here, unspur, tmp_path, grid, name, sentence):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder.svg").mkdir()
    code, said, errors = unspur(*sweeping(tmp_path / "runs", *grid, "--figure", tmp_path / name))
    assert code == 2 and sentence in errors and said == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--trials", "5"], "--trials is for --search optuna; add that, or leave it out"),
        (["--choose", "mean"], "--choose is for --search optuna"),
        (["--search", "grid"], "Unknown search 'grid'. There are: optuna"),
        (["--search", "optuna", "--analyze"], "--search takes neither --analyze nor --figure"),
        (["--search", "optuna", "--budget", "soon"], "A budget is a time such as 90s, 20m or 1.5h, but got 'soon'"),
        (["--search", "optuna", "--choose", "median"], "Unknown rule 'median'"),
    ],
)
def test_what_only_a_search_has_or_has_not_is_refused(unspur, tmp_path, more, sentence):
    code, _, errors = unspur(*sweeping(tmp_path / "runs", "erm.lr=0.1,0.5", *more))
    assert code == 2 and sentence in errors and not (tmp_path / "runs").exists()


def test_a_search_prints_the_best_point(here, unspur, tmp_path):
    code, said, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1..0.5", "--search", "optuna", "--trials", "1", *VAL))
    assert code == 0 and "Best of 1 trial" in said and "Next: unspur report" in errors


def test_a_sweep_of_which_nothing_is_usable_says_so_instead_of_drawing(here, unspur, tmp_path):
    code, said, errors = unspur(*sweeping(tmp_path / "runs", "erm.lr=1e30", "--figure", tmp_path / "lr.svg"))
    assert code == 0 and "2 diverged" in said and "no point of the grid is usable" in errors
    assert not (tmp_path / "lr.svg").exists()


def test_a_wide_sweep_is_printed_in_parts_that_fit_and_nothing_is_cut(unspur, monkeypatch, capsys):
    rates = ["0.0001", "0.0012345", "0.01", "0.12345", "0.5"]
    score = {"mean": 0.51234, "deviation": 0.12345, "n": 3}
    rows = [{"status": "done"}] * 2 + [{"status": "diverged"}]
    points = [
        {"settings": {"erm.lr": lr}, "usable": False, "runs": rows, "scores": {"unbiased worst group accuracy": score}}
        for lr in rates
    ]
    found = {"method": "erm", "dataset": "parity", "arch": "fcn", "points": points, "usable_range": None}
    monkeypatch.setattr("unspur.cli.show.sweeps.console", lambda: Console(width=80))
    print_sweep(found | {"correlations": {"erm.lr": {}}, "with_accuracy": {}})
    said = capsys.readouterr().out
    assert all(f"erm.lr={lr}" in said for lr in rates) and "…" not in said
    assert said.count("51.23 ± 12.35") == 5 and max(map(len, said.splitlines())) <= 80


def test_a_sweep_with_failed_runs_says_so_by_its_exit_code(monkeypatch, unspur, tmp_path):
    def failing(jobs, workers):
        yield 0, Outcome("failed", "The disk is full.")
        yield from ((number, work(job)) for number, job in enumerate(jobs) if number)

    monkeypatch.setitem(engines.ENGINES, "local", failing)
    drawn = tmp_path / "lr.svg"
    code, said, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1", "--json", "--figure", drawn))
    assert code == 1 and "1 of the sweep's runs failed" in errors
    assert json.loads(said)["points"][0]["runs"][0]["reason"] == "The disk is full."


def test_why_a_run_was_not_analysed_is_in_the_summary(monkeypatch, unspur, tmp_path):
    def unanalysed(jobs, workers):
        for number, job in enumerate(jobs):
            yield number, Outcome(work(job._replace(analyze=False)).status, "It was not analysed: no room.")

    monkeypatch.setitem(engines.ENGINES, "local", unanalysed)
    code, said, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1", "--analyze", "--json"))
    assert code == 1 and "2 of the sweep's runs could not be analysed" in errors
    assert {run["reason"] for run in json.loads(said)["points"][0]["runs"]} == {"It was not analysed: no room."}


def test_a_mistake_leaves_no_folder_of_the_figure(here, unspur, tmp_path):
    code, _, _ = unspur(*sweeping(tmp_path / "runs", "erm.lr=0.1", "--jobs", "0", "--figure", tmp_path / "a/b.svg"))
    assert code == 2 and not list(tmp_path.iterdir())


def test_an_output_folder_that_is_a_file_is_a_mistake_and_no_failed_run(here, unspur, tmp_path):
    (tmp_path / "file").write_text("no folder")
    code, said, errors = unspur(*sweeping(tmp_path / "file", "erm.lr=0.1"))
    assert code == 2 and said == "" and errors.startswith("Error: The output folder") and is_a_mistake(errors)


def test_a_log_that_cannot_be_read_is_told_before_other_runs_are_done(here, unspur, tmp_path):
    unspur(*sweeping(tmp_path, "erm.lr=0.1"))
    next(tmp_path.glob("*/metrics.jsonl")).write_text("[]\n")
    code, _, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1,0.5"))
    assert code == 2 and "line 1 names no stage" in errors
    assert len(list(tmp_path.iterdir())) == 2


def test_a_disk_that_cannot_be_written_is_one_sentence(here, unspur, tmp_path, monkeypatch):
    unspur(*sweeping(tmp_path, "erm.lr=0.1"))

    def full(path, value):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("unspur.runs.analyze.write_json", full)
    code, _, errors = unspur("analyze", next(tmp_path.iterdir()))
    assert code == 1 and errors.startswith("Error: No space left on device (") and errors.count("\n") == 1


def test_an_interrupted_sweep_says_how_to_go_on(monkeypatch, unspur, tmp_path):
    def interrupted(jobs, workers):
        yield 0, work(jobs[0])
        raise KeyboardInterrupt

    monkeypatch.setitem(engines.ENGINES, "local", interrupted)
    code, said, errors = unspur(*sweeping(tmp_path, "erm.lr=0.1"))
    assert (code, said) == (130, "") and errors.startswith("Interrupted. Start the same command again to continue")


def test_seeds_that_are_no_numbers_are_a_mistake(unspur, tmp_path):
    code, said, errors = unspur(*sweeping(tmp_path / "runs", "erm.lr=0.1", "--seeds", "a"))
    assert (code, said) == (2, "") and "Seeds are whole numbers" in errors


def test_an_analysis_is_printed_stored_and_json(here, unspur, tmp_path):
    unspur(*sweeping(tmp_path, "erm.lr=0.5"))
    folder = next(tmp_path.iterdir())
    code, said, _ = unspur("analyze", folder)
    assert code == 0 and "On unbiased, activations of 100 inputs" in said and "CSI" in said and "nodes" in said
    code, said, _ = unspur("analyze", folder, "--json")
    found, stored = json.loads(said), json.loads((folder / "analysis.json").read_text())
    assert found | {"seconds": 0} == stored | {"seconds": 0}


def test_masks_that_do_not_exist_are_a_mistake_and_the_analysis_stays(here, unspur, tmp_path):
    unspur(*sweeping(tmp_path, "erm.lr=0.5"))
    folder = next(tmp_path.iterdir())
    code, said, errors = unspur("analyze", folder, "--foreground", tmp_path / "masks.npy")
    assert (code, said) == (2, "") and "Only images have a foreground" in errors
    assert not (folder / "analysis.json").exists()


def test_a_probe_names_the_highest_rate_that_converges(unspur):
    settings = [part for setting in (*TINY, "erm.lr=0.5") for part in ("--set", setting)]
    code, said, _ = unspur("probe", "erm", "parity", *settings, "--json")
    found = json.loads(said)
    assert code == 0 and found["lr"] == max(found["converge"])
    assert {trial["lr"] for trial in found["trials"]} >= set(found["converge"])
    code, said, errors = unspur("probe", "erm", "parity", *settings)
    assert code == 0 and f"--set erm.lr={found['lr']:g}" in said
    assert "unspur train erm parity --set arch.width=8 --set erm.epochs=2 " in errors and errors.count("erm.lr=") == 1


def test_a_probe_of_photographs_begins_with_the_recipe_that_fits_them(unspur, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "photos", cat=20, dog=20)
    given = [f"data.root={root}", "data.size=8", "arch.width=16"]
    settings = [word for setting in given for word in ("--set", setting)]
    code, said, _ = unspur("probe", "erm", "folder", "--arch", "fcn", *settings, "--json")
    # AdamW at 0.001, as `train` takes it for a network from scratch, and not SGD at 0.01
    assert code == 0 and json.loads(said)["trials"][0]["lr"] == 0.001


def test_a_probe_names_the_setting_by_the_methods_own_name(unspur):
    settings = [part for setting in TINY if "epochs" not in setting for part in ("--set", setting)]
    code, said, errors = unspur("probe", "mixup", "parity", *settings)
    assert code == 0 and "--set training.lr=" in said and "--set training.lr=" in errors


def test_a_method_without_a_recipe_cannot_be_probed(unspur):
    code, said, errors = unspur("probe", "ule_last_layer", "parity")
    assert (code, said) == (2, "") and "ule_last_layer has no setting erm.lr" in errors


def test_a_folder_that_is_no_run_is_a_mistake(unspur, tmp_path):
    code, said, errors = unspur("analyze", tmp_path)
    assert (code, said) == (2, "") and "is not a run folder" in errors
