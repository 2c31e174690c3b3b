import time

import pytest
import torch

from data.photos import SIZE, listed
from unspur.data.base import Split
from unspur.data.images.cache import Cache, MappedImages
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.errors import UnspurError


def on_demand(root):
    return ImagesOnDemand(root, [file.name for file in listed(root)], SIZE, "stretch")


def test_images_on_demand_are_what_the_cache_gives_and_are_read_ahead_in_order(cache, root):
    files = listed(root)
    mapped = Split(MappedImages.of(cache, cache.fill(files).rows), torch.arange(40))
    again = Split(on_demand(root), torch.arange(40)).subset(torch.arange(39, -1, -1))
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0)).split(9)
    for ours, theirs in zip(again.batches(order), mapped.batches([39 - index for index in order]), strict=True):
        assert torch.equal(ours.x, theirs.x) and torch.equal(ours.y, theirs.y)
    assert torch.equal(again.batch(torch.tensor([3])).x, mapped.batch(torch.tensor([36])).x)


def test_images_on_demand_keep_nothing_on_disk_but_what_could_be_decoded(tmp_path, root):
    checked = Cache(tmp_path / "cache", root, SIZE, "stretch", pixels=False)
    (root / "03.png").write_bytes(b"no image")
    assert checked.fill(listed(root)).problems == {3: "is not an image that can be read"}
    assert checked.fill(listed(root)).decoded == 0
    assert sum(path.stat().st_size for path in checked.folder.iterdir()) < 40 * 32 + 500


def test_a_file_that_vanishes_before_it_is_decoded_is_named(root):
    source = on_demand(root)
    (root / "07.png").unlink()
    with pytest.raises(UnspurError, match=r"07\.png cannot be read \(No such file or directory\); .*--resume"):
        list(source.reading([torch.arange(4), torch.arange(4, 12)]))


def test_the_processes_of_images_on_demand_end_with_them(root):
    source = on_demand(root)
    source[torch.arange(3)]
    processes = [process._process for process in source._decoders._all]
    assert all(process.poll() is None for process in processes)
    del source
    deadline = time.monotonic() + 10
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(process.poll() is not None for process in processes)
