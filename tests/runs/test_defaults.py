import pytest

from unspur.data.catalog import DATASETS
from unspur.methods.catalog import METHODS
from unspur.papers.reproduce import TABLES
from unspur.runs import defaults
from unspur.runs.config import Config, configure
from unspur.runs.defaults import RISING, SetSize, fitted, given_keys, photographs
from unspur.train.recipe import SGD, AdamW, recipes
from unspur.train.schedules import Cosine, StepDecay

PETS = SetSize(images=1800, classes=2)

KEYS = {  # as they were before anything was fitted: runs that are stored under them must be found again
    ("erm", "biased_mnist"): "8c72280add9e",
    ("masktune", "biased_mnist"): "6aeb0475a60e",
    ("randmask", "biased_mnist"): "af805850bde3",
    ("dcwp", "colored_mnist"): "b07b67ff1d06",
    ("mrm", "colored_mnist"): "051203f2b6b3",
    ("jtt", "colored_mnist"): "2e365fe92cf3",
    ("ule", "mnist_sc"): "ebb502a08528",
    ("ule_last_layer", "colored_mnist"): "d558d3cd15ad",
    ("balanced_last_layer", "colored_mnist"): "53ba5c9cff93",
    ("large_lr", "parity"): "f23efa2c5e8b",
    ("erm", "moon_star"): "650da377e955",
    ("erm", "cifar10"): "6ce52d027775",
}


def fit(method, *settings, data="folder", arch=None, size=PETS):
    config = configure(method, data, arch, 0, settings)
    return fitted(config, given_keys(config.method, arch, settings), size)


@pytest.mark.parametrize(("method", "data"), KEYS)
def test_digits_and_synthetic_sets_keep_their_defaults_and_keys(method, data):
    assert fit(method, data=data) == configure(method, data)
    assert fit(method, data=data).key == KEYS[method, data]


def test_sets_of_image_files_are_photographs_and_arrays_are_not():
    found = {name for name, spec in DATASETS.items() if photographs(spec())}
    assert {"folder", "petscapes", "isic", "waterbirds", "celeba", "cats_vs_dogs"} <= found
    assert not {"biased_mnist", "mnist", "parity", "cifar10", "svhn", "corrupted_cifar10"} & found


def test_published_tables_never_get_fitted_settings():
    # Tables of photographs as the papers trained them: a fitted one would have a rising rate and 128 pixels.
    for table in ("masktune/table5", "ule/table1"):
        for setup in TABLES[table].setups():
            assert setup.config(0) == configure(setup.method, setup.data, setup.arch, 0, setup.settings)
    assert configure("erm", "waterbirds").data.size == 224


def test_plain_training_makes_about_300_steps_with_a_pretrained_network(monkeypatch):
    monkeypatch.setattr(defaults.importlib.util, "find_spec", lambda name: object())
    config = fit("erm")
    # 1,800 images in batches of 32 are 57 steps an epoch; 300 / 57 = 5.3 epochs
    assert config.arch.name == "efficientnet_lite0" and config.arch.weights == "default"
    assert config.method.erm == AdamW(lr=4e-4, epochs=5, batch_size=32, schedule=RISING)
    assert config.data.size == 128 and config.data.augment.flip


def test_without_the_package_it_is_resnet18_from_scratch_and_trains_longer(monkeypatch):
    monkeypatch.setattr(defaults.importlib.util, "find_spec", lambda name: None)
    config = fit("erm")
    assert config.arch.name == "resnet18" and config.arch.weights == "none"
    assert config.method.erm == AdamW(lr=1e-3, epochs=26, batch_size=32, schedule=Cosine())  # 1500 / 57 = 26.3


@pytest.mark.parametrize(
    ("images", "batch", "epochs"),
    [
        (9, 4, 20),  # an eighth is one image: the smallest batch; 3 steps an epoch, and 100 epochs would be too many
        (160, 20, 20),  # an eighth; 8 steps an epoch, and 37.5 epochs would be too many
        (3033, 32, 3),  # 95 steps an epoch: 3.2 epochs
        (100_000, 32, 3),  # at least three epochs
    ],
)
def test_batches_and_epochs_follow_the_number_of_images(images, batch, epochs):
    recipe = fit("erm", arch="efficientnet_lite0", size=SetSize(images, 2)).method.erm
    assert (recipe.batch_size, recipe.epochs) == (batch, epochs)


