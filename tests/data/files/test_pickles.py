import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from data.cifar_copies import python_batch
from unspur.data.files.pickles import PickledArray, read_pickle
from unspur.errors import UnspurError

HERE = Path("data_batch_1")


class Calls:
    """Pickles as a call of ``function`` with ``arguments``."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def test_a_batch_is_read_as_numpy_would_read_it():
    content = python_batch(np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8), [3, 9])
    ours = read_pickle(content, HERE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy has moved what old pickles name
        theirs = pickle.loads(content, encoding="bytes")
    assert ours.keys() == theirs.keys() and ours[b"labels"] == theirs[b"labels"] == [3, 9]
    assert np.array_equal(ours[b"data"].array, theirs[b"data"])


def test_arrays_of_todays_python_are_read_too():
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    for protocol in (2, 4):
        read = read_pickle(pickle.dumps({b"data": array}, protocol), HERE)
        assert isinstance(read[b"data"], PickledArray) and np.array_equal(read[b"data"].array, array)


@pytest.mark.parametrize("function", [eval, open, getattr, __import__, np.load, Path.unlink])
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_malicious_pickle_is_refused_and_nothing_is_run(function, protocol, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("still here")
    content = pickle.dumps({b"data": Calls(function, victim), b"labels": []}, protocol)
    with pytest.raises(UnspurError, match=r"data_batch_1 asks for \S+, which no array of images needs.*malicious"):
        read_pickle(content, HERE)
    assert victim.read_text() == "still here"


def test_os_system_is_refused(tmp_path):
    proof = tmp_path / "proof"
    content = b"cos\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR."
    with pytest.raises(UnspurError, match=r"asks for os\.system"):
        read_pickle(content, HERE)
    assert not proof.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickle.dumps({b"data": np.zeros(3, dtype=object)}),  # an array of anything
        pickle.dumps({b"data": np.zeros(3)}),  # of something else than bytes
        python_batch(np.zeros((2, 3072), np.uint8), [0, 1])[:-2000],  # cut off
        b"\x80\x02Pperson\n.",  # a reference to something outside
    ],
)
def test_a_damaged_pickle_is_one_sentence(content):
    with pytest.raises(UnspurError, match=r"data_batch_1 is damaged \(.+\); get it again\.|asks for"):
        read_pickle(content, HERE)


def test_an_array_must_have_the_size_that_it_claims():
    content = python_batch(np.zeros((2, 3072), np.uint8), [0, 1]).replace(b"K\x02M\x00\x0c\x86", b"K\x7fM\x00\x0c\x86")
    with pytest.raises(UnspurError, match="whose shape does not fit its content"):
        read_pickle(content, HERE)
