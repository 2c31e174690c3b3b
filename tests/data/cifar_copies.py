"""Tiny copies of CIFAR in its published forms."""

import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
from PIL import Image

from unspur.data.files.file_set import Published
from unspur.data.sets.cifar_files import Family

LABEL_NAMES = 10


def pictures(seed, count):
    """Images as rows (count, 3072) and their labels, classes taking turns; red, green and blue planes in this order."""
    rows = np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)
    labels = [number % LABEL_NAMES for number in range(count)]
    rows[:, 0] = labels  # the red of the first pixel tells the label
    return rows, labels


def binary_batch(rows, labels, coarse=None):
    """As cs.toronto.edu/~kriz/cifar.html describes the binary version: a label (CIFAR-100: coarse, then fine), 3072
    bytes of pixels, and so on, without a header."""
    columns = [np.array(labels, np.uint8)[:, None], rows]
    if coarse is not None:
        columns.insert(0, np.array(coarse, np.uint8)[:, None])
    return np.concatenate(columns, axis=1).tobytes()


def python_batch(rows, labels, key=b"labels", title=b"training batch 1 of 5"):
    """As Python 2 wrote data_batch_1: protocol 2, a dict of batch_label, labels, data and filenames, text as byte
    strings, and the array through numpy.core.multiarray._reconstruct."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    def whole(value):
        return b"K" + bytes([value]) if value < 256 else b"M" + value.to_bytes(2, "little")

    content = rows.tobytes()
    kind = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
        b"(K\x01" + whole(rows.shape[0]) + whole(rows.shape[1]) + b"\x86" + kind + b"K\x00tb\x89"
        b"T" + len(content).to_bytes(4, "little") + content + b"tb"
    )
    names = b"](" + b"".join(text(b"picture_s_%06d.png" % number) for number in range(len(labels))) + b"e"
    items = {
        b"batch_label": text(title),
        key: b"](" + b"".join(whole(label) for label in labels) + b"e",
        b"data": array,
        b"filenames": names,
    }
    return b"\x80\x02}(" + b"".join(text(name) + value for name, value in items.items()) + b"u."


def archive(folder, batches, *, also=()):
    """A tar.gz with a folder of batches, as the published archives are; ``also`` are names of further members."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in [(f"{folder}/{name}", data) for name, data in batches.items()] + [(n, b"evil") for n in also]:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def put(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def small(family: Family, contents) -> Family:
    """The family as if its publishers had published ``contents``, by file name."""

    def file(published: Published) -> Published:
        content = contents.get(published.name)
        if content is None:
            return published
        return replace(published, digest="md5:" + hashlib.md5(content).hexdigest(), size=len(content))

    def form(old):
        return replace(old, files=replace(old.files, files=tuple(file(published) for published in old.files.files)))

    return replace(family, forms=tuple(form(old) for old in family.forms))


def jpeg_file(path, count, test):
    """As the README beside cifar10_jpeg.npz describes it: the header that all JPEGs share, bodies end to end, offsets,
    labels, split and classes. Returns the images as Pillow decodes them."""
    jpegs = []
    for number in range(count):
        picture = np.full((32, 32, 3), (number * 20 % 256, 255 - number, 7 * number % 256), np.uint8)
        content = io.BytesIO()
        Image.fromarray(picture).save(content, "JPEG", quality=90)
        jpegs.append(content.getvalue())
    shared = 623
    assert len({jpeg[:shared] for jpeg in jpegs}) == 1
    bodies = [jpeg[shared:] for jpeg in jpegs]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        header=np.frombuffer(jpegs[0][:shared], np.uint8),
        payload=np.frombuffer(b"".join(bodies), np.uint8),
        offsets=np.cumsum([0, *map(len, bodies)]),
        labels=np.array([number % 10 for number in range(count)], np.uint8),
        split=np.array([0] * (count - test) + [1] * test, np.uint8),
        classes=np.array(["airplane", "automobile"]),
    )
    return np.stack([np.asarray(Image.open(io.BytesIO(jpeg))) for jpeg in jpegs]).transpose(0, 3, 1, 2)
