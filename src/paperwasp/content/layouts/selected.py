"""Stored documents as selections see them: conditions when operations are applied, and visits.

A field is decoded when a selection asks for it, and only that field. What is changed in place is read from its column,
imported fields from theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from paperwasp import limits
from paperwasp.content.layouts.codec import DocumentCodec, Row
from paperwasp.content.layouts.layout import TypeLayout
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Value
from paperwasp.document.selection import Matcher, matcher_of, parse_selection
from paperwasp.document.types import BOOL, DataType
from paperwasp.storage.attributes import looks_unset
from paperwasp.storage.documents.gid_map import NO_LID

_MATCHERS_KEPT: Final = 1024
_US: Final = 1_000_000


def matcher(text: str) -> Matcher:
    """The matcher that evaluates a selection, from a cache. Errors: LanguageError, TooLarge."""
    return _kept_matcher(text) if len(text) <= limits.SELECTION_KEPT_CHARACTERS else _last_matcher(text)


@lru_cache(_MATCHERS_KEPT)
def _kept_matcher(text: str) -> Matcher:
    return matcher_of(parse_selection(text))


@lru_cache(1)
def _last_matcher(text: str) -> Matcher:
    """Caches a long selection: a condition is evaluated when accepted and when applied, a visit's for every chunk."""
    return matcher_of(parse_selection(text))


def oldest_tombstone_us(now_us: int) -> int:
    """Removals from before that time are forgotten, pruned or not."""
    return now_us - limits.TOMBSTONE_SECONDS * _US


class Selected:
    """One document; a `paperwasp.document.selection.Subject`. `lid` NO_LID: no column
    knows the document, only its JSON does."""

    __slots__ = ("_codec", "_columns", "_id", "_json", "_kind", "_lid", "_load", "_text")

    def __init__(
        self,
        id_text: str,
        lid: int,
        load: Callable[[], bytes],
        kind: TypeLayout,
        codec: DocumentCodec,
        columns: Mapping[tuple[str, str], Row],
    ) -> None:
        self._text = id_text
        self._lid = lid
        self._load = load
        self._kind = kind
        self._codec = codec
        self._columns = columns
        self._id: DocumentId | None = None
        self._json: dict[str, Any] | None = None

    @property
    def id(self) -> DocumentId:
        if self._id is None:
            self._id = DocumentId.parse(self._text)
        return self._id

    def is_a(self, type_name: str) -> bool:
        return type_name == self._kind.name or type_name in self._kind.inherits

    def data_type(self, name: str) -> DataType | None:
        return self._kind.types.get(name)

    def field(self, name: str) -> Value | None:
        """The typed value; None where it is unset, and for a field that the type does not have."""
        kind = self._kind
        if self._lid != NO_LID and (name in kind.in_place or name not in kind.fields):
            column = self._columns.get((kind.name, name))
            return None if column is None else self._of_column(name, column.get(self._lid))
        if self._json is None:
            self._json = orjson.loads(self._load())
        value = self._codec.read(name, self._json.get(name))
        return self._of_column(name, value) if name in kind.in_place else value

    def _of_column(self, name: str, value: Value | None) -> Value | None:
        """A value as its column has it: what that keeps as none is none, and a bool is never unset.

        Vespa: attributefieldvaluenode.cpp, document_field_retriever.cpp
        """
        data_type = self._kind.types.get(name)
        if value is None:
            return False if data_type == BOOL else None
        return None if data_type is not None and looks_unset(data_type, value) else value
