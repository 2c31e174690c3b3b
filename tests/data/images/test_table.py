import time

import pytest

from data.photos import photo
from unspur.data.images.listing import list_table
from unspur.data.images.table import read_table
from unspur.errors import UnspurError


def table(tmp_path, text, name="labels.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def listed(tmp_path, text, photos=("a.png", "b.png"), **options):
    for name in photos:
        photo(tmp_path / name)
    columns = {"file": "filename", "label": "label"} | options
    return list_table(tmp_path, table(tmp_path, text), **columns)


def test_rows_are_counted_as_an_editor_counts_them(tmp_path):
    found = read_table(table(tmp_path, "filename,label\na.png,cat\n\nb.png,dog\n"))
    assert found.columns == {"filename": ["a.png", "b.png"], "label": ["cat", "dog"]}
    assert found.rows == [2, 4]


@pytest.mark.parametrize(
    "text",
    [
        "filename,label\na.png,cat\n",
        "\ufefffilename,label\r\na.png,cat\r\n",  # as Excel writes UTF-8
        "filename;label\na.png;cat\n",
        "filename\tlabel\na.png\tcat\n",
        'filename, label\n"a.png", "cat"\n',
    ],
)
def test_the_usual_dialects_are_read(tmp_path, text):
    assert read_table(table(tmp_path, text)).columns == {"filename": ["a.png"], "label": ["cat"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"labels\.csv is empty; its first row must name the columns"),
        ("filename,label\n", r"labels\.csv has a header and no rows"),
        ("filename,label,label\na.png,1,2\n", r"labels\.csv, row 1: there are several columns 'label'"),
        ("filename,label\na.png,cat\nb.png\n", r"labels\.csv, row 3: the header names 2 fields, but here are 1"),
        ('filename,label\na.png,"cat\n', r"labels\.csv, row 2: this is not CSV"),
        (b"filename,label\na.png,cat\ncaf\xe9.png,dog\n", r"labels\.csv, row 3: the byte 0xe9 is not UTF-8"),
    ],
)
def test_a_table_that_is_none_is_refused_by_row(tmp_path, text, sentence):
    with pytest.raises(UnspurError, match=sentence):
        read_table(table(tmp_path, text))


def test_a_table_that_is_missing_is_named(tmp_path):
    with pytest.raises(UnspurError, match=r"The table .*none\.csv cannot be read \(No such file or directory\)"):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("file,label\na.png,cat\n", r"Unknown column of .*labels\.csv 'filename'.*--set data\.file=COLUMN"),
        ("filename,y\na.png,cat\n", r"Unknown column of .*'label'\. There are: filename, y\. .*data\.label=COLUMN"),
        ("filename,label\na.png,cat\nb.png,\n", r"labels\.csv, row 3: column 'label' is empty"),
        ("filename,label\na.png,cat\nmissing.png,cat\n", r"labels\.csv, row 3: 'missing\.png' does not exist"),
        ("filename,label\na.png,cat\nb.png,cat\n./a.png,cat\n", r"row 4: '\./a\.png' is in row 2 already"),
        ("filename,label\n../a.png,cat\n", r"row 2: '\.\./a\.png' leaves the folder"),
        ("filename,label\nx/../../a.png,cat\n", r"row 2: 'x/\.\./\.\./a\.png' leaves the folder"),
        ("filename,label\n/etc/passwd,cat\n", r"row 2: '/etc/passwd' leaves the folder"),
        ("filename,label\nC:\\a.png,cat\n", r"row 2: 'C:\\a\.png' leaves the folder"),
        ("filename,label\n.,cat\n", r"row 2: '\.' is not a file"),
        ("filename,label,split\na.png,cat,train\nb.png,cat,holdout\n", r"row 3: split 'holdout' is none of train, val"),
        ("filename,label,split\na.png,cat,train\nb.png,cat,3\n", r"row 3: split '3' is none of train"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path, text, sentence):
    with pytest.raises(UnspurError, match=sentence):
        listed(tmp_path, text)


def test_rows_with_problems_are_counted(tmp_path):
    with pytest.raises(UnspurError, match=r"row 3: 'x\.png' does not exist \(and 2 more\)\.$"):
        listed(tmp_path, "filename,label\na.png,1\nx.png,1\ny.png,1\nz.png,1\n")


def test_a_link_may_lead_elsewhere_in_the_root_and_nowhere_else(tmp_path):
    root = tmp_path / "root"
    photo(root / "real" / "a.png")
    photo(tmp_path / "outside" / "b.png")
    (root / "inner.png").symlink_to("real/a.png")
    (root / "outer.png").symlink_to("../outside/b.png")
    (root / "gone.png").symlink_to("real/none.png")
    (root / "door").symlink_to("../outside")
    found = list_table(root, table(root, "filename,label\ninner.png,1\n"), file="filename", label="label")
    assert [file.name for file in found.files] == ["inner.png"]
    for name in ("outer.png", "door/b.png"):
        with pytest.raises(UnspurError, match=rf"row 2: '{name}' leaves the folder"):
            list_table(root, table(root, f"filename,label\n{name},1\n"), file="filename", label="label")
    with pytest.raises(UnspurError, match=r"row 2: 'gone\.png' does not exist"):
        list_table(root, table(root, "filename,label\ngone.png,1\n"), file="filename", label="label")


