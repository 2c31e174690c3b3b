import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError
from unspur.methods.ule import ULE
from unspur.parts.student import new_student
from unspur.train.recipe import SGD, Kron
from unspur.train.session import Session

ONE_STEP = SGD(lr=0.1, epochs=1, batch_size=1000, momentum=0.0)


def points(n=32, features=3, classes=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=generator)
    return Split(x, torch.randint(classes, (n,), generator=generator))


def network(features=3, classes=2, seed=0, width=5):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, classes))


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def test_one_step_of_both_networks_by_hand():
    split, teacher, student = points(), network(), network(seed=1)
    t, s = ([w.requires_grad_() for w in weights(model)] for model in (teacher, student))
    ULE(training=ONE_STEP, lam=0.3).fit_pair(teacher, student, split)

    def logits(w, x):
        return functional.linear(functional.linear(x, w[0], w[1]).tanh(), w[2], w[3])

    x = split.x.clone().requires_grad_()
    g_s, g_t = (torch.autograd.grad(logits(w, x).max(1).values.sum(), x, create_graph=True)[0] for w in (s, t))
    n_s, n_t = -g_s.detach() / g_s.detach().abs().max(), g_t / g_t.abs().max()
    functional.cross_entropy(logits(s, split.x), split.y).backward()
    (0.3 * functional.cross_entropy(logits(t, split.x), split.y) + 0.7 * ((n_s - n_t) ** 2).mean()).backward()
    for model, w in ((teacher, t), (student, s)):
        for ours, theirs in zip(model.parameters(), w, strict=True):
            torch.testing.assert_close(ours, theirs.detach() - 0.1 * theirs.grad)


def test_terms_of_equal_size_are_weighed_by_lambda_alone():
    # L times CE / L has the value of CE, so that Eq. 3's value is CE whatever lambda is.
    terms = torch.tensor(2.0), torch.tensor(0.01), torch.tensor(50.0)  # the first batch's ratio was another one
    assert float(ULE(lam=0.2, scale="equal").teacher_loss(*terms)) == pytest.approx(2.0)
    assert float(ULE(lam=0.2).teacher_loss(*terms)) == pytest.approx(0.408)
    assert float(ULE(lam=0.2, scale="first").teacher_loss(*terms)) == pytest.approx(0.2 * 2 + 0.8 * 50 * 0.01)


def test_the_ratio_of_the_first_batch_stays(monkeypatch):
    seen = []
    real = ULE.teacher_loss
    monkeypatch.setattr(ULE, "teacher_loss", lambda self, *terms: seen.append(terms) or real(self, *terms))
    method, split = ULE(training=SGD(lr=0.1, epochs=3, batch_size=16), lam=0.3, scale="first"), points()
    method.fit_pair(network(), network(seed=1), split)
    ce, apart, first = seen[0]
    assert torch.isclose(first, ce / apart) and len(seen) == 6
    assert all(torch.equal(each[2], first) for each in seen)
    assert not torch.isclose(seen[-1][0] / seen[-1][1], first, rtol=0.05)  # or this test would show nothing


def test_the_student_learns_as_if_there_were_no_teacher():
    students = [
        ULE(training=SGD(epochs=2, batch_size=8), lam=lam).fit(network(), points()).stages["student"] for lam in (0, 1)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, students), strict=True))


def test_with_lambda_one_the_teacher_learns_as_if_there_were_no_student():
    teachers = [network(), network()]
    for seed, teacher in enumerate(teachers, 5):
        ULE(training=SGD(epochs=2, batch_size=8), lam=1.0).fit_pair(teacher, network(seed=seed), points())
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, teachers), strict=True))