def test_many_classes_take_more_steps():
    # 40 classes, each shown 100 times in batches of 32, are 125 steps, less than 300; 200 classes are 625
    few, many = (fit("erm", arch="efficientnet_lite0", size=SetSize(3200, n)).method.erm for n in (40, 200))
    assert (few.epochs, many.epochs) == (3, 6)  # of 100 steps


def test_what_the_user_sets_stays_as_it_is():
    config = fit("erm", "erm.lr=0.01", "erm.epochs=2", "data.size=64", "data.augment.flip=false", arch="resnet18")
    assert config.method.erm == AdamW(lr=0.01, epochs=2, batch_size=32, schedule=Cosine())
    assert config.data.size == 64 and not config.data.augment.flip and config.arch.name == "resnet18"
    assert fit("erm", "arch.weights=none").arch.name == "resnet18"  # options of a network are of the usual one


def test_an_optimiser_that_the_user_names_gets_its_own_rate():
    sgd = fit("erm", "erm=sgd", arch="efficientnet_lite0").method.erm
    assert sgd == SGD(lr=0.01, epochs=5, batch_size=32, schedule=RISING)
    assert isinstance(fit("erm", "erm.momentum=0.5").method.erm, SGD)  # which AdamW does not have
    kept = fit("erm", "erm.schedule=step", "erm.schedule.every=2").method.erm
    assert isinstance(kept, AdamW) and kept.schedule == StepDecay(every=2)
    by_old_name = fit("ule", "erm.epochs=7").method.training
    assert by_old_name.epochs == 7 and by_old_name.batch_size == 32


def test_every_recipe_of_every_method_is_fitted():
    without = [name for name, method in METHODS.items() if not dict(recipes(method()))]
    assert without == ["balanced_last_layer", "ule_last_layer"]  # which train heads alone
    for method in sorted(set(METHODS) - {*without, "large_lr"}):
        found = dict(recipes(fit(method).method))
        assert all(recipe.batch_size == 32 and recipe.name == "adamw" for recipe in found.values()), method


@pytest.mark.parametrize("method", ["irm", "vrex"])
def test_a_penalty_gets_its_weight_after_a_tenth_of_the_steps(method):
    assert fit(method, arch="efficientnet_lite0").method.anneal == 28  # of 5 x 57
    assert fit(method, "anneal=3").method.anneal == 3


def test_what_a_method_is_named_for_is_not_fitted_away():
    assert fit("asam").method.rho == 1.0 and fit("focal").method.gamma == 2.0


def test_biased_models_train_briefly():
    # 150 steps are 2.6 epochs of 1,800 images in batches of 32, and more than a fifth of 5
    assert fit("jtt", arch="efficientnet_lite0").method.erm.epochs == 3
    assert fit("jtt", arch="efficientnet_lite0").method.training.epochs == 5
    assert fit("eiil", arch="efficientnet_lite0").method.erm.epochs == 3
    assert fit("spare", arch="efficientnet_lite0").method.erm.epochs == 3
    assert fit("dcwp", arch="efficientnet_lite0").method.mining.training.epochs == 3
    assert fit("dcwp", arch="resnet18").method.mining.training.epochs == 5  # a fifth of 26, from scratch
    assert fit("dcwp", "mining=ensemble", arch="efficientnet_lite0").method.mining.name == "ensemble"


def test_twins_try_the_networks_rate_and_a_quarter_of_it():
    method = fit("xrm", arch="efficientnet_lite0").method
    assert method.twins.lr == pytest.approx(4e-4) and method.rates == pytest.approx((1e-4, 4e-4))
    assert fit("xrm", "rates=0.1", arch="efficientnet_lite0").method.rates == (0.1,)


def test_masktune_fine_tunes_at_a_quarter_of_the_rate_and_not_at_the_end_of_a_cosine():
    assert fit("masktune", arch="resnet18").method.finetune_lr == pytest.approx(2.5e-4)
    assert fit("masktune", "erm=sgd", arch="resnet18").method.finetune_lr == pytest.approx(0.0125)
    assert fit("masktune", "finetune_lr=0.3").method.finetune_lr == 0.3