def test_the_root_may_be_a_link_itself(tmp_path):
    photo(tmp_path / "real" / "a.png")
    (tmp_path / "root").symlink_to("real")
    root = tmp_path / "root"
    found = list_table(root, table(root, "filename,label\na.png,1\n"), file="filename", label="label")
    assert found.root == (tmp_path / "real").resolve()


def test_splits_are_given_by_name_or_number(tmp_path):
    names = [f"{n}.png" for n in range(6)]
    splits = ["train", "0", "Valid", "1", "TEST", "2"]
    text = "filename,label,split\n" + "".join(f"{name},x,{split}\n" for name, split in zip(names, splits, strict=True))
    assert listed(tmp_path, text, names).splits == ["train", "train", "val", "val", "test", "test"]


def test_the_label_cannot_be_its_own_attribute_nor_an_attribute_come_twice(tmp_path):
    text = "filename,label,place\na.png,cat,land\n"
    with pytest.raises(UnspurError, match="'label', which is the label"):
        listed(tmp_path, text, attributes=("label",))
    with pytest.raises(UnspurError, match="'place' more than once"):
        listed(tmp_path, text, attributes=("place", "place"))
    with pytest.raises(UnspurError, match=r"Unknown column of .* 'plaec'\. Did you mean 'place'\?"):
        listed(tmp_path, text, attributes=("plaec",))


def test_waterbirds_own_table_is_read_as_it_is(tmp_path):
    # the header and a row as in metadata.csv of waterbird_complete95_forest2water2
    text = (
        "img_id,img_filename,y,split,place,place_filename\n"
        "1,001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg,1,2,0,/b/bamboo_forest/00000131.jpg\n"
        "2,001.Black_footed_Albatross/Black_Footed_Albatross_0009_34.jpg,1,0,1,/l/lake/natural/00000105.jpg\n"
    )
    folder = "001.Black_footed_Albatross/Black_Footed_Albatross_00"
    found = listed(
        tmp_path,
        text,
        [f"{folder}46_18.jpg", f"{folder}09_34.jpg"],
        file="img_filename",
        label="y",
        attributes=("place",),
    )
    assert (found.labels, found.splits, found.attributes) == (["1", "1"], ["test", "train"], {"place": ["0", "1"]})


def celeba(tmp_path, kind):
    for number in (1, 2):
        photo(tmp_path / f"img_align_celeba/{number:06}.jpg")
    if kind == "csv":  # as the copies with commas have it
        table(tmp_path, "image_id,Blond_Hair,Male\n000001.jpg,-1,1\n000002.jpg,1,-1\n", "list_attr_celeba.csv")
        table(tmp_path, "image_id,partition\n000001.jpg,0\n000002.jpg,2\n", "list_eval_partition.csv")
    else:  # as published
        table(tmp_path, "2\nBlond_Hair Male \n000001.jpg -1  1\n000002.jpg  1 -1\n", "list_attr_celeba.txt")
        table(tmp_path, "000001.jpg 0\n000002.jpg 2\n", "list_eval_partition.txt")


@pytest.mark.parametrize(("kind", "file", "split"), [("csv", "image_id", "partition"), ("txt", "filename", "split")])
def test_celebas_own_lists_are_read_as_they_are(tmp_path, kind, file, split):
    celeba(tmp_path, kind)
    found = list_table(
        tmp_path,
        tmp_path / f"list_attr_celeba.{kind}",
        file=file,
        label="Blond_Hair",
        attributes=("Male",),
        split=split,
        split_path=tmp_path / f"list_eval_partition.{kind}",
        images="img_align_celeba",
    )
    assert [file.name for file in found.files] == ["img_align_celeba/000001.jpg", "img_align_celeba/000002.jpg"]
    assert (found.labels, found.splits, found.attributes) == (["-1", "1"], ["train", "test"], {"Male": ["1", "-1"]})


def test_an_image_that_the_table_of_splits_lacks_is_named(tmp_path):
    celeba(tmp_path, "csv")
    table(tmp_path, "image_id,partition\n000001.jpg,0\n", "list_eval_partition.csv")
    with pytest.raises(UnspurError, match=r"row 3: '000002\.jpg' has no row in .*list_eval_partition\.csv"):
        list_table(
            tmp_path,
            tmp_path / "list_attr_celeba.csv",
            file="image_id",
            label="Male",
            split="partition",
            split_path=tmp_path / "list_eval_partition.csv",
            images="img_align_celeba",
        )


def test_a_hundred_thousand_rows_take_seconds(tmp_path):
    # None of the files is there, so that each row is looked at in full and the test need not make them.
    rows = "".join(f"{n % 100}/{n}.png,{n % 7},{n % 3},{n % 2}\n" for n in range(100_000))
    path = table(tmp_path, "filename,label,split,a\n" + rows)
    begin = time.process_time()
    with pytest.raises(UnspurError, match=r"row 2: '0/0\.png' does not exist \(and 99,999 more\)"):
        list_table(tmp_path, path, file="filename", label="label", attributes=("a",))
    assert time.process_time() - begin < 5  # one, on a machine with nothing else to do
