"""A stored run is scored on anything: its own data, another set, every image of a folder or a table."""

import csv
import shutil

import pytest

from data.photos import class_folders, photo
from unspur.errors import UnspurError
from unspur.evaluation import scores
from unspur.runs.analyze import analyze
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.runs.scoring import score_run


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSPUR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def red_or_blue(root, cat=8, dog=8):
    """Reddish cats and bluish dogs, no two alike."""
    for number in range(cat):
        photo(root / "cat" / f"{number}.png", (200 + number, 5, 0))
    for number in range(dog):
        photo(root / "dog" / f"{number}.png", (5, 0, 200 + number))
    return root


def train_on(root, out, *settings, size=18, method="erm"):
    config = configure(
        method, "folder", "small_cnn", 0, [f"data.root={root}", f"data.size={size}", "arch.hidden=0", *settings]
    )
    run(config, out)
    return Run.create(out, config).folder


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return red_or_blue(tmp_path_factory.mktemp("own"), 16, 16)


@pytest.fixture(scope="module")
def trained(own, tmp_path_factory):
    return train_on(own, tmp_path_factory.mktemp("runs"), "erm.epochs=20", "erm.batch_size=8")


def table(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def score(folder, given, *settings, **more):
    return score_run(folder, None if given is None else str(given), settings, None, **more)


def test_every_image_of_a_folder_is_scored_at_the_runs_own_size(trained, tmp_path, monkeypatch):
    seen = []
    plain = scores.predict
    monkeypatch.setattr(scores, "predict", lambda model, split, *rest, **more: (
        seen.append((len(split), tuple(split.sample_shape))), plain(model, split, *rest, **more))[1])  # fmt: skip
    new = red_or_blue(tmp_path / "new", cat=3, dog=2)
    for name in ("cat", "dog"):  # not those of the training
        for path in (new / name).iterdir():
            photo(path, (130, 9, 0) if name == "cat" else (9, 0, 130 + int(path.stem)))
    result = score(trained, new)
    assert result["tests"]["all"]["n"] == 5 and seen == [(5, (3, 18, 18))]
    assert result["dataset"] == str(new) and result["warnings"] == []
    assert {row["y"]: row["n"] for row in result["tests"]["all"]["groups"]} == {0: 3, 1: 2}


def test_classes_are_matched_by_name_so_that_missing_ones_do_not_shift_the_others(trained, tmp_path):
    (dogs,) = score(trained, red_or_blue(tmp_path / "dogs", cat=0, dog=3))["tests"]["all"]["groups"]
    assert dogs["y"] == 1 and dogs["accuracy"] == 1.0  # alone they would have been class 0


def test_unknown_classes_are_named_in_one_sentence(trained, tmp_path):
    new = class_folders(tmp_path / "new", cat=2, bird=1, fish=1)
    with pytest.raises(UnspurError, match=r"images of 'bird' and 'fish', but the run knows 'cat' and 'dog'"):
        score(trained, new)


def test_the_split_column_of_a_table_has_no_say(trained, tmp_path):
    new = red_or_blue(tmp_path / "new", cat=3, dog=3)
    names = [("cat/0.png", "cat"), ("cat/1.png", "cat"), ("dog/0.png", "dog")]
    for splits in (["test"] * 3, ["train", "val", "test"], ["holdout", "", "?"]):
        rows = [(*row, split) for row, split in zip(names, splits, strict=True)]
        path = table(new / "new.csv", [("filename", "label", "split"), *rows])
        assert score(trained, path)["tests"]["all"]["n"] == 3
    assert score(trained, table(new / "plain.csv", [("filename", "label"), *names]))["tests"]["all"]["n"] == 3


def test_a_table_has_the_columns_of_the_runs_own_table(tmp_path):
    own = red_or_blue(tmp_path / "own", 6, 6)
    rows = [(f"{name}/{n}.png", name, "ab"[n % 2]) for name in ("cat", "dog") for n in range(6)]
    table(own / "own.csv", [("image", "animal", "place"), *rows])
    columns = ["data.label=animal", "data.file=image", "data.attributes=place", "data.csv=own.csv"]  # in any order
    folder = train_on(own, tmp_path / "runs", *columns, "erm.epochs=1")
    new = red_or_blue(tmp_path / "new", 2, 2)
    path = table(new / "t.csv", [("image", "animal", "place"), ("cat/0.png", "cat", "c"), ("dog/1.png", "dog", "a")])
    groups = score(folder, path)["tests"]["all"]["groups"]
    assert [(row["y"], row["attributes"]) for row in groups] == [(0, {"place": 2}), (1, {"place": 0})]  # c is new
    path = table(new / "u.csv", [("image", "kind"), ("cat/0.png", "cat")])
    with pytest.raises(UnspurError, match=r"no column 'label'.*data.label=COLUMN.*unspur predict"):
        score(folder, path)
    assert score(folder, path, "data.label=kind")["tests"]["all"]["n"] == 1


def test_images_without_labels_are_for_predict(trained, tmp_path):
    photo(tmp_path / "flat" / "a.png")
    with pytest.raises(UnspurError, match=r"images but no class folders.*`unspur predict`"):
        score(trained, tmp_path / "flat")
    path = table(tmp_path / "flat" / "t.csv", [("filename", "split"), ("a.png", "test")])
    with pytest.raises(UnspurError, match=r"no column 'label'.*`unspur predict`"):
        score(trained, path)
    with pytest.raises(UnspurError, match=r"is one image; evaluate a folder.*`unspur predict`"):
        score(trained, tmp_path / "flat" / "a.png")


@pytest.mark.parametrize(
    ("given", "settings", "sentence"),
    [
        ("new", ["data.size=20"], "trained on images of 18 pixels, but data.size is 20"),
        ("new", ["data.test=0.5"], "data.test has no effect here: every image of .*new is scored"),
        ("new", ["data.augment.flip=true"], "data.augment.flip has no effect here"),
        ("new", ["erm.lr=1"], "Only settings of the data can be given here"),
        ("new/nowhere", [], "does not exist; name a folder of images, a table of them or a data set"),
        ("new/notes.md", [], "is neither a folder of images nor a table of them"),
        (None, ["nonsense"], "A setting is KEY=VALUE, such as erm.lr=0.1, but got 'nonsense'"),
        (None, ["data.sise=3"], "Unknown key 'data.sise'. Did you mean 'data.size'"),
        (None, ["data.size=20"], r"The run was trained on \(3, 18, 18\) in 2 classes; folder has \(3, 20, 20\) in 2"),
        (None, ["data.test=0.5"], "data.test would put images that the run was trained on into its test set"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(trained, tmp_path, given, settings, sentence):
    red_or_blue(tmp_path / "new", 2, 2)
    (tmp_path / "new" / "notes.md").write_text("notes")
    with pytest.raises(UnspurError, match=sentence):
        score(trained, given and tmp_path / given, *settings)


def test_a_misspelt_data_set_is_still_named(trained):
    with pytest.raises(UnspurError, match=r"Unknown data set 'mnits'\. Did you mean 'mnist'"):
        score(trained, "mnits")


def test_images_that_the_run_was_trained_on_are_counted(trained, own):
    result = score(trained, own)
    # 32 images: 6 for test, and 3 of the other 26 for validation
    assert result["tests"]["all"]["n"] == 32
    (warning,) = result["warnings"]
    assert warning.startswith("23 of the 32 images are among those that the run was trained on")
    by_name = score(trained, "folder", f"data.root={own}")  # the old way to name a folder
    assert by_name["tests"] == result["tests"]


def test_own_images_that_changed_or_are_gone_are_noticed(tmp_path):
    trained = train_on(red_or_blue(tmp_path / "own", 8, 8), tmp_path / "runs", "erm.epochs=0")
    assert score(trained, None)["tests"] == Run.open(trained).result()["tests"]
    photo(tmp_path / "own" / "cat" / "3.png", (1, 2, 3), size=(9, 9))
    for look in (lambda: score(trained, None), lambda: analyze(trained)):
        with pytest.raises(UnspurError, match="have changed since it was trained; put them back"):
            look()
    new = red_or_blue(tmp_path / "new", 2, 2)
    assert score(trained, new)["tests"]["all"]["n"] == 4  # which no change of the training images can touch
    shutil.rmtree(tmp_path / "own")
    with pytest.raises(UnspurError, match="own does not exist"):
        score(trained, None)


def test_a_run_on_vectors_cannot_take_a_folder(tmp_path):
    config = configure("erm", "parity", None, 0, ["data.train=50", "data.test=20", "data.val=10", "erm.epochs=0"])
    run(config, tmp_path / "runs")
    new = red_or_blue(tmp_path / "new", 2, 2)
    with pytest.raises(UnspurError, match=r"takes inputs of \(21,\), but a folder's images are read as squares"):
        score(Run.create(tmp_path / "runs", config).folder, new)


def test_another_sets_classes_are_matched_by_name_or_said_to_be_matched_by_order(tmp_path, monkeypatch):
    config = configure("erm", "mnist", "small_cnn", 0, ["data.base=mini", "data.val=9800", "erm.epochs=1"])
    run(config, tmp_path)
    folder = Run.create(tmp_path, config).folder
    plain = score(folder, "mnist", "data.base=mini", "data.val=9000")
    kind = type(config.data)
    load = kind.load

    def renamed(spec, files):
        data = load(spec, files)
        if spec.val == 9000:
            return data
        turned = {n: type(t)(t.x, 9 - t.y, t.attributes) for n, t in data.tests.items()}
        return type(data)(data.name, data.train, data.val, turned, data.classes[::-1] if spec.val == 8000 else
                          tuple("abcdefghij"))  # fmt: skip

    monkeypatch.setattr(kind, "load", lambda spec, files: (load if spec == config.data else renamed)(spec, files))
    turned = score(folder, "mnist", "data.base=mini", "data.val=8000")  # the same classes in the opposite order
    assert turned["tests"]["test"]["accuracy"] == plain["tests"]["test"]["accuracy"]
    strange = score(folder, "mnist", "data.base=mini", "data.val=7000")
    assert "matched by their order" in " ".join(strange["warnings"])


def test_train_and_evaluate_predict_each_split_once_for_each_stage(tmp_path, monkeypatch):
    calls = []
    plain = scores.predict

    def counted(model, split, progress=None):
        calls.append((id(model), id(split)))
        return plain(model, split, progress)

    monkeypatch.setattr(scores, "predict", counted)
    own = red_or_blue(tmp_path / "own", 30, 30)
    folder = train_on(own, tmp_path / "runs", "erm.epochs=1", "data.val=0.5", method="masktune")
    assert len(calls) == len(set(calls)) == 2  # the test set, by the erm stage and by the result
    calls.clear()
    score(folder, None, coverage=0.5)
    assert len(calls) == len(set(calls)) == 4
    calls.clear()
    score(folder, None)
    assert len(calls) == len(set(calls)) == 2  # without a threshold nobody needs the validation images
