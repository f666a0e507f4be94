"""Finds how simple queries read the words of an index, by what the schemas say of its field or fieldset.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#match and #query-command
"""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp.base.records import replace
from paperwasp.document.types import STRING, TAG, ArrayType, DataType, WeightedSetType
from paperwasp.query_languages.yql.indexes import TEXT, Indexes, Reading
from paperwasp.schema.declaration import LITERAL_SUFFIX, has_literal
from paperwasp.schema.fieldsets import query_commands
from paperwasp.schema.model import Field, FieldSet, Schema


def indexes_of(schemas: Iterable[Schema], more: Iterable[str]) -> Indexes:
    """All that queries of these types may name. Of schemas that differ, the first that has a name counts."""
    names: dict[str, Reading] = dict.fromkeys(more, TEXT)
    for schema in schemas:
        for name in schema.index_names():
            names.setdefault(name, _reading(schema, name))
    return Indexes(names, names)


def _reading(schema: Schema, name: str) -> Reading:
    fieldset = schema.fieldset_named(name)
    if fieldset is not None and not _is_of_parts(fieldset):
        return _of_fieldset(fieldset, schema.fields_named(fieldset.name))
    field = schema.field_named(name)
    if field is None:
        return TEXT
    return replace(_of_field(field), literal=f"{field.name}{LITERAL_SUFFIX}" if has_literal(field) else "")


def _is_of_parts(fieldset: FieldSet) -> bool:
    """Return whether the fieldset is that of the parts of a struct or map, each of which has index commands of its own
    (IndexInfo.derive)."""
    return bool(fieldset.fields) and all(field.startswith(f"{fieldset.name}.") for field in fieldset.fields)


def _of_fieldset(fieldset: FieldSet, fields: Iterable[Field]) -> Reading:
    """The reading of a fieldset: its own; else that of its first field that is not read as text. Indexes and attributes
    together are read as text."""
    members = [(field, _of_field(field)) for field in fields]
    phrases = _makes_phrases(fieldset, [field for field, _ in members])
    match = fieldset.match
    if match is not None:
        terminator = fieldset.match_settings.exact_terminator if match == "exact" else ""
        return Reading(match in ("word", "exact"), terminator, phrases)
    has_index = any(field.index is not None for field, _ in members)
    if has_index and any(field.attribute is not None for field, _ in members):
        return Reading(phrases=phrases)
    whole = next((reading for _, reading in members if reading.is_whole), TEXT)
    return Reading(whole.is_whole, whole.terminator, phrases)


def _makes_phrases(fieldset: FieldSet, fields: Iterable[Field]) -> bool:
    """Whether words are phrases: the last field with such a command decides, else the fieldset. Vespa gives the
    commands of both to one index, those of the fieldset first (IndexInfo.addFieldSetCommands)."""
    commands = (fieldset.query_commands, *(field.query_commands for field in fields))
    said = [query_commands(each).phrase_segmenting for each in commands]
    return next((each for each in reversed(said) if each is not None), False)


def _of_field(field: Field) -> Reading:
    said = query_commands(field.query_commands)
    match = said.match or field.match
    phrases = bool(said.phrase_segmenting)
    if not _is_text(field.type):
        return TEXT
    if match == "exact":
        return Reading(True, said.terminator or field.match_settings.exact_terminator, phrases)
    is_word = match == "word" or (field.index is None and match in (None, "cased", "uncased"))
    return Reading(is_word, "", phrases)


def _is_text(type_: DataType) -> bool:
    element = type_.element if isinstance(type_, ArrayType) else type_
    return element in (STRING, TAG) or (isinstance(element, WeightedSetType) and element.key == STRING)
