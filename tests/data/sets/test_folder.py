import os
import shutil

import pytest
import torch

from data.photos import class_folders, photo
from unspur.data.base import groups_of
from unspur.data.files.fetch import DataFiles
from unspur.data.images.cache import MappedImages
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.data.sets.folder import Folder
from unspur.errors import UnspurError


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"  # where conftest.py puts it


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def load(root, **options):
    return Folder(root=str(root), **{"size": 8} | options).load(DataFiles(None))


def table(root, text, name="labels.csv"):
    root.mkdir(exist_ok=True)
    (root / name).write_text(text)


def refused(root, sentence, **options):
    with pytest.raises(UnspurError, match=sentence):
        load(root, **options)


def sizes(data):
    return len(data.train), len(data.val), len(data.tests["test"])


def test_class_folders_are_split_class_by_class(root):
    data = load(class_folders(root, dog=20, ant=40))
    assert data.classes == ("ant", "dog")
    # 20 % of 60 is 12 for the test; of the 48 that are left 10 % is 5 for validation
    assert sizes(data) == (43, 5, 12)
    assert torch.bincount(data.tests["test"].y).tolist() == [8, 4]
    assert data.sample_shape == (3, 8, 8) and data.attribute_values == {}
    batch = data.train.batch(torch.tensor([0, 42]))
    assert batch.x.dtype == torch.float32 and batch.y.tolist() == [0, 1]


def test_the_seed_alone_decides_the_split(root):
    class_folders(root, a=10, b=10)
    first, again, other = (load(root, seed=seed).tests["test"] for seed in (0, 0, 1))
    everything = torch.arange(4)
    assert torch.equal(first.batch(everything).x, again.batch(everything).x)
    assert not torch.equal(first.batch(everything).x, other.batch(everything).x)


def test_an_image_in_a_folder_of_a_class_folder_is_of_that_class(root):
    class_folders(root, a=5, b=5)
    photo(root / "a" / "deep" / "er" / "x.JPG")
    assert torch.bincount(torch.cat([load(root, val=0.0).train.y, load(root, val=0.0).tests["test"].y])).tolist() == [
        6,
        5,
    ]


def test_split_folders_are_kept_under_any_of_their_names(root):
    class_folders(root / "Train", a=4, b=3)
    class_folders(root / "validation", a=2, b=1)
    class_folders(root / "test", b=2)
    data = load(root)
    assert sizes(data) == (7, 3, 2)
    assert data.tests["test"].y.tolist() == [1, 1]
    assert data.note == ""


def test_a_split_that_is_not_given_is_drawn_from_training_and_said(root):
    class_folders(root / "train", a=10, b=10)
    class_folders(root / "test", a=2, b=2)
    data = load(root)
    assert sizes(data) == (18, 2, 4)
    assert data.note == "The val set was drawn with seed 0 (2 of 20 images)."
    assert sizes(load(root, val=0.0)) == (20, 0, 4)


def test_a_table_gives_labels_splits_and_attributes(root):
    rows = [
        ("a.png", "wet", "0", "sea"),
        ("b.png", "dry", "0", "land"),
        ("c.png", "wet", "1", "land"),
        ("d.png", "dry", "2", "sea"),
    ]
    for name, *_ in rows:
        photo(root / name)
    table(root, "filename,label,split,place\n" + "".join(",".join(row) + "\n" for row in rows))
    data = load(root, csv="labels.csv", attributes=("place",))
    assert (data.classes, data.attribute_values) == (("dry", "wet"), {"place": ("land", "sea")})
    assert groups_of(data.train).keys == ((0, 0), (1, 1))
    assert groups_of(data.tests["test"]).keys == ((0, 1),)
    assert not load(root, csv="labels.csv").train.attributes  # and without any it works as well


def test_numbers_are_sorted_as_numbers(root):
    class_folders(root, **{str(n): 3 for n in (10, 2, 1)})
    assert load(root, test=0.4, val=0.0).classes == ("1", "2", "10")


