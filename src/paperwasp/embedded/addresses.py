"""Which document is meant: a whole id, or the last part of one where the rest is understood."""

from __future__ import annotations

from paperwasp.base.records import dataclass
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Place:
    """The document type and namespace of ids that do not say theirs."""

    schema: str
    namespace: str

    def id_of(self, text: object) -> DocumentId:
        """The id: `text` where that is a whole one, else the last part of it. Errors: InvalidInput."""
        shown = str(text)
        return DocumentId.parse(shown) if shown.startswith("id:") else DocumentId(self.namespace, self.schema, shown)


@dataclass(frozen=True, slots=True)
class NoPlace:
    """There are several document types, and nobody has said which: ids must be whole."""

    known: tuple[str, ...]

    def id_of(self, text: object) -> DocumentId:
        """Errors: InvalidInput, also for an id that is not whole."""
        shown = str(text)
        if shown.startswith("id:"):
            return DocumentId.parse(shown)
        names = ", ".join(self.known[:_MOST_NAMED])
        raise InvalidInput(f"'{shown}' is not a whole document id: name its schema, which is one of {names}")


def place_of(known: tuple[str, ...], schema: str | None, namespace: str | None) -> Place | NoPlace:
    """Where documents belong. The namespace is that of the schema where none is named. Errors: InvalidInput."""
    if schema is None:
        if len(known) != 1:
            return NoPlace(known)
        schema = known[0]
    if schema not in known:
        names = ", ".join(known[:_MOST_NAMED])
        raise InvalidInput(f"There is no schema '{schema}': the application has {names}")
    return Place(schema, schema if namespace is None else namespace)
