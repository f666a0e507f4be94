"""What a query asks of a content cluster, and what the cluster answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.content.records import Mutate
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking.explanation import NodeValue
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.teaser_settings import HI_TAGS, NO_TAGS, Tags
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.operators.item import Item
from paperwasp.search.summary_values import ALL_OBJECTS, Objects


@dataclass(frozen=True, slots=True)
class SortKey:
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


@dataclass(frozen=True, slots=True)
class Streaming:
    """Whose documents a query of types with mode streaming is about: those of one group, of one number, or those that
    a document selection says. One of the three.

    Vespa: https://docs.vespa.ai/en/performance/streaming-search.html
    """

    group: str = ""
    userid: int | None = None
    selection: str = ""


@dataclass(frozen=True, slots=True)
class DiversityOverride:
    """`ranking.matchPhase.diversity.*` of a query. None: as the rank profile says."""

    attribute: str | None = None
    min_groups: int | None = None
    cutoff_factor: float | None = None
    cutoff_strategy: str | None = None
    """loose or strict."""


@dataclass(frozen=True, slots=True)
class MatchPhaseOverride:
    """`ranking.matchPhase.*` of a query. None: as the rank profile says. With an attribute, it needs no match-phase in
    the profile."""

    attribute: str | None = None
    ascending: bool | None = None
    max_hits: int | None = None
    max_filter_coverage: float | None = None
    diversity: DiversityOverride = DiversityOverride()


@dataclass(frozen=True, slots=True)
class RankingOverride:
    """What a query says instead of its rank profile. None: as the profile says."""

    keep_rank_count: int | None = None
    rank_score_drop_limit: float | None = None
    rerank_count: int | None = None
    """`ranking.rerankCount`, `ranking.secondPhase.rerankCount`."""
    second_phase_rank_score_drop_limit: float | None = None


@dataclass(frozen=True, slots=True)
class Profiling:
    """How deep profiles are, or (below 0) how long: see `search.profiling`. 0: there is none."""

    matching: int = 0
    first_phase: int = 0
    second_phase: int = 0

    def __bool__(self) -> bool:
        return bool(self.matching or self.first_phase or self.second_phase)


NO_PROFILING: Final = Profiling()
BEFORE_ALL: Final = -1
AFTER_ALL: Final = 1 << 128
"""Below and above what decides between hits that are equal in all else."""


@dataclass(frozen=True, slots=True)
class SearchAfter:
    """Where the page before ended: only hits behind it are wanted, and `offset` is 0.

    A hit is behind it when its sort keys (without keys: its relevance) come later, or are equal and its lid is above.
    """

    relevance: float
    sort_keys: tuple[Any, ...]
    """As in `Hit.sort_keys`; empty: the hits are in the order of their relevance."""
    lid: int
    """Of a lid or `paging.streamed_lid`; or `BEFORE_ALL` of them, or `AFTER_ALL`."""


@dataclass(frozen=True, slots=True)
class Match:
    """Which documents a query looks for."""

    tree: Item
    document_types: tuple[str, ...] = ()
    """Empty: all of the cluster."""
    language: str = ""
    """Of the query's text, where no annotation says another: an RFC 5646 tag; empty: not known."""
    gram_match: str = "all"
    """How the grams of a text belong together: a composite of `operators.item`."""
    match_phase: MatchPhaseOverride = MatchPhaseOverride()
    streaming: Streaming | None = None


@dataclass(frozen=True, slots=True)
class GlobalPage:
    """The first hits by the global phase, where the node that is asked may rank by it."""

    hits: int
    rank_score_drop_limit: float | None = None
    """Hits with a relevance of this or lower are none."""


