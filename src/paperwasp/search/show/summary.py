"""Summaries of hits: the fields of a summary class, each read from where it is and shown as the class says.

A class that shows attributes alone is read from columns, and the document store is not asked at all.

Vespa: https://docs.vespa.ai/en/querying/document-summaries.html
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.content.layouts.languages import DocumentLanguages
from paperwasp.core import _core
from paperwasp.document.shown import DEFAULT_FORM, Render, converter_of, render_of
from paperwasp.document.tensor.json_output import result_json
from paperwasp.document.types import BOOL, PREDICATE, RAW, MapType, StructType, TensorFieldType
from paperwasp.schema.model import DocumentSummary, Field, Schema, SummaryField
from paperwasp.schema.pending import is_filled_now, language_statements
from paperwasp.schema.streaming import is_streamed_part
from paperwasp.schema.summaries import DEFAULT, DOCUMENT_ID
from paperwasp.schema.text_profiles import text_profile
from paperwasp.search.operators import SearchSpace
from paperwasp.search.query import Query
from paperwasp.search.show.columns import ShownAttribute, ShownColumn, attributes_json, column_of
from paperwasp.search.show.marking import Marking, Markings
from paperwasp.search.show.matched_elements import ElementsOfHits
from paperwasp.search.show.values import (
    has_float_tensors,
    picked,
    predicate_text,
    raw_text,
    shape_of,
    unset_json,
    widening_of,
    with_members,
)
from paperwasp.storage.attributes import ColumnView
from paperwasp.text.linguistics import index_terms

_NEXT_SOURCE: Final = "\x1e"
"""Between the texts of several sources that are one."""
_MOST_MEMBERS: Final = 64
"""The kernel cuts out no more."""
_Step = Callable[[Any, int, Mapping[str, Any]], Any]
"""The JSON of a value, the lid of its document and what of the document is read → the JSON that is shown; None: nothing
is."""


class _Marking(Struct, frozen=True):
    """The step that marks the words of the query in a text, or in those of an array, or makes teasers of them."""

    change: Marking
    language: TextLanguage | None
    """None: it is detected in the text."""

    def __call__(self, value: Any, _: int, fields: Mapping[str, Any]) -> Any:
        return _each(self.change, value, "" if self.language is None else self.language(fields))


class _Shown(Struct, frozen=True):
    """One field of the result: where its value is, and what is done to it."""

    path: tuple[str, ...]
    """A field, and the members of structs below it."""
    column: ShownColumn | None
    """Where the value can be read without the document."""
    render: Render | None
    steps: tuple[_Step, ...] = ()
    missing: object = None
    """The value that is shown where there is none."""
    otherwise: _Shown | None = None
    """The next source, where this one is empty."""
    needs_document: bool = False
    """Whether the value, or a step on it, needs the stored document."""
    reads_language: bool = False
    """Whether the document says what language the value is in."""
    is_attribute: bool = False
    """Whether Vespa reads it from an attribute."""

    def value(self, fields: Mapping[str, Any], lid: int) -> Any:
        value = self._read(fields, lid)
        for step in self.steps:
            if value is None:
                break
            value = step(value, lid, fields)
        value = self.missing if value is None else value
        return self.otherwise.value(fields, lid) if self.otherwise is not None and _is_empty(value) else value

    def _read(self, fields: Mapping[str, Any], lid: int) -> Any:
        if self.path[0] not in fields and self.column is not None:
            value = self.column.get(lid)
            return value if value is None or self.render is None else self.render(value)
        value = fields.get(self.path[0])
        for name in self.path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return value


class Members(NamedTuple):
    """The members of a stored document that are shown as they are, but for marks of the query's words."""

    keys: list[bytes]
    """As JSON, with the colon."""
    required: int
    """A bit for each one that may have a value where the document has none."""


