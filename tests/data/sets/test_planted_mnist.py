import pytest
import torch

from unspur.core.options import options
from unspur.data.base import Split, aligned_with, groups_of
from unspur.data.catalog import DATASETS, load
from unspur.data.files.fetch import DataFiles
from unspur.data.mini.digits import load_mini
from unspur.data.shortcuts.drawn import TEN_COLOURS
from unspur.errors import UnspurError

PLANTED = ("biased_mnist", "mnist_sc", "colored_mnist", "double_mnist")


def mini(name: str, **options):
    return load(name, base="mini", **options)


def pixels(split: Split) -> torch.Tensor:
    return split.batch(torch.arange(len(split))).x


def conflicting(split: Split, train: Split) -> list[int]:
    """How many samples of each class go against the training correlation."""
    against = ~aligned_with(train, split)
    return [int(against[split.y == label].sum()) for label in range(int(split.y.max()) + 1)]


def test_biased_mnist_puts_the_square_on_99_percent_of_one_class_and_1_percent_of_the_other():
    # 10,000 training digits, none held out: 50 of the 5,000 in each class conflict
    data = mini("biased_mnist", conflict=0.01, val=0)
    groups = groups_of(data.train)
    counts = dict(zip(groups.keys, groups.id.bincount().tolist(), strict=True))
    assert counts == {(0, 0): 50, (0, 1): 4950, (1, 0): 4950, (1, 1): 50}


def test_biased_mnist_s_attribute_says_where_the_square_is():
    data = mini("biased_mnist")
    blue = torch.tensor([0, 0, 255], dtype=torch.uint8).reshape(3, 1, 1)
    for split in (data.train, data.val, *data.tests.values()):
        corner = split.x[:, :, :4, :4]
        assert torch.equal((corner == blue).flatten(1).all(1).long(), split.attributes["square"])
        without = corner[split.attributes["square"] == 0]
        assert torch.equal(without[:, 0], without[:, 2])  # grey, as the rest is
        assert torch.equal(split.x[:, 0, 4:], split.x[:, 2, 4:])


def test_biased_mnist_s_tests_are_the_raw_digits_and_squares_on_5_to_9_alone():
    data, (_, raw) = mini("biased_mnist"), load_mini()
    original, biased = data.tests["original"], data.tests["biased"]
    assert torch.equal(original.x, raw.x.expand(-1, 3, -1, -1))
    assert torch.equal(original.y, (raw.y >= 5).long()) and torch.equal(original.y, biased.y)
    assert torch.equal(biased.attributes["square"], biased.y)
    assert torch.equal(biased.x[biased.y == 0], original.x[original.y == 0])
    # Every sample of the biased set goes against what training shows.
    assert not aligned_with(data.train, biased).any()
    assert data.classes == ("0-4", "5-9") and data.attribute_values == {"square": ("none", "blue")}


def test_drawn_as_the_authors_did_only_4s_and_5s_conflict_and_both_squares_share_their_images():
    data, (train, _) = mini("biased_mnist", squares=2, draw="authors", val=0), load_mini()
    left, right = (data.train.attributes[name] for name in ("square", "square2"))
    assert torch.equal(left, right)
    against = left == data.train.y
    # 1 % of the 5,000 digits of each class: 50 of the 1,000 fours, the last of them, and the first 50 fives
    for digit, chosen in ((4, slice(950, 1000)), (5, slice(0, 50))):
        members = (train.y == digit).nonzero().squeeze(1)
        assert against[members[chosen]].all() and int(against[members].sum()) == 50
    assert int(against.sum()) == 100
    with_both = data.train.x[left == 1]
    assert (with_both[:, 0, :4, :4] == 255).all() and (with_both[:, 2, :4, -4:] == 255).all()
    assert not with_both[:, 1:, :4, :4].any() and not with_both[:, :2, :4, -4:].any()
    assert data.attribute_values == {"square": ("none", "red"), "square2": ("none", "blue")}


def test_one_square_of_the_authors_code_is_red_and_the_default_stays_the_blue_one_of_the_text():
    data = mini("biased_mnist", draw="authors", conflict_count=200, val=0)
    assert data.attribute_values == {"square": ("none", "red")}
    assert (data.train.x[data.train.attributes["square"] == 1][:, 0, :4, :4] == 255).all()
    assert mini("biased_mnist").attribute_values == {"square": ("none", "blue")}
    assert conflicting(data.train, data.train) == [100, 100]
    assert torch.equal(mini("biased_mnist").train.x, mini("biased_mnist", draw="text").train.x)


