import torch
from torch import nn

from report.examples import tiny
from unspur.data.base import Dataset, Split
from unspur.evaluation.scores import predict
from unspur.models.catalog import build_model
from unspur.report.maps import explainer
from unspur.report.pictures import heat
from unspur.report.sections.before_after import FINEST, GRADIENTS, SHOWN, Side, before_after
from unspur.saliency.gradients import input_gradients


class LooksAtTheSquare(nn.Module):
    """Says class 0 when the square is there."""

    def __init__(self, sign=1.0):
        super().__init__()
        self.sign = nn.Parameter(torch.tensor(sign))

    def forward(self, x):
        score = self.sign * (x[:, 2, :4, :4].mean((1, 2)) - 0.5)
        return torch.stack([score, -score], 1)


def change(role, before, after, data, test):
    sides = [
        Side(model, explainer(model, data.sample_shape), predict(model, data.tests[test]).argmax(1))
        for model in (before, after)
    ]
    return before_after(role, *sides, data, test)


def networks(data):
    return tuple(build_model("small_cnn", data, seed=seed).eval() for seed in (0, 1))


def test_what_the_left_model_gets_wrong_comes_first_and_both_answers_are_told():
    # The left model is wrong on every conflicting image, the right one, its opposite, on every aligned one.
    data = tiny()
    shown = change("before", LooksAtTheSquare(), LooksAtTheSquare(-1.0), data, "original")
    for row in shown.rows:
        assert len(row.pairs) == SHOWN
        for pair in row.pairs:
            assert (pair.said_before == pair.truth) is row.aligned
            assert (pair.said_after == pair.truth) is not row.aligned


def test_how_many_predictions_changed_is_counted_on_the_whole_test_set():
    data, same = tiny(), LooksAtTheSquare()
    opposite = change("before", same, LooksAtTheSquare(-1.0), data, "original")
    assert (opposite.changed, opposite.images) == (40, 40)
    assert change("before", same, same, data, "original").changed == 0


def test_failures_of_the_student_are_shown_before_its_successes():
    # Two of ten images of class 0 with a square have lost it: the left model is wrong on these.
    data = tiny()
    test = data.tests["original"]
    chosen = ((test.y == 0) & (test.attributes["square"] == 1)).nonzero().squeeze(1)
    lost = chosen[-2:].tolist()
    test.x[lost, 2, :4, :4] = 0
    rows = change("student", LooksAtTheSquare(), LooksAtTheSquare(), data, "original").rows
    row = next(row for row in rows if row.title == "low, square: present")
    assert [pair.index in lost for pair in row.pairs] == [True, True, False, False]


def test_a_student_is_shown_with_its_gradients_and_plain_training_is_not():
    data = tiny()
    student, teacher = networks(data)
    shown = change("student", student, teacher, data, "original")
    assert shown.words.title == "Student and teacher"
    each = GRADIENTS // len(shown.rows)
    assert [pair.index for pair in shown.gradients] == [p.index for row in shown.rows for p in row.pairs[:each]]
    for pair in shown.gradients:
        x = data.tests["original"].batch(torch.tensor([pair.index])).x
        maps = [heat(input_gradients(model, x).abs().amax(1)[0]) for model in (student, teacher)]
        assert [pair.before.uri, pair.after.uri] == maps and pair.before.name == "input gradient"
    assert shown.rows[0].pairs[0].before.name == "XGradCAM"
    before = change("before", student, teacher, data, "original")
    assert before.words.title == "Before and after" and before.gradients == ()


def test_a_model_whose_maps_are_gradients_already_has_them_once():
    data = tiny()
    model = build_model("fcn", data, width=4).eval()
    assert explainer(model, data.sample_shape).name == "input gradient"
    assert change("student", model, model, data, "original").gradients == ()


def test_gradients_of_large_images_are_drawn_coarsely():
    y = torch.arange(2)
    images = Split(torch.randint(256, (2, 3, 2 * FINEST, FINEST), dtype=torch.uint8), y)
    data = Dataset("large", images, images, {"test": images}, ("a", "b"))
    student, teacher = networks(data)
    pair, _ = change("student", student, teacher, data, "test").gradients
    x = images.batch(torch.tensor([pair.index])).x
    gradient = input_gradients(student, x).abs().amax(1)
    # 128 x 64 becomes 64 x 32, each pixel the largest of 2 x 2
    patches = gradient.unfold(1, 2, 2).unfold(2, 2, 2).amax((3, 4))
    assert pair.before.uri == heat(patches[0])
