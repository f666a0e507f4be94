"""Test-and-set conditions at the door: whether a selection can be asked of the documents of an application.

Vespa: https://docs.vespa.ai/en/writing/document-v1-api-guide.html#conditional-writes
Differs: a condition that cannot be read is a 400 that says where; Vespa's content cluster fails with 500.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from paperwasp.content.records import check_length
from paperwasp.document.selection import Purpose, check_selection, parse_selection
from paperwasp.schema.model import Schema

_CHECKED: Final = 1024
"""Conditions that are remembered to be right: feeders send the same over and over."""


class ConditionCheck:
    """Checks conditions against the document types of an application. Immutable but for what it remembers."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        known = tuple(schemas)
        self._types = {schema.document.name: schema.document for schema in known}
        self._imported = {
            schema.document.name: {
                field.name: field.type for field in schema.fields.values() if field.imported is not None
            }
            for schema in known
        }
        self._remembered = lru_cache(maxsize=_CHECKED)(self._check)

    def __call__(self, condition: str) -> None:
        """Errors: InvalidInput for one that is too long; LanguageError with line and column."""
        check_length(condition)
        self._remembered(condition)

    def _check(self, condition: str) -> None:
        check_selection(parse_selection(condition, "condition"), self._types, self._imported, Purpose.CONDITION)
