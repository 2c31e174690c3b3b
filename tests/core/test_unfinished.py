"""What a killed process left unfinished is deleted by the next that writes there, and what a live one writes is not."""

import os
import signal
import subprocess
import sys

from unspur.core import unfinished
from unspur.core.files import write_text
from unspur.core.unfinished import PARTIAL, unfinished_file, unfinished_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from unspur.core.unfinished import unfinished_file, unfinished_folder
with unfinished_file(Path(sys.argv[1]) / "a.txt"), unfinished_folder(Path(sys.argv[1]) / "b") as folder:
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def left(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith(PARTIAL))


def test_the_next_process_that_writes_deletes_what_a_killed_one_left(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False, env=environment)
    assert died.returncode == -signal.SIGKILL and len(left(tmp_path)) == 2
    write_text(tmp_path / "c.txt", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["c.txt"]


def test_what_another_process_still_writes_is_left_alone(tmp_path, monkeypatch):
    with unfinished_file(tmp_path / "a.txt") as file, unfinished_folder(tmp_path / "b") as folder:
        monkeypatch.setattr(unfinished, "_cleared", set())  # as another process would begin
        write_text(tmp_path / "c.txt", "whole")
        assert left(tmp_path) == sorted([file, folder])
    assert not left(tmp_path)


def test_what_another_process_took_for_abandoned_is_made_again(tmp_path, monkeypatch):
    lock, taken = unfinished._lock, []

    def too_late(path, **rest):
        if not taken:  # deleted between being made and being locked
            taken.append(path)
            path.unlink()
        return lock(path, **rest)

    monkeypatch.setattr(unfinished, "_lock", too_late)
    with unfinished_file(tmp_path / "a.txt") as file:
        assert file.exists() and file != taken[0] and left(tmp_path) == [file]


def test_a_disk_without_locks_has_one_unfinished_file_all_the_same(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(unfinished, "fcntl", None)
    monkeypatch.setattr(unfinished, "_file", lambda path, make=unfinished._file: made.append(make(path)) or made[-1])
    write_text(tmp_path / "a.txt", "whole")
    assert len(made) == 1 and (tmp_path / "a.txt").read_text() == "whole" and not left(tmp_path)


def test_a_link_that_looks_unfinished_is_not_followed(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kept").write_text("kept")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / f"{PARTIAL}link").symlink_to(tmp_path / "own")
    write_text(tmp_path / "place" / "a.txt", "whole")
    assert (tmp_path / "own" / "kept").read_text() == "kept"
