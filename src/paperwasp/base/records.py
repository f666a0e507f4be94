"""Helpers for records, most of which are a `msgspec.Struct`: `replace`, and fields that comparing leaves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

if TYPE_CHECKING:
    from dataclasses import replace as replace  # by which mypy checks the changes
else:
    from msgspec.structs import replace

__all__ = ["PartlyCompared", "replace"]


class PartlyCompared(Struct, frozen=True):
    """A record of which some fields, say where in a text it was read, do not matter to `==`, and are not shown."""

    UNCOMPARED: ClassVar[frozenset[str]] = frozenset()
    """The names of these fields."""

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = _compared(self.__class__)
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        return hash(_compared(self.__class__)(self))

    def __repr__(self) -> str:
        names = (name for name in self.__struct_fields__ if name not in self.UNCOMPARED)
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


@cache
def _compared(kind: type[PartlyCompared]) -> Callable[[object], Any]:
    """A function that gives of a record of this type the fields that matter."""
    names = [name for name in kind.__struct_fields__ if name not in kind.UNCOMPARED]
    return attrgetter(*names) if names else lambda _: None