def test_the_teacher_relies_less_on_the_shortcut_than_its_student():
    # Feature 0 gives the label away, large and clean; feature 1 tells it too, but small and noisy.
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (512,), generator=generator)
    sign = 2.0 * y - 1
    x = torch.stack([3 * sign, sign + 0.3 * torch.randn(512, generator=generator)], 1)
    teacher = nn.Sequential(nn.Linear(2, 2))
    nn.init.eye_(teacher[0].weight)
    nn.init.zeros_(teacher[0].bias)
    fit = ULE(training=SGD(lr=0.1, epochs=20, batch_size=64), lam=0.05, scale="equal").fit(teacher, Split(x, y))
    assert (teacher(x).argmax(1) == y).float().mean() > 0.95

    def reliance(model):
        shortcut, core = (model[0].weight[1] - model[0].weight[0]).tolist()
        return shortcut / core

    assert reliance(fit.stages["student"]) > 1
    assert reliance(teacher) < 0.5


def test_a_student_without_a_name_is_the_teacher_with_another_head():
    teacher, split = network(), points()
    student = new_student(None, teacher, split, seed=0)
    assert torch.equal(student[0].weight, teacher[0].weight) and student[0].weight is not teacher[0].weight
    assert not torch.equal(student[2].weight, teacher[2].weight)


def images(channels=1, n=4):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (n, channels, 10, 10), dtype=torch.uint8, generator=generator)
    return Split(x, torch.arange(n) % 2)


def test_a_named_student_normalises_as_the_teacher_does():
    from unspur.data.base import Dataset
    from unspur.models.catalog import build_model

    split = images()
    teacher = build_model("cnn2", Dataset("d", split, split, {}, ("a", "b"), mean=(0.2,), std=(0.4,)))
    student = new_student("cnn3", teacher, split, seed=0)
    assert student.arch == "cnn3" and student(split.batch(torch.arange(2)).x).shape == (2, 2)
    assert torch.equal(student.normalize.mean, teacher.normalize.mean)


@pytest.mark.parametrize("compare", ["saliency", "activations"])
def test_two_architectures_train_beside_each_other(compare):
    from unspur.data.base import Dataset
    from unspur.models.catalog import build_model

    split = images()
    for teacher, student in (("cnn2", "cnn3"), ("cnn3", "cnn2")):
        model = build_model(teacher, Dataset("d", split, split, {}, ("a", "b")))
        before = weights(model)
        fit = ULE(training=ONE_STEP, lam=0.0, student=student, compare=compare).fit(model, split)
        assert fit.stages["student"].arch == student
        assert not all(torch.equal(a, b) for a, b in zip(before, weights(model), strict=True))


def deep():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(3, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(6, 4), nn.ReLU(),
            nn.Linear(4, 2),
        )  # fmt: skip


def test_up_to_the_layer_both_networks_stay_as_they_were():
    teacher = deep()
    before = copy.deepcopy(teacher.state_dict())
    fit = ULE(training=SGD(lr=0.1, epochs=2, batch_size=8), layer="2").fit(teacher, points())
    for model in (teacher, fit.stages["student"]):
        after = model.state_dict()
        assert all(
            torch.equal(before[name], after[name]) for name in before if name[0] in "01"
        )  # batch norm's means too
        assert not torch.equal(before["4.weight"], after["4.weight"])
        assert all(p.requires_grad for p in model.parameters())


def test_what_is_compared_at_a_layer_must_train():
    model = network()
    for p in model[0].parameters():
        p.requires_grad_(False)
    with pytest.raises(UnspurError, match="Nothing that trains changes the teacher's activations"):
        ULE(training=ONE_STEP, compare="activations", layer="0").fit(model, points())


def test_saliency_that_no_training_changes_is_refused():
    linear = nn.Sequential(nn.Linear(3, 2))
    linear[0].weight.requires_grad_(False)  # the bias alone trains, and leaves the gradient as it is
    with pytest.raises(UnspurError, match="Nothing that trains changes the teacher's saliency"):
        ULE(training=ONE_STEP).fit(linear, points())


@pytest.mark.parametrize("scale", ["none", "first"])
def test_an_interrupted_fit_resumes_to_the_same_bits(tmp_path, scale):
    method = ULE(training=SGD(epochs=4, batch_size=8), scale=scale)
    whole = method.fit(deep(), points())

    def stop(stage, done):
        if done > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        method.fit(deep(), points(), session=Session(folder=tmp_path, progress=stop))
    resumed = method.fit(deep(), points(), session=Session(folder=tmp_path))
    for a, b in ((whole.model, resumed.model), (whole.stages["student"], resumed.stages["student"])):
        assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
    assert whole.facts == resumed.facts