def test_a_table_may_lie_elsewhere(tmp_path, root):
    class_folders(root, a=5, b=5)
    text = "filename,label\n" + "".join(f"{c}/00{n}.png,{c}{n % 2}\n" for c in "ab" for n in range(4))
    table(tmp_path, text, "mine.csv")
    assert load(root, csv=str(tmp_path / "mine.csv"), test=0.5, val=0.0).classes == ("a0", "a1", "b0", "b1")


def test_images_are_decoded_once(root, cache):
    class_folders(root, a=6, b=6)
    first = load(root)
    pixels = next(cache.rglob("pixels.bin"))
    before = pixels.stat().st_mtime_ns
    second = load(root)
    assert isinstance(second.train.x, MappedImages) and pixels.stat().st_mtime_ns == before
    everything = torch.arange(len(first.train))
    assert torch.equal(first.train.batch(everything).x, second.train.batch(everything).x)


def test_a_command_that_loads_twice_lists_the_folder_once(root, cache, monkeypatch):
    class_folders(root, a=6, b=6)
    listed, real = [], Folder.listing
    monkeypatch.setattr(Folder, "listing", lambda spec: listed.append(spec) or real(spec))
    files, spec = DataFiles(), Folder(root=str(root), size=8)
    first, again = spec.load(files), spec.load(files)
    assert listed == [spec] and torch.equal(first.train.y, again.train.y)
    Folder(root=str(root), size=4, seed=1).load(files)  # other pixels and parts of the same files
    assert len(listed) == 1
    with pytest.raises(UnspurError, match=r"table\.csv"):
        Folder(root=str(root), csv="table.csv").load(files)  # a table is listed for itself
    assert len(listed) == 2


def test_decoding_on_demand_gives_the_same_data_and_keeps_no_pixels(root, cache):
    class_folders(root, a=6, b=6)
    again = load(root, stream=True)
    assert isinstance(again.train.x, ImagesOnDemand) and not list(cache.rglob("pixels.bin"))
    everything = torch.arange(len(again.train))
    assert torch.equal(again.train.batch(everything).x, load(root).train.batch(everything).x)


def test_only_training_images_are_moved(root):
    from unspur.data.augment import Augment

    data = load(class_folders(root, a=6, b=6), augment=Augment(flip=True))
    assert data.train.augment == Augment(flip=True)
    assert data.val.augment is None and data.tests["test"].augment is None


def test_broken_files_stop_the_run_named_and_counted(root):
    class_folders(root, a=10, b=10)
    (root / "a" / "003.png").write_bytes(b"")
    (root / "b" / "007.png").write_text("<html>404</html>")
    sentence = (
        r"^2 of 20 images in .* cannot be used: a/003\.png is empty \(0 bytes\); b/007\.png is not an image that can "
        r"be read; fix or remove them, or go on without them with --set data\.skip_broken=true\.$"
    )
    refused(root, sentence)
    data = load(root, skip_broken=True)
    assert sum(sizes(data)) == 18
    assert data.note.startswith(
        "2 of 20 images could not be used and were left out: a/003.png is empty (0 bytes); b/007"
    )


def test_a_broken_file_of_a_table_is_named_with_its_row(root):
    class_folders(root, a=3)
    (root / "a" / "001.png").write_bytes((root / "a" / "001.png").read_bytes()[:45])
    table(root, "filename,label\n" + "".join(f"a/00{n}.png,x\n" for n in range(3)))
    refused(
        root,
        r"1 of 3 images .*: a/001\.png \(row 3 of .*labels\.csv\) (is truncated|cannot be decoded)",
        csv="labels.csv",
    )


def test_of_many_broken_files_the_first_are_named(root):
    class_folders(root, a=9, b=9)
    for path in (root / "a").iterdir():
        path.write_bytes(b"")
    refused(root, r"^9 of 18 images .*a/004\.png is empty \(0 bytes\); and 4 more; fix")
    refused(root, r"All 9 images of .* have the label 'b'; a classifier needs two classes", skip_broken=True)
    for path in (root / "b").iterdir():
        path.write_bytes(b"")
    refused(root, r"None of the 18 images .* can be used", skip_broken=True)


