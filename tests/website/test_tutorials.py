"""The tutorials run to their ends, draw pictures that show something, and notebooks are those of the sources."""

import json

import numpy as np
import pytest
from PIL import Image

from website.scripts import script

made = script("site_tutorials")
PROGRAM = """# %% [markdown]
# # Title
#
# Text.

# %%
epochs = 6  # of training  # tests: 1
print(epochs)

# %%
from PIL import Image
Image.new("L", (4, 4))
"""


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"))


def test_a_program_is_read_cell_by_cell():
    text, first, second = made.cells(PROGRAM)
    assert text == (True, "# Title\n\nText.") and not first.is_text
    assert second.source == 'from PIL import Image\nImage.new("L", (4, 4))'


def test_tests_have_settings_of_their_own_which_nobody_else_sees():
    assert "epochs = 1\n" in made.small(PROGRAM)
    assert "tests:" not in made.notebook(PROGRAM) and "epochs = 6  # of training" in made.notebook(PROGRAM)


def test_a_cell_gives_what_it_prints_and_the_picture_that_it_ends_with(tmp_path):
    assert made.run(made.small(PROGRAM), tmp_path) == [("1\n", None), ("", "2.png")]
    assert pixels(tmp_path / "2.png").shape == (4, 4)


def test_a_page_shows_code_with_what_it_gave():
    shown = made.page(PROGRAM, [made.Output("6\n", None), made.Output("", "2.png")], "../pictures/a")
    assert "# Title" in shown and "```text\n6\n```" in shown and "](../pictures/a/2.png)" in shown
    assert "tests:" not in shown


def test_there_are_four():
    assert len(made.tutorials()) == 4


@pytest.mark.parametrize("path", made.tutorials(), ids=lambda path: path.stem)
def test_a_notebook_is_that_of_its_source_and_holds_no_output(path):
    stored = path.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert stored == made.notebook(path.read_text(encoding="utf-8")), "Run python scripts/site_tutorials.py."
    assert not any(cell.get("outputs") for cell in json.loads(stored)["cells"])


@pytest.mark.site
@pytest.mark.parametrize("path", made.tutorials(), ids=lambda path: path.stem)
def test_a_tutorial_runs_and_its_pictures_show_something(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    outputs = made.run(made.small(path.read_text(encoding="utf-8")), tmp_path)
    pictures = [tmp_path / output.picture for output in outputs if output.picture]
    assert pictures and any(output.text for output in outputs)
    assert all(pixels(picture).std() > 1 for picture in pictures)
