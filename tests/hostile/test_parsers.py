"""Whatever is put into a parser, it answers with a value or with a sentence."""

import contextlib
import json
import pickle
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unspur.core.files import parse_json
from unspur.core.options import from_json, parse, to_json, with_option
from unspur.core.shapes import checked
from unspur.data.files.pickles import PickledArray, read_pickle
from unspur.data.images.table import cells_of, read_table
from unspur.data.mini import codec
from unspur.errors import UnspurError
from unspur.evaluation import scores
from unspur.methods.catalog import METHODS
from unspur.runs.analyze import StoredAnalysis
from unspur.runs.config import Config, configure
from unspur.runs.folder import DataNames
from unspur.runs.result import Result

QUICK = settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)

numbers = st.none() | st.booleans() | st.integers() | st.floats()
values = st.recursive(
    numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def answered(parser, *given):
    """The parser's value, or None for a sentence; anything else it raises is a failure."""
    try:
        return parser(*given)
    except UnspurError as error:
        said = str(error)
        assert said and "Traceback" not in said
        return None


METHOD = st.sampled_from(sorted(METHODS))
KEYS = st.sampled_from(
    ["erm.lr", "erm", "erm.schedule", "erm.schedule.gamma", "data.conflict", "arch.width", "precision"]
)


@QUICK
@given(METHOD, st.lists(st.tuples(KEYS | st.text(max_size=12), st.text(max_size=12)), max_size=3))
def test_any_settings_make_a_configuration_or_a_sentence(method, pairs):
    made = answered(configure, method, "parity", None, 0, [f"{key}={text}" for key, text in pairs])
    assert made is None or Config.from_json(json.loads(json.dumps(made.to_json()))) == made


@QUICK
@given(st.sampled_from([int, float, bool, str, int | None, tuple[int, ...], float | None]), st.text(max_size=20))
def test_any_text_is_a_value_of_its_type_or_a_value_error(hint, text):
    with contextlib.suppress(ValueError):
        assert value_of(parse(text, hint), hint)


def value_of(value, hint):
    kinds = hint.__args__ if hasattr(hint, "__args__") else (hint,)
    return isinstance(value, tuple) if ... in kinds else isinstance(value, kinds)


@QUICK
@given(METHOD, st.dictionaries(st.sampled_from(["erm", "training", "lr", "epochs", "lam", "name"]), values, max_size=3))
def test_any_stored_method_is_read_or_refused(method, changes):
    stored = to_json(METHODS[method]()) | changes
    read = answered(from_json, stored, METHODS[method])
    assert read is None or isinstance(read, METHODS[method])


@QUICK
@given(values)
def test_any_stored_configuration_is_read_or_refused(value):
    answered(Config.from_json, value)
    answered(Config.from_json, {"method": value, "data": {"name": "parity"}, "arch": {"name": "fcn"}, "seed": 0})
    answered(Config.from_json, {"method": {"name": "erm"}, "data": {"name": "parity"}, "arch": value, "seed": 0})
    answered(Config.from_json, {"method": {"name": "erm"}, "data": value, "arch": {"name": "fcn"}, "seed": value})


@QUICK
@given(values, st.sampled_from([Result, StoredAnalysis, DataNames, dict[str, scores.TestScores]]))
def test_any_stored_structure_is_checked_or_refused_with_its_file(value, shape):
    with contextlib.suppress(UnspurError):
        checked(value, shape, "file.json")
    if not isinstance(value, dict):
        with pytest.raises(UnspurError, match=r"^file\.json: the whole must be an object"):
            checked(value, shape, "file.json")


@QUICK
@given(st.text(max_size=40))
def test_any_text_is_json_or_refused_with_its_file(text):
    answered(parse_json, text, "file.json")


cells = st.text(st.characters(codec="utf-8"), max_size=6)


@QUICK
@given(
    st.binary(max_size=60)
    | st.lists(st.lists(cells, min_size=1, max_size=4), max_size=5).map(
        lambda rows: "\n".join(",".join(row) for row in rows).encode()
    ),
    st.sampled_from([".csv", ".txt"]),
)
def test_any_bytes_are_a_table_or_a_sentence_that_names_the_file(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    table = answered(read_table, path)
    assert table is None or {len(column) for column in table.columns.values()} == {len(table.rows)}
    answered(lambda: list(cells_of(path, "filename", "--column")))


@QUICK
@given(st.binary(max_size=80))
def test_no_bytes_make_the_pickle_reader_run_anything(content):
    answered(read_pickle, content, Path("batch"))


@QUICK
@given(st.integers(0, 200), st.integers(0, 255))
def test_a_pickle_with_any_byte_changed_is_read_as_bytes_or_refused(place, byte):
    content = bytearray(pickle.dumps({"data": np.arange(12, dtype=np.uint8).reshape(3, 4)}, protocol=2))
    content[place % len(content)] = byte
    read = answered(read_pickle, bytes(content), Path("batch"))
    for value in read.values() if isinstance(read, dict) else ():
        assert not isinstance(value, PickledArray) or value.array.dtype == np.uint8


@QUICK
@given(st.text(max_size=10), st.text(max_size=10))
def test_any_key_and_text_change_an_option_or_are_refused(key, text):
    answered(with_option, METHODS["masktune"](), key, text)


@pytest.mark.hostile
@settings(QUICK, max_examples=25)
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_the_embedded_digits_with_any_byte_changed_are_refused_or_differ(place, flip):
    content = bytearray(packed())
    content[place % len(content)] ^= flip
    answered(codec.unpack, bytes(content))


@settings(QUICK, max_examples=30)
@given(st.binary(max_size=40))
def test_no_bytes_are_the_embedded_digits(content):
    assert answered(codec.unpack, content) is None


def packed() -> bytes:
    return (files("unspur.data") / "mini" / "digits.bin").read_bytes()
