"""Groups that a person ticked, as part of a data set."""

from dataclasses import replace

import pytest

from practice.audit.pictures import write_set
from unspur.data.files.fetch import DataFiles
from unspur.data.sets.folder import Folder
from unspur.errors import UnspurError


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Folder(root=str(write_set(tmp_path_factory.mktemp("images") / "set", each=20)), size=32)


def table(spec, tmp_path, *rows):
    path = tmp_path / "groups.csv"
    path.write_text("filename,label,cue\n" + "".join(f"{name},x,{cue}\n" for name, cue in rows))
    return replace(spec, groups=str(path))


def test_ticked_training_images_validate_with_their_groups_and_no_longer_train(plain, tmp_path):
    before = plain.load(DataFiles())
    after = table(plain, tmp_path, ("train/0", "sea"), ("train/3", "forest"), ("val/1", "sea")).load(DataFiles())
    # Two of the three are for training; the one that validated before is not needed by a method, but for choosing.
    assert (len(after.train), len(after.val)) == (len(before.train) - 2, 2)
    assert after.attribute_values == {"cue": ("forest", "sea")} and after.val.attributes["cue"].tolist() == [1, 0]
    assert after.val.y.tolist() == before.train.y[[0, 3]].tolist() and not after.train.attributes
    assert "2 training images with groups from a table are held out" in after.note
    assert len(after.tests["test"]) == len(before.tests["test"])


def test_what_the_audit_estimated_stays_to_train_on(plain, tmp_path):
    count = len(plain.load(DataFiles()).train)
    rows = [f"train/{n},x,sea,{'person' if n in (0, 3) else 'audit'}\n" for n in range(count)]  # all, as on the page
    path = tmp_path / "groups.csv"
    path.write_text("filename,label,cue,checked\n" + "".join(rows))
    data = replace(plain, groups=str(path)).load(DataFiles())
    assert (len(data.train), len(data.val)) == (count - 2, 2)
    path.write_text("filename,label,cue,checked\n" + "".join(rows).replace("person", "audit"))
    with pytest.raises(UnspurError, match="has no tick on any of these training images"):
        replace(plain, groups=str(path)).load(DataFiles())


def test_a_cue_that_the_images_own_table_has_is_kept(plain, tmp_path):
    names = sorted(file.name for file in plain.listing().files)
    own = tmp_path / "own.csv"
    own.write_text("filename,label,cue\n" + "".join(f"{name},{name[:5]},{name[:5]}\n" for name in names))
    spec = replace(plain, csv=str(own), attributes=("cue",))
    data = table(spec, tmp_path, ("train/0", "kind1"), ("train/3", "kind1")).load(DataFiles())
    assert data.attribute_values == {"cue": ("kind0", "kind1")}
    assert data.val.attributes["cue"].tolist() == data.val.y.tolist()


def test_images_are_named_by_file_as_well(plain, tmp_path):
    names = [file.name for file in plain.listing().files]
    data = table(plain, tmp_path, *((name, "sea") for name in names if name.endswith(("1.png", "2.png")))).load(
        DataFiles()
    )
    assert 0 < len(data.val) < 40


def test_other_groups_of_the_same_images_are_other_data(plain, tmp_path):
    one, other = (
        table(plain, tmp_path, ("train/0", cue), ("train/1", "sea")).load(DataFiles()) for cue in ("sea", "sky")
    )
    assert one.content != other.content


def test_a_table_of_no_training_image_is_refused(plain, tmp_path):
    with pytest.raises(UnspurError, match="has no tick on any of these training images; tick some"):
        table(plain, tmp_path, ("val/0", "sea")).load(DataFiles())
    with pytest.raises(UnspurError, match="has a tick on every training image"):
        table(plain, tmp_path, *((f"train/{n}", "sea") for n in range(40))).load(DataFiles())
