"""What a hit shows: the fields of a summary class, each read from where it is and shown as the class says.

A class that shows attributes alone is read from columns, and the document store is not asked at all.

Vespa: https://docs.vespa.ai/en/querying/document-summaries.html
Differs: a summary field of more than one source, and one that selects elements by a feature, are not executed yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from paperwasp.attribute import ColumnView
from paperwasp.content.highlighting import Highlighter, query_parts
from paperwasp.content.messages import SearchRequest
from paperwasp.content.teaser import HI_TAGS, NO_TAGS
from paperwasp.document.output import Render, render_of
from paperwasp.document.tensor_forms import DEFAULT_FORM, converter_of
from paperwasp.document.types import BOOL, MapType
from paperwasp.operators import SearchSpace
from paperwasp.schema.model import DocumentSummary, Field, Schema, SummaryField
from paperwasp.schema.pending import is_filled_now
from paperwasp.schema.summaries import DEFAULT, DOCUMENT_ID
from paperwasp.schema.text_profiles import text_profile

Elements = Callable[[str, int], Sequence[int]]
"""Field, lid → the numbers of the elements that the query matches, rising."""

_Step = Callable[[Any, int], Any]
"""The JSON of a value and the lid of its document → the JSON that is shown; None: nothing is."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """One field of the result: where its value is, and what is done to it."""

    path: tuple[str, ...]
    """A field, and the members of structs below it."""
    column: ColumnView | None
    """Where the value can be read without the document."""
    render: Render | None
    steps: tuple[_Step, ...] = ()
    missing: object = None
    """What is shown where there is no value."""

    def value(self, fields: Mapping[str, Any], lid: int) -> Any:
        value = self._read(fields, lid)
        for step in self.steps:
            if value is None:
                break
            value = step(value, lid)
        return self.missing if value is None else value

    def _read(self, fields: Mapping[str, Any], lid: int) -> Any:
        if self.path[0] not in fields and self.column is not None:
            value = self.column.get(lid)
            return value if value is None or self.render is None else self.render(value)
        value = fields.get(self.path[0])
        for name in self.path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return value


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """Writes the JSON object of fields for the hits of one document type."""

    shown: Mapping[str, _Shown]
    """By name in the result."""
    as_stored: bool
    """Whether that is just what the store has."""
    shows_id: bool
    """Whether the class shows the document's id, which only the store has."""
    needs_document: bool
    omits_features: bool = False
    """Whether summary-features are left out."""

    def write(self, stored: bytes, document_id: str, lid: int) -> bytes:
        """The summary of a document whose fields are the JSON object `stored`: an empty one where it is not needed."""
        if self.as_stored:
            return stored
        fields: dict[str, Any] = orjson.loads(stored)
        fields[DOCUMENT_ID] = document_id
        values = ((name, shown.value(fields, lid)) for name, shown in self.shown.items())
        return orjson.dumps(
            {name: value for name, value in values if value is not None}, option=orjson.OPT_SERIALIZE_NUMPY
        )


def summary_writer(request: SearchRequest, space: SearchSpace, elements: Elements) -> SummaryWriter:
    """The writer for a request's summary class and fields. A type without that class shows nothing."""
    schema = space.schema
    summary = schema.summaries.get(request.summary)
    fields = dict(summary.fields) if summary is not None else {}
    if request.summary_fields:
        fields = {name: fields[name] for name in request.summary_fields if name in fields}
    shown = {name: _shown(field, request, space, elements) for name, field in fields.items()}
    shows_id = summary is not None and shows_document_id(summary, schema)
    if request.summary_fields:
        shows_id = shows_id and DOCUMENT_ID in request.summary_fields
    return SummaryWriter(
        shown,
        as_stored=_is_as_stored(shown, schema),
        shows_id=shows_id,
        needs_document=shows_id or any(field.column is None for field in shown.values()),
        omits_features=summary is not None and summary.omit_summary_features,
    )


