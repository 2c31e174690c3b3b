import pytest
import torch

from unspur.data.catalog import load
from unspur.data.sets.cifar import MNISTCIFAR, CorruptedCIFAR10
from unspur.data.sets.mnist import MNIST
from unspur.data.sets.planted_mnist import MNISTSC, BiasedMNIST, ColoredMNIST, DoubleMNIST
from unspur.data.sets.synthetic import MoonStar, Parity
from unspur.errors import UnspurError


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
    masks = spec.regions(torch.Size([3, *changed.shape]))
    assert changed.any() and not changed[masks["core"]].any()
    assert torch.equal(masks["core"], ~masks["spurious"])


def test_bits_are_core_spurious_and_noise_in_this_order():
    masks = Parity(core=3, spurious=1, noise=2).regions(torch.Size([6]))
    assert {name: mask.nonzero().flatten().tolist() for name, mask in masks.items()} == {
        "core": [0, 1, 2], "spurious": [3], "noise": [4, 5]
    }  # fmt: skip


@pytest.mark.parametrize("spec", [ColoredMNIST(), CorruptedCIFAR10(), MoonStar(), MNIST()])
def test_where_class_and_shortcut_share_their_pixels_there_are_no_regions(spec):
    assert spec.regions(torch.Size([3, 28, 28])) == {}


def test_the_digit_of_a_domino_is_above():
    masks = MNISTCIFAR().regions(torch.Size([3, 64, 32]))
    assert masks["spurious"][:32].all() and masks["core"][32:].all() and not (masks["core"] & masks["spurious"]).any()


@pytest.mark.parametrize("spec", [ColoredMNIST, CorruptedCIFAR10])
def test_a_share_and_a_number_of_conflicting_samples_are_not_both_given(spec):
    with pytest.raises(UnspurError, match="Give conflict or conflict_count, not both"):
        spec(conflict=0.1, conflict_count=3)
