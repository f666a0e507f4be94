"""What a hit shows: the fields of a summary class, from the document store, imported ones from columns, with bolding.

Vespa: https://docs.vespa.ai/en/document-summaries.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from paperwasp.attribute import ColumnView
from paperwasp.content.bolding import Bolder
from paperwasp.content.match_context import QuerySetting
from paperwasp.content.messages import SearchRequest
from paperwasp.document.output import Render, render_of
from paperwasp.operators import IndexMatch, SearchSpace, TermOperator
from paperwasp.operators.term import PhraseMatch
from paperwasp.operators.word import NOWHERE, text_profile
from paperwasp.schema.summaries import DOCUMENT_ID


@dataclass(frozen=True)
class SummaryWriter:
    """Writes the JSON object of fields for the hits of one document type."""

    shown: Mapping[str, str]
    """Name in the result → field."""
    as_stored: bool
    """Whether that is just what the store has."""
    bolders: Mapping[str, Bolder]
    """By field."""
    imported: Mapping[str, tuple[ColumnView, Render | None]]
    """By field: where its values are, and how they become JSON."""

    def write(self, stored: bytes, document_id: str, lid: int) -> bytes:
        """The summary of a document whose fields are the JSON object `stored`."""
        if self.as_stored and not self.bolders:
            return stored
        fields: dict[str, Any] = orjson.loads(stored)
        fields[DOCUMENT_ID] = document_id
        for name, (column, render) in self.imported.items():
            if (value := column.get(lid)) is not None:
                fields[name] = value if render is None else render(value)
        shown = {name: fields[source] for name, source in self.shown.items() if source in fields}
        if self.bolders:
            shown = {name: self._bolded(self.shown[name], value) for name, value in shown.items()}
        return orjson.dumps(shown, option=orjson.OPT_SERIALIZE_NUMPY)

    def _bolded(self, source: str, value: Any) -> Any:
        bolder = self.bolders.get(source)
        if bolder is None:
            return value
        return bolder.bold(value) if isinstance(value, str) else [bolder.bold(element) for element in value]


def summary_writer(request: SearchRequest, setting: QuerySetting) -> SummaryWriter:
    """The writer for a request's summary class and fields. A type without that class shows nothing."""
    space = setting.space
    schema = space.schema
    summary = schema.summaries.get(request.summary)
    shown = {name: field.sources[0] for name, field in summary.fields.items()} if summary is not None else {}
    if request.summary_fields:
        shown = {
            name: shown.get(name, name) for name in request.summary_fields if name in shown or name in schema.fields
        }
    stored = {field.name for field in schema.fields.values() if field.in_document}
    imported = _imported(shown, space)
    as_stored = not imported and stored <= set(shown) and all(name == source for name, source in shown.items())
    bolders = _bolders(shown, space, setting.terms.operators) if request.bolding else {}
    return SummaryWriter(shown, as_stored, bolders, imported)


def _imported(shown: Mapping[str, str], space: SearchSpace) -> dict[str, tuple[ColumnView, Render | None]]:
    """The imported fields among those shown, where there are columns of them."""
    sources = (space.schema.fields.get(source) for source in set(shown.values()))
    fields = (field for field in sources if field is not None and field.imported is not None)
    return {
        field.name: (space.columns[field.name], render_of(field.type))
        for field in fields
        if field.name in space.columns
    }


def _bolders(shown: Mapping[str, str], space: SearchSpace, terms: tuple[TermOperator, ...]) -> dict[str, Bolder]:
    bolders = {}
    for source in set(shown.values()):
        field = space.schema.fields.get(source)
        if field is not None and field.bolding and (words := _words_in(source, space, terms)):
            bolders[source] = Bolder(words, text_profile(field))
    return bolders


def _words_in(field: str, space: SearchSpace, terms: tuple[TermOperator, ...]) -> frozenset[str]:
    """The terms of the query that search `field`, but those that only filter."""
    numbers: set[int] = set()
    shown = (term for term in terms if not term.annotations.filter)
    for match in (match for term in shown for match in term.matches if match.field == field):
        if isinstance(match, IndexMatch):
            numbers.add(match.term)
        elif isinstance(match, PhraseMatch):
            numbers.update(match.terms)
    return frozenset(space.index.lexicon.text(number) for number in numbers if number != NOWHERE)
