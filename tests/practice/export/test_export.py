"""An exported folder is whole or absent, and another program gets the run's labels from it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from practice.conftest import DOG, ODD, SIDE, picture
from practice.predict.test_audited_cue import CORNER, audit
from unspur.errors import UnspurError
from unspur.practice.audit.onnx_model import onnx_model
from unspur.practice.export import formats
from unspur.practice.export.export import Wanted, export_run
from unspur.practice.predict.predict import Wanted as Labelling
from unspur.practice.predict.predict import predict_into

pytest.importorskip("onnxscript")

# Another program: nothing but numpy and onnxruntime, images that numpy can read by itself.
PROGRAM = """
import json, sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1] + "/model.onnx")
labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
images = [numpy.frombuffer(open(path, "rb").read()[-768:], numpy.uint8) for path in sys.argv[2:]]
batch = numpy.stack(images).reshape(-1, 16, 16, 3)
logits, probabilities, label, confidence, abstain, before = session.run(None, {"images": batch})
print(json.dumps([[labels[i] for i in logits.argmax(1)], abstain.tolist(), probabilities.max(1).tolist()]))
assert "torch" not in sys.modules and "unspur" not in sys.modules
"""


@pytest.fixture(scope="module")
def exported(repaired_run, tmp_path_factory):
    """A repaired run with its rule for abstaining, as one ONNX file, and what was said of it."""
    out = tmp_path_factory.mktemp("exported") / "model"
    return out, export_run(repaired_run, out, Wanted(coverage=0.75))


@pytest.fixture(scope="module")
def plain_pixels(tmp_path_factory):
    """Pictures as PPM, whose last 16 x 16 x 3 bytes are the pixels."""
    root = tmp_path_factory.mktemp("ppm")
    for number in range(10):
        Image.fromarray(picture(number % 2, 200 + number)).save(root / f"{number}.ppm")
    return root


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_ten_lines_of_numpy_and_onnxruntime_give_the_labels_of_the_csv(exported, repaired_run, plain_pixels, tmp_path):
    predict_into(repaired_run, (str(plain_pixels),), Labelling(coverage=0.75), tmp_path / "labels.csv")
    paths = sorted(map(str, plain_pixels.glob("*.ppm")))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, exported[0], *paths], capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    labels, abstain, probability = json.loads(ended.stdout)
    found = rows(tmp_path / "labels.csv")
    assert [row["filename"] for row in found] == paths
    assert [row["label"].removeprefix("'") for row in found] == labels and set(labels) == {ODD, DOG}
    assert [row["abstain"] == "true" for row in found] == abstain
    assert [float(row["probability"]) for row in found] == pytest.approx(probability, abs=1e-4)


def test_the_folder_has_everything_and_nothing_half_done(exported):
    folder, done = exported
    names = {path.name for path in folder.iterdir()}
    expected = {"model.onnx", "labels.json", "config.json", "preprocessor_config.json", "abstention.json", "README.md"}
    assert names == expected and not list(folder.parent.glob(".partial-*"))
    assert done["difference"] <= 1e-4 and done["bytes"] == (folder / "model.onnx").stat().st_size
    assert json.loads((folder / "labels.json").read_text()) == [ODD, DOG]
    config = json.loads((folder / "config.json").read_text())
    assert config["id2label"] == {"0": ODD, "1": DOG} and config["label2id"] == {ODD: 0, DOG: 1}
    preprocessor = json.loads((folder / "preprocessor_config.json").read_text())
    assert preprocessor["size"] == {"height": SIDE, "width": SIDE} and preprocessor["rescale_factor"] == 1 / 255


@pytest.mark.parametrize("what", ["folder", "file"])
def test_predict_takes_the_folder_and_the_file_alike(exported, repaired_run, plain_pixels, what):
    path = exported[0] if what == "folder" else exported[0] / "model.onnx"
    given = (str(plain_pixels),)
    found = predict_into(path, given, Labelling(coverage=0.75), None)
    own = predict_into(repaired_run, given, Labelling(coverage=0.75), None)
    assert [row["label"] for row in found["rows"]] == [row["label"] for row in own["rows"]]
    assert [row["abstain"] for row in found["rows"]] == [row["abstain"] for row in own["rows"]]
    assert found["abstention"] == own["abstention"]
    with pytest.raises(UnspurError, match=r"--audit needs validation images, which .* does not hold"):
        predict_into(path, given, Labelling(coverage=0.75, audit=Path("audit")), None)


def test_an_audit_takes_the_file_whatever_the_order_of_its_classes(exported, plain_pixels):
    images = torch.stack([torch.from_numpy(picture(n % 2, n).transpose(2, 0, 1)) for n in range(4)]).float() / 255
    scores = {}
    for classes in ((ODD, DOG), (DOG, ODD)):
        model = onnx_model(exported[0] / "model.onnx", classes)
        data = type("Data", (), {"classes": classes, "pictures": images})
        scores[classes] = model.make(data).predict[0](images)
    assert torch.equal(scores[ODD, DOG], scores[DOG, ODD].flip(1))


def test_the_card_is_made_of_the_runs_figures(exported, repaired_run):
    text = (exported[0] / "README.md").read_text()
    result = json.loads((repaired_run / "result.json").read_text())
    test, before = result["tests"]["test"], result["stages"]["erm"]["tests"]["test"]
    assert f"{100 * test['accuracy']:.2f} % of {test['n']:,}" in text
    assert f"Before the repair (`erm`) on `test`: {100 * before['accuracy']:.2f} %" in text
    assert "No audit was given" in text and "48 validation images" in text
    assert "The file holds this rule at 75.00 %" in text and "where they disagree it abstains" in text


def test_audits_stand_on_the_card_and_their_cue_in_the_thresholds(repaired_run, tmp_path):
    finding = audit(tmp_path / "leaky", CORNER, classes=[ODD, DOG])
    export_run(repaired_run, tmp_path / "out", Wanted("safetensors", audits=(finding,)))
    text = (tmp_path / "out" / "README.md").read_text()
    assert "of the images alone: **leaks**. A mark \\| gives labels away." in text
    rule = json.loads((tmp_path / "out" / "abstention.json").read_text())
    assert [each["images"] for each in rule["expected"][89]] == [
        "as in validation data", "with the cue of another class", "without the cue"
    ]  # fmt: skip


def test_weights_in_safetensors_are_the_run_again(plain_run, plain_pixels, tmp_path):
    export_run(plain_run, tmp_path / "out", Wanted("safetensors"))
    given = (str(plain_pixels),)
    found, own = (predict_into(path, given, Labelling(), None)["rows"] for path in (tmp_path / "out", plain_run))
    assert [row["label"] for row in found] == [row["label"] for row in own]


def test_without_the_rule_the_thresholds_are_of_the_one_model_that_the_file_holds(repaired_run, tmp_path):
    export_run(repaired_run, tmp_path / "out", Wanted("safetensors"))
    stored = json.loads((tmp_path / "out" / "abstention.json").read_text())
    assert stored["two_models"] is False and len(stored["temperatures"]) == 1
    assert "where they disagree" not in (tmp_path / "out" / "README.md").read_text()


def test_a_torch_program_runs_by_itself_and_is_not_loaded_by_predict(plain_run, plain_pixels, tmp_path):
    done = export_run(plain_run, tmp_path / "out", Wanted("torch"))
    assert done["file"] == "model.pt2" and done["difference"] <= 1e-4
    program = torch.export.load(tmp_path / "out" / "model.pt2")
    batch = torch.from_numpy(np.stack([picture(0, 1), picture(1, 1), picture(0, 2)]))
    assert program.module()(batch)[1].sum(1).tolist() == pytest.approx([1, 1, 1])
    for path in (tmp_path / "out", tmp_path / "out" / "model.pt2"):
        with pytest.raises(UnspurError, match=r"model\.pt2 is a torch.export program, .* --format onnx or safetensors"):
            predict_into(path, (str(plain_pixels),), Labelling(), None)
    (tmp_path / "out" / "model.pt2").unlink()
    with pytest.raises(UnspurError, match=r"holds neither model\.onnx nor model\.safetensors"):
        predict_into(tmp_path / "out", (str(plain_pixels),), Labelling(), None)


def test_a_file_that_differs_from_the_run_is_refused_and_leaves_nothing(plain_run, tmp_path, monkeypatch):
    write = formats._write_torch

    def drifting(*given):
        name, run = write(*given)
        return name, lambda images: run(images) + 0.1

    monkeypatch.setattr(formats, "_write_torch", drifting)
    with pytest.raises(UnspurError, match="differs from the run's model by"):
        export_run(plain_run, tmp_path / "out", Wanted("torch"))
    assert not list(tmp_path.iterdir())


def test_a_torch_that_cannot_write_onnx_is_one_sentence_and_leaves_nothing(plain_run, tmp_path, monkeypatch):
    def fails(*_given, **_more):
        raise torch.onnx.OnnxExporterError("of torch 2.6 and an onnxscript that is newer")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(UnspurError, match=r"cannot write this network as ONNX .* use --format torch or safetensors"):
        export_run(plain_run, tmp_path / "out", Wanted())
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_refused_and_an_empty_folder_is_filled(plain_run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file"):
        with pytest.raises(UnspurError, match="exists already; name a new folder"):
            export_run(plain_run, tmp_path / name, Wanted("safetensors"))
    with pytest.raises(UnspurError, match="is a file; name a folder"):
        export_run(plain_run, tmp_path / "file" / "below", Wanted("safetensors"))
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert export_run(plain_run, tmp_path / "empty", Wanted("safetensors"))["file"] == "model.safetensors"


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"format": "onix"}, "Unknown format 'onix'. Did you mean 'onnx'"),
        ({"coverage": 0.0}, "--coverage is a share"),
        ({"margin": 2.0}, "--margin is a share of accuracy"),
        ({"format": "safetensors", "shrink": True}, "use --format onnx or torch"),
    ],
)
def test_what_makes_no_sense_is_refused(wanted, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Wanted(**wanted)
