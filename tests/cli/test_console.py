"""What is printed cannot steer the terminal, and a reader that has gone is no error."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.mistakes import is_a_mistake
from data.photos import class_folders
from unspur.cli.show.console import TerminalBytes, plain

HOSTILE = "\x1b[31mred\x1b[0m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),  # the same as ESC [ in one byte
        ("a\rb", r"a\rb"),
        ("cod\u202ecow.exe", r"cod\u202ecow.exe"),
        ("\udcff", r"\udcff"),  # a file name that is not UTF-8
        ("two\nlines\tof café 猫 👩‍🔬", "two\nlines\tof café 猫 👩‍🔬"),
    ],
)
def test_control_characters_are_spelt_out_and_nothing_else_is(text, shown):
    assert plain(text) == shown


def test_a_class_name_does_not_colour_a_table(unspur, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    root = class_folders(tmp_path / "own", **{HOSTILE: 10, "[": 10})
    code, out, err = unspur("data", "info", "folder", "--set", f"data.root={root}", "--set", "data.size=8")
    assert code == 0, err
    assert "\x1b" not in out + err and r"\x1b[31mred" in out


def test_a_name_in_an_error_stays_on_one_line_without_codes(unspur, tmp_path):
    code, _, err = unspur("evaluate", tmp_path / f"{HOSTILE}\n")
    assert code == 2 and "\x1b" not in err and is_a_mistake(err)


def process(*arguments, **more):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "unspur", *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **more)


def test_a_reader_that_has_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    running = process("methods", stdout=write)
    os.close(write)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 1 and "Traceback" not in err and "Error" not in err


def test_a_closed_stdout_is_no_error():
    running = process("methods", preexec_fn=lambda: os.close(1))
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0 and "Traceback" not in err


def test_rows_on_a_terminal_are_printed_as_they_are_spelt():
    terminal = io.StringIO()
    rows = TerminalBytes(terminal)
    rows.write(b"a\x1b[2J.png,cat\n")
    rows.flush()
    assert terminal.getvalue() == "a\\x1b[2J.png,cat\n"
