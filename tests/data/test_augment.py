import pytest
import torch
from torch import nn

from unspur.data.augment import Augment
from unspur.data.base import Split
from unspur.data.masks import BitMask
from unspur.errors import UnspurError
from unspur.train.loop import train
from unspur.train.recipe import SGD
from unspur.train.session import Session
from watching import Watch

ALL = Augment(flip=True, pad=2, area=0.5, aspect=1.3)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def random_images(n=6, height=8, width=8, seed=0):
    return torch.randint(256, (n, 3, height, width), generator=generator(seed), dtype=torch.uint8)


def split(n=6, height=8, width=8, **more):
    return Split(random_images(n, height, width), torch.arange(n) % 2, **more)


def test_every_other_image_is_mirrored():
    x = torch.rand(200, 1, 2, 3, generator=generator())
    moved = Augment(flip=True)(x, generator())
    mirrored = [torch.equal(a, b.flip(-1)) for a, b in zip(moved, x, strict=True)]
    kept = [torch.equal(a, b) for a, b in zip(moved, x, strict=True)]
    assert all(a != b for a, b in zip(mirrored, kept, strict=True))
    assert 70 < sum(mirrored) < 130  # 100 expected; the standard deviation is 7


def test_a_shift_is_whole_pixels_with_black_beside_it():
    x = torch.rand(100, 2, 5, 6, generator=generator()) + 1
    moved = Augment(pad=2)(x, generator())
    offsets = set()
    for image, original in zip(moved, x, strict=True):
        frame = nn.functional.pad(original, (2, 2, 2, 2))
        found = [
            (top, left)
            for top in range(5)
            for left in range(5)
            if torch.equal(image, frame[:, top : top + 5, left : left + 6])
        ]
        assert len(found) == 1
        offsets |= set(found)
    assert {top for top, _ in offsets} == {left for _, left in offsets} == {0, 1, 2, 3, 4}


def test_a_zoom_shows_a_part_of_the_image_at_full_size():
    # A ramp over the columns, 0.5 to 31.5: a crop of it is a ramp too, and its slope the crop's share of the width.
    ramp = (torch.arange(32.0) + 0.5).expand(500, 1, 32, 32)
    moved = Augment(area=0.25)(ramp, generator())
    assert moved.shape == ramp.shape
    middle = moved[:, 0, 16]
    share = (middle[:, 25] - middle[:, 6]) / 19
    assert share.min() >= 0.5 - 1e-4 and share.max() <= 1 + 1e-4  # the root of the area, at least
    assert (share**2).mean() == pytest.approx((1 + 0.25) / 2, abs=0.03)  # areas are uniform
    centre = (middle[:, 15] + middle[:, 16]) / 2
    left, right = centre - 16 * share, centre + 16 * share
    assert left.min() > -0.01 and right.max() < 32.01  # it lies in the image
    assert left.min() < 1 and right.max() > 31  # and reaches its borders


def test_the_aspect_of_a_zoom_stays_within_its_bound():
    down, across = torch.meshgrid(torch.arange(32.0) + 0.5, torch.arange(32.0) + 0.5, indexing="ij")
    x = torch.stack([down, across]).expand(300, 2, 32, 32)
    moved = Augment(area=0.4, aspect=1.5)(x, generator())
    height = (moved[:, 0, 25, 16] - moved[:, 0, 6, 16]) / 19
    width = (moved[:, 1, 16, 25] - moved[:, 1, 16, 6]) / 19
    assert (width / height).max() <= 1.5001 and (height / width).max() <= 1.5001
    assert (width / height).max() > 1.4 and (height / width).max() > 1.4