def test_the_same_image_in_two_splits_is_reported(root):
    class_folders(root / "train", a=4, b=4)
    class_folders(root / "val", a=1, b=1)
    class_folders(root / "test", a=3, b=3)
    shutil.copy(root / "train/a/002.png", root / "test/b/001.png")
    shutil.copy(root / "train/a/002.png", root / "train/a/003.png")  # twice in one split is no leak
    assert load(root).note == (
        "Images that are in an earlier split too: 1 (test/b/001.png in test is train/a/002.png in train)."
    )


def test_a_label_that_is_never_trained_on_is_named(root):
    for name in "abcd":
        photo(root / f"{name}.png")
    table(root, "filename,label,split\na.png,cat,train\nb.png,dog,train\nc.png,owl,test\nd.png,cat,val\n")
    refused(root, r"The label 'owl' of c\.png \(row 4 of .*labels\.csv\) is in the test set only", csv="labels.csv")


def test_a_class_with_one_image_cannot_be_split(root):
    class_folders(root, a=5, b=5, rare=1)
    refused(root, r"The class 'rare' has one image, rare/000\.png, which cannot be for training and for test")


def test_a_class_with_one_training_image_is_noted_where_splits_are_given(root):
    class_folders(root / "train", a=5, rare=1)
    class_folders(root / "val", a=2)
    class_folders(root / "test", a=2)
    assert load(root).note == "The class 'rare' has one training image, train/rare/000.png."


@pytest.mark.parametrize("count", [1, 6, 30])
def test_one_class_alone_is_said_to_be_what_is_wrong(root, count):
    # a tenth of six images is no image to validate on, but that is not what hinders
    class_folders(root, a=count)
    refused(
        root, rf"All {count} images of .* have the label 'a'; a classifier needs two classes, so add images of another"
    )


def test_training_images_of_one_class_are_refused_though_others_are_tested_on(root):
    class_folders(root / "train", a=4)
    class_folders(root / "test", a=2)
    class_folders(root / "val", a=1, b=1)
    refused(root, r"The label 'b' of val/b/000\.png is in the val set only")


def test_an_empty_split_is_named(root):
    class_folders(root / "train", a=3, b=3)
    (root / "val").mkdir()
    refused(root, r"The split folder .*val holds no images; fill it or remove it")
    photo(root / "x.png")
    table(root, "filename,label,split\nx.png,cat,test\n")
    refused(root, r"No image of .*labels\.csv is for training", csv="labels.csv")


def test_shares_that_leave_a_split_empty_are_refused(root):
    class_folders(root, a=2, b=2)
    refused(root, r"data\.test=0\.1 of 4 images is no whole image, .* raise data\.test, or add images", test=0.1)
    refused(
        root, r"data\.val=0\.1 of 3 images is no whole image, .* raise data\.val, set it to 0 to go without", test=0.2
    )


def test_an_image_in_no_class_folder_of_a_split_is_named(root):
    class_folders(root / "train", a=3, b=3)
    photo(root / "test" / "x.png")
    refused(root, r"test/x\.png lies in the split 'test' but in no class folder")


def test_splits_beside_classes_are_refused_but_a_class_may_be_called_train(root):
    class_folders(root, bus=3, car=3, train=3)
    assert load(root, test=0.4, val=0.2).classes == ("bus", "car", "train")
    shutil.rmtree(root / "train")
    class_folders(root / "train", a=3)
    refused(root, r"holds the split 'train' beside 'bus', which is no split")


def test_other_files_are_left_out_and_said(root):
    class_folders(root, a=10, b=10)
    (root / "a" / "notes.txt").write_text("")
    (root / "a" / ".DS_Store").write_text("")
    (root / "b" / "._000.jpg").write_text("")  # what a Mac leaves beside its files
    (root / "empty").mkdir()
    photo(root / "loose.png")
    note = load(root).note
    assert "Images left out for being in no class folder: 1, such as loose.png." in note
    assert "The folder 'empty' holds no images." in note
    assert "Files left out for not being images: 1, such as a/notes.txt." in note


