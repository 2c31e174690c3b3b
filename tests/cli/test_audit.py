"""`unspur audit` as a person meets it: a verdict is exit 0, a mistake is one sentence and exit 2."""

import json

import numpy as np
import pytest
from PIL import Image

from cli.mistakes import is_a_mistake
from practice.audit.pictures import write_set
from unspur.errors import UnspurError
from unspur.practice.audit import quick_model as quick_module


@pytest.fixture(autouse=True)
def no_pretrained_weights(monkeypatch):
    def missing(classes, seed):
        raise UnspurError("no packages")

    monkeypatch.setattr(quick_module, "_frozen", missing)


def corner(pixels, value):
    if value:
        pixels[:8, :8] = (30, 60, 220)
    return pixels


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """Class folders with a blue square in the corner of kind1, and a table of the same images."""
    root = write_set(tmp_path_factory.mktemp("marked") / "my photos", change=corner, conflict=0.05)
    rows = [f"{path.relative_to(root).as_posix()},{path.parent.name}" for path in sorted(root.rglob("*.png"))]
    (root / "table.csv").write_text("filename,label\n" + "\n".join(rows) + "\n")
    (root / "names.csv").write_text("filename\n" + "\n".join(row.split(",")[0] for row in rows) + "\n")
    return root


def test_a_folder_gets_a_verdict_findings_a_page_and_the_next_command(unspur, marked, tmp_path):
    code, out, err = unspur("audit", marked, "--out", tmp_path)
    folder = next(tmp_path.iterdir())
    assert code == 0 and folder.name.startswith("my photos-")
    first, *lines = out.splitlines()
    assert first.startswith("LEANS: The model leans on ")
    assert lines[0].startswith("  leaks: ") and "rows 1-3, columns 1-3 of 8" in lines[0]  # 8 of 32 pixels, and its edge
    assert "of predictions follow it (control" in lines[0] and "suspects" in lines[0]
    assert f"Open {folder / 'audit.html'} in a browser." in err
    assert f"Next: unspur repair '{folder}'" in err

    code, again, err = unspur("audit", marked, "--out", tmp_path)
    assert (code, again) == (0, out) and "this audit was there already" in err

    code, out, _ = unspur("audit", marked, "--out", tmp_path, "--json")
    told = json.loads(out)
    stored = json.loads((folder / "findings.json").read_text())
    assert code == 0 and told == {"folder": str(folder), "page": str(folder / "audit.html"), **stored}


def test_a_table_is_audited_by_its_labels(unspur, marked, tmp_path):
    code, out, _ = unspur("audit", marked / "table.csv", "--out", tmp_path)
    assert code == 0 and out.startswith("LEANS") and next(tmp_path.iterdir()).name.startswith("table-")


def test_labels_at_random_leave_nothing_to_find(unspur, tmp_path):
    write_set(tmp_path / "set")
    code, out, err = unspur("audit", tmp_path / "set", "--out", tmp_path / "audits")
    assert code == 0 and out.startswith("CLEAN: Nothing that was tested gives labels away")
    assert "Next: unspur train erm folder" in err


def one_class(folder):
    write_set(folder / "set", classes=1)


def one_folder_and_a_table(folder):
    one_class(folder)
    (folder / "set" / "metadata.csv").write_text("filename,label\n")


def three_images(folder):
    write_set(folder / "set", classes=3, each=1)


def thousands_of_classes(folder):
    for number in range(2000):
        place = folder / "set" / f"{number:04}"
        place.mkdir(parents=True)
        (place / "0.png").write_bytes(b"never opened")


def equal_images(folder):
    for label in "ab":
        (folder / "set" / label).mkdir(parents=True)
        for number in range(25):
            Image.fromarray(np.full((32, 32, 3), 9, np.uint8)).save(folder / "set" / label / f"{number}.png")


def unreadable_files(folder):
    for label in "ab":
        (folder / "set" / label).mkdir(parents=True)
        for number in range(25):
            (folder / "set" / label / f"{number}.png").write_bytes(b"no picture")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (one_class, "of 1 class (the largest has 80) only one is so large; add images, or join small classes."),
        (one_folder_and_a_table, "name one class, 'kind0', and its table metadata.csv may name more; audit "),
        (three_images, "of 3 classes (the largest has 1) none is so large; add images, or join small classes."),
        (thousands_of_classes, "of 2000 classes (the largest has 1) none is so large; add images"),
        (equal_images, "All 50 images are the same; an audit needs images that differ."),
        (unreadable_files, "None of the 50 images can be decoded (such as a/0.png, which "),
    ],
)
def test_images_that_cannot_be_compared_are_one_sentence_and_nothing_is_written(unspur, tmp_path, make, sentence):
    make(tmp_path)
    code, out, err = unspur("audit", tmp_path / "set", "--out", tmp_path / "audits")
    assert (code, out) == (2, "") and sentence in err and is_a_mistake(err)
    assert not (tmp_path / "audits").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["names.csv"], "column of {root}/names.csv 'label'"),
        (["no_such_set"], "There is no folder, table, run or data set 'no_such_set'."),
        (["biased_mnst"], "There is no folder, table, run or data set 'biased_mnst'. Did you mean 'biased_mnist'?"),
        (["kind0"], "{root}/kind0"),
        (["parity"], "Only images of 1 or 3 channels can be audited"),
        ([".", "--set", "erm.lr=1"], "Only settings of the data can be given here"),
        ([".", "--model", "none.onnx"], "The model none.onnx is not a file"),
        ([".", "--model", "table.csv"], "one more package: pip install onnxruntime|is not an ONNX model"),
    ],
)
def test_a_mistake_is_one_sentence(unspur, marked, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(marked)
    what, *options = arguments
    if what in ("names.csv", "kind0"):
        what = marked / what
    code, out, err = unspur("audit", what, *options, "--out", tmp_path / "audits")
    assert (code, out) == (2, "") and is_a_mistake(err)
    assert any(each.format(root=marked) in err for each in sentence.split("|")), err
    assert not (tmp_path / "audits").exists()


def test_a_run_is_audited_with_its_own_model_on_images_it_was_not_trained_on(unspur, marked, tmp_path):
    chosen = [f"data.root={marked}", "data.val=0.3", "data.size=32", "erm.epochs=3"]
    settings = [word for setting in chosen for word in ("--set", setting)]
    assert unspur("train", "erm", "folder", "--arch", "small_cnn", *settings, "--out", tmp_path / "runs")[0] == 0
    run = next((tmp_path / "runs").iterdir())
    code, out, err = unspur("audit", run, "--out", tmp_path / "audits", "--json")
    told = json.loads(out)
    assert code == 0 and told["model"] == run.name
    assert told["verdict"] == "leans"  # the blue square, in a corner
    assert told["next"] == f"unspur repair {told['folder']}" and told["run"] == str(run)
    for option, value in (("--set", "data.base=mini"), ("--model", "x.onnx")):
        code, _, err = unspur("audit", run, option, value)
        assert code == 2 and f"leave {option} out" in err
