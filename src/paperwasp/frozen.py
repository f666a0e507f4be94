"""Immutable classes of which several objects are made for each request, or each document.

A frozen dataclass refuses at run time, too, to be changed, and its objects take twice as long to make for it: of a put
that is a tenth of the event loop's time. Of these classes the type checker alone refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(described: type[_Class]) -> type[_Class]:
    """Makes it a dataclass with slots and a hash, as `dataclass(frozen=True, slots=True)` does."""
    return dataclass(slots=True, unsafe_hash=True)(described)
