"""The output after any end: cut at every byte, on a full disk, of another model, of other images."""

import errno
import json
import os
import sys

import pytest

from unspur.errors import UnspurError
from unspur.practice.predict.inputs import Named
from unspur.practice.predict.row_file import RowFile
from unspur.practice.predict.rows import Guess, Row

NAMES = ["a.png", 'b, "c"\n.png', "=d.png", "e.png"]
ABOUT = {"model": "0123", "topk": 1}


def images(names=NAMES):
    return iter([Named(name, name) for name in names])


def row(name):
    return Row(name, (Guess("cat", 0.75),), False, "")


def write(path, *, resume=False, names=NAMES, about=ABOUT, most=None):
    """Write the rows that are missing, ``most`` of them at most; how many were there."""
    file, left = RowFile(path, 1, about, resume), images(names)
    with file.opened(left) as done:
        for number, image in enumerate(left):
            if number == most:
                return done
            file.add([row(image.name)])
        file.finish()
    return done


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_file_that_was_cut_at_any_byte_is_completed_to_the_same_bytes(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    assert write(path) == 0
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        write(path, resume=True)
        assert path.read_bytes() == whole, cut


def test_resuming_counts_what_is_there_and_writes_the_rest(tmp_path):
    path = tmp_path / "rows.csv"
    write(path, most=2)
    assert write(path, resume=True) == 2
    assert write(path, resume=True) == 4  # nothing is left to do
    assert path.read_text().count("cat") == 4


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("jsonl", b'{"label": "cat"}\n'),  # no name
        ("jsonl", b'["a.png"]\n'),
        ("jsonl", b"a.png,cat\n"),
        ("csv", b"\xff\xfe,cat,0.5,false,\n"),
    ],
)
def test_rows_of_something_else_are_one_sentence_and_stay_as_they_are(tmp_path, suffix, damage):
    path = tmp_path / f"rows.{suffix}"
    write(path, most=0)
    damaged = path.read_bytes() + damage
    path.write_bytes(damaged)
    with pytest.raises(UnspurError, match=r"holds rows that this command does not write; restore it, or name another"):
        write(path, resume=True)
    assert path.read_bytes() == damaged


def test_notes_of_something_else_are_one_sentence(tmp_path):
    path = tmp_path / "rows.csv"
    write(path, most=1)
    (tmp_path / "rows.csv.about.json").write_text("[]")
    with pytest.raises(UnspurError, match=r"about\.json is not what this command writes"):
        write(path, resume=True)


def test_resuming_what_has_not_begun_begins_it(tmp_path):
    assert write(tmp_path / "new" / "rows.csv", resume=True) == 0


def test_a_full_disk_leaves_whole_rows_and_the_next_attempt_ends_well(tmp_path, monkeypatch):
    path, plain = tmp_path / "rows.csv", os.write
    write(tmp_path / "expected.csv")
    calls = []

    def full(descriptor, data):
        calls.append(len(data))
        if len(calls) == 3:  # the head, a row, and half of the next one
            return plain(descriptor, data[: len(data) // 2])
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            write(path)
    assert path.read_text() == "filename,label,probability,abstain,why\na.png,cat,0.750000,false,\n"
    assert write(path, resume=True) == 1
    assert path.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert not list(tmp_path.glob(".*"))  # no lock is left


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"resume": False}, r"rows\.csv exists; go on with --resume"),
        ({"about": {"model": "4567", "topk": 1}}, r"was made with another model \(0123\)"),
        ({"names": ["a.png", "z.png"]}, r"(?s)Row 2 of .* is of b, .* but that image is now z\.png"),
        ({"names": ["a.png"]}, r"(?s)Row 2 of .* but that image is now missing"),
    ],
)
def test_rows_of_something_else_are_not_mixed(tmp_path, changed, sentence):
    path = tmp_path / "rows.csv"
    write(path)
    whole = path.read_bytes()
    with pytest.raises(UnspurError, match=sentence):
        write(path, **{"resume": True, **changed})
    assert path.read_bytes() == whole


def test_a_file_that_somebody_else_wrote_is_left_alone(tmp_path):
    for text in ("mine\n", "filename,label,probability,abstain,why\nx,y,1,false,\n"):
        (tmp_path / "mine.csv").write_text(text)
        with pytest.raises(UnspurError, match="was not written by this command"):
            write(tmp_path / "mine.csv", resume=True)
        assert (tmp_path / "mine.csv").read_text() == text


def test_two_processes_do_not_write_one_file(tmp_path):
    file = RowFile(tmp_path / "rows.csv", 1, ABOUT)
    with file.opened(images()), pytest.raises(UnspurError, match="Another process writes"):
        write(tmp_path / "rows.csv", resume=True)


def test_an_output_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for path, sentence in (
        (tmp_path / "folder.csv", "is a folder; name a file"),
        (tmp_path / "rows.xlsx", r"must end in \.csv, \.jsonl or \.parquet"),
        (tmp_path / "file" / "rows.csv", "is a file; name a folder"),
    ):
        with pytest.raises(UnspurError, match=sentence):
            write(path)


def test_parquet_without_its_package_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.json", None)
    with pytest.raises(UnspurError, match="pip install pyarrow"):
        write(tmp_path / "rows.parquet")


def test_parquet_is_made_at_the_end_and_resumes_until_then(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    write(path, most=3)
    assert not path.exists()
    assert write(path, resume=True) == 3
    rows = parquet.read_table(path).to_pylist()
    assert [each["filename"] for each in rows] == NAMES
    assert rows[0]["top"] == [{"label": "cat", "probability": 0.75}] and rows[0]["why"] is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.parquet", "rows.parquet.about.json"]


def test_what_made_the_rows_stands_beside_them(tmp_path):
    with RowFile(tmp_path / "rows.csv", 1, ABOUT).opened(images(), {"version": "9"}):
        pass
    assert json.loads((tmp_path / "rows.csv.about.json").read_text()) == {**ABOUT, "version": "9"}
