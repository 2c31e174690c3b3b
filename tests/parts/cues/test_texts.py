"""Cues as texts."""

import pytest

from unspur.errors import UnspurError
from unspur.parts.cues.cells import Cells
from unspur.parts.cues.region import Region
from unspur.parts.cues.standing_out import StandsOut
from unspur.parts.cues.texts import WHOLE, cue_of, cue_text, cues_of


@pytest.mark.parametrize(
    "cue",
    [
        *WHOLE.values(),
        Cells(8, 8, ((0, 0), (7, 7))),
        Cells(3, 5, ((1, 4),)),
        Region(StandsOut((("cyan", 0.1234567), ("light", -0.5)))),
    ],
    ids=str,
)
def test_a_cue_is_what_its_text_says(cue):
    assert cue_of(cue_text(cue)) == cue


def test_cells_are_bits_row_by_row():
    # 2 x 2 cells, the first and the last: 1001 is 9
    assert cue_text(Cells(2, 2, ((0, 0), (1, 1)))) == "cells:2x2:9"
    assert cues_of(["cells:2x2:9", "noise"]) == (Cells(2, 2, ((0, 0), (1, 1))), WHOLE["noise"])


def test_a_region_that_is_kept_nowhere_has_no_text():
    assert cue_text(Region(lambda images: images[:, 0] > 0)) is None


@pytest.mark.parametrize("text", ["cells:8x8", "cells:8:ff", "cells:2x2:1f", "cells:0x0:0", "cells:2x2:zz"])
def test_cells_that_do_not_fit_their_grid_are_refused(text):
    with pytest.raises(UnspurError, match=r"Cells are written like cells:8x8:c0c0000000000000 .* but got"):
        cue_of(text)


def test_a_cue_without_cells_is_refused():
    with pytest.raises(UnspurError, match="at least one cell"):
        cue_of("cells:2x2:0")


def test_a_misspelt_cue_is_named_with_the_nearest():
    with pytest.raises(UnspurError, match=r"Unknown cue 'color'\. Did you mean 'colour'\?"):
        cue_of("color")


@pytest.mark.parametrize(("text", "said"), [
    ("mark:blue", "written like mark:blue:0.12"),
    ("mark:blue:deep", "written like mark:blue:0.12"),
    ("mark:azure:0.1", "but got 'azure' and 0.1"),
    ("mark:blue:0.1+", "written like mark:blue:0.12"),
    ("mark:blue:0.1+green", "written like mark:blue:0.12"),
    ("mark:blue:0.1+azure:0.2", "but got 'azure' and 0.2"),
    ("mark:blue:nan", "but got 'blue' and nan"),
    ("detected:nowhere.safetensors", "nowhere.safetensors does not exist"),
])  # fmt: skip
def test_regions_that_nothing_finds_are_refused(text, said):
    with pytest.raises(UnspurError, match=said):
        cue_of(text)
