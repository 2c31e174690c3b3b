import numpy as np
import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.saliency import foreground as module
from unspur.saliency.foreground import SIDE, deeplab, foreground, read_masks, segmented


def images(n=3, height=4, width=8):
    return Split(torch.zeros(n, 1, height, width, dtype=torch.uint8), torch.zeros(n, dtype=torch.long))


def test_masks_are_those_of_the_samples_asked_for(tmp_path):
    masks = np.zeros((3, 4, 8), dtype=np.uint8)
    masks[2, 1, 5] = 255  # any value but 0 is an object
    np.save(tmp_path / "masks.npy", masks)
    found = foreground(str(tmp_path / "masks.npy"), images(), torch.tensor([2, 0]))
    assert found.dtype == torch.bool and found[0].nonzero().tolist() == [[1, 5]] and not found[1].any()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "do not exist; give a .npy file, or deeplabv3"),
        (b"no array", "is not a .npy file of numbers"),
        (np.zeros((2, 4, 8)), r"must have the shape \(3, 4, 8\), one for each test image, but .* has \(2, 4, 8\)"),
        (np.array([{"a": 1}], dtype=object), "is not a .npy file of numbers"),  # would need pickle
    ],
)
def test_masks_that_cannot_be_used_are_told(tmp_path, content, sentence):
    path = tmp_path / "masks.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content, allow_pickle=True)
    with pytest.raises(UnspurError, match=sentence):
        read_masks(path, (3, 4, 8))


def test_vectors_have_no_foreground():
    with pytest.raises(UnspurError, match="Only images have a foreground"):
        foreground("deeplabv3", Split(torch.zeros(2, 5), torch.zeros(2, dtype=torch.long)), torch.arange(2))


class BrightIsAnObject(nn.Module):
    """Class 3 where the enlarged, normalised red channel is above its mean on ImageNet, else the background."""

    def forward(self, x):
        self.seen = x.shape
        out = torch.zeros(len(x), 21, *x.shape[2:])
        out[:, 0] = 0.5
        out[:, 3] = (x[:, 0] > 0).float()
        return {"out": out}


def test_an_object_is_whatever_the_segmenter_does_not_call_background():
    x = torch.zeros(10, 1, 4, 8)
    x[9, :, :, 4:] = 1  # the right half of the last image, in the second batch
    network = BrightIsAnObject()
    found = segmented(network, x)
    assert network.seen == (2, 3, SIDE, 2 * SIDE)  # grey repeated, enlarged with its proportions
    assert not found[:9].any()
    assert found[9].any(0).tolist() == [False] * 4 + [True] * 4


def test_weights_that_are_not_here_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(UnspurError, match=r"DeepLabV3 are not here; get .*deeplabv3_resnet50.* and put it at"):
        deeplab()
    assert not list(tmp_path.rglob("*"))  # and nothing was downloaded


def test_stored_weights_are_loaded_into_the_published_network(tmp_path, monkeypatch):
    segmentation = module.import_torchvision().models.segmentation
    weights = segmentation.DeepLabV3_ResNet50_Weights.DEFAULT
    path = tmp_path / "checkpoints" / weights.url.rpartition("/")[2]
    path.parent.mkdir()
    monkeypatch.setattr("unspur.models.weights._require_named_hash", lambda path: None)  # a file of zeros has another
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with torch.device("meta"):
        names = segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, aux_loss=True).state_dict()
    state = {name: torch.zeros((), dtype=like.dtype).expand(like.shape) for name, like in names.items()}
    torch.save(state, path)  # expanded zeros are stored as one number each
    network = deeplab()
    assert not network.training and not any(parameter.any() for parameter in network.parameters())
    torch.save({"weight": torch.zeros(1)}, path)
    with pytest.raises(UnspurError, match="does not hold the weights of DeepLabV3"):
        deeplab()