@pytest.mark.parametrize("inside", [True, False])
def test_a_link_to_a_folder_is_refused(tmp_path, root, inside):
    class_folders(root, a=3, b=3)
    class_folders(tmp_path / "elsewhere", c=3)
    (root / "c").symlink_to(root / "a" if inside else tmp_path / "elsewhere" / "c")
    refused(root, r"The folder .*root/c is a link")


def test_a_link_to_a_file_outside_is_refused(tmp_path, root):
    class_folders(root, a=3, b=3)
    (root / "a" / "x.png").symlink_to(photo(tmp_path / "outside.png"))
    refused(root, r"root/a/x\.png leaves the folder")


def test_a_name_that_is_not_utf8_is_shown(root):
    class_folders(root, a=3, b=3)
    os.rename(root / "a" / "001.png", os.fsencode(root / "a") + b"/caf\xe9.png")
    refused(root, r"The name of b'.*/a/caf\\xe9\.png' is not UTF-8; rename it")


def test_a_root_that_is_not_there_or_empty_says_what_to_do(tmp_path, root):
    with pytest.raises(UnspurError, match=r"name it with --set data\.root=PATH"):
        Folder().load(DataFiles(None))
    refused(root, r"The folder .*root does not exist")
    root.mkdir()
    refused(root, r"root holds no images; make a folder for each class, or name a table")
    photo(root / "a.png")
    refused(root, r"root holds images but no class folders")
    table(root, "filename,label\n")
    refused(root, r"root holds no class folders; read its table with --set data\.csv=labels\.csv")
    refused(root / "a.png", r"a\.png is a file; name the folder")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"size": 0}, r"data\.size must be at least 1 pixel but got 0"),
        ({"val": 1.0}, r"data\.val must lie in \[0, 1\) but got 1\.0"),
        ({"test": 0.0}, r"data\.test must lie in \(0, 1\) but got 0\.0"),
        ({"attributes": ("place",)}, r"data\.attributes is an option of tables; name the table"),
        ({"label": "y"}, r"data\.label is an option of tables"),
    ],
)
def test_options_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(UnspurError, match=sentence):
        Folder(**options)


@pytest.mark.parametrize("csv", [False, True])
def test_a_strangers_folder_trains_from_end_to_end(tmp_path, root, csv):
    from unspur.runs.config import configure
    from unspur.runs.experiment import run

    for number in range(20):
        photo(root / "red" / f"{number}.jpg", (200 + number, number, 0))
        photo(root / "blue" / f"{number}.jpg", (0, number, 200 + number))
    settings = [f"data.root={root}", "data.size=16", "erm.epochs=3", "erm.batch_size=8", "data.augment.flip=true"]
    if csv:
        rows = [f"{c}/{n}.jpg,{c},{n % 2},{n // 8}\n" for c in ("red", "blue") for n in range(20)]
        table(root, "filename,label,odd,split\n" + "".join(rows))
        settings += ["data.csv=labels.csv", "data.attributes=odd"]
    result = run(configure("erm", "folder", "small_cnn", 0, settings), tmp_path / "runs")
    assert result["status"] == "done" and result["tests"]["test"]["n"] == 8  # a fifth of 40; 16 to 19 of each class
    assert len(result["tests"]["test"]["groups"]) == (4 if csv else 2)


def test_a_link_to_itself_is_named(tmp_path):
    root = class_folders(tmp_path / "own", cat=2, dog=2)
    (root / "cat" / "loop").symlink_to("loop")
    with pytest.raises(UnspurError, match=r"cat/loop cannot be read \(.*symbolic links\); remove it"):
        Folder(root=str(root)).listing()
    with pytest.raises(UnspurError, match="does not exist"):
        Folder(root=str(root / "cat" / "loop")).listing()