class SummaryForm(Struct, frozen=True):
    """A summary class of one document type, as it is for all queries."""

    as_stored: bool
    """Whether it shows just what the store has, but for marks."""
    marked: tuple[tuple[bytes, SummaryField, Field], ...]
    """The key, summary field and source of each member in which words of the query may be marked."""
    shows_id: bool
    """Whether it shows the document's id, which only the store has."""
    needs_document: bool
    omits_features: bool
    """Whether summary-features are left out."""
    members: Members | None
    """How to cut the summary out of a stored document; None: its values have to be read."""
    attributes: tuple[ShownAttribute, ...] | None
    """All that is shown, where that are the values of attributes as they are; None: it is more."""
    shows_empty: frozenset[str]
    """Fields that are shown where they are empty too: structs, tensors, teasers, and raws that are no attributes. As in
    Vespa, empty texts, arrays, maps and weighted sets are not."""
    unset: Mapping[str, bytes]
    """By field the JSON of the value that is not shown: it stands for none in its column, which Vespa shows."""


class SummaryWriter:
    """Writes the JSON object of fields for the hits of one query of one document type."""

    def __init__(
        self,
        form: SummaryForm,
        fields: Callable[[], Mapping[str, _Shown]],
        change_of: Callable[[SummaryField, Field], Marking | None],
        columns: Mapping[str, ColumnView],
    ) -> None:
        self.form = form
        self._columns = columns
        self._fields = fields
        self._change_of = change_of

    @cached_property
    def _shown(self) -> Mapping[str, _Shown]:
        """By name in the result. Most summaries are written without."""
        return self._fields()

    def write_all(self, stored: list[bytes], ids: Sequence[str], lids: Sequence[int]) -> list[bytes]:
        """The summaries of documents whose fields are the JSON objects `stored`."""
        return list(map(self._without_empty, self._written(stored, ids, lids)))

    def write_attributes(self, lids: Sequence[int]) -> list[bytes]:
        """The summaries of documents that are not needed for them."""
        attributes = self.form.attributes
        if attributes is not None and all(attribute.name in self._columns for attribute in attributes):
            return list(map(self._without_empty, attributes_json(attributes, self._columns, lids)))
        return [self._without_empty(self._write(b"{}", "", lid)) for lid in lids]

    def _without_empty(self, fields: bytes) -> bytes:
        if not (b':""' in fields or b":[]" in fields or b":{}" in fields):  # spelled out: it is asked of every hit
            for json in self.form.unset.values():
                if json in fields:
                    break
            else:
                return fields
        shown, unset = orjson.loads(fields), self.form.unset
        known = {name: value for name, value in shown.items() if unset.get(name) != orjson.dumps(value)}
        kept = {name: value for name, value in known.items() if name in self.form.shows_empty or not _is_empty(value)}
        return fields if len(kept) == len(shown) else orjson.dumps(kept)

    def _written(self, stored: list[bytes], ids: Sequence[str], lids: Sequence[int]) -> list[bytes]:
        markers = self._markers()
        if self.form.as_stored and markers == []:
            return stored
        members = self.form.members
        if members is None or markers is None:
            return list(map(self._write, stored, ids, lids))
        cut = _core.pick_members(stored, members.keys, members.required)
        if markers:
            cut = _core.mark_members(cut, markers)
        return [
            self._write(fields, id_, lid) if shown is None else shown
            for shown, fields, id_, lid in zip(cut, stored, ids, lids, strict=True)
        ]

    def _markers(self) -> list[_core.MemberMarker] | None:
        """How the kernel marks the members in which the query has words to mark; None: it cannot."""
        changes = ((key, self._change_of(field, source)) for key, field, source in self.form.marked)
        changed = [(key, change) for key, change in changes if change is not None]
        known = [marker for key, change in changed if (marker := change.of_member(key)) is not None]
        return known if len(known) == len(changed) else None

    def _write(self, stored: bytes, document_id: str, lid: int) -> bytes:
        fields: dict[str, Any] = orjson.loads(stored)
        fields[DOCUMENT_ID] = document_id
        values = ((name, shown.value(fields, lid)) for name, shown in self._shown.items())
        return orjson.dumps(
            {name: value for name, value in values if value is not None}, option=orjson.OPT_SERIALIZE_NUMPY
        )


