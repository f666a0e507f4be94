"""How the text of a field becomes terms, of what its schema says."""

from __future__ import annotations

from paperwasp.document.parts import is_uri
from paperwasp.linguistics import TextProfile, profile_of
from paperwasp.schema.model import Field


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
    )
