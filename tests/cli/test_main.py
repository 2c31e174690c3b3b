"""The command line as a person meets it: through a real process where exit codes matter."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.mistakes import is_a_mistake
from data.photos import class_folders
from unspur.cli.main import app
from unspur.cli.shared import suggest
from unspur.data.sets.folder import Folder

TINY = [
    *("--arch", "fcn", "--set", "arch.width=16"),
    *("--set", "data.base=mini", "--set", "data.val=9000", "--set", "erm.epochs=1"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "masktun", "mnist"], "Unknown method 'masktun'. Did you mean 'masktune'?"),
        (["train", "erm", "biased_mnst"], "Unknown data set 'biased_mnst'. Did you mean 'biased_mnist'?"),
        (["train", "erm", "mnist", "--arch", "smal_cnn"], "Unknown arch 'smal_cnn'. Did you mean 'small_cnn'?"),
        (["train", "erm", "mnist", "--set", "erm.lrr=1"], "Unknown key 'erm.lrr'. Did you mean 'erm.lr'?"),
        (["train", "erm", "mnist", "--set", "erm.lr=fast"], "erm.lr must be a number but got 'fast'."),
        (["train", "erm", "mnist", "--set", "erm.lr"], "A setting is KEY=VALUE"),
        (["train", "erm", "mnist", "--set", "erm.lr=-1"], "lr must be above 0 and at most 3.4e+38 but got -1.0."),
        (["train", "erm", "biased_mnist", "--set", "data.conflict=1.5"], "between 0 and 1 but got 1.5"),
        (
            ["train", "erm", "biased_mnist", "--set", "data.conflict=0.1", "--set", "data.conflict_count=3"],
            "Give conflict or conflict_count, not both",
        ),
        (["train", "erm", "mnist", "--data-dir", "nowhere"], "The data directory nowhere does not exist"),
        (["train", "erm", "mnist", "--set", "data.base=mini", "--arch", "vgg11"], "data.size=32"),
        (["train", "erm", "parity", "--arch", "small_cnn"], "small_cnn needs images"),
        (
            ["train", "masktune", "mnist", "--set", "data.base=mini", "--arch", "fcn"],
            "MaskTune: --set saliency=gradient",
        ),
        (["train", "randmask", "parity", "--arch", "fcn"], "RandMask hides squares of images"),
        (
            ["train", "ule", "mnist", "--set", "data.base=mini", "--set", "lam=1.5"],
            "lam must lie in [0, 1] but got 1.5",
        ),
        (["train", "ule", "mnist", "--set", "data.base=mini", "--set", "layer=conv9"], "There is no layer 'conv9'"),
        (["train", "ule", "mnist", "--set", "data.base=mini", "--set", "student=cnnx"], "Unknown arch 'cnnx'"),
        (["train", "ule_last_layer", "mnist", "--set", "data.base=mini", "--set", "data.val=0"], "no validation data"),
        (["train", "erm", "mnist", "--set", "data.base=mini", "--devices", "0"], "--devices must be at least 1"),
        (["train", "dcwp", "mnist", "--set", "data.base=mini", "--devices", "2"], "dcwp runs on one device"),
        (["train", "erm", "mnist", "--set", "precison=bf16"], "Did you mean 'precision'"),
        (["train", "erm"], "Missing argument 'DATASET'."),
        (["train", "masktune", "mnist", "--set", "finetune_lr=-1"], "finetune_lr must be above 0 and at most 3.4e+38"),
        (["train", "randmask", "mnist", "--set", "finetune_lr=nan"], "but got 'nan'."),
        (["train", "erm", "parity", "--set", "data.train=1000000000000"], "samples of parity need 252.0 TB of memory"),
        (["train", "erm", "moon_star", "--set", "data.test=1000000000000"], "lower data.train, data.val or data.test"),
        (["train", "erm", "parity", "--set", "arch.width=100000000"], "weights of fcn need 120000.0 TB of memory"),
        (["train", "erm", "parity", "--devices", "100000"], "--devices 100,000 is more than the"),
        (["train", "erm", "folder", "--set", "data.root=~nosuchuser"], "There is no home folder for the path ~nosuch"),
        (["train", "erm", "mnist", "--data-dir", "~nosuchuser"], "There is no home folder for the path ~nosuchuser"),
        (["trian"], "No such command 'trian'. Did you mean 'train'?"),
        (["evaluate", "nowhere"], "nowhere is not a run folder"),
        (["report", "nowhere"], "nowhere is not a run folder"),
        (["reproduce", "masktune/table9"], "Unknown table 'masktune/table9'. Did you mean"),
        (["reproduce", "masktune/table6", "--seeds", "a"], "Seeds are whole numbers separated by commas"),
        (["data", "info", "mnst"], "Unknown data set 'mnst'. Did you mean 'mnist'?"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2_and_writes_nothing(unspur, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = unspur(*arguments)
    assert code == 2 and out == ""
    assert is_a_mistake(err) and sentence in err
    assert list(tmp_path.iterdir()) == []


def test_a_run_can_be_trained_scored_and_reported_as_json(unspur, tmp_path):
    code, out, _ = unspur("train", "erm", "biased_mnist", *TINY, "--out", tmp_path / "runs", "--json")
    result = json.loads(out)
    assert code == 0 and result["status"] == "done"
    (folder,) = (tmp_path / "runs").iterdir()
    code, out, _ = unspur("evaluate", folder, "--json")
    assert code == 0 and json.loads(out)["tests"] == result["tests"]
    code, out, _ = unspur("evaluate", folder, "--coverage", "0.9", "--json")
    point = json.loads(out)["selective"]["biased"]["softmax_response"]
    assert 0 < point["coverage"] < 1 and {row["y"] for row in point["groups"]} == {0, 1}
    code, out, _ = unspur("report", folder, "--out", tmp_path / "page.html", "--json")
    assert code == 0 and "<html" in (tmp_path / "page.html").read_text()


def test_a_run_can_be_scored_on_another_data_set(unspur, tmp_path):
    unspur("train", "erm", "biased_mnist", *TINY, "--out", tmp_path)
    (folder,) = tmp_path.iterdir()
    two = ["biased_mnist", "--set", "data.base=mini", "--set", "data.squares=2"]
    code, out, err = unspur("evaluate", folder, *two, "--json")
    assert code == 0, err
    assert set(json.loads(out)["tests"]) == {"biased", "original"}
    code, _, err = unspur("evaluate", folder, "mnist", "--set", "data.base=mini")
    assert code == 2 and "was trained on (3, 28, 28) in 2 classes" in err


@pytest.mark.parametrize("coverage", ["0", "1.5", "-0.1"])
def test_a_coverage_out_of_range_is_refused_before_anything_is_scored(unspur, tmp_path, coverage):
    code, _, err = unspur("evaluate", tmp_path, "--coverage", coverage)  # which holds no run
    assert code == 2 and "--coverage is a share above 0 and up to 1, such as 0.9, but got" in err


def test_divergence_exits_with_1_and_says_where(unspur, tmp_path):
    code, out, _ = unspur("train", "erm", "biased_mnist", *TINY, "--set", "erm.lr=1e30", "--out", tmp_path)
    assert code == 1 and "diverged" in out and "step" in out


def test_info_and_preview_of_the_embedded_digits(unspur, tmp_path):
    code, out, err = unspur("data", "info", "biased_mnist", "--set", "data.base=mini")
    assert code == 0 and "MaskTune" in out, err
    picture = tmp_path / "p.png"
    code, _, err = unspur("data", "preview", "biased_mnist", "--set", "data.base=mini", "--out", picture)
    assert err.startswith("Next: unspur train erm biased_mnist --set data.base=mini  # ")
    assert code == 0 and picture.read_bytes().startswith(b"\x89PNG")


def test_without_a_command_five_commands_take_a_folder_of_images_to_production(unspur):
    code, out, err = unspur()
    named = [line.split()[1] for line in out.splitlines() if line.startswith("  unspur ")]
    assert code == 0 and named == ["demo", "audit", "repair", "predict", "export"]
    assert err.startswith("Next: unspur demo")


def test_the_help_shows_those_five_first(unspur):
    _, out, _ = unspur("--help")
    first, more = out.partition("Start here")[2].split(" More ")
    named = [line.split()[1] for line in first.splitlines() if line.startswith("│") and line[2] != " "]
    assert named == ["demo", "audit", "repair", "predict", "export"] and "sweep" in more


def test_quiet_prints_the_result_and_no_hint(unspur, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_QUIET", "")  # set by the command for the processes that it starts; restored afterwards
    code, out, err = unspur("train", "erm", "biased_mnist", *TINY, "--out", tmp_path / "runs", "--quiet")
    assert code == 0 and "erm" in out and err == ""
    code, _, err = unspur("train", "masktun", "mnist", "--quiet")
    assert code == 2 and err.startswith("Error: Unknown method")  # what went wrong is always said


COMPLETE = """
import sys
from unspur.cli.main import app
try:
    app(prog_name="unspur")