def test_masktune_begins_again_with_pretrained_weights_and_shares_holes():
    tuned = fit("masktune", arch="efficientnet_lite0").method
    assert (tuned.restart, tuned.finetune_lr, tuned.holes) == (True, None, "shared")
    assert fit("randmask", arch="efficientnet_lite0").method.restart
    given = fit("masktune", "finetune_lr=0.3", "threshold=soft", arch="efficientnet_lite0").method
    assert (given.restart, given.finetune_lr, given.holes) == (False, 0.3, "own")


def test_steps_of_gates_scale_with_the_set_and_can_still_shut_them():
    small, large = (fit("dcwp", arch="efficientnet_lite0", size=SetSize(n, 2)).method for n in (1800, 100_000))
    # 5 x 57 steps of plain training, half of them 142: at least 150; and 3 x 3125 / 2 = 4687
    assert (small.masks.steps, large.masks.steps) == (150, 4687)
    for method in (small, large):
        moved = method.masks.steps * method.masks.lr  # by at most so much theta falls, from 4
        assert moved > 2 * method.masks.start and method.masks.lr <= 0.1
    assert small.tuning.steps == 142 and small.tuning.every == 14 and small.tuning.batch_size == 32


def test_dcwp_draws_mined_images_by_odds_unless_the_user_counts_each():
    usual = fit("dcwp", arch="efficientnet_lite0").method
    assert (usual.reading, usual.masks.up, usual.tuning.up) == ("group", 3.0, 3.0)
    # lambda_up means nothing without its reading: who sets one has the paper's
    own = fit("dcwp", "tuning.up=10", arch="efficientnet_lite0").method
    assert (own.reading, own.masks.up, own.tuning.up) == ("sample", METHODS["dcwp"]().masks.up, 10.0)


def test_ules_lambda_rises_where_there_are_few_steps():
    # on digits 0.05 x 3,440 steps = 172: with 285 steps 0.6, of which at most 0.5; with 9,375 steps 0.05 stays
    assert fit("ule", arch="efficientnet_lite0").method.lam == 0.5
    assert fit("ule", arch="efficientnet_lite0", size=SetSize(100_000, 2)).method.lam == 0.05
    assert fit("ule", "training.epochs=12", arch="efficientnet_lite0").method.lam == round(172 / (12 * 57), 2)


def test_heads_on_features_train_for_about_3000_steps():
    # 1,800 images in batches of 128 are 15 steps: 200 epochs, looked at every 6; 100,000 are 782: 30 epochs
    small, large = (fit("ule_last_layer", size=SetSize(n, 2)).method for n in (1800, 100_000))
    assert (small.epochs, small.every, len(small.lams)) == (200, 6, 6)
    assert (large.epochs, large.every, len(large.lams)) == (30, 1, 11)
    assert 1.0 in small.lams  # plain training is among them
    assert fit("balanced_last_layer").method.epochs == 200


def test_large_lr_keeps_its_optimiser_and_its_constant_rate():
    method = fit("large_lr", arch="efficientnet_lite0").method
    assert method.erm.name == "sgd" and method.erm.schedule.name == "constant" and method.erm.momentum == 0.0
    assert method.erm.batch_size == 32 and method.probe.steps == 40


@pytest.mark.parametrize("method", ["erm", "masktune", "dcwp", "mrm", "jtt", "ule", "ule_last_layer", "large_lr"])
def test_a_fitted_configuration_is_complete(method):
    config = fit(method)
    assert Config.from_json(config.to_json()) == config and config.key != configure(method, "folder").key


def test_a_frozen_backbone_is_the_pretrained_networks_and_its_head_trains_on_features():
    config = fit("erm", "arch.freeze=backbone")
    assert (config.arch.name, config.arch.weights, config.arch.freeze) == ("efficientnet_lite0", "default", "backbone")
    # features are kept, so that images are not moved; 1,800 / 32 = 57 steps an epoch, 3,000 / 57 = 53 epochs
    assert (config.data.augment, config.method.erm.epochs) == (fit("erm", "data.augment.flip=false").data.augment, 53)
    assert fit("masktune", "arch.freeze=backbone").data.augment.flip
