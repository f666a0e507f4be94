"""How the text of a field becomes terms, of what its schema says."""

from __future__ import annotations

from types import MappingProxyType

from paperwasp.base.records import replace
from paperwasp.document.types import is_uri
from paperwasp.schema.model import Field, Schema
from paperwasp.text.linguistics import TextProfile, profile_of


def text_profile(field: Field) -> TextProfile:
    """The profile of an indexed field."""
    assert field.index is not None
    if is_uri(field.type):
        return profile_of("none", False, None)
    match = field.match_settings
    return profile_of(
        field.index.stemming,
        field.index.normalizing,
        field.match,
        field.cased,
        match.gram_size,
        match.max_length,
        match.max_occurrences,
        match.max_token_length,
        field.index.snowball_english,
    )


def with_snowball_english(schema: Schema) -> Schema:
    """The schema with English stemmed by Snowball's algorithm."""
    fields = {
        name: field if field.index is None else replace(field, index=replace(field.index, snowball_english=True))
        for name, field in schema.fields.items()
    }
    return replace(schema, fields=MappingProxyType(fields))
