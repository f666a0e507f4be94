"""Operations on one document, as the content node applies them.

A condition is a document selection (`paperwasp.document.selection`) that the document must fulfil at the moment of
applying. `required_us` is a condition, too: the document must have been changed last at that time, in microseconds
since 1970, so that nothing has changed it since it was read; 0: at any time.

Vespa: https://docs.vespa.ai/en/writing/reads-and-writes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Protocol

from msgspec import Struct

from paperwasp.base.records import PartlyCompared
from paperwasp.document.ids import DocumentId
from paperwasp.document.types import DocumentType
from paperwasp.document.updates import FieldUpdate, Value


class Put(PartlyCompared, frozen=True):
    """Writes the whole document, replacing any earlier one.

    `create` without a condition: only where there is none. With a condition: also where there is none.
    """

    UNCOMPARED: ClassVar = frozenset({"json", "read_as"})

    id: DocumentId
    fields: Mapping[str, Value]
    condition: str | None = None
    create: bool = False
    json: bytes = b""
    """The fields as they are stored, where all of them are in JSON what they are here; empty: not made yet."""
    read_as: DocumentType | None = None
    """The type whose fields these are, each with a value of its type; None: that is to be checked."""


class Update(PartlyCompared, frozen=True):
    """Changes some fields, in order. With `create`, an absent document starts empty (and the condition is not checked);
    without, nothing happens."""

    UNCOMPARED: ClassVar = frozenset({"json", "read_as"})

    id: DocumentId
    updates: tuple[FieldUpdate, ...]
    create: bool = False
    condition: str | None = None
    required_us: int = 0
    json: bytes = b""
    """The updates as they are logged, where all of them assign what is in JSON what it is here; empty: not made yet."""
    read_as: DocumentType | None = None
    """The type whose fields are assigned, each a value of its type; None: that is to be checked."""


class Remove(Struct, frozen=True):
    """Removes a document; one that is not there is no error."""

    id: DocumentId
    condition: str | None = None
    required_us: int = 0


Operation = Put | Update | Remove


class Valued(Protocol):
    """The values of a document by field: a mapping, or a plain change."""

    def get(self, name: str, /) -> Value | None: ...


class Refusal(Enum):
    """Why an operation was not applied. None of these is a fault of the service: the document is not as demanded."""

    NOT_MET = "The condition did not match the document"
    NO_DOCUMENT = "The condition cannot be met: the document does not exist"
    EXISTS = "The document exists, and is to be created only where it does not"
    TOO_LARGE = "A value would be more than its field can hold"
    UNFIT = "The operation cannot be done on the document as it is"


class Outcome(Struct, frozen=True):
    """The outcome of applying an operation: whether there was a document before it, and why it was not applied."""

    existed: bool
    refusal: Refusal | None = None


__all__ = ["FieldUpdate", "Operation", "Outcome", "Put", "Refusal", "Remove", "Update", "Value", "Valued"]
