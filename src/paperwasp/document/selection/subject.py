"""A document as selections see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from paperwasp.base.records import dataclass
from paperwasp.document.ids import DocumentId
from paperwasp.document.types import DataType, DocumentType
from paperwasp.document.updates import Value


class Subject(Protocol):
    """A document as a matcher sees it. A matcher reads no more of it than the selection needs to decide.

    One object may stand for several documents in turn: between two calls of a matcher nothing of it is kept.
    """

    @property
    def id(self) -> DocumentId: ...

    def is_a(self, type_name: str) -> bool:
        """Whether the document is of this type or of one that inherits it."""
        ...

    def field(self, name: str) -> Value | None:
        """The typed value of a field, or of an imported one; None where there is none."""
        ...

    def data_type(self, name: str) -> DataType | None:
        """The type of a field. Asked only for values with others in them, which do not say what they are."""
        ...


@dataclass(frozen=True, slots=True)
class PlainSubject:
    """A document as a dict of typed values."""

    id: DocumentId
    fields: Mapping[str, Value]
    type: DocumentType | None = None
    """Where it is not known, a dict is a map."""

    def is_a(self, type_name: str) -> bool:
        return type_name == self.id.document_type or (self.type is not None and type_name in self.type.inherits)

    def field(self, name: str) -> Value | None:
        return self.fields.get(name)

    def data_type(self, name: str) -> DataType | None:
        return self.type.fields.get(name) if self.type is not None else None
