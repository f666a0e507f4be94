"""What readers give: operations, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import orjson

from paperwasp.base.records import dataclass
from paperwasp.document.ids import DocumentId

Kind = Literal["put", "update", "remove"]
KINDS: Final[tuple[Kind, ...]] = ("put", "update", "remove")


@dataclass(frozen=True, slots=True)
class SourceOperation:
    """One operation of a file, checked but for what only the schema can tell."""

    kind: Kind
    document_id: DocumentId
    fields: bytes | None
    """The JSON object of `fields` as it is to be sent; None for a remove."""
    condition: str | None
    create: bool
    place: str
    """Where it stands, for messages: `books.csv, line 7`."""

    @property
    def id(self) -> str:
        """The whole document id: `id:…`."""
        return self.document_id.text

    def to_line(self) -> bytes:
        """The operation in Vespa's feed format, in one line of JSON with its end: it can be fed again."""
        content: dict[str, object] = {self.kind: self.id}
        if self.condition is not None:
            content["condition"] = self.condition
        if self.create:
            content["create"] = True
        if self.fields is not None:
            # A line: what was written in several lines in its file is not copied as it stands there.
            content["fields"] = orjson.loads(self.fields) if b"\n" in self.fields else orjson.Fragment(self.fields)
        return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class BadInput:
    """A part of a file that is no operation. The message names file, place, what is wrong and what to do."""

    message: str
    is_end: bool = False
    """Whether the rest of the file cannot be read either."""


Item = SourceOperation | BadInput


class DecodedPut(NamedTuple):
    """A put without condition, whose values are those that its JSON would have."""

    document_id: DocumentId
    fields: Mapping[str, Any]
    """Without those that have no value."""
    size_bytes: int
    """About that of its JSON."""


@dataclass(frozen=True, slots=True)
class DecodedPuts:
    """Puts of rows that follow each other."""

    puts: Sequence[DecodedPut]
    document_types: frozenset[str]
