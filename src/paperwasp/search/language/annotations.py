"""What annotates any term of a query.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#annotations
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from paperwasp.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations that any term may have. Names and defaults are Vespa's."""

    weight: int = 100
    ranked: bool = True
    filter: bool = False
    stem: bool = True
    normalize_case: bool = True
    accent_drop: bool = True
    implicit_transforms: bool = True
    use_position_data: bool = True
    significance: float | None = None
    connectivity: tuple[int, float] | None = None
    """Unique id of the next term, and the strength 0..1."""
    id: int | None = None
    label: str | None = None
    language: str = ""
    """The language of the text, as an RFC 5646 tag; empty: that of the query."""
    and_segmenting: bool = False
    """Whether the tokens of one word are an and instead of a phrase."""
    document_frequency: tuple[int, int] | None = None
    """Documents with the term, and documents: what significance is computed from instead of this node's own."""
    profile: str = ""
    """The linguistics profile in place of that of the field."""

    def given(self) -> dict[str, Any]:
        """Return the annotations that differ from their defaults, by name."""
        values = ((each.name, getattr(self, each.name)) for each in fields(Annotations))
        return {name: value for name, value in values if value != getattr(DEFAULT_ANNOTATIONS, name)}


DEFAULT_ANNOTATIONS = Annotations()
