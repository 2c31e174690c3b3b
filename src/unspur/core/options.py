"""Frozen dataclasses as configuration: their fields from text, to and from JSON, and described to a person."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from unspur.core.shapes import checked, shortened
from unspur.errors import UnspurError, unknown

T = TypeVar("T")
LARGEST = 2**63 - 1  # whole numbers beyond it fit into no tensor, and infinity into no JSON


class Option(NamedTuple):
    """One setting: its dotted key, its default and its comment in the source."""

    key: str
    default: Any
    comment: str


def make(cls: type[T], kind: str, values: Mapping[str, Any]) -> T:
    """``cls(**values)``, with a helpful error for a name that is not a field."""
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in values:
        if name not in names:
            raise unknown(f"option of {kind}", name, names)
    return cls(**values)


def renamed(old: str, default: T) -> T:
    """A field that was called ``old`` before: settings and stored configurations by that name still work."""
    made: T = dataclasses.field(default=default, metadata={"was": old})
    return made


def added(default: T) -> T:
    """A field that was added later: JSON leaves it out at its default, so that older runs keep their keys.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Walk:
    ...     name: typing.ClassVar[str] = "walk"
    ...     pace: int = 1
    ...     dog: bool = added(False)
    >>> to_json(Walk()), to_json(Walk(dog=True))
    ({'name': 'walk', 'pace': 1}, {'name': 'walk', 'pace': 1, 'dog': True})
    """
    made: T = dataclasses.field(default=default, metadata={"added": True})
    return made


def current_key(spec: Any, key: str) -> str:
    """``key`` with a field's present name where it begins with an old one.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Walk:
    ...     pace: int = renamed("speed", 1)
    >>> current_key(Walk(), "speed"), current_key(Walk(), "speed.max"), current_key(Walk(), "pace")
    ('pace', 'pace.max', 'pace')
    """
    head, dot, rest = key.partition(".")
    return _present(type(spec)).get(head, head) + dot + rest


def _present(cls: type) -> dict[str, str]:
    """The present name of each field that was renamed, by its old name."""
    return {field.metadata["was"]: field.name for field in dataclasses.fields(cls) if "was" in field.metadata}


def options(spec: Any, prefix: str = "") -> Iterator[Option]:
    """Every setting of ``spec``; nested settings follow their parent."""
    comments = _comments(type(spec))  # type: ignore[arg-type]  # mypy does not know that classes can be hashed
    for field in dataclasses.fields(spec):
        value, key = getattr(spec, field.name), prefix + field.name
        default = _spec_name(value) if dataclasses.is_dataclass(value) else value
        yield Option(key, default, comments.get(field.name, ""))
        if dataclasses.is_dataclass(value):
            yield from options(value, key + ".")


def with_option(spec: T, key: str, text: str, full_key: str | None = None, others: Iterable[str] = ()) -> T:
    """``spec`` with the field at dotted ``key`` set from ``text``; ``others`` are further keys to suggest in an error.

    >>> from unspur.train.recipe import SGD
    >>> with_option(with_option(SGD(), "schedule", "step"), "schedule.every", "3").schedule
    StepDecay(every=3, gamma=0.5)
    """
    full_key = full_key or key
    head, _, rest = key.partition(".")
    hints = _hints(type(spec))
    if head not in hints or (rest and not dataclasses.is_dataclass(getattr(spec, head))):
        prefix = full_key.removesuffix(key)
        raise unknown("key", full_key, [*(prefix + option.key for option in options(spec)), *others])
    try:
        value = with_option(getattr(spec, head), rest, text, full_key) if rest else parse(text, hints[head])
    except ValueError as error:
        raise UnspurError(f"{full_key} must be {error} but got '{text}'.") from None
    changed: T = dataclasses.replace(spec, **{head: value})  # type: ignore[type-var]
    return changed


def parse(text: str, hint: Any) -> Any:
    """``text`` as a value of type ``hint``; a ValueError says what would have been allowed.

    >>> parse("0.1", float | None), parse("none", float | None), parse("1,2", tuple[int, ...])
    (0.1, None, (1, 2))
    >>> parse("inf", float)
    Traceback (most recent call last):
    ValueError: a number
    """
    choices = _choices(hint)
    choices.sort(key=lambda choice: choice is not type(None))  # try None first: "none" would also do as text
    for choice in choices:
        try:
            return _parse_one(text, choice)
        except (ValueError, TypeError):
            continue
    choices.sort(key=lambda choice: choice is type(None))
    raise ValueError(" or ".join(dict.fromkeys(_wanted(choice) for choice in choices)))


def require_choices(spec: Any, prefix: str = "") -> None:
    """Raise an error for a field whose value its Literal does not name."""
    for name, hint in _hints(type(spec)).items():
        value = getattr(spec, name)
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise UnspurError(f"{prefix}{name} must be {_wanted(hint)} but got {value!r}.")


def require_finite(spec: Any, prefix: str = "") -> None:
    """Raise an error for a field that is, or has among its values, NaN or infinity.

    Bounds alone let some of these through: the lesser of 1 and NaN is 1.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Walk:
    ...     paces: tuple[float, ...] = (1.0, 2.0)
    >>> require_finite(Walk())
    >>> require_finite(Walk(paces=(1.0, math.nan)))
    Traceback (most recent call last):
    unspur.errors.UnspurError: paces must be finite but got (1.0, nan).
    """
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise UnspurError(f"{prefix}{field.name} must be finite but got {value}.")


def to_json(spec: Any) -> dict[str, Any]:
    """The spec's name and fields as plain JSON values, without an ``added`` field that has its default."""
    hints = _hints(type(spec))
    plain = {"name": spec.name}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if "added" not in field.metadata or value != field.default:
            plain[field.name] = _plain(value, hints[field.name])
    return plain