def test_the_help_of_the_squares_names_the_colours_of_both_draws():
    help_of = {option.key: option.comment for option in options(DATASETS["biased_mnist"]())}
    text, authors = (mini("biased_mnist", squares=2, draw=draw).attribute_values for draw in ("text", "authors"))
    assert f"at the top right: {text['square2'][1]}; with draw=authors {authors['square2'][1]}" in help_of["squares"]
    assert "on the same images" in help_of["squares"]
    assert help_of["draw"].endswith(f"authors: 4s and 5s, left square {authors['square'][1]}")


def test_two_squares_follow_the_same_rule_independently():
    data = mini("biased_mnist", squares=2, conflict=0.2, val=0)
    first, second = data.train.attributes["square"], data.train.attributes["square2"]
    for square in (first, second):
        assert (square[data.train.y == 0] == 1).sum() == 4000  # 80 % of 5,000
        assert (square[data.train.y == 1] == 1).sum() == 1000
    # Drawn jointly, both would conflict on 2,000 samples; independently, on 0.2 * 0.2 * 10,000 = 400, give or take 70.
    against_both = (first == data.train.y) & (second == data.train.y)
    assert abs(int(against_both.sum()) - 400) < 70
    red = torch.tensor([255, 0, 0], dtype=torch.uint8).reshape(3, 1, 1)
    assert torch.equal((data.train.x[:, :, :4, -4:] == red).flatten(1).all(1).long(), second)
    assert all(
        torch.equal(data.tests["biased"].attributes[name], data.tests["biased"].y) for name in ("square", "square2")
    )


def test_mnist_sc_writes_the_label_into_the_top_row():
    data, (_, raw) = mini("mnist_sc"), load_mini()
    for split in (data.train, data.val, data.tests["mnist_sc"]):
        code = torch.nn.functional.one_hot(split.y, 10) * 255
        assert torch.equal(split.x[:, 0, 0, :10].long(), code)
        assert torch.equal(split.attributes["code"], split.y)
    plain = data.tests["mnist"]
    assert torch.equal(plain.x, raw.x)
    assert data.attribute_values["code"][int(plain.attributes["code"].unique())] == "none"
    assert (data.mean, data.std) == ((0.1307,), (0.3081,))


def test_colored_mnist_shows_the_colour_that_the_attribute_names():
    data = mini("colored_mnist", conflict=0.1)
    means = torch.tensor(list(TEN_COLOURS.values())) / 255
    for split in (data.train, data.val, data.tests["unbiased"], data.tests["colored"]):
        brightest = pixels(split).flatten(2).amax(2)
        assert torch.equal(torch.cdist(brightest, means).argmin(1), split.attributes["color"])
    assert tuple(TEN_COLOURS) == data.attribute_values["color"][:10]


def test_colored_mnist_s_tests_are_independent_as_in_training_and_grey():
    data = mini("colored_mnist", conflict=0.1)
    unbiased, colored, plain = (data.tests[name] for name in ("unbiased", "colored", "mnist"))
    counts = torch.bincount(unbiased.y * 10 + unbiased.attributes["color"], minlength=100)
    assert (counts == 20).all()  # 200 test digits a class, 10 colours
    assert conflicting(colored, data.train) == [20] * 10
    assert torch.equal(plain.x[:, 0], plain.x[:, 1]) and torch.equal(plain.x[:, 0], plain.x[:, 2])
    assert data.attribute_values["color"][int(plain.attributes["color"].unique())] == "grey"
    assert data.mean is None


def test_colored_mnist_without_conflict_gives_every_class_one_colour():
    data = mini("colored_mnist", conflict=0)
    for split in (data.train, data.val, data.tests["colored"]):
        assert torch.equal(split.attributes["color"], split.y)


def test_double_mnist_has_a_dim_core_digit_left_and_a_bright_one_right():
    data, (train, test) = mini("double_mnist", conflict=0.1, val=0, dim=0.4), load_mini()
    assert data.sample_shape == (1, 28, 56)
    assert torch.equal(data.train.x[..., :28], (train.x * 0.4).round().to(torch.uint8))
    digits = {part.x[i].numpy().tobytes(): int(part.y[i]) for part in (train, test) for i in range(len(part.y))}
    for split in (data.train, data.tests["unbiased"]):
        right = [digits[split.x[i, :, :, 28:].numpy().tobytes()] for i in range(0, len(split), 7)]
        assert right == split.attributes["digit"][::7].tolist()
    assert conflicting(data.train, data.train) == [100] * 10