def shows_document_id(summary: DocumentSummary, schema: Schema) -> bool:
    """Whether a class shows `documentid`: `default` does, what inherits it, and who says so."""
    if summary.name == DEFAULT or DOCUMENT_ID in summary.fields:
        return True
    parents = (schema.summaries[name] for name in summary.inherits if name in schema.summaries)
    return any(shows_document_id(parent, schema) for parent in parents)


def _is_as_stored(shown: Mapping[str, _Shown], schema: Schema) -> bool:
    stored = {field.name for field in schema.fields.values() if is_filled_now(field)}
    unchanged = all(
        field.path == (name,) and not field.steps and field.missing is None for name, field in shown.items()
    )
    return unchanged and stored == set(shown)


def _shown(field: SummaryField, request: SearchRequest, space: SearchSpace, elements: Elements) -> _Shown:
    path = tuple(field.sources[0].split("."))
    source = space.schema.fields.get(path[0])
    if source is None:
        return _Shown(path, None, None)
    column = space.columns.get(source.name) if len(path) == 1 and source.attribute is not None else None
    # An attribute of type bool is never unset, so that Vespa shows false. Streamed documents have no attributes.
    missing = False if column is not None and source.type == BOOL and not space.streamed else None
    steps = tuple(_steps(field, source, request, space, elements))
    return _Shown(path, column, render_of(source.type), steps, missing)


def _steps(
    field: SummaryField, source: Field, request: SearchRequest, space: SearchSpace, elements: Elements
) -> Iterator[_Step]:
    if field.matched_elements_only:
        yield lambda value, lid: _picked(value, elements(source.name, lid))
    if field.struct_fields:
        paths = [tuple(name.split(".")) for name in field.struct_fields]
        is_map = isinstance(source.type, MapType)
        yield lambda value, _: _with_members(value, paths, is_map)
    if field.tokens:
        tokens = _tokens_of(source)
        yield lambda value, _: _each(tokens, value)
    elif field.dynamic or field.bolding or source.bolding:
        change = _highlight(field, source, request, space)
        if change is not None:
            yield lambda value, _: _each(change, value)
    convert = converter_of(source.type) if request.tensor_form != DEFAULT_FORM else None
    if convert is not None:
        yield lambda value, _: convert(value, request.tensor_form)


def _highlight(
    field: SummaryField, source: Field, request: SearchRequest, space: SearchSpace
) -> Callable[[str], str] | None:
    """What makes a text its teaser, or marks the words of the query; None: it is shown as it is."""
    if source.index is None or not (request.bolding or field.dynamic):
        return None
    parts = query_parts(request.tree, source, space)
    if not (parts or field.dynamic):
        return None
    highlighter = Highlighter(parts, text_profile(source), HI_TAGS if request.bolding else NO_TAGS)
    return highlighter.teaser if field.dynamic else highlighter.bold


def _each(change: Callable[[str], Any], value: Any) -> Any:
    """Changes a text, or the texts of an array; other values stay as they are."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [change(element) if isinstance(element, str) else element for element in value]
    return value


def _tokens_of(source: Field) -> Callable[[str], list[str]]:
    """What a text is searched by: its terms in an index; in an attribute the value itself."""
    if source.index is not None:
        return text_profile(source).terms
    is_cased = source.attribute is not None and source.attribute.cased
    return lambda text: [text if is_cased else text.lower()]


def _picked(value: Any, numbers: Sequence[int]) -> Any:
    """Only these elements of an array, or entries of a map or weighted set; None where there are none."""
    if isinstance(value, dict):
        entries = list(value.items())
        return dict(entries[n] for n in numbers if n < len(entries)) or None
    if isinstance(value, list):
        return [value[n] for n in numbers if n < len(value)] or None
    return value


def _with_members(value: Any, paths: Sequence[tuple[str, ...]], is_map: bool) -> Any:
    """Structs with these members alone; of a map's entries, `key` and `value` (or `value.member`)."""
    if not is_map:
        return [{path[0]: item[path[0]] for path in paths if path[0] in item} for item in value]
    members = [path[1] for path in paths if len(path) > 1]
    if not members:
        return value
    return {key: {name: item[name] for name in members if name in item} for key, item in value.items()}
