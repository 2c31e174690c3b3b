"""How all printed tables look: the console they go to, and numbers as text."""

from __future__ import annotations

import io
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they reverse what follows


def plain(text: str, keep: str = "\n\t") -> str:
    """``text`` with control characters spelt out: names of files and classes must not steer the terminal.

    >>> plain("a\\x1b[31mred"), plain("two\\nlines", keep=""), plain("caf\u00e9")
    ('a\\\\x1b[31mred', 'two\\\\nlines', 'caf\u00e9')
    """
    return "".join(letter if letter in keep or not _steers(letter) else _spelt(letter) for letter in text)


def _steers(letter: str) -> bool:
    return letter in TURNING or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


class TerminalBytes(io.BytesIO):
    """Where rows are written that a person looks at: names in them are printed as they are spelt."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def write(self, data: ReadableBuffer, /) -> int:
        self._terminal.write(plain(bytes(data).decode("utf-8", "replace")))
        return len(bytes(data))

    def flush(self) -> None:
        self._terminal.flush()


class _Plain(Console):
    """A console that prints names as they are spelt, whatever is in them."""

    def render_str(self, text: str, **options: Any) -> Text:  # all text, also that of tables, comes through here
        return super().render_str(plain(text), **options)


def console() -> Console:
    # Piped output is as wide as tables with many columns need.
    return _Plain() if sys.stdout.isatty() else _Plain(width=160)


def percent(share: float | None) -> str:
    """A share as a percentage; what is unknown as a dash.

    >>> percent(0.98765), percent(None)
    ('98.77 %', '-')
    """
    return "-" if share is None else f"{100 * share:.2f} %"


def with_deviation(value: float | None, deviation: float | None, digits: int = 2) -> str:
    """A mean and the deviation over seeds; what is unknown as a dash.

    >>> with_deviation(96.447, 0.289), with_deviation(96.447, None), with_deviation(None, None)
    ('96.45 ± 0.29', '96.45', '-')
    """
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if deviation is None else f"{value:.{digits}f} ± {deviation:.{digits}f}"
