import pytest
import torch
from PIL import Image

from unspur.data.images.foreground import ForegroundMasks
from unspur.errors import UnspurError


@pytest.fixture
def masks(tmp_path):
    for number in range(3):
        mask = Image.new("1", (40, 20))
        mask.paste(1, (0, 0, 10 * (number + 1), 20))  # a quarter, a half, three quarters from the left
        mask.save(tmp_path / f"{number}.png")
    return ForegroundMasks(tmp_path, [f"{number}.png" for number in range(3)], 8, "stretch")


def test_masks_are_true_on_the_object_and_in_the_size_of_the_images(masks):
    assert masks.shape == (3, 8, 8) and masks.dtype == torch.bool
    assert masks[torch.tensor([2, 0])].float().mean((1, 2)).tolist() == [0.75, 0.25]


def test_masks_are_fitted_as_their_images_are(tmp_path, masks):
    # the second mask is white in columns 0 to 19; of its middle, columns 10 to 29, that is the left half
    cropped = ForegroundMasks(tmp_path, ["1.png"], 8, "crop")[torch.tensor([0])][0]
    assert cropped[:, :4].all() and not cropped[:, 4:].any()


def test_a_part_of_the_masks_is_still_unread(tmp_path, masks):
    some = masks.subset(torch.tensor([1, 2]))
    (tmp_path / "2.png").unlink()
    assert [part.float().mean().item() for part in some.reading([torch.tensor([0])])] == [0.5]
    with pytest.raises(UnspurError, match=r"The mask .*2\.png cannot be read \(No such file or directory\)"):
        some[torch.tensor([1])]