@dataclass(frozen=True, slots=True)
class Rank:
    """How the documents that match are ranked."""

    profile: str = "default"
    inputs: Mapping[str, object] = field(default_factory=dict)
    """query(name) → number, text or TensorValue."""
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    """Rank feature → what it is for every hit, whatever it would be."""
    override: RankingOverride | None = None
    now_seconds: float | None = None
    """What the time is for rank features, in seconds since 1970; None: what it is."""
    global_hits: int = 0
    """For how many of the best hits of a type the container needs what their profile's global phase asks for."""
    global_page: GlobalPage | None = None
    """Set where no other hits are ranked beside those of the node: it may rank them, and answer with the page."""
    expressions: RankExpressions | None = None
    """Those that take the place of the profile's; None: there are none."""

    def of_request(
        self, inputs: Mapping[str, object], now_seconds: float | None, global_page: GlobalPage | None
    ) -> Rank:
        """The same with what one request says. Made field by field: `replace` takes ten times as long."""
        return Rank(
            self.profile,
            inputs,
            self.properties,
            self.features,
            self.override,
            now_seconds,
            self.global_hits,
            global_page,
            self.expressions,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """Which of the ranked documents are on the page."""

    hits: int = 10
    offset: int = 0
    keys: tuple[SortKey, ...] = ()
    """Empty: by falling relevance."""
    after: SearchAfter | None = None


@dataclass(frozen=True, slots=True)
class Show:
    """What is shown of each hit."""

    summary: str = "default"
    fields: tuple[str, ...] = ()
    """Empty: all of the summary class, with sddocname and documentid."""
    bolding: bool = True
    """False: words of the query are not marked; `marks` says how they are."""
    list_features: bool = False
    tensor_form: str = "short"
    """Of tensors in summaries: one of `tensor.json_output.FORMS`."""
    exact_tensors: bool = False
    """Whether their floats have the digits of a double, not the fewest that say which float it is."""
    prefetch: tuple[str, ...] = ()
    """Attributes whose values each hit carries: for collapsing and merging."""
    source: str = ""
    """The content cluster that the hits name as their source, where the answer may have them rendered as JSON; empty:
    it may not."""
    tags: Tags = HI_TAGS
    """How the application marks the words of a query."""
    objects: Objects = ALL_OBJECTS
    """What is shown as JSON objects."""

    @property
    def marks(self) -> Tags:
        """What stands around words of the query, and where a teaser leaves text out."""
        return self.tags if self.bolding else NO_TAGS


@dataclass(frozen=True, slots=True)
class Observe:
    """What a query tells about itself."""

    trace_level: int = 0
    """What the trace tells: nothing at 0; what was searched and how long the phases took from 1; the plan from 6."""
    explain_level: int = 0
    """From 1 every trace level above 0 shows the plan, and why hits have their scores; from 2 with the time that each
    operator took."""
    profiling: Profiling = NO_PROFILING

    @property
    def explains_hits(self) -> bool:
        return self.explain_level > 0 and self.trace_level > 0


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a query must be answered."""

    at_ns: int = 0
    """On the monotonic clock; 0: never."""
    is_soft: bool = True
    """Whether hits that were found in time are an answer when there is no time for all."""
    soft_share: float = 0.5
    """The share of the time until the deadline that matching and ranking may take, where it is soft."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query, parsed, for the documents of some types: groups that are made once and passed whole."""

    match: Match
    rank: Rank = Rank()
    order: Order = Order()
    show: Show = Show()
    observe: Observe = Observe()
    deadline: Deadline = Deadline()
    groupings: tuple[GroupingRequest, ...] = ()
    memory_bytes: int = limits.QUERY_MEMORY_BYTES
    """What ranking may take beside what the documents have, on one node."""


class HitExplanation(NamedTuple):
    """Why a hit scores what it does."""

    phases: tuple[Mapping[str, Any], ...] = ()
    """Of each phase that the node knows of, what JSON can say: its score, and the tree of its expression."""
    note: str = ""
    """Why there are none."""
    global_values: tuple[NodeValue, ...] | None = None
    """What the nodes of the global phase's expression are, as far as that depends on the hit alone."""


class Hit(NamedTuple):
    """One hit. A tuple, since many are made for every query."""

    gid: bytes
    document_type: str
    document_id: str
    relevance: float
    fields: bytes
    """The JSON object of the summary's fields (without sddocname, documentid, features)."""
    match_features: Mapping[str, float | Tensor] | None = None
    summary_features: Mapping[str, float | Tensor] | None = None
    rank_features: Mapping[str, float | Tensor] | None = None
    show_document_id: bool = True
    sort_keys: tuple[Any, ...] | None = None
    """Where the query sorts: smaller is earlier, and the keys of hits of all clusters can be compared."""
    attributes: Mapping[str, object] | None = None
    """attribute → its value, None where unset: those that the request prefetches."""
    lid: int = 0
    """Decides between hits that are equal in all else; of no meaning but in `SearchAfter`."""
    global_inputs: tuple[float, ...] | None = None
    """What the global phase needs, in the order of `GlobalPhase.inputs`."""
    explanation: HitExplanation | None = None


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """Hits `offset`..`offset + hits` by falling relevance (or by the sort keys)."""

    total_count: int
    """How many documents match; where matching was degraded, about how many would have."""
    documents: int
    """Documents of the types that were asked for."""
    hits: tuple[Hit, ...]
    coverage: float = 1.0
    """The share of them that was searched: below 1, the deadline passed, or matching was degraded."""
    trace: list[object] | None = None
    """A tree that JSON can say: what Vespa's content nodes put into a trace."""
    degraded: frozenset[str] = frozenset()
    """Why not all was searched: "timeout", "match-phase"."""
    stamp: int = 0
    """Of the view that was searched: see StampRequest; 0: not known."""
    summary_ns: int = 0
    """What writing the hits took."""
    page: tuple[bytes | None, ...] | None = None
    """The JSON of each hit, None for those that are in `hits`; None: all are in `hits`."""
    is_page: bool = False
    """Whether the hits are those of `Rank.global_page`."""
    mutations: tuple[Mutate, ...] = ()
    """What the node has to apply before it answers, by the rank profile's `mutate`. Never in an answer."""
    groupings: tuple[PartialResult, ...] = ()
    """What the grouping requests found, with the hits of their lists filled."""

    @property
    def covered_documents(self) -> int:
        """How many of `documents` were searched."""
        return round(self.documents * self.coverage)

    @property
    def timed_out(self) -> bool:
        return "timeout" in self.degraded
