import math

import pytest
import torch
from torch import nn

from unspur.data.base import Split, groups_of
from unspur.errors import Diverged, UnspurError
from unspur.methods.balanced_last_layer import BalancedLastLayer
from unspur.methods.ule import ULE
from unspur.methods.ule_last_layer import ULELastLayer, biased_mistakes, new_student, plain_warnings
from unspur.metrics.groups import group_accuracy, worst_group_accuracy
from unspur.parts.last_layer import ChosenBy, cached, search
from unspur.train.recipe import SGD
from unspur.train.session import Session

WIDTH = 16
QUICK = {"lams": (0.2, 1.0), "lrs": (0.1, 0.01), "l2s": (1e-3, 1.0), "epochs": 8, "every": 4}


def drawn(n, conflict, seed, width=WIDTH):
    """Two directions tell the label: the stronger one, "a", is wrong for a share of the samples."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=generator)
    a = torch.where(torch.rand(n, generator=generator) < conflict, 1 - y, y)
    x = 0.7 * torch.randn(n, width, generator=generator)
    x[:, 0] += 1.5 * (2 * a - 1)
    x[:, 1] += 2 * y - 1
    return Split(x, y, {"a": a})


def network(classes=2, seed=0, width=WIDTH):
    """A frozen layer that turns the features, and a head."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, 12), nn.LeakyReLU(0.5), nn.Linear(12, classes))


TRAIN, VAL, TEST = drawn(600, 0.05, 0), drawn(400, 0.05, 1), drawn(2000, 0.5, 2)


def worst(model):
    with torch.no_grad():
        return worst_group_accuracy(group_accuracy(model(TEST.x).argmax(1), TEST.y, groups_of(TEST).id))


@pytest.mark.parametrize("distance", ["mse", "l1"])
@pytest.mark.parametrize("scale", ["equal", "none"])
@pytest.mark.parametrize("over", ["batch", "sample"])
def test_cached_features_give_what_autograd_through_the_whole_network_gives(distance, scale, over):
    # One batch an epoch, so that the order of samples does not matter.
    whole, cached_form = network(), network()
    how = {"distance": distance, "scale": scale, "over": over}
    recipe = SGD(lr=0.1, weight_decay=1e-3, epochs=5, batch_size=1000)
    a = ULE(training=recipe, lam=0.3, layer="1", **how).fit(whole, TRAIN)
    fixed = ULELastLayer(lams=(0.3,), lrs=(0.1,), l2s=(1e-3,), epochs=5, batch_size=1000, **how)
    b = fixed.fit(cached_form, TRAIN)
    for one, other in ((a.model, b.model), (a.stages["student"], b.stages["student"])):
        torch.testing.assert_close(one.state_dict(), other.state_dict(), atol=1e-5, rtol=1e-5)


def test_only_the_heads_change():
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit = ULELastLayer(**QUICK).fit(model, TRAIN, val=VAL)
    for network_ in (model, fit.stages["student"]):
        after = network_.state_dict()
        assert [name for name in before if not torch.equal(before[name], after[name])] == ["2.weight", "2.bias"]


def test_the_setting_and_epoch_that_are_best_on_validation_are_kept():
    model = network()
    fit = ULELastLayer(**QUICK, rule="worst_group").fit(model, TRAIN, val=VAL)
    with torch.no_grad():
        pred = model(VAL.x).argmax(1)
    score = worst_group_accuracy(group_accuracy(pred, VAL.y, groups_of(VAL).id))
    chosen, grid = fit.facts["chosen"], fit.facts["grid"]
    assert chosen["score"] == pytest.approx(score) == pytest.approx(max(row["score"] for row in grid))
    assert len(grid) == 8 and {row["epoch"] for row in grid} <= {4, 8}
    assert [row["lam"] for row in fit.facts["sensitivity"]] == [0.2, 1.0]


def test_a_grid_trains_each_setting_as_it_would_be_alone():
    data = cached(network(), new_student(None, network(), TRAIN, 0), TRAIN, VAL, Session())
    everybody = ChosenBy("mean", torch.zeros(len(VAL), dtype=torch.long))
    plan = ULELastLayer(**QUICK).plan
    together = search(plan, data, everybody, stage="heads", session=Session())
    for number, point in enumerate(together.pairs.points):
        alone = plan._replace(lams=(point.lam,), lrs=(point.lr,), l2s=(point.l2,))
        found = search(alone, data, everybody, stage="heads", session=Session())
        torch.testing.assert_close(found.pairs.heads(0), together.pairs.heads(number), atol=1e-4, rtol=1e-4)


