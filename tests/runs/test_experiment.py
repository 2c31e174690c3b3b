import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from data.photos import class_folders
from unspur.core.files import read_tensors, write_tensors
from unspur.data.files.fetch import DataFiles
from unspur.errors import RunFailed, UnspurError
from unspur.evaluation.scores import evaluate
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run

TINY = ["data.base=mini", "data.val=9000", "erm.epochs=2", "erm.batch_size=100"]


def tiny(*settings, seed=0):
    return configure("erm", "biased_mnist", "fcn", seed, [*TINY, "arch.width=16", *settings])


def only_folder(out: Path) -> Path:
    (folder,) = out.iterdir()
    return folder


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Runs that were killed at some moment and went on, each in a folder of its own, and how their processes ended."""
    out = tmp_path_factory.mktemp("killed")
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    script = [sys.executable, Path(__file__).parent / "killed.py", out]
    return out, json.loads(subprocess.run(script, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def whole(killed):
    """A run that nothing interrupted, in a process like the ones that are killed."""
    out, told = killed
    assert told["never"] == {"first": 0, "left": ["result.json"], "second": 0}
    return only_folder(out / "never")


@pytest.mark.parametrize("moment", ["epoch", "checkpoint", "weights"])
def test_a_run_killed_at_any_moment_resumes_to_the_same_bits(killed, whole, moment):
    out, told = killed
    assert told[moment] == {"first": -signal.SIGKILL, "left": [], "second": 0}
    folder = only_folder(out / moment)
    assert digest(folder) == digest(whole)
    assert (folder / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
    result, expected = (json.loads((f / "result.json").read_text()) for f in (folder, whole))
    assert result["tests"] == expected["tests"]
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {
        ".lock", "config.json", "data.json", "logits.safetensors", "metrics.jsonl", "model.safetensors", "result.json"
    }  # fmt: skip


def test_a_result_says_everything_the_contract_promises(whole):
    result = json.loads((whole / "result.json").read_text())
    assert set(result) >= {
        "key", "method", "dataset", "arch", "seed", "status", "seconds", "threads", "devices", "version", "tests",
        "stages", "facts",
    }  # fmt: skip
    assert (result["status"], result["threads"], result["devices"]) == ("done", 1, 1)
    biased = result["tests"]["biased"]
    assert set(biased) == {
        "n", "accuracy", "ci95", "mean_group_accuracy", "worst_group_accuracy", "aligned_accuracy",
        "conflicting_accuracy", "train_weighted_accuracy", "only_class", "groups",
    }  # fmt: skip
    assert biased["aligned_accuracy"] is None  # every sample of this set breaks the training correlation
    assert biased["conflicting_accuracy"] == biased["accuracy"]


def test_a_finished_run_is_found_and_not_repeated(tmp_path):
    first = run(tiny("erm.epochs=1"), tmp_path)
    before = (only_folder(tmp_path) / "model.safetensors").stat().st_mtime_ns
    assert run(tiny("erm.epochs=1"), tmp_path) == first
    assert (only_folder(tmp_path) / "model.safetensors").stat().st_mtime_ns == before


def test_an_unfinished_run_needs_resume(tmp_path):
    config = tiny("erm.epochs=1")
    Run.create(tmp_path, config).begin()
    with pytest.raises(UnspurError, match="unfinished run; go on with --resume"):
        run(config, tmp_path)
    assert run(config, tmp_path, resume=True)["status"] == "done"


def test_a_stored_model_predicts_as_it_did(tmp_path):
    config = tiny("erm.epochs=1")
    result = run(config, tmp_path)
    stored = Run.open(only_folder(tmp_path))
    data = stored.config.data.load(DataFiles(None))
    assert stored.config == config
    assert evaluate(stored.load_model(data), data) == result["tests"]


def test_divergence_is_a_status_with_its_step(tmp_path):
    result = run(tiny("erm.lr=1e30"), tmp_path)
    assert result["status"] == "diverged"
    assert f"step {result['step']} of stage 'erm'" in result["reason"]
    assert run(tiny("erm.lr=1e30"), tmp_path) == result  # and it is not tried again
    assert not (only_folder(tmp_path) / "checkpoints").exists()


def test_a_full_disk_fails_the_run_and_the_next_attempt_works(tmp_path, monkeypatch):
    import safetensors.torch

    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", full)
        with pytest.raises(RunFailed, match="No space left on device; free what is short"):
            run(tiny("erm.epochs=1"), tmp_path)
    result = json.loads((only_folder(tmp_path) / "result.json").read_text())
    assert result["status"] == "failed" and "No space left" in result["reason"]
    assert run(tiny("erm.epochs=1"), tmp_path)["status"] == "done"


def test_two_that_want_the_same_run_share_one(tmp_path):
    results, config = [], tiny("erm.epochs=1")
    workers = [threading.Thread(target=lambda: results.append(run(config, tmp_path, resume=True))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results[0] == results[1] and results[0]["status"] == "done"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("config.json", "cannot be read as JSON"),
        ("result.json", "cannot be read as JSON"),
    ],
)
def test_a_corrupt_file_is_named(tmp_path, name, sentence):
    run(tiny("erm.epochs=0"), tmp_path)
    (only_folder(tmp_path) / name).write_text('{"truncated": ')
    with pytest.raises(UnspurError, match=rf"{name}.*{sentence}"):
        run(tiny("erm.epochs=0"), tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"status": None}, "status must be 'done' or 'diverged' or 'failed' but is None"),
        ({"tests": []}, "tests must be an object but is \\[\\]"),
        ({"key": "other"}, "is not the result of this run"),
        ({"seed": "zero"}, "seed must be a whole number but is 'zero'"),
        ({"tests": {"original": {}}}, "tests.original.n is missing"),
        ({"format": 99}, "was written by a newer version of unspur"),
    ],
)
def test_a_result_that_lacks_something_is_named_with_its_field(tmp_path, change, sentence):
    run(tiny("erm.epochs=0"), tmp_path)
    stored = Run.open(only_folder(tmp_path))
    path = stored.folder / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UnspurError, match=rf"result\.json.*{sentence}"):
        stored.result()


@pytest.mark.parametrize("line", ["[]", "{}", "1"])
def test_a_line_of_the_log_that_is_none_is_named(tmp_path, line):
    run(tiny("erm.epochs=0"), tmp_path)
    stored = Run.open(only_folder(tmp_path))
    (stored.folder / "metrics.jsonl").write_text(f"{line}\n")
    with pytest.raises(UnspurError, match="line 1 names no stage"):
        stored.log()


def test_names_of_the_data_that_are_none_are_told(tmp_path):
    run(tiny("erm.epochs=0"), tmp_path)
    stored = Run.open(only_folder(tmp_path))
    (stored.folder / "data.json").write_text("[]")
    with pytest.raises(UnspurError, match=r"data\.json: the whole must be an object but is \[\]"):
        stored.load_model(stored.config.data.load(DataFiles(None)))


def test_a_run_that_another_process_ended_while_data_were_loaded_is_not_done_again(tmp_path, monkeypatch):
    config = tiny("erm.epochs=0")
    load, others = type(config.data).load, []

    def slowly(spec, files):
        if not others:
            others.append(None)
            others[0] = run(config, tmp_path)  # the other process is faster
        return load(spec, files)

    monkeypatch.setattr(type(config.data), "load", slowly)
    began = []
    monkeypatch.setattr(Run, "begin", lambda stored, own=Run.begin: (began.append(stored), own(stored)))
    assert run(config, tmp_path) == others[0] and len(began) == 1


def test_a_seed_beyond_64_bits_is_refused():
    with pytest.raises(UnspurError, match="The seed must be a number of 64 bits"):
        tiny(seed=10**20)


def test_weights_of_another_shape_are_refused(tmp_path):
    run(tiny("erm.epochs=0"), tmp_path)
    stored = Run.open(only_folder(tmp_path))
    write_tensors(stored.folder / "model.safetensors", {"head.weight": torch.zeros(3, 3)})
    with pytest.raises(UnspurError, match="does not fit fcn"):
        stored.load_model(stored.config.data.load(DataFiles(None)))


def test_a_folder_of_another_configuration_is_refused(tmp_path):
    run(tiny("erm.epochs=0"), tmp_path)
    folder = only_folder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["seed"] = 7
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnspurError, match="describes another run"):
        Run.open(folder)


def test_an_output_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UnspurError, match="is a file"):
        run(tiny("erm.epochs=0"), tmp_path / "out")


def test_a_mistake_in_the_configuration_writes_nothing(tmp_path):
    with pytest.raises(UnspurError):
        run(configure("erm", "parity", "small_cnn"), tmp_path / "out")  # vectors do not fit a convolution
    assert not (tmp_path / "out").exists()


def test_two_devices_train_as_one_and_write_one_folder(tmp_path):
    result = run(tiny("erm.epochs=1"), tmp_path, devices=2)
    assert result["status"] == "done" and result["devices"] == 2
    weights, _ = read_tensors(only_folder(tmp_path) / "model.safetensors")
    assert all(torch.isfinite(tensor.float()).all() for tensor in weights.values())


def test_a_stage_of_another_architecture_can_be_loaded_again(tmp_path):
    settings = ["data.base=mini", "data.val=9800", "student=small_cnn", "erm.epochs=1"]
    config = configure("ule", "mnist_sc", "fcn", 0, settings)
    result = run(config, tmp_path)
    stored = Run.open(only_folder(tmp_path))
    data = stored.config.data.load(DataFiles(None))
    student = stored.load_model(data, "student")
    assert evaluate(student, data) == result["stages"]["student"]["tests"]


def test_data_with_other_classes_is_refused(tmp_path):
    run(tiny("erm.epochs=0"), tmp_path)
    stored = Run.open(only_folder(tmp_path))
    data = stored.config.data.load(DataFiles(None))
    assert json.loads((stored.folder / "data.json").read_text())["classes"] == ["0-4", "5-9"]
    with pytest.raises(UnspurError, match="was trained for the classes"):
        stored.load_model(replace(data, classes=("5-9", "0-4")))


def test_a_run_on_one_device_reads_its_data_and_builds_its_model_once(tmp_path, monkeypatch):
    config, calls = tiny("erm.epochs=0"), []
    load, build = type(config.data).load, type(config.arch).build
    monkeypatch.setattr(type(config.data), "load", lambda *args: calls.append("load") or load(*args))
    monkeypatch.setattr(type(config.arch), "build", lambda *args, **more: calls.append("build") or build(*args, **more))
    run(config, tmp_path)
    assert sorted(calls) == ["build", "load"]


def test_a_model_that_predicts_one_class_says_so_in_its_result(tmp_path):
    # the network as it is drawn with seed 0
    result = run(configure("erm", "biased_mnist", "small_cnn", 0, [*TINY, "erm.epochs=0"]), tmp_path)
    assert {name: scores["only_class"] for name, scores in result["tests"].items()} == {"original": 1, "biased": 1}
    said = "The model predicts the class '5-9' for every image of test 'original' and 'biased'"
    assert [warning.partition(":")[0] for warning in result["warnings"]].count(said) == 1


def test_a_repair_that_changes_no_prediction_says_so(tmp_path):
    # at so small a rate no weight moves
    still = ["data.base=mini", "data.val=9900", "erm=adam", "erm.epochs=1", "finetune_lr=1e-30"]
    result = run(configure("masktune", "biased_mnist", "fcn", 0, [*still, "saliency=gradient"]), tmp_path)
    (said,) = [warning for warning in result["warnings"] if "changed nothing" in warning]
    seen = "4,000 images of test 'original' and test 'biased'"  # the embedded digits have 2,000 to test on
    assert said == f"The repair changed nothing: the result predicts the same as before for all {seen}."


def test_classes_of_which_nothing_was_mined_have_their_names_in_a_result(tmp_path):
    # the network as it is drawn with seed 0 predicts 5-9, so that every other digit is wrong and none of these
    brief = ["erm.epochs=0", "training.epochs=0", "up=2"]
    result = run(configure("jtt", "biased_mnist", "small_cnn", 0, [*TINY, *brief]), tmp_path)
    assert "No sample of class '5-9' was mined, so none of it is drawn more often." in result["warnings"]
    assert any(warning.startswith("Most of class '0-4' (100 %) was mined") for warning in result["warnings"])


def test_a_set_of_few_photographs_says_so_in_its_result(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "photos", cat=10, dog=10)
    chosen = [f"data.root={root}", "data.size=32", "erm.epochs=0"]
    result = run(configure("erm", "folder", "small_cnn", 0, chosen), tmp_path / "runs")
    # 20 images less 4 for test and a tenth of 16 for validation
    assert result["warnings"][0].startswith("14 training images are few")
