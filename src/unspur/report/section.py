"""A section: one part of a page, which says whether there is anything to show and builds what its template shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")


def always(context: object) -> bool:
    return True


@dataclass(frozen=True)
class Section(Generic[C]):
    """``view`` builds from a context the frozen structure that sections/NAME.html.j2 shows as ``view``."""

    name: str
    view: Callable[[C], object]
    applies: Callable[[C], bool] = always
    facts: tuple[str, ...] = ()  # of a result, which need not be written out where this section shows them
