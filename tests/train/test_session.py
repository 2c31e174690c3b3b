"""The log and the checkpoints of a session: whatever moment a process dies at, nothing is lost and nothing stays."""

import contextlib
import json
import os
import shutil

import pytest
import torch

from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.train import session as session_module
from unspur.train.session import LOG, Session


def lines(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


def test_the_log_is_written_whole_once_and_then_appended_to(tmp_path, monkeypatch):
    whole, added = [], []
    write, append = session_module.write_text, session_module.append_text
    monkeypatch.setattr(session_module, "write_text", lambda path, text: (whole.append(text), write(path, text)))
    monkeypatch.setattr(session_module, "append_text", lambda path, text: (added.append(text), append(path, text)))
    session = Session(folder=tmp_path)
    for epoch in range(1, 6):
        session.log("erm", epoch=epoch)
        session.save("erm", {"w": torch.zeros(1)})
    assert [len(text.splitlines()) for text in whole] == [1]
    assert [len(text.splitlines()) for text in added] == [1, 1, 1, 1]  # one line each, however long the log is
    assert [line["epoch"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5]


def test_a_line_that_was_lost_behind_its_checkpoint_comes_back(tmp_path):
    session = Session(folder=tmp_path)
    for epoch in (1, 2):
        session.log("erm", epoch=epoch)
        session.save("erm", {})
    (tmp_path / LOG).write_text('{"stage": "erm", "epoch": 1}\n{"sta')  # killed while it added the second
    resumed = Session(folder=tmp_path)
    resumed.load("erm")
    resumed.finish()
    assert [line["epoch"] for line in lines(tmp_path)] == [1, 2]
    resumed.log("tuning", epoch=1)
    resumed.save("tuning", {})
    assert [line["stage"] for line in lines(tmp_path)] == ["erm", "erm", "tuning"]


class Killed(BaseException):
    """What a kill looks like from inside: nothing but the operating system cleans up."""


@contextlib.contextmanager
def dying_at(number):
    """Let the process die before its ``number``-th file operation; yields the operations that it came to."""
    seen = []
    plain = {(os, "replace"): os.replace, (os, "fsync"): os.fsync, (shutil, "rmtree"): shutil.rmtree}

    def counted(name, function):
        def call(*args, **more):
            seen.append((name, str(args[0])))
            if len(seen) == number:
                raise Killed
            return function(*args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for (module, name), function in plain.items():
            patch.setattr(module, name, counted(name, function))
        yield seen


def tiny():
    settings = ["data.train=64", "data.val=0", "data.test=20", "erm.epochs=3", "erm.batch_size=64", "arch.width=8"]
    return configure("erm", "parity", "fcn", 0, settings)


def files(folder):
    kept = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    result = json.loads(kept.pop("result.json"))
    del result["seconds"]
    return kept | {"result": result}


def test_a_run_killed_at_any_file_operation_resumes_to_the_same_files(tmp_path):
    with dying_at(0) as operations:
        run(tiny(), tmp_path / "whole")
    whole = files(Run.create(tmp_path / "whole", tiny()).folder)
    assert len(whole["metrics.jsonl"].splitlines()) == 3 and not any("checkpoints" in name for name in whole)
    assert {name for name, _ in operations} == {"replace", "fsync", "rmtree"}
    for number in range(1, len(operations) + 1):
        out = tmp_path / str(number)
        with dying_at(number), pytest.raises(Killed):
            run(tiny(), out)
        run(tiny(), out, resume=True)
        assert files(Run.create(out, tiny()).folder) == whole, operations[number - 1]


def test_checkpoints_that_stayed_after_the_end_are_deleted_by_the_next_look(tmp_path):
    run(tiny(), tmp_path)
    folder = Run.create(tmp_path, tiny()).folder
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "erm.safetensors").write_bytes(b"x")
    assert Run.open(folder).finished()["status"] == "done"
    assert not (folder / "checkpoints").exists()


def test_the_half_written_last_line_of_a_run_that_goes_on_is_not_read(tmp_path):
    stored = Run.create(tmp_path, tiny())
    stored.begin()
    (stored.folder / LOG).write_text('{"stage": "erm", "epoch": 1}\n{"stage": "e')
    assert stored.log() == [{"stage": "erm", "epoch": 1}]