def test_it_helps_the_worst_group_without_group_labels():
    full = {"lams": (0.5, 0.7, 0.9, 1.0), "lrs": (0.1, 0.01), "l2s": (1e-4, 1.0), "epochs": 20, "every": 5}
    train, val = TRAIN.without_attributes(), VAL.without_attributes()
    ule, erm, balanced = network(), network(), network()
    ULELastLayer(**full).fit(ule, train, val=val)
    ULELastLayer(**{**full, "lams": (1.0,)}, rule="mean").fit(erm, train, val=val)
    BalancedLastLayer(lrs=full["lrs"], l2s=full["l2s"], epochs=20, every=5).fit(balanced, TRAIN, val=VAL)
    assert worst(ule) > worst(erm)
    assert worst(balanced) > worst(erm)


def test_a_strongly_regularised_head_is_wrong_where_the_shortcut_is():
    data = cached(network(), network(), TRAIN, VAL, Session())
    wrong = biased_mistakes(ULELastLayer(**QUICK).plan, data, Session())
    conflicting = VAL.y != VAL.attributes["a"]
    assert wrong.any()
    assert conflicting[wrong].float().mean() > 5 * conflicting.float().mean()


def test_a_student_of_another_architecture_has_features_of_its_own():
    images = torch.randint(256, (40, 1, 10, 10), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    split = Split(images, torch.arange(40) % 2)
    teacher = nn.Sequential(nn.Flatten(), nn.Linear(100, 7), nn.ReLU(), nn.Linear(7, 2, bias=False))
    before = teacher[3].weight.clone()
    fit = ULELastLayer(**QUICK, student="cnn3", rule="mean").fit(teacher, split, val=split)
    student = fit.stages["student"]
    assert student.arch == "cnn3"
    assert not torch.equal(teacher[3].weight, before)
    with torch.no_grad():
        right = (teacher(split.batch(torch.arange(40)).x).argmax(1) == split.y).float().mean()
    assert float(right) == pytest.approx(fit.facts["chosen"]["score"])


def test_without_validation_data_one_setting_is_kept_as_it_is_at_the_end():
    fit = ULELastLayer(lams=(0.5,), lrs=(0.1,), l2s=(0.0,), epochs=3).fit(network(), TRAIN)
    assert fit.facts["chosen"] == {"lam": 0.5, "lr": 0.1, "l2": 0.0, "epoch": 3, "score": None}
    with pytest.raises(UnspurError, match="Choosing among 110 settings needs validation data"):
        ULELastLayer().fit(network(), TRAIN)


def test_settings_that_diverge_are_not_chosen_and_all_of_them_are_a_divergence():
    fit = ULELastLayer(lams=(0.5,), lrs=(1e30, 0.1), l2s=(1.0,), epochs=4, every=2, rule="mean").fit(
        network(), TRAIN, val=VAL
    )
    assert fit.facts["chosen"]["lr"] == 0.1
    assert [row["score"] is None for row in fit.facts["grid"]] == [True, False]
    with pytest.raises(Diverged):
        ULELastLayer(lams=(0.5,), lrs=(1e30,), l2s=(1.0,), epochs=4, rule="mean").fit(network(), TRAIN, val=VAL)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"lams": (0.5, 1.5)}, r"lams must lie in \[0, 1\] but got 1.5"),
        ({"lams": ()}, "lams needs at least one value"),
        ({"lrs": (0.0,)}, "lrs must be positive but got 0.0"),
        ({"lrs": (0.1, math.nan)}, "lrs must be positive but got nan"),
        ({"l2s": (-1.0,)}, "l2s must be at least 0 but got -1.0"),
        ({"epochs": 0}, "epochs must be at least 1 but got 0"),
        ({"every": 0}, "every must be at least 1 but got 0"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\) but got 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, sentence):
    with pytest.raises(UnspurError, match=sentence):
        ULELastLayer(**wrong)


def test_a_head_that_is_not_linear_is_refused():
    bent = nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(), nn.Linear(4, 2), nn.Tanh())
    with pytest.raises(UnspurError, match="ends in one linear layer"):
        ULELastLayer(**QUICK).fit(bent, TRAIN, val=VAL)


def test_a_relu_behind_the_last_layer_is_found_even_where_it_cuts_nothing_off():
    bent = nn.Sequential(*network(), nn.ReLU())
    nn.init.constant_(bent[2].bias, 1000.0)  # no output is negative
    with pytest.raises(UnspurError, match="ends in one linear layer"):
        ULELastLayer(**QUICK).fit(bent, TRAIN, val=VAL)


