"""The detector of marks that move, as a cue that is kept in a file."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from unspur.errors import UnspurError
from unspur.parts.cues.detector import LocalNet, SpeaksLoudest
from unspur.parts.cues.region import Region
from unspur.parts.cues.texts import cue_of, cue_text


@pytest.fixture
def red():
    """A detector that answers by red: class 1 gets the mean red of nine pixels, class 0 nothing."""
    net = LocalNet(2, 1).eval()
    for layer in net.modules():
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.zeros_(layer.weight)
            layer.weight.data[:1, :1, 1, 1] = 1  # the first channel of the first passes through
            if layer.bias is not None:
                torch.nn.init.zeros_(layer.bias)
    net.last.weight.data.zero_()
    net.last.weight.data[1, 0] = 1 / 9
    return SpeaksLoudest(net, 1)


def with_red(*place):
    images = torch.zeros(1, 3, 32, 32)
    images[0, 0, place[0] : place[0] + 3, place[1] : place[1] + 3] = 1
    return images


def test_the_region_is_a_square_around_the_strongest_place(red):
    found = red(with_red(20, 8))  # its middle is pixel (21, 9); 9 pixels each way are seen
    rows, columns = found[0].nonzero().T
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (17, 25, 5, 13)


def test_larger_images_are_looked_at_made_smaller(red):
    large = torch.nn.functional.interpolate(with_red(20, 8), scale_factor=6, mode="nearest")  # 192 pixels, to 96
    found = red(large)
    assert found.shape == (1, 192, 192) and found[0, 126, 54]


def test_read_from_its_file_it_finds_the_same(red, tmp_path):
    text = cue_text(Region(red.kept_in(tmp_path)))
    assert text.startswith(f"detected:{tmp_path}")
    before = torch.random.get_rng_state()
    again = cue_of(text)
    assert torch.equal(torch.random.get_rng_state(), before)
    images = torch.cat([with_red(20, 8), with_red(3, 14)])
    assert torch.equal(again.find(images), red(images)) and cue_text(again) == text


def test_a_file_that_was_changed_is_refused(red, tmp_path):
    file = red.kept_in(tmp_path).file
    state = load_file(file)
    state["last.bias"] += 1
    save_file(state, file, metadata={"note": '{"label": 1, "stride": 1, "classes": 2}'})
    with pytest.raises(UnspurError, match="not a detector as an audit wrote it; audit the images again"):
        cue_of(f"detected:{file}")
    save_file(state, file, metadata={"note": "[]"})
    with pytest.raises(UnspurError, match="not a detector as an audit wrote it"):
        cue_of(f"detected:{file}")
