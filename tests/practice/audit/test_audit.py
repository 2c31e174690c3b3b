import numpy as np
import pytest
import torch

from practice.audit.pictures import scene, write_set
from unspur.data.base import Dataset, Split
from unspur.data.images.listing import list_folder
from unspur.errors import UnspurError
from unspur.practice.audit.audit import Settings, audit
from unspur.practice.audit.collect import collect
from unspur.practice.audit.collected_file import read_collected, write_collected
from unspur.practice.audit.data_findings import data_findings
from unspur.practice.audit.image_source import in_memory, listed
from unspur.practice.audit.model import Model, given_model
from unspur.practice.audit.sources import splits_source
from unspur.practice.audit.suspects import surest
from unspur.practice.audit.swap_test import swap_test

QUICK = Settings(model=False, local=False)


def corner(pixels, value):
    """A blue square in the upper left corner of value 1."""
    if value:
        pixels[:4, :4] = (30, 60, 220)
    return pixels


def look(root, **settings):
    return audit(listed(list_folder(root)), target="folder", settings=QUICK, **settings)


def leaks(result):
    return [finding for finding in result.findings if finding.grade == "leaks"]


def test_a_corner_mark_is_found_in_its_cell(tmp_path):
    result = look(write_set(tmp_path / "set", change=corner, conflict=0.05))
    assert result.verdict == "leaks"
    worst = leaks(result)[0]
    assert worst.kind == "place" and (0, 0) in worst.where  # 4 of 32 pixels: one of 8 cells
    assert worst.tells_label == pytest.approx(0.95, abs=0.03)  # 5 % conflict


