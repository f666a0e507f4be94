"""What the container says to a content cluster, and what it answers. The words that pass through the messenger.

Where a content cluster is served: `content.service.address_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from paperwasp.content.records import Mutate
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome
from paperwasp.query.items import Item
from paperwasp.ranking.explanation import NodeValue
from paperwasp.tensor.value import Tensor

ELEMENT_GAP: Final = "vespa.matching.element_gap."
"""What a query says of how far apart the elements of a field are: a rank property, with the field's name behind it."""
FILTER_THRESHOLD: Final = "vespa.matching.filter_threshold"
STOPWORD_LIMIT: Final = "vespa.matching.weakand.stop_word_drop_limit"
ADJUST_TARGET: Final = "vespa.matching.weakand.stop_word_adjust_limit"
ALLOW_DROP_ALL: Final = "vespa.matching.weakand.allow_drop_all"
"""What a query says of words that are in many documents, as rank properties: see `operators.tuning`."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """One operation to be made durable and applied. Answered with its Outcome, or an error of `paperwasp.errors`."""

    operation: Operation
    size_bytes: int = 0
    """Of the body that it came in: what counts against the queue's limit."""


@dataclass(frozen=True, slots=True)
class GetRequest:
    """Asks for one document."""

    id: DocumentId
    fields: frozenset[str] | None = None
    """Only these; None: all that were fed, but not what indexing has made of them."""
    tensor_form: str = "short"
    """One of `tensor.json_output.FORMS`."""


@dataclass(frozen=True, slots=True)
class GetResponse:
    """`fields` is the JSON object of the document's fields, as document/v1 shows it; None: no such document."""

    fields: bytes | None


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """Asks for the next documents in the order of their global ids: one chunk of a visit. The node keeps nothing.

    Errors: InvalidInput, also LanguageError for the selection.
    """

    document_types: tuple[str, ...]
    selection: str = ""
    """A document selection; empty: all."""
    id_prefixes: tuple[str, ...] = ()
    """Only documents whose ids begin with one of these; empty: all of the types."""
    location: bytes = b""
    """What the global ids of the documents begin with, where they are of one number or group."""
    token: bytes = b""
    """Where the last answer ended; empty: from the start."""
    documents: int = 1024
    """At most so many; the node may take fewer, also none, without being at the end."""
    size_bytes: int = 1024 * 1024
    """About: the chunk ends with the document that reaches it."""
    fields: frozenset[str] | None = None
    """Only these; None: all."""
    tensor_form: str = "short"
    slices: int = 1
    slice: int = 0
    """Each document is in one of the slices 0..slices-1: equal ranges of the global ids."""
    from_us: int = 0
    to_us: int = 0
    """Documents that were changed last at from_us <= time < to_us; 0: no bound."""
    removes: bool = False
    """Whether documents that were removed are told of as well."""
    now_us: int = 0
    """What `now()` is in the selection, and when tombstones are old, in microseconds since 1970; the same for all
    chunks of a visit."""
    deadline_ns: int = 0
    """On the monotonic clock: the chunk ends then, wherever it is; 0: none."""


