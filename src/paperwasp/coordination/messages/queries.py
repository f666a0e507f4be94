"""Queries and their answers as messages.

Those classes that name nothing of one process are what `search.query` is made of; the others have their counterparts
here, and become them in `search.query_messages`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from paperwasp import limits
from paperwasp.coordination.messages.message import Message
from paperwasp.coordination.messages.trees import Tree


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a message: as bytes a map of the fields that are not as they are by default."""


class SortKey(Part, frozen=True):
    """One key of `order by`. `field` is an attribute, `[relevance]`, `[docid]` or `[source]`; with the function
    `feature`, one of the rank profile's sort-features.

    What is empty, or None, is as the attribute's `sorting` in the schema says, else Vespa's default.
    Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html
    """

    field: str
    descending: bool | None = None
    function: str = ""
    """`raw`, `lowercase`, `uca`, `feature`."""
    locale: str = ""
    """Of `uca`: en_US."""
    strength: str = ""
    """Of `uca`: primary, secondary, tertiary, quaternary, identical; in any case of letters."""
    missing: str = ""
    """Where documents without a value stand: `first`, `last`, `as`."""
    missing_value: str = ""
    """The text of the value that they stand for, with `as`."""


class Streaming(Part, frozen=True):
    """Whose documents a query of types with mode streaming is about: those of one group, of one number, or those that
    a document selection says. One of the three.

    Vespa: https://docs.vespa.ai/en/performance/streaming-search.html
    """

    group: str = ""
    userid: int | None = None
    selection: str = ""


class DiversityOverride(Part, frozen=True):
    """`ranking.matchPhase.diversity.*` of a query. None: as the rank profile says."""

    attribute: str | None = None
    min_groups: int | None = None
    cutoff_factor: float | None = None
    cutoff_strategy: str | None = None
    """loose or strict."""


class MatchPhaseOverride(Part, frozen=True):
    """`ranking.matchPhase.*` of a query. None: as the rank profile says. With an attribute, it needs no match-phase in
    the profile."""

    attribute: str | None = None
    ascending: bool | None = None
    max_hits: int | None = None
    max_filter_coverage: float | None = None
    diversity: DiversityOverride = DiversityOverride()


class RankingOverride(Part, frozen=True):
    """The settings of a query that replace those of its rank profile. None: as the profile says."""

    keep_rank_count: int | None = None
    rank_score_drop_limit: float | None = None
    rerank_count: int | None = None
    """`ranking.rerankCount`, `ranking.secondPhase.rerankCount`."""
    second_phase_rank_score_drop_limit: float | None = None


class Profiling(Part, frozen=True):
    """How deep profiles are, or (below 0) how long: see `search.observe`. 0: there is none."""

    matching: int = 0
    first_phase: int = 0
    second_phase: int = 0

    def __bool__(self) -> bool:
        return bool(self.matching or self.first_phase or self.second_phase)


class GlobalPage(Part, frozen=True):
    """The first hits by the global phase, where the node that is asked may rank by it."""

    hits: int
    rank_score_drop_limit: float | None = None
    """Hits with a relevance of this or lower are none."""


class Observe(Part, frozen=True):
    """The information about itself that a query asks for."""

    trace_level: int = 0
    """The level of the trace: nothing at 0; what was searched and how long the phases took from 1; the plan from 6."""
    explain_level: int = 0
    """From 1 every trace level above 0 shows the plan, and why hits have their scores; from 2 with the time that each
    operator took."""
    profiling: Profiling = Profiling()

    @property
    def explains_hits(self) -> bool:
        return self.explain_level > 0 and self.trace_level > 0


class MatchPart(Part, frozen=True):
    """`search.query.Match`: the query tree as a list of nodes."""

    tree: Tree
    document_types: tuple[str, ...] = ()
    language: str = ""
    gram_match: str = "all"
    match_phase: MatchPhaseOverride = MatchPhaseOverride()
    streaming: Streaming | None = None


class RankPart(Part, frozen=True):
    """`search.query.Rank`: expressions as their texts, in the order of `ranking.query_expressions.RankExpressions`."""

    profile: str = "default"
    inputs: dict[str, Any] = {}
    properties: dict[str, str] = {}
    features: dict[str, float] = {}
    override: RankingOverride | None = None
    now_seconds: float | None = None
    global_hits: int = 0
    global_page: GlobalPage | None = None
    expressions: tuple[str | None, ...] | None = None


class AfterPart(Part, frozen=True):
    """`search.query.SearchAfter`."""

    relevance: float
    sort_keys: tuple[tuple[int, int, Any], ...]
    gid: bytes


class OrderPart(Part, frozen=True):
    """`search.query.Order`."""

    hits: int = 10
    offset: int = 0
    keys: tuple[SortKey, ...] = ()
    after: AfterPart | None = None


class ShowPart(Part, frozen=True):
    """`search.query.Show`."""

    summary: str = "default"
    fields: tuple[str, ...] = ()
    bolding: bool = True
    list_features: bool = False
    tensor_form: str = "short"
    exact_tensors: bool = False
    prefetch: tuple[str, ...] = ()
    source: str = ""
    tags: tuple[str, ...] = ()
    """The fields of `schema.teaser_settings.Tags`; empty: the default ones."""
    objects: tuple[bool, ...] = ()
    """The fields of `search.show.values.Objects`; empty: the default ones."""


class Search(Message, frozen=True):
    """`search.query.Query`: answered with `Found`, or `Refused`. Its deadline is that of the envelope."""

    match: MatchPart
    rank: RankPart = RankPart()
    order: OrderPart = OrderPart()
    show: ShowPart = ShowPart()
    observe: Observe = Observe()
    is_soft: bool = True
    soft_share: float = 0.5
    groupings: tuple[Tree, ...] = ()
    memory_bytes: int = limits.QUERY_MEMORY_BYTES


class Explained(NamedTuple):
    """`search.query.HitExplanation`."""

    phases: tuple[Any, ...] = ()
    note: str = ""
    global_values: tuple[Any, ...] | None = None


class FoundHit(NamedTuple):
    """`search.query.Hit`: without the number of its row, which is of the node alone."""

    gid: bytes
    document_type: str
    document_id: str
    relevance: float
    fields: bytes
    match_features: dict[str, Any] | None = None
    summary_features: dict[str, Any] | None = None
    rank_features: dict[str, Any] | None = None
    show_document_id: bool = True
    sort_keys: tuple[tuple[int, int, Any], ...] | None = None
    attributes: dict[str, Any] | None = None
    global_inputs: tuple[float, ...] | None = None
    explanation: Explained | None = None


class GroupsPart(NamedTuple):
    """`search.grouping.partial.PartialResult`, in the form of docs/internals/formats/grouping.md; what it has in place
    of rows of hits are their places among the `listed`."""

    number: int
    """Of the request."""
    data: bytes


class Found(Message, frozen=True):
    """`search.query.SearchResponse`, once what it changes is applied."""

    total_count: int
    documents: int
    hits: tuple[FoundHit, ...]
    coverage: float = 1.0
    trace: list[Any] | None = None
    degraded: frozenset[str] = frozenset()
    stamp: int = 0
    summary_ns: int = 0
    page: tuple[bytes | None, ...] | None = None
    is_page: bool = False
    groupings: tuple[GroupsPart, ...] = ()
    listed: tuple[FoundHit, ...] = ()
    """The hits that lists in the groups have, each once."""
