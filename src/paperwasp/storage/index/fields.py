"""The fields that a text index has, by their keys and by their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.text.linguistics import TextProfile

FieldKey = tuple[str, str]
"""Document type and field name."""
DEFAULT_PROFILE: Final = TextProfile()


@dataclass(frozen=True, slots=True)
class IndexedField:
    """One field of one document type, and how its text becomes terms."""

    document_type: str
    name: str
    profile: TextProfile = DEFAULT_PROFILE
    uri: str = ""
    """The part of the URIs in the field that is its text (`linguistics.uri`); empty: its values are no URIs."""

    @property
    def source(self) -> str:
        """The field of the document."""
        return self.name.removesuffix(f".{self.uri}")

    @property
    def key(self) -> FieldKey:
        return self.document_type, self.name


Fields = Mapping[FieldKey, tuple[int, IndexedField]]
"""Number and settings of each indexed field."""
