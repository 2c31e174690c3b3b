"""What commands print is captured once, follows its block, and names no folder of the machine."""

import sys
from pathlib import Path

import pytest

from website.scripts import script

capture = script("site_capture")
PAGE = """Before.

<!-- run -->
```sh
echo one > file; pwd
```

<!-- run -->
```python
print(open("file").read())
```

```sh
false
```
"""


def test_what_a_block_prints_follows_it_and_others_are_left_alone(tmp_path):
    text = capture.captured(PAGE, tmp_path / "kept", lambda sentence: None)
    assert "```sh\necho one > file; pwd\n```\n\n```text\n.\n```\n" in text  # its folder is called .
    assert '```python\nprint(open("file").read())\n```\n\n```text\none\n```\n' in text  # one folder for all blocks
    assert text.endswith("```sh\nfalse\n```\n") and "<!-- run -->" not in text


def test_a_capture_is_made_once(tmp_path, monkeypatch):
    first = capture.captured(PAGE, tmp_path, lambda sentence: None)
    monkeypatch.setattr(capture, "output_of", None)  # would fail if it were called
    assert capture.captured(PAGE, tmp_path, lambda sentence: None) == first


def test_a_block_that_fails_stops_the_build_with_what_it_printed(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)fails with 3:.*printed"):
        capture.captured("<!-- run -->\n```sh\necho printed; exit 3\n```\n", tmp_path, lambda sentence: None)


def test_a_long_output_is_cut(monkeypatch):
    monkeypatch.setattr(capture, "LONGEST", 3)
    assert capture.shortened("a  \nb\nc\nd") == "a\nb\n... and 2 more lines"  # 4 lines: 2 are shown, 2 are not


def test_a_block_sees_no_data_and_no_cache_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_DATA", "somewhere")
    code = "import os; print(os.environ.get('UNSPUR_DATA'), os.environ['UNSPUR_CACHE'])"
    assert capture.output_of("python", code, tmp_path, Path(sys.executable)) == "None cache"