class VisitedDocument(NamedTuple):
    """One document of a visit. A tuple, since many are made."""

    id: str
    fields: bytes | None
    """The JSON object of its fields; None: it was removed."""
    changed_us: int = 0
    """When it was changed last, or just before this: it is as it was then. In microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class VisitResponse:
    """`token` is for the next request; None: there are no more. `progress` is from 0 to 1."""

    documents: tuple[VisitedDocument, ...]
    token: bytes | None
    progress: float


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
    """How deep profiles are, or (below 0) how long: see `content.profiling`. 0: there is none."""

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


@dataclass(slots=True)
class SearchRequest:
    """One query, parsed, for the documents of some types. Nobody changes it; frozen, it would take three times as long
    to make for every query."""

    tree: Item
    document_types: tuple[str, ...] = ()
    """Empty: all of the cluster."""
    rank_profile: str = "default"
    hits: int = 10
    offset: int = 0
    order_by: tuple[SortKey, ...] = ()
    inputs: Mapping[str, object] = field(default_factory=dict)
    """query(name) → number, text or TensorValue."""
    rank_properties: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    """Rank feature → what it is for every hit, whatever it would be."""
    summary: str = "default"
    summary_fields: tuple[str, ...] = ()
    """Empty: all of the summary class, with sddocname and documentid."""
    bolding: bool = True
    list_features: bool = False
    deadline_ns: int = 0
    """On the monotonic clock; 0: none."""
    language: str = ""
    """Of the query's text, where no annotation says another: an RFC 5646 tag; empty: not known."""
    trace_level: int = 0
    """What the trace tells: nothing at 0; what was searched and how long the phases took from 1; the plan from 6."""
    explain_level: int = 0
    """From 1 the plan is told at every trace level above 0, and why hits score what they do; from 2 with the time that
    each operator took."""
    profiling: Profiling = NO_PROFILING
    gram_match: str = "all"
    """How the grams of a text belong together: a composite of `operators.grams`."""
    soft_timeout: bool = True
    """Whether hits that were found in time are an answer when there is no time for all."""
    soft_timeout_factor: float = 0.7
    """The share of the time until the deadline that matching and ranking may take, with a soft timeout."""
    match_phase: MatchPhaseOverride = MatchPhaseOverride()
    ranking: RankingOverride = RankingOverride()
    tensor_form: str = "short"
    """Of tensors in summaries: one of `tensor.json_output.FORMS`."""
    exact_tensors: bool = False
    """Whether their floats have the digits of a double, not the fewest that say which float it is."""
    streaming: Streaming | None = None
    prefetch: tuple[str, ...] = ()
    """Attributes whose values each hit carries: for collapsing and merging."""
    now_seconds: float | None = None
    """What the time is for rank features, in seconds since 1970; None: what it is."""
    search_after: SearchAfter | None = None
    global_hits: int = 0
    """For how many of the best hits of a type the container needs what their profile's global phase asks for."""

    @property
    def explains_hits(self) -> bool:
        return self.explain_level > 0 and self.trace_level > 0


class HitExplanation(NamedTuple):
    """Why a hit scores what it does."""

    phases: tuple[Mapping[str, Any], ...] = ()
    """Of each phase that the node knows of, what JSON can say: its score, and the tree of its expression."""
    note: str = ""
    """Why there are none."""
    global_values: tuple[NodeValue, ...] | None = None
    """What the nodes of the global phase's expression are, as far as that hangs on the hit alone."""


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
    mutations: tuple[Mutate, ...] = ()
    """What the node has to apply before it answers, by the rank profile's `mutate`. Never in an answer."""

    @property
    def covered_documents(self) -> int:
        """How many of `documents` were searched."""
        return round(self.documents * self.coverage)

    @property
    def timed_out(self) -> bool:
        return "timeout" in self.degraded


@dataclass(frozen=True, slots=True)
class StampRequest:
    """Asks for the stamp of the view that a query would search now: an int that no other view has, before or after.

    Answered at once. While the stamp is the same, so is what a query finds.
    """


@dataclass(frozen=True, slots=True)
class HealthRequest:
    """Asks whether the cluster takes operations. Answered at once."""


@dataclass(frozen=True, slots=True)
class HealthResponse:
    """Why the cluster takes no operations, since what was logged cannot be applied; None: it takes them."""

    fault: str | None


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Asks how the cluster is doing."""


@dataclass(frozen=True, slots=True)
class StatusResponse:
    """How much there is, and the generation that is served."""

    documents: int
    generation: int
    sizes_bytes: Mapping[str, int]
    metrics: Mapping[str, float] = field(default_factory=dict)
    """How full it is, by Vespa's names of metrics."""


@dataclass(frozen=True, slots=True)
class ReindexRequest:
    """Asks to write the next documents of a type anew, under the layout in force. Answered when they are applied.

    Errors: Overload (ask again later), InvalidInput.
    """

    document_type: str
    token: bytes = b""
    """Where the last answer ended; empty: from the start."""
    documents: int = 1024
    """At most so many; the node may take fewer."""


@dataclass(frozen=True, slots=True)
class ReindexResponse:
    """`token` is for the next request; None: there are no more. `progress` is from 0 to 1."""

    token: bytes | None
    progress: float
    documents: int
    """How many were written anew."""


Request = (
    ApplyRequest
    | HealthRequest
    | GetRequest
    | VisitRequest
    | SearchRequest
    | StampRequest
    | StatusRequest
    | ReindexRequest
)
Response = Outcome | HealthResponse | GetResponse | VisitResponse | SearchResponse | StatusResponse | ReindexResponse
