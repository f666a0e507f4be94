"""A query to a content cluster, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.content.log.records import Mutate
from paperwasp.coordination.messages.queries import DiversityOverride as DiversityOverride
from paperwasp.coordination.messages.queries import GlobalPage as GlobalPage
from paperwasp.coordination.messages.queries import MatchPhaseOverride as MatchPhaseOverride
from paperwasp.coordination.messages.queries import Observe as Observe
from paperwasp.coordination.messages.queries import Profiling as Profiling
from paperwasp.coordination.messages.queries import RankingOverride as RankingOverride
from paperwasp.coordination.messages.queries import SortKey as SortKey
from paperwasp.coordination.messages.queries import Streaming as Streaming
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking.explanation import NodeValue
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.teaser_settings import HI_TAGS, NO_TAGS, Tags
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.operators.item import Item
from paperwasp.search.show.values import ALL_OBJECTS, Objects

NO_PROFILING: Final = Profiling()
BEFORE_ALL: Final = b""
AFTER_ALL: Final = b"\xff" * 13
"""Below and above all global ids."""


class SearchAfter(Struct, frozen=True):
    """Where the page before ended: only hits behind it are wanted, and `offset` is 0.

    A hit is behind it when its sort keys (without keys: its relevance) come later, or are equal and it comes later in
    the order of the node.
    """

    relevance: float
    sort_keys: tuple[Any, ...]
    """As in `Hit.sort_keys`; empty: the hits are in the order of their relevance."""
    gid: bytes
    """The global id of the last hit; or `BEFORE_ALL` of those that are equal to it, or `AFTER_ALL`."""
    lid: int = -1
    """Its place in the order of a node, which finds it: a lid, or `phases.order.streamed_lid`; -1 is
    before all."""


class Match(Struct, frozen=True):
    """Which documents a query looks for."""

    tree: Item
    document_types: tuple[str, ...] = ()
    """Empty: all of the cluster."""
    language: str = ""
    """The language of the query's text, where no annotation says another: an RFC 5646 tag; empty: not known."""
    gram_match: str = "all"
    """How the grams of a text belong together: a composite of `operators.item`."""
    match_phase: MatchPhaseOverride = MatchPhaseOverride()
    streaming: Streaming | None = None


class Rank(Struct, frozen=True):
    """How the documents that match are ranked."""

    profile: str = "default"
    inputs: Mapping[str, object] = field(default_factory=dict)
    """query(name) → number, text or TensorValue."""
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    """Rank feature → what it is for every hit, whatever it would be."""
    override: RankingOverride | None = None
    now_seconds: float | None = None
    """The time for rank features, in seconds since 1970; None: now."""
    global_hits: int = 0
    """For how many of the best hits of a type the container needs what their profile's global phase asks for."""
    global_page: GlobalPage | None = None
    """Set where no other hits are ranked beside those of the node: it may rank them, and answer with the page."""
    expressions: RankExpressions | None = None
    """The expressions in place of the profile's; None: there are none."""

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


class Order(Struct, frozen=True):
    """Which of the ranked documents are on the page."""

    hits: int = 10
    offset: int = 0
    keys: tuple[SortKey, ...] = ()
    """Empty: by falling relevance."""
    after: SearchAfter | None = None


class Show(Struct, frozen=True):
    """The part of each hit that is shown."""

    summary: str = "default"
    fields: tuple[str, ...] = ()
    """Empty: all of the summary class, with sddocname and documentid."""
    bolding: bool = True
    """False: words of the query are not marked; `marks` says how they are."""
    list_features: bool = False
    tensor_form: str = "short"
    """The form of tensors in summaries: one of `tensor.json_output.FORMS`."""
    exact_tensors: bool = False
    """Whether their floats have the digits of a double, not the fewest that identify the float."""
    prefetch: tuple[str, ...] = ()
    """Attributes whose values each hit carries: for collapsing and merging."""
    source: str = ""
    """The content cluster that the hits name as their source, where the answer may have them rendered as JSON; empty:
    it may not."""
    tags: Tags = HI_TAGS
    """How the application marks the words of a query."""
    objects: Objects = ALL_OBJECTS
    """The values that are shown as JSON objects."""

    @property
    def marks(self) -> Tags:
        """The tags around words of the query, and where a teaser leaves text out."""
        return self.tags if self.bolding else NO_TAGS


class QueryDeadline(Struct, frozen=True):
    """When a query must be answered."""

    at_ns: int = 0
    """On the monotonic clock; 0: never."""
    is_soft: bool = True
    """Whether hits that were found in time are an answer when there is no time for all."""
    soft_share: float = 0.5
    """The share of the time until the deadline that matching and ranking may take, where it is soft."""


class Query(Struct, frozen=True):
    """One query, parsed, for the documents of some types: groups that are made once and passed whole."""

    match: Match
    rank: Rank = Rank()
    order: Order = Order()
    show: Show = Show()
    observe: Observe = Observe()
    deadline: QueryDeadline = QueryDeadline()
    groupings: tuple[GroupingRequest, ...] = ()
    memory_bytes: int = limits.QUERY_MEMORY_BYTES
    """The memory that ranking may take beside that of the documents, on one node."""


class HitExplanation(NamedTuple):
    """Why a hit scores what it does."""

    phases: tuple[Mapping[str, Any], ...] = ()
    """The score and the tree of the expression of each phase that the node knows of, as JSON."""
    note: str = ""
    """Why there are none."""
    global_values: tuple[NodeValue, ...] | None = None
    """The values of the nodes of the global phase's expression, as far as they depend on the hit alone."""


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
    """Decides, within a node, between hits that are equal in all else; of no meaning elsewhere."""
    global_inputs: tuple[float, ...] | None = None
    """The inputs of the global phase, in the order of `GlobalPhase.inputs`."""
    explanation: HitExplanation | None = None


class SearchResponse(Struct, frozen=True):
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
    """The stamp of the view that was searched: see StampRequest; 0: not known."""
    summary_ns: int = 0
    """The time that writing the hits took."""
    page: tuple[bytes | None, ...] | None = None
    """The JSON of each hit, None for those that are in `hits`; None: all are in `hits`."""
    is_page: bool = False
    """Whether the hits are those of `Rank.global_page`."""
    mutations: tuple[Mutate, ...] = ()
    """The changes that the node applies before it answers, by the rank profile's `mutate`. Never in an answer."""
    groupings: tuple[PartialResult, ...] = ()
    """The results of the grouping requests, with the hits of their lists filled."""

    @property
    def covered_documents(self) -> int:
        """How many of `documents` were searched."""
        return round(self.documents * self.coverage)

    @property
    def timed_out(self) -> bool:
        return "timeout" in self.degraded