def test_double_mnist_s_right_digits_of_the_test_set_come_from_test_images_and_are_independent_of_the_label():
    data, (_, test) = mini("double_mnist"), load_mini()
    unbiased = data.tests["unbiased"]
    own = {image.numpy().tobytes() for image in test.x}
    assert all(image.numpy().tobytes() in own for image in unbiased.x[::9, :, :, 28:].contiguous())
    counts = torch.bincount(unbiased.y * 10 + unbiased.attributes["digit"], minlength=100)
    assert (counts == 20).all()


@pytest.mark.parametrize("name", PLANTED)
def test_a_count_is_exact_in_the_training_part_and_val_follows_its_share(name):
    # 833 of 10,000 are held out; 917 of 9,167 conflict: a share of 0.1, which is 83 of the 833
    data = mini(name, conflict_count=917)
    assert len(data.train) == 9167 and len(data.val) == 833
    assert sum(conflicting(data.train, data.train)) == 917
    assert sum(conflicting(data.val, data.train)) == 83


@pytest.mark.parametrize(
    ("name", "count"), [("biased_mnist", 100), ("mnist_sc", 0), ("colored_mnist", 250), ("double_mnist", 250)]
)
def test_without_either_the_papers_share_is_planted(name, count):
    # of 10,000: 1 % (MaskTune), none (ULE), 2.5 % (large learning rates)
    data = mini(name, val=0)
    assert sum(conflicting(data.train, data.train)) == count


@pytest.mark.parametrize("name", PLANTED)
def test_the_same_options_give_the_same_bits_and_another_seed_others(name):
    first, again, other = (mini(name, seed=seed, conflict=0.1) for seed in (0, 0, 1))
    assert torch.equal(first.train.x, again.train.x) and torch.equal(first.val.x, again.val.x)
    assert all(torch.equal(first.tests[test].x, again.tests[test].x) for test in first.tests)
    (column,) = first.train.attributes
    assert not torch.equal(first.train.attributes[column], other.train.attributes[column])


@pytest.mark.parametrize("name", PLANTED)
def test_nothing_touches_the_global_generator(name):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    mini(name)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("name", "shape"), [("biased_mnist", (3, 32, 32)), ("double_mnist", (1, 32, 64))])
def test_size_32_is_padded_before_planting(name, shape):
    data = mini(name, size=32, val=0, conflict=0)
    assert data.sample_shape == shape
    if name == "biased_mnist":
        # the square lies in the very corner, margin or not
        assert (data.train.x[data.train.y == 0][:, 2, :4, :4] == 255).all()


@pytest.mark.parametrize("name", PLANTED)
def test_no_validation_samples_is_an_empty_split(name):
    data = mini(name, val=0)
    assert len(data.val) == 0 and data.val.sample_shape == data.train.sample_shape
    assert set(data.val.attributes) == set(data.train.attributes)


@pytest.mark.parametrize("name", [name for name in DATASETS if hasattr(DATASETS[name], "conflict")])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"conflict": 1.01}, "conflict is a share and must be between 0 and 1 but got 1.01"),
        ({"conflict": 0.1, "conflict_count": 10}, "Give conflict or conflict_count, not both"),
    ],
)
def test_a_wrong_conflict_is_an_error_before_anything_is_read(name, options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        DATASETS[name](**options)


def test_a_count_beyond_the_training_part_is_an_error():
    with pytest.raises(UnspurError, match="conflict_count must be at most the 9167 samples but got 9168"):
        mini("colored_mnist", conflict_count=9168)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("biased_mnist", {"squares": 3}, "squares must be 1 or 2 but got 3"),
        ("colored_mnist", {"jitter": -1.0}, "jitter must be at least 0 but got -1.0"),
        ("double_mnist", {"dim": 0.0}, "dim must be above 0 and at most 1 but got 0.0"),
    ],
)
def test_other_wrong_options_are_errors(name, options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        mini(name, **options)


def test_only_the_real_thing_needs_files():
    files = DataFiles()
    for name in PLANTED:
        assert [wanted.name for wanted in DATASETS[name]().needs()] == ["mnist"]
        assert [wanted.name for wanted in DATASETS[name](base="fashion").needs()] == ["fashion_mnist"]
        assert DATASETS[name](base="mini").needs() == ()
        with pytest.raises(UnspurError, match="is not on this machine"):
            DATASETS[name]().load(files)
