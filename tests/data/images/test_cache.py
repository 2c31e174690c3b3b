import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import namedtuple

import numpy as np
import pytest
import torch

from data.photos import SIZE, listed, photo
from unspur.data.base import Split
from unspur.data.images import cache as cache_module
from unspur.data.images.cache import Cache, ImageFile, MappedImages
from unspur.data.images.decode import decode
from unspur.data.images.workers import Decoded, Decoders, Task, WriteFailed
from unspur.errors import UnspurError


def expected(root, files):
    return torch.from_numpy(np.stack([decode((root / file.name).read_bytes(), SIZE) for file in files]))


def images(cache, files):
    return MappedImages.of(cache, cache.fill(files).rows)[torch.arange(len(files))]


def test_what_tells_a_file_again_is_computed_once_even_while_decoding(cache, root, monkeypatch):
    computed = []
    real = ImageFile.identity.fget
    monkeypatch.setattr(ImageFile, "identity", property(lambda file: computed.append(file) or real(file)))
    assert cache.fill(listed(root)).decoded == 40
    assert len(computed) == 40


def test_images_are_decoded_once_and_found_again(cache, root):
    files = listed(root)
    assert cache.fill(files).decoded == 40
    assert cache.fill(files).decoded == 0
    assert torch.equal(images(cache, files), expected(root, files))
    assert torch.equal(images(cache, files[::-3]), expected(root, files[::-3]))  # any of them, in any order


def test_only_a_changed_file_is_decoded_again(cache, root):
    cache.fill(listed(root))
    photo(root / "07.png", (1, 2, 3))
    photo(root / "new.png", (4, 5, 6))
    os.utime(root / "09.png", ns=(0, 0))
    files = listed(root)
    assert cache.fill(files).decoded == 3
    assert torch.equal(images(cache, files), expected(root, files))


def test_another_size_or_fit_or_root_is_another_cache(tmp_path, cache, root):
    others = [
        Cache(tmp_path / "cache", root, SIZE + 1, "stretch"),
        Cache(tmp_path / "cache", root, SIZE, "crop"),
        Cache(tmp_path / "cache", tmp_path, SIZE, "stretch"),
        Cache(tmp_path / "cache", root, SIZE, "stretch", pixels=False),
    ]
    assert len({each.folder for each in [cache, *others]}) == 5


def test_broken_files_are_told_and_the_others_kept(cache, root):
    (root / "03.png").write_bytes(b"")
    (root / "05.png").write_bytes((root / "05.png").read_bytes()[:45])
    files = listed(root)
    for _ in range(3):  # they are looked at again each time, in the same place
        filled = cache.fill(files)
        assert sorted(filled.problems) == [3, 5] and filled.problems[3] == "is empty (0 bytes)"
        assert filled.rows[[3, 5]].tolist() == [-1, -1]
    assert cache.pixel_file.stat().st_size == 40 * 3 * SIZE * SIZE
    photo(root / "03.png")
    assert cache.fill(listed(root)).problems.keys() == {5}


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from data.photos import listed
from unspur.data.images import cache, workers
cache.SAVE_SECONDS, cache.CHUNK = -1, 4

class Killing:
    def __enter__(self):
        self.done = 0
        return self.advance
    def __exit__(self, *error):
        pass
    def advance(self, count):
        self.done += count
        if self.done >= 12:
            os.kill(os.getpid(), signal.SIGKILL)

