"""The parameters of a search request, in groups. Filled by `parameters.read_parameters`; after that only
semantic rules may change it (`rules`).

Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.query_profiles import ResolvedProfile
from paperwasp.container.search.values import PRESENT, XML_FORMATS, Now
from paperwasp.document.tensor.types import TensorType
from paperwasp.query_languages.yql.lifting import Values
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.search.query import (
    NO_PROFILING,
    DiversityOverride,
    MatchPhaseOverride,
    Profiling,
    RankingOverride,
    Streaming,
)
from paperwasp.search.show.values import ALL_OBJECTS, Objects


class TextParameters(Struct):
    """`model.*`: the user's text, how it is read, and what is joined with it."""

    type: str = "weakAnd"
    parts: dict[str, str] = field(default_factory=dict)
    """`model.type.composite` and its like: part → value."""
    profile: str = ""
    is_yql_default: bool = False
    default_index: str | None = None
    language: str = ""
    locale: str = ""
    encoding: str = ""
    is_unstemmed: bool = False
    filter: str = ""
    recall: str | None = None
    weak_and_replaces_or: bool = False
    gram_match: str = "all"
    wand_hits: int = 100
    max_items: int = limits.QUERY_ITEMS
    """How many items the query may have, at most `limits.QUERY_ITEMS`."""


class PositionParameters(Struct, frozen=True):
    """`pos.*`. None: not given."""

    ll: str | None = None
    xy: str | None = None
    bb: str | None = None
    radius: str | None = None
    attribute: str = ""

    @property
    def is_given(self) -> bool:
        return self.ll is not None or self.xy is not None or self.bb is not None


NO_POSITION: Final = PositionParameters()


class WandParameters(Struct):
    """`wand.*` but for `wand.hits`. None: not given."""

    field: str | None = None
    tokens: str | None = None
    type: str = "vespa"
    heap_size: int = 100
    score_threshold: float = 0.0
    threshold_boost_factor: float = 1.0


class PredicateParameters(Struct):
    """`boolean.*`. None: not given."""

    field: str | None = None
    attributes: str | None = None
    range_attributes: str | None = None


class Collapse(Struct):
    """`collapsefield` and what belongs to it."""

    fields: tuple[str, ...] = ()
    size: int = 1
    sizes: dict[str, int] = field(default_factory=dict)
    summary: str = ""


class Tracing(Struct):
    """`trace.*`."""

    level: int = 0
    explain_level: int = 0
    profile_depth: int = 0
    """The depth of the profiles whose own depth is not given."""
    profiling: dict[str, int] = field(default_factory=dict)
    """Set fields of Profiling."""
    timestamps: bool = False
    query: bool = True

    def profiled(self) -> Profiling:
        if not self.profiling and not self.profile_depth:
            return NO_PROFILING
        return Profiling(**dict.fromkeys(Profiling.__struct_fields__, self.profile_depth) | self.profiling)


class RuleParameters(Struct):
    """`rules.*` and `tracelevel.rules`."""

    off: bool = False
    base: str = ""
    trace_level: int | None = None


class GlobalParameters(Struct):
    """`ranking.globalPhase.*`. None: as the rank profile says."""

    rerank_count: int | None = None
    rank_score_drop_limit: float | None = None


class Presentation(Struct):
    """`presentation.*`."""

    summary: str = "default"
    summary_fields: tuple[str, ...] = ()
    bolding: bool = True
    timing: bool = False
    format: str | None = None
    tensor_form: str = "short"
    callback: str = ""
    has_map_objects: bool = True
    has_weighted_set_objects: bool = True

    def objects(self) -> Objects:
        """The values that are shown as objects. XML knows none of the others."""
        if self.format in XML_FORMATS:
            return ALL_OBJECTS
        return Objects(self.has_map_objects, self.has_weighted_set_objects)


class GroupingParameters(Struct):
    """`select`, `validate_select`, `select.grouping`, `grouping.*`, `timezone`. None: as by default."""

    select: str = ""
    select_json: str = ""
    is_validated: bool = True
    """Whether what is grouped by must be an attribute of each cluster."""
    max_groups: int | None = None
    max_hits: int | None = None
    global_max_groups: int | None = None
    precision_factor: float | None = None
    timezone: str = "utc"


