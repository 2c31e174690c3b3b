import os
import stat

import pytest
import torch

from unspur.core.files import read_json, read_tensors, replacing, write_tensors, write_text
from unspur.core.unfinished import remove_partial
from unspur.errors import UnspurError


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError, match="power cut"), replacing(target) as temporary:
        temporary.write_text("half of the n")
        raise RuntimeError("power cut")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_written_file_is_readable_by_others_as_the_umask_says(tmp_path):
    target, ordinary = tmp_path / "a.txt", tmp_path / "b.txt"
    write_text(target, "x")
    ordinary.write_text("x")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_tensors_come_back_with_their_note(tmp_path):
    path = tmp_path / "deep" / "t.safetensors"
    tied = torch.arange(6.0).reshape(2, 3).T  # neither contiguous nor alone in its memory
    write_tensors(path, {"a": tied, "b": tied}, note={"epoch": 3})
    tensors, note = read_tensors(path)
    assert torch.equal(tensors["a"], tied) and torch.equal(tensors["b"], tied)
    assert note == {"epoch": 3}


def test_a_truncated_weights_file_is_named(tmp_path):
    path = tmp_path / "t.safetensors"
    write_tensors(path, {"a": torch.zeros(100)})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(UnspurError, match=r"t\.safetensors is not a readable safetensors file"):
        read_tensors(path)


def test_broken_json_is_named(tmp_path):
    (tmp_path / "r.json").write_text('{"key": ')
    with pytest.raises(UnspurError, match=r"r\.json cannot be read as JSON"):
        read_json(tmp_path / "r.json")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".partial-x.json").write_text("half")
    (tmp_path / "sub" / "whole.json").write_text("{}")
    remove_partial(tmp_path)
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["whole.json"]


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000])
def test_json_without_end_is_one_sentence(tmp_path, text):
    (tmp_path / "deep.json").write_text(text)
    with pytest.raises(UnspurError, match=r"deep\.json cannot be read as JSON \(it is nested too deeply\)"):
        read_json(tmp_path / "deep.json")


def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.json", "zero.json", "folder.json"):
        for read in (read_json, read_tensors):
            with pytest.raises(UnspurError, match=f"{name} is not a file; restore or delete it"):
                read(tmp_path / name)