def from_json(value: Mapping[str, Any], hint: Any) -> Any:
    """The spec that ``to_json`` described, of one of the classes in ``hint``."""
    specs: list[Any] = [cls for cls in get_args(hint) or (hint,) if dataclasses.is_dataclass(cls)]
    cls = next((cls for cls in specs if cls.name == value.get("name")), None)
    if cls is None:
        raise UnspurError(f"A configuration names '{value.get('name')}', which this version does not have.")
    hints, present = _hints(cls), _present(cls)
    fields = {}
    for stored, item in value.items():
        if stored == "name":
            continue
        key = present.get(stored, stored)
        if key not in hints:
            raise unknown(f"option of {cls.name}", key, hints)
        fields[key] = _from_json(item, hints[key], f"{key} of {cls.name}")
    return cls(**fields)


def _from_json(item: Any, hint: Any, key: str) -> Any:
    """A field's value from JSON; a value that the field cannot hold is an error here, rather than much later."""
    if any(dataclasses.is_dataclass(choice) for choice in get_args(hint) or (hint,)):
        if isinstance(item, dict):
            return from_json(item, hint)
        if item is None and type(None) in get_args(hint):
            return None
    elif _fits(item, hint):
        return tuple(item) if isinstance(item, list) else item
    raise UnspurError(f"{key} must be {' or '.join(map(_wanted, _choices(hint)))} but got {shortened(item)}.")


def _fits(item: Any, hint: Any) -> bool:
    try:
        checked(item, hint, "")
    except UnspurError:
        return False
    return True


def _choices(hint: Any) -> list[Any]:
    return [hint] if get_origin(hint) not in (typing.Union, types.UnionType) else list(get_args(hint))


def _plain(value: Any, hint: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(value)
    if type(value) is int and float in (hint, *get_args(hint)):
        return float(value)  # SGD(lr=1) equals SGD(lr=1.0), so both must have the same text
    return list(value) if isinstance(value, tuple) else value


def _parse_one(text: str, hint: Any) -> Any:
    if hint is type(None):
        if text.lower() != "none":
            raise ValueError
        return None
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    if get_origin(hint) is Literal:
        for value in get_args(hint):
            if text == str(value):
                return value
        raise ValueError
    if get_origin(hint) is tuple:
        return tuple(_parse_one(part.strip(), get_args(hint)[0]) for part in text.split(",") if part.strip())
    if dataclasses.is_dataclass(hint):
        return _make_named(hint, text)
    value = hint(text)
    if (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) > LARGEST):
        raise ValueError
    return value


def _make_named(cls: Any, text: str) -> Any:
    if text != cls.name:
        raise ValueError
    return cls()


def _spec_name(cls: Any) -> str:
    return str(cls.name)


def _wanted(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "none"}
    if get_origin(hint) is Literal:
        *others, last = map(str, get_args(hint))
        return f"{', '.join(others)} or {last}" if others else last
    if get_origin(hint) is tuple:
        return f"values like {'1,2' if get_args(hint)[0] is int else 'a,b'}"
    if dataclasses.is_dataclass(hint):
        return _spec_name(hint)
    return names.get(hint, str(hint))


def _hints(cls: Any) -> Mapping[str, Any]:  # Any, as mypy does not know that classes can be hashed
    return _evaluated(cls)


@functools.cache
def _evaluated(cls: Any) -> Mapping[str, Any]:
    """The fields' types. They are written as text, and evaluating it is most of the work of reading a configuration."""
    fields = [field.name for field in dataclasses.fields(cls)]
    hints = typing.get_type_hints(cls)
    return {name: hints[name] for name in fields}


@functools.cache
def _comments(cls: type) -> Mapping[str, str]:
    """The comment at the end of each field's line, inherited fields included; finding them takes milliseconds."""
    found: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        if dataclasses.is_dataclass(ancestor):
            lines = re.finditer(r"^    (\w+): [^#\n]*?  # (.+)$", inspect.getsource(ancestor), re.MULTILINE)
            found |= {line[1]: line[2] for line in lines}
    return found
