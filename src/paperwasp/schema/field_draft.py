"""A field in the making: the settings of its elements, before they are checked against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from paperwasp.base.records import dataclass
from paperwasp.document.types import DataType, TensorFieldType
from paperwasp.errors import Position
from paperwasp.schema.indexing import FieldScript
from paperwasp.schema.model import Linguistics, Match, Stemming
from paperwasp.schema.summary_model import FieldSummary, SummaryField
from paperwasp.schema.tree import Node


@dataclass(slots=True)
class Draft:
    """A field, or a part of one (`struct-field`), whose `name` is then its path from the field on."""

    node: Node
    name: str
    type: DataType
    stemming: Stemming
    in_document: bool = True
    id: int | None = None
    """The number that the schema gives it."""
    script: FieldScript | None = None
    outputs: frozenset[str] = frozenset()
    """Where the script puts the value: index, attribute, summary."""
    index: dict[str, Any] = field(default_factory=dict)
    """Settings that the schema gives, by their names in IndexSettings; likewise the next ones."""
    hnsw: dict[str, Any] = field(default_factory=dict)
    attribute: dict[str, Any] = field(default_factory=dict)
    sorting: dict[str, Any] = field(default_factory=dict)
    match_settings: dict[str, Any] = field(default_factory=dict)
    match: Match | None = None
    cased: bool | None = None
    rank: set[str] = field(default_factory=set)
    rank_type: str = ""
    dictionary: set[str] = field(default_factory=set)
    weight: int = 100
    bolding: bool = False
    summaries: dict[str, FieldSummary] = field(default_factory=dict)
    """The summaries by the names of the summary fields that they show."""
    aliases: dict[str, str] = field(default_factory=dict)
    query_commands: list[str] = field(default_factory=list)
    linguistics: Linguistics | None = None
    sub_drafts: dict[str, Draft] = field(default_factory=dict)
    """The drafts of its parts by their paths."""
    places: dict[str, Node] = field(default_factory=dict)
    """Keyword → an element that has it, for the place of an error."""

    @property
    def described(self) -> str:
        return f"field {self.name}"

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.type, TensorFieldType)

    def place(self, *keywords: str) -> Position | None:
        """The place of the first of these elements that the field has, or else of the field."""
        found = (self.places[keyword] for keyword in keywords if keyword in self.places)
        return next(found, self.node).position

    def add_summary(self, shown: SummaryField | None, to: Sequence[str], name: str = "") -> None:
        """Adds a summary field, or adds to the one of that name."""
        name = shown.name if shown else name
        known = self.summaries.get(name)
        if known is None:
            self.summaries[name] = FieldSummary(shown or SummaryField(name, (self.name,)), tuple(to))
        else:
            self.summaries[name] = FieldSummary(_merge(known.shown, shown) if shown else known.shown, (*known.to, *to))


def _merge(known: SummaryField, more: SummaryField) -> SummaryField:
    """Merges two elements of one summary field."""
    flags = ("dynamic", "bolding", "tokens", "matched_elements_only", "select_elements_by", "struct_fields")
    return dataclasses.replace(known, **{name: getattr(known, name) or getattr(more, name) for name in flags})
