"""predict and export on the command line: rows on stdout, sentences on stderr, one exit code each."""

import csv
import errno
import io
import json
import os
import sys

import pytest

from cli.mistakes import is_a_mistake
from practice.conftest import cache, new_photos, photos, plain_run  # noqa: F401 (fixtures)
from unspur.practice.predict.row_file import RowFile


def test_without_a_file_the_rows_are_csv_on_stdout_and_the_rest_is_on_stderr(unspur, plain_run, new_photos):  # noqa: F811
    code, out, err = unspur("predict", plain_run, new_photos)
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert code == 0 and len(rows) == 14
    assert "14 images labelled at" in err and "2 could not be read (column why)" in err


def test_json_is_one_document_with_the_rows_or_without(unspur, plain_run, new_photos, tmp_path):  # noqa: F811
    code, out, err = unspur("predict", plain_run, new_photos, "--json", "--topk", 2)
    document = json.loads(out)
    assert code == 0 and not err and len(document["rows"]) == 14 and len(document["rows"][0]["top"]) == 2
    code, out, _ = unspur("predict", plain_run, new_photos, "--json", "--out", tmp_path / "rows.jsonl")
    assert json.loads(out)["rows"] is None and len((tmp_path / "rows.jsonl").read_text().splitlines()) == 14


def test_what_to_expect_is_said_before_the_rows(unspur, plain_run, new_photos, tmp_path):  # noqa: F811
    code, out, err = unspur("predict", plain_run, new_photos, "--coverage", 0.75, "--out", tmp_path / "rows.csv")
    assert code == 0 and not out
    assert "from validation data, to answer 75.00 %" in err and "Expect on images as in validation data:" in err
    assert "calibration error" in err and f"Wrote {tmp_path / 'rows.csv'}" in err
    assert "Next: unspur export" in err


def test_sets_have_a_column_and_a_promise(unspur, plain_run, new_photos):  # noqa: F811
    code, out, err = unspur("predict", plain_run, new_photos, "--conformal", 0.9)
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert code == 0 and all(json.loads(row["set"]) for row in rows if row["label"])
    assert "Sets hold the right label of at least 90.00 % of images like the validation data." in err
    assert "labels in a set" in err and "Threshold" not in err


def test_paths_come_from_stdin(unspur, plain_run, new_photos, monkeypatch):  # noqa: F811
    lines = "".join(f"{path}\n" for path in sorted(new_photos.rglob("*.png")))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    _, out, _ = unspur("predict", plain_run, "-")
    assert len(list(csv.DictReader(io.StringIO(out, newline="")))) == 13


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--coverage", "0"), "--coverage is a share above 0 and up to 1, such as 0.9, but got 0."),
        (("--coverage", "2"), "--coverage is a share above 0 and up to 1, such as 0.9, but got 2."),
        (("--resume",), "--resume goes on with a file; name it with --out."),
        (("--out", "rows.xlsx"), "--out must end in .csv, .jsonl or .parquet"),
        (("--audit", "x"), "so it needs --coverage"),
        (("--conformal", "1"), "--conformal is a share of images above 0 and up to 0.99, such as 0.9, but got 1."),
        (("--engine", "spark"), "Unknown engine 'spark'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(unspur, plain_run, new_photos, more, sentence):  # noqa: F811
    code, out, err = unspur("predict", plain_run, new_photos, *more)
    assert code == 2 and not out and is_a_mistake(err) and sentence in err


def diverged(run, folder):
    """The run as it would be if its loss had not been finite."""
    folder = folder / run.name
    folder.mkdir()
    (folder / "config.json").write_bytes((run / "config.json").read_bytes())
    result = json.loads((run / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"status": "diverged", "reason": "not finite"}))
    return folder


def flat_onnx(path):
    """A file that takes a row of numbers instead of images."""
    onnx = pytest.importorskip("onnx")
    given, made = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 8]) for name in ("x", "y"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "flat", [given], [made])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "RUN", "empty"), "The folder empty holds no images."),
        (("predict", "RUN", "nowhere"), "nowhere does not exist; name files, folders or a table of images."),
        (("predict", "RUN", "PHOTOS", "--out", "file/rows.csv"), "file is a file; name a folder"),
        (("predict", "flat.onnx", "PHOTOS", "--out", "new/rows.csv"), "it must take one batch of images"),
        (("predict", "DIVERGED", "PHOTOS", "--out", "new/rows.csv"), "diverged, so no model"),
        (("export", "DIVERGED", "--out", "new"), "diverged, so no model"),
        (("export", "RUN", "--out", "file/new"), "file is a file; name a folder"),
        (("export", "RUN", "--out", "new", "--coverage", "0"), "--coverage is a share above 0 and up to 1"),
        (("export", "RUN", "--out", "new", "--coverage", "2"), "--coverage is a share above 0 and up to 1"),
        (("audit", "PHOTOS", "--out", "new", "--engine", "spark"), "Unknown engine 'spark'"),
        (("audit", "mnist", "--set", "data.base=mini", "--out", "new", "--engine", "ray"), "are in memory already"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    unspur,
    plain_run,  # noqa: F811
    new_photos,  # noqa: F811
    tmp_path,
    monkeypatch,
    arguments,
    sentence,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    known = {"RUN": plain_run, "PHOTOS": new_photos}
    if "DIVERGED" in arguments:
        known["DIVERGED"] = diverged(plain_run, tmp_path / "empty")
    if "flat.onnx" in arguments:
        flat_onnx(tmp_path / "flat.onnx")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = unspur(*(known.get(word, word) for word in arguments))
    assert code == 2 and not out and is_a_mistake(err) and sentence in err
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_is_one_sentence_and_exit_1(unspur, plain_run, new_photos, tmp_path, monkeypatch):  # noqa: F811
    def full(self, rows):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    monkeypatch.setattr(RowFile, "add", full)
    code, _, err = unspur("predict", plain_run, new_photos, "--out", tmp_path / "rows.csv")
    assert (
        code == 1
        and err
        == f"Error: No space left on device ({tmp_path / 'rows.csv'}); free some space, or name "
        + ("another folder.\n")
    )


def test_a_run_is_exported_and_the_next_command_named(unspur, plain_run, tmp_path):  # noqa: F811
    code, _, err = unspur("export", plain_run, "--out", tmp_path / "out", "--format", "safetensors")
    assert code == 0 and (tmp_path / "out" / "README.md").exists()
    assert "model.safetensors" in err and f"Next: unspur predict {tmp_path / 'out'} IMAGES" in err
    code, _, err = unspur("export", plain_run, "--out", tmp_path / "out")
    assert code == 2 and "exists already; name a new folder with --out" in err


def test_json_of_an_export_says_how_near_the_file_is(unspur, plain_run, tmp_path):  # noqa: F811
    code, out, _ = unspur("export", plain_run, "--out", tmp_path / "out", "--format", "torch", "--json")
    assert code == 0 and json.loads(out)["difference"] <= 1e-4
