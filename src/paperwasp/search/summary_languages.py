"""In which language the texts of a shown document are, where statements of its schema set one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from paperwasp import limits
from paperwasp.content.languages import DocumentLanguages
from paperwasp.schema.model import Schema
from paperwasp.schema.pending import language_statements

TextLanguage = Callable[[Mapping[str, Any]], str]
"""From the fields of the document that are read to the tag of a language; empty: none is set."""


class TextLanguages:
    """What reads the language of each field, by schema: compiled once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Schema, Mapping[str, TextLanguage]]] = {}

    def of(self, schema: Schema) -> Mapping[str, TextLanguage]:
        """Name of a field → what reads the language of its texts in a document. Of others it is detected."""
        known = self._known.get(id(schema))
        if known is None:
            if len(self._known) >= limits.SUMMARY_FORMS:
                self._known = {}
            known = self._known[id(schema)] = schema, dict(_languages(schema))
        return known[1]


def _languages(schema: Schema) -> Iterator[tuple[str, TextLanguage]]:
    found = language_statements(schema)
    types = {name: each.type for name, each in schema.fields.items()}
    for name, before in (found.before or {}).items():
        languages = DocumentLanguages(found.statements[:before], types)
        yield name, partial(languages.of, before=before)
