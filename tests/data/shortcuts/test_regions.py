import pytest
import torch

from unspur.data.catalog import load
from unspur.data.sets.planted_mnist import MNISTSC, BiasedMNIST, ColoredMNIST, DoubleMNIST
from unspur.data.sets.synthetic import MoonStar, Parity
from unspur.data.shortcuts.regions import regions


def planted_pixels(name, **options):
    """Pixels that differ between a training image and the same image under another draw of the shortcut."""
    one, other = (load(name, base="mini", val=0, conflict=conflict, **options).train.x for conflict in (0.0, 1.0))
    return (one != other).any(0).any(0)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (BiasedMNIST(), {}),
        (BiasedMNIST(squares=2, size=32), {"squares": 2, "size": 32}),
        (MNISTSC(size=32), {"size": 32}),
        (DoubleMNIST(), {}),
    ],
)
def test_what_the_planting_changes_lies_in_the_spurious_region(spec, options):
    changed = planted_pixels(spec.name, **options)
    masks = regions(spec, torch.Size([3, *changed.shape]))
    assert changed.any() and not changed[masks["core"]].any()
    assert torch.equal(masks["core"], ~masks["spurious"])


def test_bits_are_core_spurious_and_noise_in_this_order():
    masks = regions(Parity(core=3, spurious=1, noise=2), torch.Size([6]))
    assert {name: mask.nonzero().flatten().tolist() for name, mask in masks.items()} == {
        "core": [0, 1, 2], "spurious": [3], "noise": [4, 5]
    }  # fmt: skip


@pytest.mark.parametrize("spec", [ColoredMNIST(), MoonStar()])
def test_where_class_and_shortcut_share_their_pixels_there_are_no_regions(spec):
    assert regions(spec, torch.Size([3, 28, 28])) == {}