def test_the_history_has_both_networks_figures():
    session = Session()
    ULE(training=SGD(epochs=3)).fit(network(), points(), session=session)
    assert [line["epoch"] for line in session.history["ule"]] == [1, 2, 3]
    assert {"loss", "accuracy", "opposition", "student_loss", "student_accuracy", "lr"} <= set(
        session.history["ule"][0]
    )


def test_training_stops_when_the_teacher_is_good_enough():
    session = Session()
    ULE(training=SGD(epochs=9, until_accuracy=0.01)).fit(network(), points(), session=session)
    assert len(session.history["ule"]) == 1


def test_a_loss_that_is_no_number_is_a_divergence():
    with pytest.raises(Diverged, match="stage 'ule'"):
        ULE(training=ONE_STEP).fit(network(), Split(torch.full((4, 3), torch.nan), torch.zeros(4, dtype=torch.long)))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"lam": 1.1}, r"lam must lie in \[0, 1\] but got 1.1"),
        ({"lam": -0.1}, r"lam must lie in \[0, 1\] but got -0.1"),
        ({"lam": float("nan")}, r"lam must lie in \[0, 1\] but got nan"),
        ({"layer": "0", "student": "cnn3"}, "same layer in both networks"),
        ({"student_layer": "0"}, "student_layer is for compare=activations"),
        ({"training": SGD(asam=0.1)}, "training.asam must be 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, sentence):
    with pytest.raises(UnspurError, match=sentence):
        ULE(**wrong)


def test_networks_for_different_classes_are_refused():
    with pytest.raises(UnspurError, match="same classes apart, but they have 2 and 3"):
        ULE().fit_pair(network(), network(classes=3), points())


def test_a_layer_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UnspurError, match="There is no layer 'conv9'; there are: 0, 1, 2"):
        ULE(layer="conv9").fit(network(), points())


def test_a_layer_after_which_nothing_comes_is_refused():
    with pytest.raises(UnspurError, match="Nothing in the teacher comes after layer '2'"):
        ULE(layer="2").check(network(), points())


def test_a_student_is_checked_like_its_teacher():
    with pytest.raises(UnspurError, match="Unknown arch 'cnn9'"):
        ULE(student="cnn9").check(network(), points())
    with pytest.raises(UnspurError, match="There is no layer '2'; there are: "):  # fcn's have other names
        ULE(student="fcn", compare="activations", layer="2").check(network(), points())
    teacher = nn.Sequential(nn.Identity(), *network())
    with pytest.raises(UnspurError, match="Nothing that trains changes the student's activations"):
        ULE(compare="activations", layer="3", student_layer="0").check(teacher, points())


def test_a_head_of_zeros_is_told_from_a_rate_that_is_too_high():
    teacher = network()
    nn.init.zeros_(teacher[2].weight)
    with pytest.raises(UnspurError, match="its last layer is zero, so begin with weights in which it is not"):
        ULE(training=ONE_STEP).fit(teacher, points())


@pytest.mark.parametrize("role", ["teacher", "student"])
def test_saliency_that_is_zero_everywhere_is_told(role):
    teacher, student = network(), network(seed=1)
    nn.init.zeros_((teacher if role == "teacher" else student)[0].weight)
    with pytest.raises(UnspurError, match=f"The saliency of the {role} is zero everywhere at step 0"):
        ULE(training=ONE_STEP).fit_pair(teacher, student, points())


def test_nothing_to_train_on_is_told():
    with pytest.raises(UnspurError, match="the training set is empty"):
        ULE().fit(network(), points().subset(torch.arange(0)))


def test_kron_is_refused():
    with pytest.raises(UnspurError, match="training=kron is not made; use sgd"):
        ULE(training=Kron())
