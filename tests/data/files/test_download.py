"""What comes over the network: only by https, and no more of it than was published."""

import io
import tarfile

import pytest

from data.serving import CONTENT, file_set, serving
from unspur.data.files.download import DownloadError, _extract, download
from unspur.data.files.fetch import DataFiles, cache_folder
from unspur.errors import UnspurError


@pytest.mark.parametrize("url", ["http://example.invalid/a", "ftp://example.invalid/a", "file:///etc/passwd", "a"])
def test_only_https_is_asked(tmp_path, url):
    with pytest.raises(DownloadError, match="is not an https address"):
        download(url, tmp_path / "a.part", 10)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("elsewhere", ["http://example.invalid/a", "file:///etc/passwd"])
def test_nobody_is_followed_to_an_address_that_is_not_https(tmp_path, elsewhere):
    with (
        serving({}, elsewhere=elsewhere) as server,
        pytest.raises(DownloadError, match=r"is not an https address|the server answered 302 .* is not allowed"),
    ):
        download(f"{server.address}a", tmp_path / "a.part", 10)
    assert not list(tmp_path.iterdir())


def test_a_server_that_does_not_stop_is_not_heard_out(tmp_path):
    with serving({"a": bytes(3_000_000)}) as server:
        with pytest.raises(DownloadError, match=r"it sends more than 1\.0 MB"):
            download(f"{server.address}a", tmp_path / "a.part", 1_000_000)
        with pytest.raises(UnspurError, match="it sends more than"):
            DataFiles().fetch(file_set(server.address))  # its files have 18,000 and 14,000 bytes
    assert not list(tmp_path.rglob("*.part")) and not list(cache_folder().rglob("*.part"))


def archive(*members):
    """A real archive of (name, type, content) members."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            info.linkname = content.decode() if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            tar.addfile(info, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    made.seek(0)
    return tarfile.open(fileobj=made, mode="r:gz")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (tarfile.SYMTYPE, b"/etc/passwd"),
        (tarfile.LNKTYPE, b"/etc/passwd"),
        (tarfile.CHRTYPE, b""),
        (tarfile.BLKTYPE, b""),
        (tarfile.FIFOTYPE, b""),
        (tarfile.DIRTYPE, b""),
        (tarfile.REGTYPE, bytes(1 << 24)),  # 16 MB of zeros in 16 kB
    ],
    ids=["link", "hard link", "character device", "block device", "pipe", "folder", "bomb"],
)
def test_only_a_plain_file_of_the_published_size_is_taken_from_an_archive(tmp_path, kind, content):
    with archive(("package/a", kind, content)) as tar, pytest.raises(DownloadError, match="is not a file of at most"):
        _extract(tar, "package/a", len(CONTENT["a"]), tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_member_lands_under_the_name_that_was_asked_for_wherever_others_want_to_lie(tmp_path):
    outside = [(name, tarfile.REGTYPE, b"x") for name in ("../escaped", "/tmp/escaped-from-archive", "package/../../x")]
    with archive(*outside, ("package/a", tarfile.REGTYPE, CONTENT["a"])) as tar:
        _extract(tar, "package/a", len(CONTENT["a"]), tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == CONTENT["a"]