class SummaryForms:
    """The forms of summary classes, and how languages of documents are read. They depend on the schema and the class
    alone, and are kept."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Schema, SummaryForm]] = {}
        self._languages = TextLanguages()

    def writer(self, query: Query, space: SearchSpace, elements: ElementsOfHits) -> SummaryWriter:
        """The writer for a query's summary class and fields. A type without that class shows nothing."""
        schema = space.schema
        show = query.show
        values = (show.tensor_form, show.exact_tensors, show.objects)
        key = (id(schema), show.summary, show.fields, values, space.streamed)
        known = self._known.get(key)
        fields = partial(_shown_fields, query, space, elements, self._languages.of(schema))
        change_of = Markings(query.match.tree, space, query.show).of
        if known is not None:
            return SummaryWriter(known[1], fields, change_of, space.columns)
        shown = fields()
        form = _form(query, schema, shown)
        if len(self._known) >= limits.SUMMARY_FORMS:
            self._known = {}
        self._known[key] = schema, form
        return SummaryWriter(form, lambda: shown, change_of, space.columns)


def _asked(query: Query, schema: Schema) -> Mapping[str, SummaryField]:
    """The fields of the query's summary class. Where only some fields are asked for and one of them is not of the
    class, all are as the class `default` has them (PartialSummaryHandler.java in Vespa's container-search)."""
    summary = schema.summaries.get(query.show.summary)
    fields = summary.fields if summary is not None else {}
    if DOCUMENT_ID in fields:  # it is shown beside the fields
        fields = {name: field for name, field in fields.items() if name != DOCUMENT_ID}
    if not query.show.fields:
        return fields
    besides = (DOCUMENT_ID, "sddocname")
    if summary is not None and not all(name in fields or name in besides for name in query.show.fields):
        fields = {**fields, **schema.summaries[DEFAULT].fields}
    return {name: fields[name] for name in query.show.fields if name in fields}


def _shown_fields(
    query: Query, space: SearchSpace, elements: ElementsOfHits, languages: Mapping[str, TextLanguage]
) -> Mapping[str, _Shown]:
    asked = _asked(query, space.schema)
    return {name: _shown(field, query, space, elements, languages) for name, field in asked.items()}


def _form(query: Query, schema: Schema, shown: Mapping[str, _Shown]) -> SummaryForm:
    summary = schema.summaries.get(query.show.summary)
    asked = _asked(query, schema)
    shows_id = summary is not None and shows_document_id(summary, schema)
    if query.show.fields:
        shows_id = summary is not None and DOCUMENT_ID in query.show.fields
    sources = ((name, field, _marked_source(field, schema)) for name, field in asked.items())
    return SummaryForm(
        as_stored=_is_as_stored(shown, schema),
        members=_members(shown, schema),
        marked=tuple((_key(name), field, source) for name, field, source in sources if source is not None),
        attributes=_attributes(shown, asked, schema),
        shows_empty=frozenset(
            name for name, field in shown.items() if asked[name].dynamic or _may_be_empty(field, schema)
        ),
        shows_id=shows_id,
        needs_document=shows_id or any(field.needs_document for field in shown.values()),
        omits_features=summary is not None and summary.omit_summary_features,
        unset=dict(_unset_values(shown, schema)),
    )


def _unset_values(shown: Mapping[str, _Shown], schema: Schema) -> Iterator[tuple[str, bytes]]:
    """Vespa: attributedfw.cpp (`isDefaultValue`)."""
    for name, field in shown.items():
        source = schema.fields.get(field.path[0])
        if source is not None and field.is_attribute and (json := unset_json(source.type, field.render)) is not None:
            yield name, json


def _marked_source(field: SummaryField, schema: Schema) -> Field | None:
    """The field in whose text words of the query may be marked."""
    source = schema.fields.get(field.sources[0])
    is_marked = source is not None and source.index is not None and (field.dynamic or field.bolding or source.bolding)
    return source if is_marked and not field.tokens else None


def shows_document_id(summary: DocumentSummary, schema: Schema) -> bool:
    """Whether a class shows `documentid`: `default` does, what inherits it, and who says so."""
    if summary.name == DEFAULT or DOCUMENT_ID in summary.fields:
        return True
    parents = (schema.summaries[name] for name in summary.inherits if name in schema.summaries)
    return any(shows_document_id(parent, schema) for parent in parents)


def _is_as_stored(shown: Mapping[str, _Shown], schema: Schema) -> bool:
    stored = {field.name for field in schema.fields.values() if is_filled_now(field) and not is_streamed_part(field)}
    return stored == set(shown) and all(_is_cut(*item) and item[1].missing is None for item in shown.items())


