import hashlib

import pytest

from unspur.data.files.file_set import Published

CONTENT = b"abc"
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


@pytest.mark.parametrize(
    ("file", "content", "trouble"),
    [
        (Published("x", "", 3), b"xyz", None),  # without a digest only the size counts
        (Published("x", "", 3), b"ab", "is truncated (2 of 3 bytes)"),
        (Published("x", "", 3), b"abcd", "is not the published file (more than 3 bytes)"),
        (Published("x", MD5, 0), b"abc", None),  # without a size only the digest counts
        (Published("x", MD5, 0), b"abcd", "is not the published file (md5 "),
        (Published("x", MD5, 0), b"", "is not the published file (md5 "),
    ],
)
def test_what_was_not_published_is_not_checked(tmp_path, file, content, trouble):
    path = tmp_path / "x"
    path.write_bytes(content)
    found = file.trouble_with(path)
    assert found == trouble if trouble is None else found is not None and found.startswith(trouble)


def test_a_file_of_unknown_size_is_read_whole(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 1000)
    assert Published("x", "", 0).read(tmp_path / "x") == b"abc" * 1000
