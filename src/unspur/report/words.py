"""Numbers and lists as a person would write them."""

from __future__ import annotations

from collections.abc import Sequence

from unspur.report.scores import Share


def percent(value: float) -> str:
    r"""A proportion in per cent; what is not quite all or nothing does not read as if it were.

    >>> print(*(percent(v).replace("\xa0", "") for v in (0.985, 1.0, 0.9999, 0.0, 0.0001)))
    98.5% 100% >99.9% 0% <0.1%
    """
    extremes = {"100.0": "100" if value == 1 else ">99.9", "0.0": "0" if value == 0 else "<0.1"}
    text = f"{100 * value:.1f}"
    text = extremes.get(text, text)
    return f"{text}\N{NO-BREAK SPACE}%"


def interval(share: Share) -> str:
    """The 95 % interval in per cent, as short as it can be read.

    >>> interval(Share(0.985, 0.9823, 0.987, 10000))
    '98.2 to 98.7'
    """
    return "" if share.low is None or share.high is None else f"{100 * share.low:.1f} to {100 * share.high:.1f}"


def listed(words: Sequence[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