cache.counting = lambda what, total: Killing()
root = Path(sys.argv[2])
cache.Cache(Path(sys.argv[1]), root, int(sys.argv[3]), "stretch").fill(listed(root), 2)
"""


def test_a_killed_decoding_goes_on_where_it_stopped(tmp_path, cache, root):
    # A script without a main guard, as people write them: the decoding processes must not run it again.
    arguments = [tmp_path / "cache", root, str(SIZE), *sys.path]
    died = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert died.returncode == -signal.SIGKILL
    files = listed(root)
    assert cache.fill(files).decoded == 40 - 12
    assert torch.equal(images(cache, files), expected(root, files))
    assert cache.pixel_file.stat().st_size == 40 * 3 * SIZE * SIZE  # the rows that it had begun were used


def test_two_that_decode_the_same_share_the_work(cache, root):
    files, filled = listed(root), []
    workers = [threading.Thread(target=lambda: filled.append(cache.fill(files))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(each.decoded for each in filled) == [0, 40]
    assert filled[0].rows.tolist() == filled[1].rows.tolist()


@pytest.mark.parametrize("name", ["pixels.bin", "rows.bin", "about.json", "."])
def test_anything_of_it_may_be_deleted(cache, root, name):
    files = listed(root)
    before = MappedImages.of(cache, cache.fill(files).rows)
    path = cache.folder / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert torch.equal(images(cache, files), expected(root, files))
    assert torch.equal(before[torch.arange(40)], expected(root, files))  # who was using it has it still


@pytest.mark.parametrize("name", ["pixels.bin", "rows.bin"])
def test_a_cut_file_costs_only_what_was_cut(cache, root, name):
    files = listed(root)
    cache.fill(files)
    path = cache.folder / name
    os.truncate(path, path.stat().st_size // 2 + 1)
    assert cache.fill(files).decoded == 20
    assert torch.equal(images(cache, files), expected(root, files))


def test_a_disk_without_room_is_told_before_anything_is_decoded(cache, root, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(cache_module.shutil, "disk_usage", lambda folder: usage(1000))
    sentence = r"40 images of 8x8 pixels need 7\.7 kB in .* where .* are free; .* data\.stream=true"
    with pytest.raises(UnspurError, match=sentence):
        cache.fill(listed(root))
    assert not cache.pixel_file.exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path, root):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnspurError, match=r"Cannot write to the image cache .*UNSPUR_CACHE"):
        Cache(tmp_path / "file", root, SIZE, "stretch").fill(listed(root))


def test_a_disk_that_fills_up_is_not_held_against_the_image(root):
    with Decoders(1) as decoders:
        task = Task((str(root / "00.png"),), SIZE, "stretch", "/dev/full", (0,))
        ((result,),) = decoders.run([task], ahead=1)
    assert isinstance(result, WriteFailed) and result.reason == "No space left on device"


def test_an_image_that_kills_the_decoder_is_told_and_the_rest_go_on(tmp_path, root, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import builtins, os\n"
        "opened = builtins.open\n"
        "builtins.open = lambda path, *rest: os.kill(os.getpid(), 9) if 'trap' in str(path) else opened(path, *rest)\n"
    )
    monkeypatch.syspath_prepend(site)  # which decoders read first
    trap = tmp_path / "trap.png"
    trap.write_bytes((root / "00.png").read_bytes())
    paths = (str(root / "00.png"), str(trap), str(root / "01.png"))
    with Decoders(1) as decoders:
        (results,) = decoders.run([Task(paths, SIZE, "stretch")], ahead=1)
    first, trapped, last = results
    assert isinstance(first, Decoded) and isinstance(last, Decoded)
    assert trapped == "made the decoder crash"


def test_pages_are_given_back_without_changing_what_is_read(cache, root, monkeypatch):
    monkeypatch.setattr(cache_module, "RELEASE_BYTES", 100)
    files = listed(root)
    source = MappedImages.of(cache, cache.fill(files).rows)
    for _ in range(3):
        assert torch.equal(source[torch.tensor([5, 1])], expected(root, [files[5], files[1]]))


def test_a_subset_of_files_stays_on_the_disk(cache, root):
    files = listed(root)
    split = Split(MappedImages.of(cache, cache.fill(files).rows), torch.arange(40))
    part = split.subset(torch.tensor([9, 4, 2])).subset(torch.tensor([2, 0]))
    assert isinstance(part.x, MappedImages)
    assert part.sample_shape == (3, SIZE, SIZE) and part.y.tolist() == [2, 9]
    assert torch.equal(part.batch(torch.tensor([1])).x, expected(root, [files[9]]).float() / 255)
