import dataclasses
import math

import pytest
import torch
from torch import nn

from unspur.data.base import Split
from unspur.data.masks import BitMask
from unspur.errors import UnspurError
from unspur.methods.erm import ERM
from unspur.methods.masktune import MaskTune
from unspur.methods.randmask import RandMask, random_squares
from unspur.parts.masking import shared_holes, telling_warnings, unmasked_warnings
from unspur.saliency.maps import coarse_warnings
from unspur.saliency.threshold import MeanStd, Soft, TopK
from unspur.train.recipe import SGD
from unspur.train.schedules import Cosine, MultiStep, StepDecay
from unspur.train.session import Session


class TwoPlaces(nn.Module):
    """Sees an image as four quarters and weighs what it finds in each; its map is 2x2."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 4, stride=4)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.conv(x).relu().flatten(1))


def quarters(n=64, seed=0):
    """8x8 images of noise: class 1 is bright at the top left and less so at the top right, class 0 at the bottom."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    x = torch.randint(0, 60, (n, 1, 8, 8), generator=generator, dtype=torch.uint8)
    x[y == 1, :, :4, :4] += 180
    x[y == 1, :, :4, 4:] += 90
    x[y == 0, :, 4:, :4] += 180
    x[y == 0, :, 4:, 4:] += 90
    return Split(x, y)


def build():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TwoPlaces()


def hidden_of(fit, chosen):
    """What is hidden of the chosen images, True where hidden."""
    return BitMask(fit.artifacts["mask_bits"], (8, 8)).subset(chosen).keep(torch.arange(int(chosen.sum()))) == 0


QUICK = SGD(lr=0.05, epochs=6, batch_size=16)


def test_the_quarter_that_decides_is_hidden():
    fit = MaskTune(erm=QUICK, threshold=TopK(share=0.25)).fit(build(), quarters())
    kept = hidden_of(fit, quarters().y == 1)
    assert kept[:, :4, :4].float().mean() > 0.8 and kept[:, 4:].float().mean() < 0.05


def test_maps_are_of_the_predicted_class_not_the_true_one():
    # Flip every label: the model, trained on the right ones, still predicts by the corner, and the masks do not change.
    split, method = quarters(), MaskTune(erm=QUICK, threshold=TopK(share=0.25))
    model = method.fit(build(), split).stages["erm"]
    flipped = dataclasses.replace(split, y=1 - split.y)
    right, wrong = (method._mask(model, given, Session())[0].mask.keep(torch.arange(64)) for given in (split, flipped))
    assert torch.equal(right, wrong)


@pytest.mark.parametrize(
    ("recipe", "rate"),
    [
        (SGD(lr=0.2, epochs=3), 0.2),
        (SGD(lr=0.2, epochs=4, schedule=StepDecay(every=2, gamma=0.5)), 0.1),  # dropped once, at epoch 2
        (SGD(lr=0.2, epochs=4, schedule=MultiStep(at=(1, 3), gamma=0.1)), 0.002),
        # 64 samples in batches of 16 are 4 steps an epoch: the last of 8 begins at 7/8 of the way
        (SGD(lr=0.2, epochs=2, batch_size=16, schedule=Cosine()), 0.1 * (1 + math.cos(math.pi * 7 / 8))),
        (SGD(lr=0.2, epochs=50, until_accuracy=0.5, schedule=StepDecay(every=2)), 0.2),  # ended before the first drop
    ],
)
def test_fine_tuning_goes_on_at_the_last_rate_that_erm_used(recipe, rate):
    session = Session()
    fit = MaskTune(erm=recipe).fit(build(), quarters(), session=session)
    (line,) = session.history["iteration-1"]  # one epoch
    assert line["lr"] == fit.facts["finetune_lr"] == pytest.approx(rate)


def test_a_given_rate_is_used():
    assert MaskTune(erm=QUICK, finetune_lr=0.03).fit(build(), quarters()).facts["finetune_lr"] == 0.03


def test_shared_holes_are_those_of_an_image_of_another_class_too():
    y = torch.tensor([0, 0, 1, 1])
    hidden = torch.eye(4).bool().reshape(4, 2, 2)  # each sample hides its own pixel
    both = shared_holes(BitMask.of(hidden), y, torch.Generator().manual_seed(0)).keep(torch.arange(4)) == 0
    assert (both & hidden).equal(hidden) and both.flatten(1).sum(1).tolist() == [2, 2, 2, 2]
    added = (both & ~hidden).flatten(1).float().argmax(1)
    assert (y[added] != y).all()


