"""The refusal of texts that are to be tokenized and are likely bytes of something else: most could not be decoded.

Vespa: LinguisticsAnnotator.java (`isLikelyBinaryData`), with the defaults of ilscripts.def
Differs: reindexing tokenizes the texts of documents that are there already, where Vespa leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Value
from paperwasp.document.types import is_uri
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import InvalidInput
from paperwasp.schema.model import Schema
from paperwasp.schema.pending import is_indexed_now

_REPLACEMENT: Final = "\ufffd"
_SHARE: Final = 0.25
"""The part of a text that may be replacement characters, however many these are."""
_TOKENIZED: Final = frozenset({None, "text", "cased", "uncased"})


def tokenized_fields(schema: Schema) -> frozenset[str]:
    """Return the indexed fields whose texts are tokenized."""
    indexed = [field for field in schema.fields.values() if is_indexed_now(field) and not is_uri(field.type)]
    return frozenset(field.name for field in indexed if field.match in _TOKENIZED)


def check_put(id: DocumentId, tokenized: Iterable[str], values: Mapping[str, Value]) -> None:
    """Check the texts of a document. Errors: InvalidInput for one with too many replacement characters."""
    for name in tokenized:
        value = values.get(name)
        if value is not None:
            _check(id, value)


def check_updates(id: DocumentId, tokenized: frozenset[str], updates: Iterable[FieldUpdate]) -> None:
    """Check the texts that updates assign. Errors: as `check_put`."""
    for update in updates:
        if update.field in tokenized and isinstance(update.action, Assign) and update.action.value is not None:
            _check(id, update.action.value)


def _check(id: DocumentId, value: Value) -> None:
    for text in _texts(value):
        if len(text) <= limits.REPLACEMENT_CHARACTERS:
            continue
        count = text.count(_REPLACEMENT)
        if count > limits.REPLACEMENT_CHARACTERS and count > len(text) * _SHARE:
            raise InvalidInput(
                f"Invalid document '{id.text}': some text of length {len(text)} is classified as binary data as it"
                f" contains {count} Unicode replacement characters. (max-replacement-character-ratio={_SHARE:.0%},"
                f" max-replacement-characters={limits.REPLACEMENT_CHARACTERS})"
            )


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value:
            if isinstance(each, str):
                yield each
