"""The picture of the house shows its own text."""

import pytest

from website.scripts import ROOT, script

house = script("site_house")


def test_every_room_of_the_text_is_drawn_and_the_list_is_gone():
    shown = house.drawn((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    for room in ("core", "saliency", "practice", "cli"):
        assert f">{room}</text>" in shown
    assert "    saliency · train · theory" not in shown and "| `core/` |" in shown


def test_rooms_of_a_floor_share_its_width():
    # two rooms and a gap of 10 on 640 pixels: 315 each, the second from 325 on
    shown = house.picture([["a"], ["b", "c"]])
    assert 'x="0.0" y="60" width="315.0"' in shown and 'x="325.0" y="60" width="315.0"' in shown


def test_a_text_without_layers_stops_the_build():
    with pytest.raises(ValueError, match="no list of layers"):
        house.drawn("# Nothing")