def test_what_the_choice_needs_is_missed_before_anything_is_computed():
    with pytest.raises(UnspurError, match="worst_group needs validation data with attributes"):
        ULELastLayer(rule="worst_group").check(network(), TRAIN, VAL.without_attributes())
    with pytest.raises(UnspurError, match="no validation data to choose on"):
        ULELastLayer().check(network(), TRAIN, VAL.subset(torch.arange(0)))
    with pytest.raises(UnspurError, match="Unknown arch 'cnn9'"):
        ULELastLayer(student="cnn9").check(network(), TRAIN, VAL)
    ULELastLayer(lams=(0.5,), lrs=(0.1,), l2s=(1e-3,)).check(network(), TRAIN, VAL.subset(torch.arange(0)))


def test_group_labels_that_a_rule_needs_and_are_not_there_are_told():
    with pytest.raises(UnspurError, match="worst_group needs validation data with attributes"):
        ULELastLayer(**QUICK, rule="worst_group").fit(network(), TRAIN, val=VAL.without_attributes())
    with pytest.raises(UnspurError, match="needs training data with group labels"):
        BalancedLastLayer().fit(network(), TRAIN.without_attributes(), val=VAL)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_head_of_zeros_as_vision_transformers_are_built_with_is_trained(lam):
    # Its saliency is zero, too, and nothing may be divided by it; the student's head is never so, it is drawn anew.
    teacher = network()
    nn.init.zeros_(teacher[2].weight)
    fit = ULELastLayer(lams=(lam,), lrs=(0.1,), l2s=(1e-3,), epochs=2).fit(teacher, TRAIN)
    assert teacher[2].weight.isfinite().all() and teacher[2].weight.any()
    assert fit.stages["student"][2].weight.any()


def test_a_student_of_another_architecture_begins_with_the_weights_that_are_named(tmp_path, monkeypatch):
    from unspur.data.files.fetch import DataFiles
    from unspur.models.catalog import build_model
    from unspur.runs.config import configure
    from unspur.runs.experiment import run
    from unspur.runs.folder import Run

    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    data = configure("erm", "biased_mnist", settings=["data.base=mini", "data.val=9900"]).data.load(DataFiles(None))
    pretrained = build_model("fcn", data, seed=7)
    file = tmp_path / "weights.pt"
    torch.save(pretrained.net.state_dict(), file)
    settings = [
        "data.base=mini",
        "data.val=9900",
        "arch.width=8",
        "student=fcn",
        f"student_weights={file}",
        "rule=mean",
    ]
    config = configure("ule_last_layer", "biased_mnist", "fcn", 0, [*settings, "lams=0.5", "lrs=0.1", "epochs=1"])
    assert run(config, tmp_path)["status"] == "done"
    file.unlink()  # a stored run does without it
    student = Run.create(tmp_path, config).load_model(data, "student")
    *frozen, head = [torch.equal(a, b) for a, b in zip(student.parameters(), pretrained.parameters(), strict=True)]
    assert all(frozen) and not head
    with pytest.raises(UnspurError, match="name it with student, or leave them out"):
        ULELastLayer(**QUICK, student_weights="default").fit(network(), TRAIN, val=VAL)


def test_a_choice_that_plain_training_ties_or_wins_is_said():
    def rows(*scores):
        return [{"lam": lam, "score": score} for lam, score in zip((0.0, 0.5, 1.0), scores, strict=True)]

    assert plain_warnings(0.5, rows(0.7, 0.9, 0.8)) == []
    (chance,) = plain_warnings(0.5, rows(0.9, 0.9, 0.8))
    assert chance == "Lambda 0.5 was chosen by a tie: on validation data 2 of 3 lambdas are best, with 0.9000."
    (tie,) = plain_warnings(0.5, rows(0.7, 0.9, 0.9))
    assert tie.startswith("Lambda 0.5 was chosen by a tie with 1, which is plain training") and "2 of 3" in tie
    (won,) = plain_warnings(1.0, rows(0.7, 0.8, 0.9))
    assert "nothing was unlearned: it was the best of 3" in won
    assert plain_warnings(1.0, [{"lam": 1.0, "score": 0.9}]) == []  # asked for, and not chosen


def test_few_mined_validation_images_are_said():
    # 20 of a class each; all are told apart by both features, so that the biased head gets next to nothing wrong
    clean = drawn(40, 0.0, 5)
    easy = Split(clean.x + 6 * (2 * clean.y - 1).unsqueeze(1), clean.y)
    fit = ULELastLayer(**QUICK).fit(network(), easy, val=easy)
    assert fit.facts["mined"] < 10
    assert fit.warnings[0].startswith(
        f"Of 40 validation images {fit.facts['mined']} were mined, in no class 10 or more"
    )
    assert "plain training" in fit.warnings[1]  # every lambda is right on all of them