def _is_cut(name: str, field: _Shown) -> bool:
    """Whether a document's member is shown as it is, but for marks."""
    is_itself = field.path == (name,) and field.otherwise is None and not field.reads_language
    return is_itself and all(isinstance(step, _Marking) for step in field.steps)


def _key(name: str) -> bytes:
    """A member's key as JSON, with the colon."""
    return orjson.dumps(name) + b":"


def _members(shown: Mapping[str, _Shown], schema: Schema) -> Members | None:
    if len(shown) > _MOST_MEMBERS or not all(_is_cut(*item) for item in shown.items()):
        return None
    of_documents = schema.document.fields
    required = [name not in of_documents or field.missing is not None for name, field in shown.items()]
    keys = [_key(name) for name in shown]
    return Members(keys, sum(1 << place for place, is_required in enumerate(required) if is_required))


def _attributes(
    shown: Mapping[str, _Shown], asked: Mapping[str, SummaryField], schema: Schema
) -> tuple[ShownAttribute, ...] | None:
    if not all(_is_cut(*item) and _is_attribute(item[1]) for item in shown.items()):
        return None
    if any(_marked_source(field, schema) is not None for field in asked.values()):
        return None  # words of some queries are marked
    return tuple(ShownAttribute(name, field.render, field.missing) for name, field in shown.items())


def _is_attribute(field: _Shown) -> bool:
    return field.column is not None and not field.needs_document and not field.steps and field.path[0] != DOCUMENT_ID


def _shown(
    field: SummaryField,
    query: Query,
    space: SearchSpace,
    elements: ElementsOfHits,
    languages: Mapping[str, TextLanguage],
) -> _Shown:
    """The field, of its first source, or where that is empty of the next."""
    joined = _joined(field, query, space) if space.streamed else None
    if joined is not None:
        return joined
    shown: _Shown | None = None
    for source in reversed(field.sources):
        shown = _of_source(source, field, query, space, elements, languages, shown)
    assert shown is not None
    return shown


def _joined(field: SummaryField, query: Query, space: SearchSpace) -> _Shown | None:
    """In streaming search, a dynamic or bolded field of several sources is one text of all of them; None: it is not
    such a field. Vespa: docsumfilter.cpp, FLATTENJUNIPER"""
    paths = [path.split(".") for path in field.sources]
    sources = [source for path in paths if (source := space.schema.fields.get(path[0])) is not None]
    if len(paths) < 2 or not any(field.dynamic or field.bolding or source.bolding for source in sources):
        return None
    markings = Markings(query.match.tree, space, query.show)
    changes = [change for source in sources if (change := markings.of(field, source, sources))][:1]
    separator = query.show.marks.separator if field.dynamic else ""

    def join(_: Any, __: int, fields: Mapping[str, Any]) -> str | None:
        text = _NEXT_SOURCE.join(chain.from_iterable(_texts(fields, path) for path in paths))
        if text and changes:
            text = changes[0](text, "") or ""
        return text.replace(_NEXT_SOURCE, separator) or None

    return _Shown((DOCUMENT_ID,), None, None, (join,), needs_document=True)


def _texts(value: Any, path: Sequence[str]) -> Iterator[str]:
    """The texts at a path below a value, those of arrays and of what is in structs one by one."""
    if isinstance(value, dict) and path:
        yield from _texts(value.get(path[0]), path[1:])
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each, path)
    elif value is not None:
        yield str(value)


def _of_source(
    path: str,
    field: SummaryField,
    query: Query,
    space: SearchSpace,
    elements: ElementsOfHits,
    languages: Mapping[str, TextLanguage],
    rest: _Shown | None,
) -> _Shown:
    name, *below = path.split(".")
    source = space.schema.fields.get(name)
    if source is None:
        return _Shown((name, *below), None, None, otherwise=rest, needs_document=True)
    column = column_of(source, space.columns) if not below else None
    is_attribute = column is not None and not space.streamed
    is_read = field.tokens or field.dynamic or field.bolding or source.bolding  # made tokens of, or looked through
    language = languages.get(source.name) if source.index is not None and is_read else None
    return _Shown(
        (name, *below),
        column,
        None if isinstance(source.type, TensorFieldType) and has_float_tensors(source.type) else render_of(source.type),
        tuple(_steps(field, source, language, query, space, elements)),
        # An attribute of type bool is never unset, so that Vespa shows false. Streamed documents have no attributes.
        missing=False if is_attribute and source.type == BOOL else None,
        otherwise=rest,
        needs_document=column is None or language is not None or (rest is not None and rest.needs_document),
        reads_language=language is not None,
        is_attribute=is_attribute,
    )