finally:
    assert "torch" not in sys.modules
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("train mas", {"masktune"}),
        ("train erm biased", {"biased_mnist"}),
        ("train erm mnist --arch cnn", {"cnn2", "cnn3"}),
    ],
)
def test_a_shell_completes_names_without_importing_torch(words, completed):
    place = str(len(words.split()))  # of the word that is being typed, `unspur` being word 0
    asked = {"_UNSPUR_COMPLETE": "complete_bash", "COMP_WORDS": f"unspur {words}", "COMP_CWORD": place}
    environment = os.environ | asked | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE], env=environment, capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == completed, done.stderr


def test_every_command_names_the_next_one_for_people_and_not_in_json(unspur, tmp_path):
    code, _, err = unspur("train", "erm", "biased_mnist", *TINY, "--out", tmp_path / "runs")
    (folder,) = (tmp_path / "runs").iterdir()
    assert code == 0 and err == f"Next: unspur report {folder}  # a page that shows where the model looks\n"
    _, _, err = unspur("evaluate", folder)
    assert err.startswith(f"Next: unspur evaluate {folder} --coverage 0.9  # ")
    _, _, err = unspur("report", folder, "--out", tmp_path / "page.html")
    assert (
        f"Wrote {tmp_path / 'page.html'}. Open it in a browser.\nNext: unspur export {folder} --out exported  # " in err
    )
    _, _, err = unspur("reproduce", "list")
    assert err.startswith("Next: unspur reproduce masktune/table6 --quick")
    for arguments in (["evaluate", folder], ["report", folder, "--out", tmp_path / "b.html"], ["reproduce", "list"]):
        assert unspur(*arguments, "--json")[2] == ""