class RequestValues(Struct):
    """The parameters on which the plan of a request does not depend: requests that differ in nothing else share it.
    They are the rows of `parameters.PARAMETERS` that say `VALUE`."""

    query: str | None = None
    hits: int = limits.DEFAULT_HITS
    offset: int = 0
    search_after: str | None = None
    timeout_ms: float = limits.QUERY_TIMEOUT_MS
    location: str = ""
    position: PositionParameters = NO_POSITION
    inputs: dict[str, str] = field(default_factory=dict)
    """query(name) → its text."""
    streaming: dict[str, object] = field(default_factory=dict)
    """Set fields of Streaming."""
    given: dict[str, str] = field(default_factory=dict)
    """All parameters, as they came and by full names, for `@name` in YQL."""
    slots: Values = ()
    """The values that fill the slots of the statement: see `yql.lifting`."""

    def streamed(self) -> Streaming | None:
        return Streaming(**self.streaming) if self.streaming else None  # type: ignore[arg-type]


class SearchParameters(Struct):
    """One request's parameters, typed."""

    values: RequestValues = field(default_factory=RequestValues)
    yql: str | None = None
    text: TextParameters = field(default_factory=TextParameters)
    wand: WandParameters = field(default_factory=WandParameters)
    predicate: PredicateParameters = field(default_factory=PredicateParameters)
    select_where: str = ""
    select_fields: tuple[str, ...] = ()
    is_estimate: bool = False
    search_chain: str = ""
    """Empty: `default`."""
    soft_timeout: bool = True
    soft_timeout_factor: float | None = None
    sources: tuple[str, ...] = ()
    restrict: tuple[str, ...] = ()
    rank_profile: str = "default"
    sorting: str = ""
    list_features: bool = False
    now: Now = PRESENT
    input_types: dict[str, TensorType] = field(default_factory=dict)
    """The types of inputs in the type of the query profile."""
    features: dict[str, float] = field(default_factory=dict)
    """Rank feature → what it is for every hit, whatever it would be."""
    rank_properties: dict[str, str] = field(default_factory=dict)
    match_phase: dict[str, object] = field(default_factory=dict)
    """Set fields of MatchPhaseOverride."""
    diversity: dict[str, object] = field(default_factory=dict)
    ranking: dict[str, object] = field(default_factory=dict)
    """Set fields of RankingOverride."""
    expressions: dict[str, str] = field(default_factory=dict)
    """Set fields of RankExpressions."""
    use_significance_model: bool | None = None
    """None: as the rank profile says."""
    global_phase: GlobalParameters = field(default_factory=GlobalParameters)
    collapse: Collapse = field(default_factory=Collapse)
    presentation: Presentation = field(default_factory=Presentation)
    trace: Tracing = field(default_factory=Tracing)
    rules: RuleParameters = field(default_factory=RuleParameters)
    grouping: GroupingParameters = field(default_factory=GroupingParameters)
    no_cache: bool = False
    no_cache_write: bool = False
    max_hits: int = limits.MAX_HITS
    max_offset: int = limits.MAX_OFFSET
    profile: ResolvedProfile | None = None
    """The query profile that is used."""

    def ranking_override(self) -> RankingOverride | None:
        return RankingOverride(**self.ranking) if self.ranking else None  # type: ignore[arg-type]

    def rank_expressions(self) -> RankExpressions | None:
        """The expressions that take the place of the rank profile's; None: there are none."""
        return RankExpressions(**self.expressions) if self.expressions else None

    def match_phase_override(self) -> MatchPhaseOverride:
        if not self.match_phase and not self.diversity:
            return _NO_MATCH_PHASE
        diversity = DiversityOverride(**self.diversity)  # type: ignore[arg-type]
        return MatchPhaseOverride(**self.match_phase, diversity=diversity)  # type: ignore[arg-type]


_NO_MATCH_PHASE: Final = MatchPhaseOverride()