def _may_be_empty(shown: _Shown, schema: Schema) -> bool:
    source = schema.fields.get(shown.path[0])
    if len(shown.path) > 1 or source is None:
        return False
    return isinstance(source.type, StructType | TensorFieldType) or (source.type == RAW and not shown.is_attribute)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _steps(
    field: SummaryField,
    source: Field,
    language: TextLanguage | None,
    query: Query,
    space: SearchSpace,
    elements: ElementsOfHits,
) -> Iterator[_Step]:
    said = language or (lambda _: "")
    if field.matched_elements_only:
        yield lambda value, lid, _: picked(value, elements.matched(source.name, lid))
    if field.select_elements_by:
        yield lambda value, lid, _: picked(value, elements.named_by(field.select_elements_by, lid))
    if field.struct_fields:
        paths = [tuple(name.split(".")) for name in field.struct_fields]
        is_map = isinstance(source.type, MapType)
        yield lambda value, _, __: with_members(value, paths, is_map)
    if field.tokens:
        tokens = tokens_of(source)
        yield lambda value, _, fields: shown_tokens(value, said(fields), tokens)
    elif field.dynamic or field.bolding or source.bolding:
        change = Markings(query.match.tree, space, query.show).of(field, source)
        if change is not None:
            yield _Marking(change, language)
    if source.type == PREDICATE:
        yield lambda value, _, __: predicate_text(value)
    if source.type == RAW and not space.schema.raw_as_base64:
        yield lambda value, _, __: raw_text(base64.b64decode(value))
    if (widen := widening_of(source.type)) is not None:
        yield lambda value, _, __: widen(value)
    if query.show.tensor_form != DEFAULT_FORM or has_float_tensors(source.type):
        convert = converter_of(source.type)
        show = partial(result_json, form=query.show.tensor_form, exact=query.show.exact_tensors)
        if convert is not None:
            yield lambda value, _, __: convert(value, show)
    if (shape := shape_of(source.type, query.show.objects)) is not None:
        yield lambda value, _, __: shape(value)


def _each(change: Marking, value: Any, language: str) -> Any:
    """Changes a text in a language, or the texts of an array; other values stay as they are."""
    if isinstance(value, str):
        return change(value, language)
    if isinstance(value, list):
        return [change(element, language) if isinstance(element, str) else element for element in value]
    return value


# The languages of the texts of a shown document, where statements of its schema set one.


TextLanguage = Callable[[Mapping[str, Any]], str]
"""From the fields of the document that are read to the tag of a language; empty: none is set."""


class TextLanguages:
    """Readers of the language of each field, by schema: compiled once."""

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


# `tokens` of a summary: what a value is searched by.
#
# Of an indexed text each token, or where several stand in one place a list of them; of an attribute the value as it is
# compared. Of an array or a weighted set that is one list for each text; weights are not shown.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#tokens


TextTokens = Callable[[str, str], list[Any]]
"""A text and the language that its document says (empty: none) → its tokens."""


def tokens_of(source: Field) -> TextTokens:
    """Return the function that makes tokens of texts of the field."""
    if source.index is not None:
        profile = text_profile(source)
        return lambda text, language: [
            forms[0] if len(forms) == 1 else list(forms) for forms in index_terms(profile, text, language)
        ]
    if source.attribute is not None and (source.attribute.cased or source.cased):
        return lambda text, _: [text]
    return lambda text, _: [text.lower()]


def shown_tokens(value: Any, language: str, tokens: TextTokens) -> Any:
    """The tokens of a text, or of each in an array or of the keys of a weighted set."""
    if isinstance(value, str):
        return tokens(value, language)
    return [tokens(text, language) for text in value]
