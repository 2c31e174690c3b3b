"""Whatever names images: files, folders, patterns, tables, lists and standard input."""

import io
import os

import pytest

from data.photos import photo
from unspur.errors import UnspurError
from unspur.practice.predict.inputs import Inputs


@pytest.fixture
def root(tmp_path):
    for name in ("b/2.png", "b/10.jpg", "a.png", "c/d/0.png"):
        photo(tmp_path / "root" / name)
    (tmp_path / "root" / "notes.md").write_text("no image")
    return tmp_path / "root"


def names(*given, **more):
    inputs = Inputs(tuple(map(str, given)), **more)
    found = [(image.name, image.problem) for image in inputs]
    if "-" not in given:
        assert inputs.count() == len(found)
    return found


def test_a_folder_gives_its_images_in_order_and_then_those_of_its_folders(root):
    assert names(root) == [(f"{root}/{name}", "") for name in ("a.png", "b/10.jpg", "b/2.png", "c/d/0.png")]


def test_files_folders_and_patterns_come_in_the_order_that_they_are_named_in(root, monkeypatch):
    monkeypatch.chdir(root)
    expected = ["c/d/0.png", "b/10.jpg", "b/2.png", "a.png"]
    assert [name for name, _ in names("c", "b/*", "a.png")] == expected
    assert [name for name, _ in names("**/*.png")] == ["a.png", "b/2.png", "c/d/0.png"]
    assert [name for name, _ in names("?")] == ["b/10.jpg", "b/2.png", "c/d/0.png"]  # folders that match


def test_a_table_names_files_beside_it_and_says_what_is_wrong_with_each(root):
    table = root / "list.csv"
    table.write_text('id;filename\n1;a.png\n2;gone.png\n3;../x.png\n4;"b/2.png"\n5;\n')
    problems = dict(names(table))
    assert list(problems) == ["a.png", "gone.png", "../x.png", "b/2.png", ""]
    assert problems["a.png"] == problems["b/2.png"] == ""
    assert problems["gone.png"] == "does not exist" and "leaves the folder" in problems["../x.png"]
    assert problems[""] == "is an empty cell"


def test_another_column_of_a_table_is_named_with_an_option(root):
    (root / "list.csv").write_text("id,path\n1,a.png\n")
    assert names(root / "list.csv", column="path") == [("a.png", "")]
    with pytest.raises(UnspurError, match=r"Unknown column of .* 'filename'.*--column"):
        names(root / "list.csv")


def test_a_list_has_a_path_a_line_beside_it_and_standard_input_from_here(root, monkeypatch):
    (root / "list.txt").write_text("a.png\n\nb/2.png\r\n")
    assert names(root / "list.txt") == [("a.png", ""), ("b/2.png", "")]
    monkeypatch.chdir(root)
    stdin = io.BytesIO(b"b/10.jpg\nb\nnothing.png\nodd\xff.png\n")
    found = names("-", stdin=stdin)
    assert [name for name, _ in found] == ["b/10.jpg", "b", "nothing.png", "odd\\udcff.png"]
    assert found[1][1] == "is not a file"  # a folder in a list is no image
    assert found[2][1] == "cannot be read (No such file or directory)"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    assert names(tmp_path / "pipe.png") == [(str(tmp_path / "pipe.png"), "is not a file")]


def test_a_link_that_leaves_its_folder_is_named_in_its_row(tmp_path):
    photo(tmp_path / "other.png")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link.png").symlink_to(tmp_path / "other.png")
    (tmp_path / "root" / "lost.png").symlink_to(tmp_path / "nothing.png")
    problems = [problem for _, problem in names(tmp_path / "root")]
    assert all("leaves the folder" in problem for problem in problems) and len(problems) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "There are no images; name files"),
        (("nowhere",), "nowhere does not exist"),
        (("*.bmp",), r"\*\.bmp does not exist"),
        (("empty",), "The folder empty holds no images"),
        (("",), "A path is empty"),
        (("-",), "There is no standard input"),
        (("-", "-"), "can be read once"),
    ],
)
def test_what_is_not_there_is_said_before_anything_is_done(tmp_path, monkeypatch, given, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnspurError, match=sentence):
        Inputs(given)
