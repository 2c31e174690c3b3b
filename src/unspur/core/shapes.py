"""Check values that come from a file against the structure they should have, naming the field that is wrong."""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, is_typeddict

from unspur.errors import UnspurError

T = TypeVar("T")

_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}


def checked(value: Any, shape: type[T] | Any, where: str) -> T:
    """``value``, once it is known to be of ``shape``: TypedDicts, lists, mappings and plain JSON values, nested.

    Fields that ``shape`` does not name are left alone: a newer version may have written them. ``where`` begins the
    sentence, such as the file's name.

    >>> class Point(typing.TypedDict):
    ...     at: list[float]
    >>> checked({"at": [1, 2.5]}, Point, "p.json")
    {'at': [1, 2.5]}
    >>> checked({"at": [1, "2"]}, Point, "p.json")
    Traceback (most recent call last):
        ...
    unspur.errors.UnspurError: p.json: at[1] must be a number but is '2'; restore or delete the file.
    """
    _check(value, shape, where, "")
    return typing.cast(T, value)


def _check(value: Any, shape: Any, where: str, field: str) -> None:
    origin = get_origin(shape)
    if shape is Any:
        return
    if origin in (typing.Required, typing.NotRequired):
        _check(value, get_args(shape)[0], where, field)
    elif origin in (typing.Union, types.UnionType):
        _check_any(value, get_args(shape), where, field)
    elif origin is Literal:
        if value not in get_args(shape):
            _wrong(value, " or ".join(repr(choice) for choice in get_args(shape)), where, field)
    elif is_typeddict(shape):
        _check_fields(value, shape, where, field)
    elif origin in (dict, Mapping):
        _check_kind(value, dict, where, field)
        for key, item in value.items():
            _check(item, get_args(shape)[1], where, f"{field}.{key}" if field else str(key))
    elif origin in (list, tuple):
        _check_kind(value, list, where, field)
        for number, item in enumerate(value):
            _check(item, get_args(shape)[0], where, f"{field}[{number}]")
    else:
        _check_kind(value, shape, where, field)


def _check_any(value: Any, shapes: tuple[Any, ...], where: str, field: str) -> None:
    """``value`` must have one of ``shapes``; for one shape or null, the error names that shape."""
    rest = [shape for shape in shapes if shape is not type(None)]
    if value is None and len(rest) < len(shapes):
        return
    if len(rest) == 1:
        _check(value, rest[0], where, field)
        return
    for shape in rest:
        try:
            _check(value, shape, where, field)
        except UnspurError:
            continue
        return
    _wrong(value, " or ".join(_name(shape) for shape in rest), where, field)


def _check_fields(value: Any, shape: Any, where: str, field: str) -> None:
    _check_kind(value, dict, where, field)
    for name, hint in _hints(shape).items():
        inner = f"{field}.{name}" if field else name
        if name in value:
            _check(value[name], hint, where, inner)
        elif name in shape.__required_keys__ and get_origin(hint) is not typing.NotRequired:  # it only sees text
            raise UnspurError(f"{where}: {inner} is missing; restore or delete the file.")


@functools.cache
def _hints(shape: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(shape, include_extras=True)


def _check_kind(value: Any, kind: Any, where: str, field: str) -> None:
    if kind is float:
        right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    elif kind is int:
        right = isinstance(value, int) and not isinstance(value, bool)
    else:
        right = isinstance(value, kind)
    if not right:
        _wrong(value, _name(kind), where, field)


def _name(shape: Any) -> str:
    return _NAMES.get(get_origin(shape) or shape, "an object" if is_typeddict(shape) else str(shape))


def shortened(value: Any) -> str:
    """``value`` as Python writes it, cut to a length that fits into a sentence."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."


def _wrong(value: Any, wanted: str, where: str, field: str) -> NoReturn:
    found = shortened(value)
    raise UnspurError(f"{where}: {field or 'the whole'} must be {wanted} but is {found}; restore or delete the file.")
