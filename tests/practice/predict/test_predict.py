"""From a run and a folder to rows: the model's own labels, in order, whatever is broken, killed or resumed."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from practice.conftest import DOG, ODD, SIDE, trained
from practice.predict.test_audited_cue import CORNER, audit
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.practice.predict.predict import Wanted, predict_into
from unspur.runs.folder import Run


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def label(model, images, out=None, **more):
    wanted = Wanted(**{key: more.pop(key) for key in ("top", "batch", "coverage", "audit") if key in more})
    return predict_into(Path(model), (str(images),), wanted, out, **more)


def test_every_image_has_the_label_of_the_runs_own_model(plain_run, new_photos, tmp_path):
    done = label(plain_run, new_photos, tmp_path / "labels.csv", top=2, batch=5)
    found = rows(tmp_path / "labels.csv")
    names = [f"a/{n:02}.png" for n in range(6)] + ["a/broken.jpg"] + [f"b/{n:02}.png" for n in range(6, 12)]
    assert [row["filename"] for row in found] == [f"{new_photos}/{name}" for name in [*names, "b/empty.png"]]
    run = Run.open(plain_run)
    model = run.load_model(run.outputs(DataFiles(None)))
    whole = [row for row in found if row["label"]]
    pixels = np.stack([np.asarray(Image.open(row["filename"])).transpose(2, 0, 1) for row in whole])
    with torch.no_grad():
        probability = model(torch.from_numpy(pixels).float() / 255).softmax(1)
    spelt = {f"'{ODD}": 0, DOG: 1}  # a name that begins with = is made safe for spreadsheets
    assert [spelt[row["label"]] for row in whole] == probability.argmax(1).tolist()
    assert [float(row["probability"]) for row in whole] == pytest.approx(probability.max(1).values.tolist(), abs=2e-5)
    assert [float(row["probability_2"]) for row in whole] == pytest.approx(probability.min(1).values.tolist(), abs=2e-5)
    broken = [row for row in found if not row["label"]]
    assert [row["why"] for row in broken] == [
        "unreadable: is not an image that can be read",
        "unreadable: is empty (0 bytes)",
    ]
    assert {row["abstain"] for row in broken} == {"true"} and {row["abstain"] for row in whole} == {"false"}
    assert (done["images"], done["unreadable"], done["found"], done["abstention"]) == (14, 2, 0, None)


def test_the_training_data_need_not_be_there(photos, new_photos, tmp_path):
    root = tmp_path / "photos"
    root.symlink_to(photos)
    folder = trained("erm", root, tmp_path, "erm.epochs=1")
    root.unlink()
    assert label(folder, new_photos)["images"] == 14
    with pytest.raises(UnspurError, match="does not exist"):
        label(folder, new_photos, coverage=0.9)


def test_rows_go_to_stdout_or_into_the_summary_where_no_file_is_named(plain_run, new_photos):
    stream = io.BytesIO()
    assert label(plain_run, new_photos, printed=stream)["rows"] is None
    printed = list(csv.DictReader(io.StringIO(stream.getvalue().decode(), newline="")))
    summed = label(plain_run, new_photos)["rows"]
    assert [row["filename"] for row in summed] == [row["filename"] for row in printed]
    assert {row["label"] for row in summed} <= {ODD, DOG, None}  # names as they are


def test_with_a_coverage_the_rows_say_why_they_abstain(repaired_run, new_photos):
    done = label(repaired_run, new_photos, coverage=0.5)
    (expected,) = done["abstention"]["expected"]
    assert expected["images"] == "as in validation data" and expected["n"] == 48 and expected["coverage"] >= 0.5
    assert len(done["abstention"]["temperatures"]) == 2  # of the result and of the model before it
    reasons = [row["why"].partition(":")[0] for row in done["rows"] if row["abstain"]]
    assert done["abstained"] == len(reasons) - 2 and set(reasons) <= {"unsure", "the models disagree", "unreadable"}
    assert all(row["label"] for row in done["rows"] if row["abstain"] and "unreadable" not in row["why"])
    assert label(repaired_run, new_photos, coverage=1.0)["abstention"]["threshold"] >= 0


def test_an_audit_adds_images_with_the_cue_swapped_and_without_it(plain_run, new_photos, tmp_path):
    half = CORNER | {"cue": "cells:8x8:ffffffff00000000"}  # the first four rows
    folder = audit(tmp_path / "audit", half, classes=[ODD, DOG])
    done = label(plain_run, new_photos, coverage=0.5, audit=folder)
    kinds = {each["images"]: each for each in done["abstention"]["expected"]}
    assert list(kinds) == ["as in validation data", "with the cue of another class", "without the cue"]
    assert done["abstention"]["cue"] == "a mark"
    # the upper half is what tells the classes apart: swapped, the model is wrong far more often
    swapped, plain = kinds["with the cue of another class"], kinds["as in validation data"]
    assert swapped["error_answering_all"] > plain["error_answering_all"]
    assert any(row["why"] and row["why"].startswith("the cue decides") for row in done["rows"])


def test_an_audit_that_found_nothing_changes_nothing(plain_run, new_photos, tmp_path):
    done = label(plain_run, new_photos, coverage=0.5, audit=audit(tmp_path / "audit", classes=[ODD, DOG]))
    assert done["abstention"]["cue"] is None and len(done["abstention"]["expected"]) == 1


def test_killed_at_ten_moments_and_resumed_each_image_has_one_row(plain_run, new_photos, tmp_path):
    whole, killed = tmp_path / "whole.csv", tmp_path / "killed.csv"
    label(plain_run, new_photos, whole, batch=2)
    script = Path(__file__).parent / "killed.py"
    path = os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script, plain_run, new_photos, killed]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    codes = json.loads(ended.stdout)
    assert codes == [-9] * 10 + [0]
    assert [row["filename"] for row in rows(killed)] == [row["filename"] for row in rows(whole)]
    assert [row["label"] for row in rows(killed)] == [row["label"] for row in rows(whole)]


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"coverage": 0.0}, "--coverage is a share above 0"),
        ({"coverage": 2.0}, "--coverage is a share above 0"),
        ({"top": 0}, "--topk must be at least 1"),
        ({"batch": 0}, "--batch must be at least 1"),
        ({"audit": Path("x")}, "so it needs --coverage"),
    ],
)
def test_what_makes_no_sense_is_refused(wanted, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Wanted(**wanted)


def test_nothing_is_written_where_nothing_can_be_labelled(plain_run, tmp_path):
    (tmp_path / "list.txt").write_text("\n")
    out = tmp_path / "out" / "labels.csv"
    with pytest.raises(UnspurError, match="There are no images in"):
        label(plain_run, tmp_path / "list.txt", out)
    with pytest.raises(UnspurError, match="does not exist"):
        label(tmp_path / "no-run", tmp_path, out)
    with pytest.raises(UnspurError, match="--resume goes on with a file"):
        label(plain_run, tmp_path, resume=True)
    assert not out.parent.exists()


def test_a_grey_image_and_another_size_are_read_as_the_run_takes_them(plain_run, tmp_path):
    Image.new("L", (SIDE * 3, SIDE), 77).save(tmp_path / "grey.png")
    (row,) = label(plain_run, tmp_path / "grey.png")["rows"]
    assert row["label"] in (ODD, DOG)