def test_holes_of_one_class_no_longer_tell_it_once_they_are_shared():
    split = quarters()
    split = dataclasses.replace(split, x=split.x + 1)  # so that nothing is black but holes
    own, shared = (
        MaskTune(erm=QUICK, threshold=TopK(share=0.25), holes=holes).fit(build(), split) for holes in ("own", "shared")
    )
    (warning,) = [sentence for sentence in own.warnings if "tells the class" in sentence]
    assert "for 100 % of the images" in warning and "holes=shared" in warning
    assert not [sentence for sentence in shared.warnings if "tells the class" in sentence]
    # class 1 has a quarter hidden at the top, class 0 one at the bottom; shared, every image has both
    for label in (0, 1):
        top, bottom = (part.float().mean() for part in hidden_of(shared, split.y == label).split(4, dim=1))
        assert top == pytest.approx(0.5, abs=0.05) and bottom == pytest.approx(0.5, abs=0.05)


def test_holes_that_cannot_be_seen_are_no_reason_to_warn():
    # Digits lie on black: a hole in what is black anyway shows nothing.
    y = torch.arange(40) % 2
    hidden = torch.zeros(40, 8, 8, dtype=torch.bool)
    hidden[y == 1, :4] = True
    seen, unseen = (Split(torch.full((40, 1, 8, 8), grey, dtype=torch.uint8), y) for grey in (9, 0))
    assert "for 100 %" in telling_warnings(seen.masked(BitMask.of(hidden)))[0]
    assert telling_warnings(unseen.masked(BitMask.of(hidden))) == []
    chance = hidden[torch.randperm(40, generator=torch.Generator().manual_seed(0))]
    assert telling_warnings(seen.masked(BitMask.of(chance))) == []


@pytest.mark.parametrize("method", [MaskTune, RandMask])
def test_restart_trains_what_erm_began_with_by_its_recipe(method):
    session = Session()
    recipe = dataclasses.replace(QUICK, schedule=Cosine())
    tried = method(erm=recipe, restart=True, threshold=TopK(share=0.05))
    fit = tried.fit(build(), quarters(), session=session)
    erm, again = (session.history[stage] for stage in ("erm", "iteration-1"))
    assert [line["lr"] for line in again] == [line["lr"] for line in erm] and len(again) == 6
    # the whole is not ERM once more: its first loss is a new network's, not that of one which knows the images
    assert again[0]["loss"] > 2 * erm[-1]["loss"]
    with pytest.raises(UnspurError, match="leave one of them out"):
        method(restart=True, finetune_lr=0.1)
    assert not torch.equal(fit.model.head.weight, fit.stages["erm"].head.weight)


def test_the_erm_stage_is_the_model_before_masking():
    fit = MaskTune(erm=QUICK).fit(build(), quarters())
    erm = ERM(erm=QUICK).fit(build(), quarters()).model
    assert torch.equal(fit.stages["erm"].head.weight, erm.head.weight)
    assert not torch.equal(fit.model.head.weight, erm.head.weight)


def test_rounds_add_to_the_masks_only_when_they_accumulate():
    sizes = {}
    for accumulate in (True, False):
        method = MaskTune(erm=QUICK, threshold=TopK(share=0.25), iterations=3, accumulate=accumulate)
        fit = method.fit(build(), quarters())
        sizes[accumulate] = [round_facts["masked_fraction"] for round_facts in fit.facts["rounds"]]
        assert list(fit.stages) == ["erm", "iteration-1", "iteration-2"]
    assert sizes[True][2] > sizes[True][0]
    assert sizes[False] == pytest.approx([0.25] * 3, abs=0.01)


def test_a_round_that_cannot_fit_is_dropped_and_the_rounds_end():
    method = MaskTune(erm=QUICK, threshold=TopK(share=0.25), iterations=4, stop_below=0.95)
    fit = method.fit(build(), quarters())
    assert "fitted" in fit.facts["stopped"]
    kept = len(fit.facts["rounds"]) - 1
    assert kept < 4 and fit.facts["rounds"][-1]["train_accuracy"] < 0.95
    assert all(entry["train_accuracy"] >= 0.95 for entry in fit.facts["rounds"][:-1])
    if kept == 0:
        assert torch.equal(fit.model.head.weight, fit.stages["erm"].head.weight)


def test_a_model_without_a_map_is_told_to_use_gradients():
    vectors = Split(torch.randn(20, 3), torch.arange(20) % 2)
    line = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(UnspurError, match="gradient"):
        MaskTune(erm=SGD(epochs=1)).fit(line, vectors)
    fit = MaskTune(erm=SGD(epochs=1), saliency="gradient", threshold=TopK(share=0.34)).fit(line, vectors)
    assert fit.facts["masked_fraction"] == pytest.approx(1 / 3)


def test_constant_maps_are_counted():
    blind = build()
    nn.init.zeros_(blind.conv.weight)
    nn.init.zeros_(blind.conv.bias)
    fit = MaskTune(erm=SGD(lr=1e-9, epochs=1)).fit(blind, quarters())
    assert fit.facts["masked_fraction"] == 0.0 and fit.facts["images_unmasked"] == 64


def test_soft_masks_do_not_accumulate():
    with pytest.raises(UnspurError, match="Soft masks do not add up"):
        MaskTune(threshold=Soft(), iterations=2)
    fit = MaskTune(erm=QUICK, threshold=Soft()).fit(build(), quarters())
    assert 0 < fit.facts["masked_fraction"] < 1


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"stop_below": 1.5}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(UnspurError, match="must"):
        MaskTune(**wrong)