@pytest.mark.parametrize("augment", [Augment(flip=True), Augment(pad=3), Augment(area=0.3, aspect=2.0), ALL])
def test_what_is_hidden_stays_hidden_however_the_image_moves(augment):
    # All that is bright lies below the mask; a mask that did not move along would leave some of it in sight.
    hidden = torch.rand(50, 8, 8, generator=generator(1)) < 0.3
    x = (hidden * 255).to(torch.uint8).unsqueeze(1)
    whole = Split(x, torch.zeros(50, dtype=torch.long), augment=augment)
    index = torch.arange(50)
    assert whole.batch(index, generator=generator()).x.max() > 0.5
    assert whole.masked(BitMask.of(hidden)).batch(index, generator=generator()).x.max() == 0


def test_a_masked_image_moves_as_the_whole_one_does():
    hidden = torch.rand(6, 8, 8, generator=generator(1)) < 0.3
    augment, index = Augment(flip=True, pad=2), torch.arange(6)
    masked = split(augment=augment).masked(BitMask.of(hidden)).batch(index, generator=generator(3)).x
    whole = split(augment=augment).batch(index, generator=generator(3)).x
    assert torch.equal(masked, whole * augment((~hidden).float().unsqueeze(1), generator(3)))


def test_without_a_generator_nothing_moves():
    # as in evaluation, and where maps are computed
    moved = split(augment=ALL)
    index = torch.tensor([4, 1])
    assert torch.equal(moved.batch(index).x, split().batch(index).x)
    assert not torch.equal(moved.batch(index, generator=generator()).x, split().batch(index).x)


def test_the_generator_alone_decides():
    index = torch.arange(6)
    first, again, other = (split(augment=ALL).batch(index, generator=generator(seed)).x for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_subset_and_a_masked_split_keep_their_augmentation():
    kept = split(augment=ALL).subset(torch.arange(3)).masked(None).without_attributes()
    assert kept.augment is ALL


def fit(folder=None, augment=ALL, stop=None, seed=0):
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2))
    nn.init.constant_(model[1].weight, 0.01)
    nn.init.zeros_(model[1].bias)
    seen = []

    def watch(moment):
        seen.extend(x for x, index in zip(moment.batch.x, moment.batch.index.tolist(), strict=True) if index == 5)
        if moment.step == stop:
            raise InterruptedError

    recipe = SGD(lr=0.1, epochs=3, batch_size=4)  # three steps an epoch
    session = Session(folder=folder, seed=seed)
    train(model, split(12, augment=augment), recipe, stage="erm", session=session, carry=[Watch(watch)])
    return model[1].weight, seen


def test_training_moves_each_image_anew_every_epoch():
    weight, (first, second, third) = fit()
    stored = random_images(12)[5] / 255
    assert not any(torch.equal(x, stored) for x in (first, second, third))
    assert not torch.equal(first, second) and not torch.equal(second, third)
    assert torch.equal(weight, fit()[0]) and not torch.equal(weight, fit(seed=1)[0])


def test_no_two_epochs_draw_the_same_moves():
    # Twelve times the same image, so that only the moves can differ, whatever the order.
    same = Split(random_images(1).expand(12, -1, -1, -1), torch.arange(12) % 2, augment=ALL)
    seen = []
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2))
    recipe = SGD(epochs=2, batch_size=12)
    watch = Watch(lambda moment: seen.append(moment.batch.x))
    train(model, same, recipe, stage="erm", session=Session(), carry=[watch])
    assert not torch.equal(*seen)


@pytest.mark.parametrize("stop", [1, 4, 8])
def test_an_interrupted_augmented_training_ends_with_the_same_bits(tmp_path, stop):
    whole, _ = fit()
    with pytest.raises(InterruptedError):
        fit(tmp_path, stop=stop)
    assert torch.equal(fit(tmp_path)[0], whole)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pad": -1}, r"augment\.pad must be at least 0 pixels but got -1"),
        ({"area": 0.0}, r"augment\.area must lie in \(0, 1\] but got 0\.0"),
        ({"aspect": 0.9}, r"augment\.aspect must be at least 1 but got 0\.9"),
    ],
)
def test_an_impossible_augmentation_is_refused(options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Augment(**options)
