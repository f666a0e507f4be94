"""Document summaries as values: which fields a summary class shows, and how. Immutable.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#document-summary
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from paperwasp.base.records import dataclass
from paperwasp.document.types import DataType
from paperwasp.errors import Position


@dataclass(frozen=True, slots=True)
class SummaryField:
    """One field of a document summary."""

    name: str
    sources: tuple[str, ...]
    type: DataType | None = None
    """None: that of the source."""
    dynamic: bool = False
    bolding: bool = False
    tokens: bool = False
    matched_elements_only: bool = False
    select_elements_by: str = ""
    struct_fields: tuple[str, ...] = ()
    """The parts of the structs that are shown; empty: all of them."""
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """`summary` in a field: what is shown, and by which document summaries; none: by `default`."""

    shown: SummaryField
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A summary class: output name → what it shows."""

    name: str
    fields: Mapping[str, SummaryField]
    from_disk: bool = False
    omit_summary_features: bool = False
    inherits: tuple[str, ...] = ()
    position: Position | None = None