def marked(each, against):
    """Scenes of two classes; the corner mark goes with class 1, but for a share ``against`` of either."""
    draw = np.random.default_rng(each)
    y = torch.arange(2 * each) % 2
    values = [label if place // 2 >= against * each else 1 - label for place, label in enumerate(y.tolist())]
    images = [corner(scene(draw), value) for value in values]
    return Split(torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous(), y)


def test_what_training_images_have_in_common_is_not_hidden_by_balanced_validation_images(tmp_path):
    train, val = marked(80, 0.05), marked(80, 0.5)
    data = Dataset("marked", train, val, {}, ("a", "b"))
    source = splits_source(data, {"train": train, "val": val})
    found = audit(source, target="marked", settings=QUICK)
    worst = leaks(found)[0]
    # 95 % of training images and half of the others follow the mark: together 72 %
    assert (0, 0) in worst.where and worst.tells_label == pytest.approx(0.95, abs=0.03)
    assert {each.filename.partition("/")[0] for each in found.suspects} == {"train", "val"}
    together = collect(source)
    mixed = data_findings(together, local=False).findings[0]
    assert mixed.tells_label < 0.8
    stored_again(together, tmp_path / "collected.safetensors")


def stored_again(data, path):
    write_collected(path, data)
    again = read_collected(path)
    assert torch.equal(again.training, data.training) and int(data.training.sum()) == 160


def test_some_of_the_images_keep_what_was_measured_of_them(tmp_path):
    whole = collect(listed(list_folder(write_set(tmp_path / "set", each=30))))
    index = torch.tensor([1, 4, 31, 59])
    some = whole.only(index)
    assert some.names == [whole.names[number] for number in index] and torch.equal(some.y, whole.y[index])
    for place, number in zip(some.pictured.tolist(), range(4), strict=True):
        at = (whole.pictured == index[number]).nonzero().item()
        assert place == number and torch.equal(some.pictures[number], whole.pictures[at])


def test_nothing_is_found_where_labels_are_random(tmp_path):
    result = look(write_set(tmp_path / "set"))
    assert result.verdict == "clean" and result.findings == ()
    assert "160 images" in result.sentence
    assert all(each.power for each in result.tested if each.tests)


def test_three_classes_are_told_by_three_colours(tmp_path):
    def change(pixels, value):
        pixels[-4:, -4:] = [(220, 30, 30), (30, 220, 30), (30, 30, 220)][value]
        return pixels

    result = look(write_set(tmp_path / "set", classes=3, each=60, change=change))
    assert result.verdict == "leaks" and (7, 7) in leaks(result)[0].where


def test_a_scenes_colour_is_context_and_no_leak(tmp_path):
    def change(pixels, value):
        shade = np.random.default_rng(int(pixels.sum())).normal(25 * value, 20)
        return (pixels + np.array([shade, 0, 0])).clip(0, 255).astype(np.uint8)

    result = look(write_set(tmp_path / "set", each=150, change=change))
    assert result.verdict == "context"


def test_what_every_cell_shows_is_no_cue_to_swap_since_all_cells_are_the_image(tmp_path):
    def change(pixels, value):
        shade = np.random.default_rng(int(pixels.sum())).normal(90 * value, 40)
        return (0.5 * pixels + np.array([shade, 0, 0])).clip(0, 255).astype(np.uint8)

    result = look(write_set(tmp_path / "set", each=150, change=change))
    assert [each.cue for each in result.findings if each.what == "the scene in every cell"] == [None]


def test_a_file_format_leaks_whatever_the_pixels_show(tmp_path):
    def save(image, path, value):
        image.save(path.with_suffix(".bmp") if value else path)

    result = look(write_set(tmp_path / "set", save=save))
    assert result.verdict == "leaks" and leaks(result)[0].kind == "file"
    assert "format" in {finding.family for finding in leaks(result)}


def test_a_class_name_in_the_file_name_is_no_news(tmp_path):
    def save(image, path, value):
        image.save(path.with_name(f"{path.parent.name}_{path.name}"))

    assert look(write_set(tmp_path / "set", save=save)).verdict == "clean"


def test_noise_is_named_as_a_trace_of_processing(tmp_path):
    def change(pixels, value):
        draw = np.random.default_rng(int(pixels.sum()))
        return (pixels + draw.normal(0, 12 * value, pixels.shape)).clip(0, 255).astype(np.uint8) if value else pixels

    result = look(write_set(tmp_path / "set", change=change))
    assert result.verdict == "leaks"
    assert "noise" in {finding.family for finding in leaks(result)}


def test_images_that_go_against_the_mark_are_the_suspects(tmp_path):
    root = write_set(tmp_path / "set", change=corner, conflict=0.1)
    result = look(root)
    assert len(leaks(result)[0].suspects) == pytest.approx(16, abs=3)  # 10 % of 160
    scores = [each.score for each in result.suspects]
    assert scores == sorted(scores, reverse=True)


def test_accuracy_on_suspects_is_not_known_from_fewer_than_ten_predictions(tmp_path):
    result = look(write_set(tmp_path / "set", change=corner, conflict=0.1))
    worst, known = leaks(result)[0], torch.zeros(160, dtype=torch.bool)
    known[list(worst.suspects[:9])] = True
    assert surest(worst, known) is None
    known[worst.suspects[9]] = True
    assert surest(worst, known) == worst.suspects[:10]


def test_the_same_images_and_settings_give_the_same_findings(tmp_path):
    root = write_set(tmp_path / "set", change=corner, conflict=0.1)
    first, second = look(root).as_json(), look(root).as_json()
    assert first | {"seconds": {}} == second | {"seconds": {}}


def test_reliance_is_of_a_model_that_looks_at_the_mark_and_not_of_one_that_does_not(tmp_path):
    source = listed(list_folder(write_set(tmp_path / "set", change=corner)))
    result, data = look(tmp_path / "set"), collect(source)
    blue = lambda images, rows: images[:, 2, rows, rows].mean((1, 2)) - images[:, 0, rows, rows].mean((1, 2))  # noqa: E731

    def model(rows):
        def predict(images):
            score = blue(images, rows) - 0.4
            return torch.stack([-score, score], 1)

        return given_model("a model", predict, data.classes).make(data)

    finding = leaks(result)[0]
    at_mark, elsewhere = (swap_test(model(rows), finding, data) for rows in (slice(0, 4), slice(20, 28)))
    assert at_mark.leans and at_mark.follows_cue > 0.9 and at_mark.control < 0.1
    assert not elsewhere.leans and elsewhere.follows_cue == elsewhere.control


def test_a_digits_strokes_are_informative_and_a_square_beside_them_leaks():
    digits = torch.zeros(200, 1, 28, 28, dtype=torch.uint8)
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(200) % 2
    for image, label in zip(digits, y.tolist(), strict=True):
        left = int(torch.randint(8, 12, (1,), generator=draw))
        image[0, 6:22, left : left + 3] = 255
        if label:
            image[0, 6:9, left : left + 10] = 255
    plain = audit(in_memory(Split(digits, y), ("one", "seven")), target="digits", settings=QUICK)
    assert plain.verdict in ("clean", "context")
    marked = digits.clone()
    marked[y == 1, 0, :3, :3] = 255
    assert audit(in_memory(Split(marked, y), ("one", "seven")), target="digits", settings=QUICK).verdict == "leaks"


@pytest.mark.parametrize(
    ("classes", "each", "sentence"),
    [(1, 30, "only one is so large"), (2, 2, "none is so large")],
)
def test_too_little_to_compare_is_one_sentence(tmp_path, classes, each, sentence):
    with pytest.raises(UnspurError, match=sentence):
        look(write_set(tmp_path / "set", classes=classes, each=each))


def test_equal_images_are_refused():
    split = Split(torch.full((60, 3, 16, 16), 7, dtype=torch.uint8), torch.arange(60) % 2)
    with pytest.raises(UnspurError, match="All 60 images are the same"):
        audit(in_memory(split, ("a", "b")), target="equal", settings=QUICK)


def test_files_that_cannot_be_read_are_left_out_and_named(tmp_path):
    root = write_set(tmp_path / "set")
    (root / "kind0" / "broken.png").write_bytes(b"no picture")
    assert any("broken.png" in note for note in look(root).notes)


def test_many_classes_are_cut_to_the_largest():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(2600) % 130
    y[:5] = 129
    split = Split(torch.randint(256, (2600, 3, 16, 16), dtype=torch.uint8, generator=generator), y)
    data = collect(in_memory(split, tuple(f"{number:03}" for number in range(130))))
    assert len(data.classes) == 100 and "129" in data.classes


def test_more_images_than_the_limit_are_sampled_in_their_shares():
    generator = torch.Generator().manual_seed(0)
    y = (torch.arange(1000) % 4 == 0).long()
    split = Split(torch.randint(256, (1000, 3, 16, 16), dtype=torch.uint8, generator=generator), y)
    data = collect(in_memory(split, ("a", "b")), most=400)
    assert torch.bincount(data.y).tolist() == [300, 100] and data.total == 1000


def test_a_model_keeps_the_classes_that_the_audit_leaves_out(tmp_path):
    root = write_set(tmp_path / "set", each=20, classes=2)
    write_set(tmp_path / "few", each=2, classes=1)
    (tmp_path / "few" / "kind0").rename(root / "a few")  # sorted first, and too small to be compared
    data = collect(listed(list_folder(root)))
    # its scores are of "a few", "kind0", "kind1": the audit's classes are the last two
    known = ("a few", "kind0", "kind1")
    model = given_model("m", lambda images: torch.tensor([[9.0, 1, 5]]).expand(len(images), 3), known).make(data)
    assert data.classes == ("kind0", "kind1") and model.predictions(data).unique().tolist() == [1]


def test_a_model_of_other_classes_is_refused(tmp_path):
    data = collect(listed(list_folder(write_set(tmp_path / "set", each=20))))
    model = Model("my.onnx", (lambda images: torch.zeros(len(images), 3),), (torch.arange(40),))
    with pytest.raises(UnspurError, match=r"my\.onnx gives 3 scores an image, but the data has 2 classes"):
        model.predictions(data)