def test_a_run_that_diverged_names_the_search_for_a_rate(unspur, tmp_path):
    _, _, err = unspur("train", "erm", "biased_mnist", *TINY, "--set", "erm.lr=1e30", "--out", tmp_path)
    again = " ".join(TINY)  # and not the rate
    assert err.splitlines()[-1].startswith(f"Next: unspur probe erm biased_mnist {again}  # ")


def test_a_path_with_spaces_is_quoted_so_that_the_command_can_be_pasted(capsys):
    suggest("unspur report", Path("my runs/a"), why="a page")
    assert capsys.readouterr().err == "Next: unspur report 'my runs/a'  # a page\n"


def test_every_command_has_help_with_an_example():
    runner = CliRunner()
    for arguments in (
        ["train"],
        ["evaluate"],
        ["report"],
        ["reproduce"],
        ["demo"],
        ["data", "preview"],
        ["data", "info"],
        ["data", "list"],
        ["methods"],
        ["archs"],
        ["sweep"],
        ["analyze"],
        ["probe"],
        ["doctor"],
    ):
        text = runner.invoke(app, [*arguments, "--help"]).output
        assert "Example: unspur" in text, arguments


def test_help_does_not_import_torch():
    code = "import sys, unspur.cli.main; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_ctrl_c_exits_with_130_and_the_run_goes_on_with_resume(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    arguments = ["train", "erm", "biased_mnist", *TINY, "--set", "erm.epochs=100000", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "unspur", *arguments],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*/checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.splitlines(keepends=True)[-1]
        == "Interrupted. Start the same command again to continue; `train` and `predict` need --resume for that.\n"
    )
    (folder,) = tmp_path.iterdir()
    assert not (folder / "result.json").exists() and (folder / "checkpoints").exists()


def test_photographs_get_settings_that_fit_and_one_line_says_which(unspur, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "photos", cat=6, dog=6)
    own = ["--arch", "small_cnn", "--set", "data.size=32", "--set", "erm.epochs=1"]
    code, _, err = unspur("train", "erm", "folder", "--set", f"data.root={root}", *own, "--out", tmp_path / "runs")
    few, line, *_ = err.splitlines()
    assert code == 0 and few.startswith("9 training images are few")
    # of 9 images a batch is the smallest, 4
    assert "small_cnn (from scratch), 32 px, 9 images: AdamW 0.001 cosine, 1 epoch of batches of 4; about " in line
    (folder,) = (tmp_path / "runs").iterdir()
    stored = json.loads((folder / "config.json").read_text())
    assert stored["method"]["erm"]["batch_size"] == 4 and stored["data"]["augment"]["flip"] is True


def test_training_on_a_folder_lists_it_once(unspur, tmp_path, monkeypatch):
    calls, listing = [], Folder.listing
    monkeypatch.setattr(Folder, "listing", lambda *args, **more: calls.append(1) or listing(*args, **more))
    class_folders(tmp_path / "photos", cat=12, dog=12)
    quick = ["--arch", "fcn", "--set", "erm.epochs=0", "--set", "data.size=8"]
    code, _, _ = unspur(
        "train", "erm", "folder", "--set", f"data.root={tmp_path / 'photos'}", *quick, "--out", tmp_path
    )
    assert code == 0 and len(calls) == 1


def test_an_installation_without_a_package_is_one_sentence(unspur, monkeypatch):
    monkeypatch.setitem(sys.modules, "unspur.practice.doctor", None)  # as if what it imports were not there
    code, out, err = unspur("doctor")
    assert (code, out) == (1, "") and is_a_mistake(err) and "unspur needs the package" in err