def test_random_squares_have_their_side_and_lie_inside():
    sides = torch.tensor([0, 1, 3, 5] * 50)
    maps = random_squares(sides, 6, 8, torch.Generator().manual_seed(0))
    assert torch.equal(maps.flatten(1).sum(1), sides**2)
    filled = maps[sides == 3]
    assert (filled.any(2).sum(1) == 3).all() and (filled.any(1).sum(1) == 3).all()
    # every place is reached: a side of 3 begins in rows 0 to 3
    assert set(filled.any(2).float().argmax(1).tolist()) == {0, 1, 2, 3}


def test_windows_have_sides_from_two_to_half_the_image():
    fit = RandMask(erm=SGD(epochs=1), area="window").fit(build(), quarters(400))
    hidden = hidden_of(fit, torch.ones(400, dtype=torch.bool))
    assert set(hidden.flatten(1).sum(1).tolist()) == {4, 9, 16}  # 2x2, 3x3, 4x4 of 8x8


def test_the_same_area_is_hidden_elsewhere():
    fit = RandMask(erm=QUICK, threshold=TopK(share=0.25)).fit(build(), quarters())
    hidden = hidden_of(fit, torch.ones(64, dtype=torch.bool))
    assert set(hidden.flatten(1).sum(1).tolist()) == {16}  # a quarter of 8x8, as TopK hides of the 2x2 map
    assert len(hidden.flatten(1).unique(dim=0)) > 10  # of the 25 places for a 4x4 square


def test_a_map_that_cannot_be_fine_enough_asks_for_larger_images():
    # 2x2 cells of 8 pixels; 7 cells need 8 * 7 / 2 = 28 pixels, and 32 is the next multiple of 32
    for method in (MaskTune(erm=QUICK), RandMask(erm=QUICK)):
        (said,) = [sentence for sentence in method.fit(build(), quarters()).warnings if "finest map" in sentence]
        assert "has 2x2 cells for images of 8x8" in said and "--set data.size=32" in said
    fine = MaskTune(erm=QUICK, saliency="gradient", holes="shared").fit(build(), quarters())
    assert fine.warnings == []  # as fine as the image


def test_an_earlier_layer_is_named():
    layers = nn.Sequential(nn.Conv2d(1, 4, 2, stride=2), nn.ReLU(), nn.Conv2d(4, 4, 2, stride=2), nn.ReLU())
    (said,) = coarse_warnings(nn.Sequential(layers, nn.Flatten(), nn.Linear(64, 2)), torch.Size((1, 16, 16)))
    assert "last map has 4x4 cells for images of 16x16" in said and "LayerCAM's of the earlier layer 0.1, 8x8" in said


class Blind(TwoPlaces):
    """Its map is zero everywhere."""

    def forward(self, x):
        return self.head((0 * self.conv(x)).flatten(1))


@pytest.mark.parametrize("method", [MaskTune(erm=QUICK), RandMask(erm=QUICK)], ids=lambda method: method.name)
def test_a_repair_that_masked_nothing_says_so(method):
    warnings = method.fit(Blind(), quarters()).warnings
    assert "Nothing was masked in any of the 64 images: the fine-tuning was plain training." in warnings


class HalfBlind(TwoPlaces):
    """Its map is zero where the upper half of the image is brighter than the lower."""

    def forward(self, x):
        upper, lower = (half.sum((1, 2, 3)) for half in x.split(4, dim=2))
        return self.head(((upper < lower).float().view(-1, 1, 1, 1) * self.conv(x)).flatten(1))


def test_an_image_with_nothing_but_the_holes_of_another_counts_as_not_masked():
    # half of the images have empty maps, and with shared holes each of these has those of one whose map is not empty
    fit = MaskTune(erm=QUICK, threshold=MeanStd(num_std=1), holes="shared").fit(HalfBlind(), quarters())
    assert fit.facts["images_unmasked"] < 32
    assert any(sentence.startswith("32 of 64 images were left without a mask") for sentence in fit.warnings)


def test_more_than_a_third_of_the_images_without_a_mask_is_warned_of():
    assert unmasked_warnings(3, 9) == []  # a third, and not more
    (said,) = unmasked_warnings(4, 9)
    assert said.startswith("4 of 9 images were left without a mask") and "threshold=top_k" in said


def test_a_first_round_that_is_dropped_says_that_nothing_is_left_of_the_repair():
    # All labels are drawn at random, so that no model fits 99.9 % of masked noise in six epochs.
    split = dataclasses.replace(quarters(), y=torch.randint(0, 2, (64,), generator=torch.Generator().manual_seed(3)))
    fit = MaskTune(erm=QUICK, stop_below=0.999).fit(build(), split)
    assert fit.warnings[0].startswith("Round 1 fitted 0.")
    assert fit.warnings[0].endswith("It was dropped, so that the result is the model before it.")
