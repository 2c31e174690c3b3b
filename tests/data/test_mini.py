import hashlib
import time
from importlib.resources import files

import numpy as np
import pytest
import torch

from unspur.data.mini import codec
from unspur.data.mini.digits import load_mini
from unspur.data.mini.rans import LANES, WHOLE, Decoder, Encoder, Model
from unspur.errors import UnspurError


def packed() -> bytes:
    return (files("unspur.data") / "mini" / "digits.bin").read_bytes()


def test_the_embedded_digits_are_exactly_these():
    train, test = load_mini()
    assert train.x.shape == (10_000, 1, 28, 28) and test.x.shape == (2_000, 1, 28, 28)
    assert train.x.dtype == torch.uint8 and train.y.dtype == torch.int64
    assert (
        hashlib.sha256(train.x.numpy().tobytes()).hexdigest()
        == "ece6f47cf1f8084a26a375d4f5a435257d89f0d73b2d4c7f575674b9ec0b6243"
    )
    assert (
        hashlib.sha256(test.x.numpy().tobytes()).hexdigest()
        == "698d5be54989608631574fdeeac54bf05ab28a083516ce5116b2499c454b14c5"
    )


def test_every_class_has_equally_many():
    train, test = load_mini()
    assert train.y.bincount().tolist() == [1000] * 10
    assert test.y.bincount().tolist() == [200] * 10


def test_labels_belong_to_their_images():
    # Class means of the training digits classify 4 test digits in 5; labels in another order would give 1 in 10.
    train, test = load_mini()
    means = torch.stack([train.x[train.y == digit].float().mean(0).flatten() for digit in range(10)])
    nearest = torch.cdist(test.x.float().flatten(1), means).argmin(1)
    assert (nearest == test.y).float().mean() > 0.75


def test_training_and_test_digits_do_not_overlap():
    train, test = load_mini()
    seen = {image.numpy().tobytes() for image in train.x}
    assert not any(image.numpy().tobytes() in seen for image in test.x)


def test_what_a_caller_does_to_the_digits_does_not_change_them_for_the_next():
    load_mini()[1].x.zero_()
    assert load_mini()[1].x.any()


def test_the_file_is_small_and_quick_to_unpack():
    content = packed()
    assert len(content) < 1_250_000
    began = time.process_time()
    codec.unpack(content)
    assert time.process_time() - began < 2  # 0.4 s on an idle core; the rest is for busy ones


@pytest.mark.parametrize("place", [10, 5_000, 30_000, 600_000])
def test_a_damaged_file_says_to_install_again(place):
    content = bytearray(packed())
    content[place] ^= 255
    with pytest.raises(UnspurError, match=r"The embedded digits are damaged.*; install unspur again\."):
        codec.unpack(bytes(content))


def test_a_truncated_file_says_to_install_again():
    with pytest.raises(UnspurError, match="damaged"):
        codec.unpack(packed()[:-1000])


def test_symbols_come_back_from_packed_words_in_the_order_they_went_in():
    random = np.random.default_rng(0)
    model = Model(np.array([0, 1], np.uint8), np.array([[WHOLE - 2, 1, 1], [1000, 2000, WHOLE - 3000]]))
    steps = [(random.integers(2, size=size), random.integers(3, size=size)) for size in (1, 3 * LANES + 7, 0, 50)]
    encoder = Encoder({"m": model})
    for context, symbol in steps:
        encoder.code("m", context, symbol)
    decoder = Decoder({"m": model}, encoder.finish())
    for context, symbol in steps:
        assert np.array_equal(decoder.code("m", context, np.zeros_like(symbol)), symbol)
    decoder.finish()


def test_likely_symbols_cost_next_to_nothing():
    # 100,000 symbols of probability 4094/4096 take log2(4096/4094) = 0.0007 bits each: 9 bytes beside the lanes' states
    model = Model(np.zeros(1, np.uint8), np.array([[WHOLE - 2, 1, 1]]))
    encoder = Encoder({"m": model})
    encoder.code("m", np.zeros(100_000, np.int64), np.zeros(100_000, np.int64))
    assert len(encoder.finish()) - 4 * LANES < 20


def test_the_licence_lies_beside_the_digits():
    text = (files("unspur.data") / "mini" / "LICENSE").read_text()
    assert "Attribution-ShareAlike 3.0" in text and "LeCun" in text
