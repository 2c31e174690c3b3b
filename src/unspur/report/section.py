"""A section: one part of a page, which says whether there is anything to show and builds what its template shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")


def always(context: object) -> bool:
    return True


def itself(context: object) -> object:
    return context


@dataclass(frozen=True)
class Section(Generic[C]):
    """sections/NAME.html.j2 shows ``context``, and as ``view`` what has to be made of it; by default that is itself."""

    name: str
    view: Callable[[C], object] = itself
    applies: Callable[[C], bool] = always
    facts: tuple[str, ...] = ()  # of a result, which need not be written out where this section shows them
