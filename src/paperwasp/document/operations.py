"""Operations on one document, as the content node applies them.

Vespa: https://docs.vespa.ai/en/writing/reads-and-writes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paperwasp.document.ids import DocumentId

Value = Any
"""A typed value: str, int, float, bool, or a list of those. What a field's type says, never None."""


@dataclass(frozen=True, slots=True)
class Put:
    """Writes the whole document, replacing any earlier one."""

    id: DocumentId
    fields: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Assign:
    """Replaces a field's value; None clears the field."""

    value: Value | None


FieldUpdate = Assign
"""What can be done to one field. The documents issue adds more kinds."""


@dataclass(frozen=True, slots=True)
class Update:
    """Changes some fields. With `create`, an absent document starts empty; without, nothing happens."""

    id: DocumentId
    fields: Mapping[str, FieldUpdate]
    create: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes a document; one that is not there is no error."""

    id: DocumentId


Operation = Put | Update | Remove


@dataclass(frozen=True, slots=True)
class Outcome:
    """What applying an operation found: whether there was a document before it."""

    existed: bool
