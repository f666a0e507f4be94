"""The schema as the rest of the code sees it: resolved (inheritance applied), validated, immutable.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from paperwasp.document.types import DataType, DocumentType
from paperwasp.errors import Position

Stemming = Literal["none", "best", "shortest", "multiple"]
Match = Literal["text", "word", "exact", "cased", "uncased"]


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How a field's text is indexed."""

    stemming: Stemming = "best"
    normalizing: bool = True
    enable_bm25: bool = False


@dataclass(frozen=True, slots=True)
class AttributeSettings:
    """How a field's column is kept."""

    fast_search: bool = False
    fast_rank: bool = False
    cased: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `index`, `attribute` and `summary` say where its indexing statement puts it."""

    name: str
    type: DataType
    index: IndexSettings | None = None
    attribute: AttributeSettings | None = None
    summary: bool = False
    match: Match | None = None
    bolding: bool = False
    rank_filter: bool = False
    weight: int = 100
    indexing: str = ""
    in_document: bool = True
    position: Position | None = None
    cased: bool = False
    """Whether matching minds case; `match` says so only where it says nothing else."""


@dataclass(frozen=True, slots=True)
class Function:
    """A ranking function (macro): its parameters and the text of its expression."""

    name: str
    parameters: tuple[str, ...]
    expression: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class RankProfile:
    """A rank profile with everything it inherits already in it.

    Expressions are text; `paperwasp.ranking` compiles them.
    """

    name: str
    first_phase: str | None = None
    second_phase: str | None = None
    rerank_count: int = 100
    rank_score_drop_limit: float | None = None
    second_phase_rank_score_drop_limit: float | None = None
    keep_rank_count: int = 10_000
    functions: Mapping[str, Function] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    inputs: Mapping[str, tuple[str, float | None]] = field(default_factory=lambda: MappingProxyType({}))
    """query(name) → (type: "double" or a tensor type, default value)."""
    match_features: tuple[str, ...] = ()
    summary_features: tuple[str, ...] = ()
    rank_features: tuple[str, ...] = ()
    rank_properties: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    field_weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    filter_fields: frozenset[str] = frozenset()
    ignore_default_rank_features: bool = False
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A summary class: output name → source field."""

    name: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema: a document type and how it is indexed, ranked and shown."""

    name: str
    document: DocumentType
    fields: Mapping[str, Field]
    fieldsets: Mapping[str, tuple[str, ...]]
    rank_profiles: Mapping[str, RankProfile]
    """Always holds `default` and `unranked`."""
    summaries: Mapping[str, DocumentSummary]
    """Always holds `default`."""
    source: str = ""
    """The path of the schema file in its package."""
