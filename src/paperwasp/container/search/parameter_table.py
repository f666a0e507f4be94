"""The parameters of a search request: names and aliases, types, and what each sets, in one table.

Names are found in any case. A plain name that is not in the table is a property of the application's own and is kept
without question; an unknown member of a reserved group (`ranking.…`) is an error. What Vespa knows and paperwasp does
not execute is refused when it would change the answer, and accepted when it would not.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from paperwasp.container.search import values
from paperwasp.container.search.settings import SearchParameters
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.features.catalog import feature_named
from paperwasp.search.query import ADJUST_TARGET, ALLOW_DROP_ALL, ELEMENT_GAP, FILTER_THRESHOLD, STOPWORD_LIMIT
from paperwasp.yql import query_type

Setter = Callable[[SearchParameters, str], None]
"""Takes the text of a value. Fails with ValueError, whose text says what the value must be."""
Convert = Callable[[str], Any]


def _to(attribute: str, convert: Convert) -> Setter:
    """Sets an attribute of the parameters, or `group.attribute` of one of their groups."""
    group, _, name = attribute.rpartition(".")

    def set_own(parameters: SearchParameters, value: str) -> None:
        setattr(parameters, name, convert(value))

    def set_of_group(parameters: SearchParameters, value: str) -> None:
        setattr(getattr(parameters, group), name, convert(value))

    return set_of_group if group else set_own


def _into(attribute: str, key: str, convert: Convert) -> Setter:
    """Puts a value into a dictionary; the empty text puts nothing there."""

    def put(parameters: SearchParameters, value: str) -> None:
        entries = getattr(parameters, attribute)
        entries.pop(key, None)
        if value:
            entries[key] = convert(value)

    return put


def _part(name: str, *words: str) -> Setter:
    """A part of the type of the user's text."""
    convert = values.one_of(*words)

    def put(parameters: SearchParameters, value: str) -> None:
        parameters.text.parts[name] = convert(value)

    return put


def _optional(convert: Convert) -> Convert:
    """None for the empty text."""
    return lambda text: convert(text) if text else None


def _checked(convert: Convert) -> Setter:
    """A parameter that must be well-formed and changes nothing here."""

    def check(parameters: SearchParameters, value: str) -> None:
        convert(value)

    return check


def _only(*allowed: str) -> Setter:
    """A parameter that is not executed: accepted with the values that ask for nothing, refused with others."""

    def refuse(parameters: SearchParameters, value: str) -> None:
        if value.lower() not in allowed:
            raise ValueError("this is not supported yet")

    return refuse


def _type(parameters: SearchParameters, value: str) -> None:
    parameters.text.type = query_type(value)


def _search_chain(parameters: SearchParameters, value: str) -> None:
    name = value.partition(":")[0]
    if name not in SEARCH_CHAINS:
        raise InvalidQuery(f"No search chain named '{value}' was found")


SEARCH_CHAINS: Final = ("default", "vespa", "native", "service")
"""All of them do the same: there are no components between which they could choose."""


def _profile(phase: str) -> Setter:
    """The depth of one profile."""

    def put(parameters: SearchParameters, value: str) -> None:
        parameters.trace.profiling[phase] = values.integer(value)

    return put


def _or_default(text: str) -> str:
    return text or "default"


_NO_VALUE: Final = _only("")
_NO_TIME: Final = _only("", "0")
_ON: Final = _only("", "true", "1")
_OFF: Final = _only("", "false", "0")
_FLAG: Final = _checked(values.boolean)
_COUNT: Final = _checked(values.count)
_FRACTION: Final = _checked(values.fraction)
_INTEGER: Final = _checked(values.integer)
_TEXT: Final = _checked(str)


def _property(name: str, convert: Callable[[str], str]) -> Setter:
    """A parameter that content nodes know as a rank property; an empty one says nothing."""

    def put(parameters: SearchParameters, value: str) -> None:
        if value:
            parameters.rank_properties[name] = convert(value)

    return put


def _share(text: str) -> str:
    return str(abs(values.fraction(text)))


def _true_or_false(text: str) -> str:
    return "true" if values.boolean(text) else "false"


def _gram_match(text: str) -> str:
    return values.one_of("all", "any", "weakAnd", "phrase", "near", "onear")(text) or "all"


PARAMETERS: Final[tuple[tuple[tuple[str, ...], Setter], ...]] = (
    (("yql",), _to("yql", str)),
    (("hits", "count"), _to("hits", values.count)),
    (("offset", "start"), _to("offset", values.count)),
    (("searchAfter",), _to("search_after", str)),
    (("timeout",), _to("timeout_ms", values.timeout_ms)),
    (("queryProfile",), _TEXT),
    (("searchChain",), _search_chain),
    (("maxHits",), _to("max_hits", values.count)),
    (("maxOffset",), _to("max_offset", values.count)),
    (("noCache",), _to("no_cache", values.boolean)),
    (("noCacheWrite",), _to("no_cache_write", values.boolean)),
    (("groupingSessionCache",), _FLAG),
    (("hitcountestimate",), _to("is_estimate", values.boolean)),
    (("recall",), _to("text.recall", str)),
    (("weakAnd.replace",), _to("text.weak_and_replaces_or", values.boolean)),
    (("weakAnd.opportunistic.and",), _OFF),
    (("weakAnd.opportunistic.factor",), _checked(values.number)),
    (("wand.hits",), _to("text.wand_hits", values.count)),
    (("wand.field",), _to("wand.field", str)),
    (("wand.tokens",), _to("wand.tokens", str)),
    (("wand.type",), _to("wand.type", str)),
    (("wand.heapSize",), _to("wand.heap_size", values.count)),
    (("wand.scoreThreshold",), _to("wand.score_threshold", values.number)),
    (("wand.thresholdBoostFactor",), _to("wand.threshold_boost_factor", values.number)),
    (("boolean.field",), _to("predicate.field", str)),
    (("boolean.attributes",), _to("predicate.attributes", str)),
    (("boolean.rangeAttributes",), _to("predicate.range_attributes", str)),
    (("user",), _TEXT),
    (("sourceName",), _TEXT),
    (("providerName",), _TEXT),
    (("metrics.ignore",), _FLAG),
    (("renderer.json.jsonMaps",), _ON),
    (("renderer.json.jsonWsets",), _ON),
    (("renderer.json.rawAsBase64",), _ON),
    (("renderer.json.debug",), _OFF),
    (("jsoncallback",), _to("presentation.callback", values.callback)),
    (("model.queryString", "query"), _to("text.query", str)),
    (("model.type", "type"), _type),
    (("model.type.composite",), _part("composite", "and", "near", "oNear", "or", "phrase", "weakAnd")),
    (("model.type.tokenization",), _part("tokenization", "internal", "linguistics")),
    (("model.type.syntax",), _part("syntax", "none", "simple", "web", "yql", "json", "programmatic")),
    (("model.type.profile",), _to("text.profile", str)),
    (("model.type.isYqlDefault",), _to("text.is_yql_default", values.boolean)),
    (("model.defaultIndex", "default-index"), _to("text.default_index", _optional(str))),
    (("model.filter", "filter"), _to("text.filter", str)),
    (("model.language", "language", "lang"), _to("text.language", values.language_tag)),
    (("model.locale", "locale"), _to("text.locale", values.language_tag)),
    (("model.encoding", "encoding"), _to("text.encoding", str.lower)),
    (("model.sources", "sources", "search"), _to("sources", values.names)),
    (("model.restrict", "restrict"), _to("restrict", values.names)),
    (("gram.match",), _to("text.gram_match", _gram_match)),
    (("model.searchPath", "searchpath"), _checked(values.search_path)),
    (("model.searchGroup", "searchgroup"), _TEXT),
    (("ranking.profile", "ranking"), _to("rank_profile", _or_default)),
    (("ranking.sorting", "sorting", "sortspec"), _to("sorting", str)),
    (("ranking.listFeatures", "rankfeatures"), _to("list_features", values.boolean)),
    (("ranking.location", "location"), _to("text.location", str)),
    (("pos.ll",), _to("position.ll", str)),
    (("pos.xy",), _to("position.xy", str)),
    (("pos.bb",), _to("position.bb", str)),
    (("pos.radius",), _to("position.radius", str)),
    (("pos.attribute",), _to("position.attribute", str)),
    (("ranking.freshness", "datetime"), _to("now", values.freshness)),
    (("ranking.queryCache",), _FLAG),
    (("ranking.rerankCount",), _into("ranking", "rerank_count", values.count)),
    (("ranking.keepRankCount",), _into("ranking", "keep_rank_count", values.count)),
    (("ranking.totalKeepRankCount",), _into("ranking", "keep_rank_count", values.count)),
    (("ranking.rankScoreDropLimit",), _into("ranking", "rank_score_drop_limit", values.number)),
    (("ranking.secondPhase.rerankCount",), _into("ranking", "rerank_count", values.count)),
    (("ranking.secondPhase.totalRerankCount",), _into("ranking", "rerank_count", values.count)),
    (
        ("ranking.secondPhase.rankScoreDropLimit",),
        _into("ranking", "second_phase_rank_score_drop_limit", values.number),
    ),
    (("ranking.globalPhase.rerankCount",), _to("global_phase.rerank_count", _optional(values.count))),
    (("ranking.globalPhase.rankScoreDropLimit",), _to("global_phase.rank_score_drop_limit", _optional(values.number))),
    (("ranking.significance.useModel",), _to("use_significance_model", _optional(values.boolean))),
    (("ranking.softtimeout.enable",), _to("soft_timeout", values.boolean)),
    (("ranking.softtimeout.factor",), _to("soft_timeout_factor", values.fraction)),
    (("ranking.softtimeout.tailcost",), _FRACTION),
    (("ranking.matching.termwiseLimit",), _FRACTION),
    (("ranking.matching.numThreadsPerSearch",), _COUNT),
    (("ranking.matching.numSearchPartitions",), _COUNT),
    (("ranking.matching.minHitsPerThread",), _COUNT),
    (("ranking.matching.postFilterThreshold",), _FRACTION),
    (("ranking.matching.approximateThreshold",), _FRACTION),
    (("ranking.matching.filterFirstThreshold",), _FRACTION),
    (("ranking.matching.filterFirstExploration",), _FRACTION),
    (("ranking.matching.explorationSlack",), _FRACTION),
    (("ranking.matching.targetHitsMaxAdjustmentFactor",), _checked(values.at_least_one)),
    (("ranking.matching.filterThreshold",), _property(FILTER_THRESHOLD, _share)),
    (("ranking.matching.weakand.stopwordLimit",), _property(STOPWORD_LIMIT, _share)),
    (("ranking.matching.weakand.adjustTarget",), _property(ADJUST_TARGET, _share)),
    (("ranking.matching.weakand.allowDropAll",), _property(ALLOW_DROP_ALL, _true_or_false)),
    (("ranking.matchPhase.attribute", "ranking.matchPhase", "matchPhase"), _into("match_phase", "attribute", str)),
    (("ranking.matchPhase.maxHits",), _into("match_phase", "max_hits", values.long_count)),
    (("ranking.matchPhase.totalMaxHits",), _into("match_phase", "max_hits", values.long_count)),
    (("ranking.matchPhase.ascending",), _into("match_phase", "ascending", values.boolean)),
    (("ranking.matchPhase.maxFilterCoverage",), _into("match_phase", "max_filter_coverage", values.fraction)),
    (("ranking.matchPhase.diversity.attribute",), _into("diversity", "attribute", str)),
    (("ranking.matchPhase.diversity.minGroups",), _into("diversity", "min_groups", values.long_count)),
    (("ranking.matchPhase.diversity.cutoff.factor",), _into("diversity", "cutoff_factor", values.number)),
    (
        ("ranking.matchPhase.diversity.cutoff.strategy",),
        _into("diversity", "cutoff_strategy", values.one_of("loose", "strict")),
    ),
    (("sorting.degrading",), _FLAG),
    (("dispatch.topKProbability",), _FRACTION),
    (("dispatch.maxHitsPerNode",), _COUNT),
    (("dispatch.compression",), _TEXT),
    (("presentation.summary", "summary"), _to("presentation.summary", _or_default)),
    (("presentation.summaryFields", "summaryFields"), _to("presentation.summary_fields", values.names)),
    (("presentation.bolding", "bolding"), _to("presentation.bolding", values.boolean)),
    (("presentation.timing", "timing"), _to("presentation.timing", values.boolean)),
    (("presentation.format", "format", "template"), _to("presentation.format", values.renderer)),
    (("presentation.template",), _TEXT),
    (("presentation.format.tensors", "format.tensors"), _to("presentation.tensor_form", values.tensor_form)),
    (("dynteaser",), _FLAG),
    (("trace.level", "tracelevel"), _to("trace.level", values.level)),
    (("trace.explainLevel", "explainlevel"), _to("trace.explain_level", values.explain_level)),
    (("trace.profileDepth",), _to("trace.profile_depth", values.integer)),
    (("trace.profiling.matching.depth",), _profile("matching")),
    (("trace.profiling.firstPhaseRanking.depth",), _profile("first_phase")),
    (("trace.profiling.secondPhaseRanking.depth",), _profile("second_phase")),
    (("trace.timestamps",), _to("trace.timestamps", values.boolean)),
    (("trace.timingDetails",), _FLAG),
    (("trace.query",), _to("trace.query", values.boolean)),
    (("trace.profile", "profile"), _FLAG),
    (("rules.off",), _to("rules.off", lambda text: not text or values.boolean(text))),
    (("rules.rulebase",), _to("rules.base", str)),
    (("tracelevel.rules",), _to("rules.trace_level", values.count)),
    (("select",), _NO_VALUE),
    (("select.where",), _to("select_where", str)),
    (("select.grouping",), _NO_VALUE),
    (("select.fields",), _to("select_fields", values.names_of_json)),
    (("grouping.defaultMaxGroups",), _INTEGER),
    (("grouping.defaultMaxHits",), _INTEGER),
    (("grouping.globalMaxGroups",), _INTEGER),
    (("grouping.defaultPrecisionFactor",), _checked(values.number)),
    (("timezone",), _TEXT),
    (("collapsefield", "collapse.field"), _to("collapse.fields", values.names)),
    (("collapsesize", "collapse.size"), _to("collapse.size", values.positive)),
    (("collapse.summary",), _to("collapse.summary", str)),
    (("streaming.groupname",), _into("streaming", "group", str)),
    (("streaming.selection",), _into("streaming", "selection", str)),
    (("streaming.userid",), _into("streaming", "userid", lambda text: values.integer(text, 63))),
    (("streaming.fromtimestamp",), _NO_TIME),
    (("streaming.totimestamp",), _NO_TIME),
    (("streaming.priority",), _TEXT),
    (("streaming.maxbucketspervisitor",), _COUNT),
)
"""(the name, then its aliases), and what sets or refuses it."""


def _table() -> Mapping[str, tuple[str, Setter]]:
    table: dict[str, tuple[str, Setter]] = {}
    for names, setter in PARAMETERS:
        for name in names:
            table[name] = table[name.lower()] = (names[0], setter)
    return table


_TABLE: Final = _table()
_FULL_NAMES: Final = frozenset(names[0] for names, _ in PARAMETERS)


def _set_feature(parameters: SearchParameters, rest: str, value: str) -> None:
    if rest.startswith("query(") and rest.endswith(")"):
        parameters.inputs[rest[len("query(") : -1]] = value
        return
    try:
        parameters.features[feature_named(rest)] = values.number(value)
    except LanguageError:
        told = "only query(name) and numbers of rank features can be set"
        raise IllegalQuery(f"Could not set '{_FEATURES}{rest}' to '{value}': {told}") from None


PROPERTY_PARAMETERS: Final[Mapping[str, str]] = {
    "vespa.hitcollector.heapsize": "ranking.rerankCount",
    "vespa.hitcollector.arraysize": "ranking.keepRankCount",
    "vespa.hitcollector.rankscoredroplimit": "ranking.rankScoreDropLimit",
    "vespa.hitcollector.secondphase.rankscoredroplimit": "ranking.secondPhase.rankScoreDropLimit",
    "vespa.softtimeout.enable": "ranking.softtimeout.enable",
    "vespa.softtimeout.factor": "ranking.softtimeout.factor",
    "vespa.matchphase.degradation.attribute": "ranking.matchPhase.attribute",
    "vespa.matchphase.degradation.ascendingorder": "ranking.matchPhase.ascending",
    "vespa.matchphase.degradation.maxhits": "ranking.matchPhase.maxHits",
    "vespa.matchphase.degradation.maxfiltercoverage": "ranking.matchPhase.maxFilterCoverage",
    "vespa.matchphase.diversity.attribute": "ranking.matchPhase.diversity.attribute",
    "vespa.matchphase.diversity.mingroups": "ranking.matchPhase.diversity.minGroups",
    "vespa.matchphase.diversity.cutoff.factor": "ranking.matchPhase.diversity.cutoff.factor",
    "vespa.matchphase.diversity.cutoff.strategy": "ranking.matchPhase.diversity.cutoff.strategy",
}
"""Rank properties as which Vespa's containers send parameters, and the parameters."""


def _set_property(parameters: SearchParameters, rest: str, value: str) -> None:
    parameters.rank_properties[rest] = value
    if rest in PROPERTY_PARAMETERS:
        set_parameter(parameters, PROPERTY_PARAMETERS[rest], value)


def _set_collapse_size(parameters: SearchParameters, rest: str, value: str) -> None:
    parameters.collapse.sizes[rest] = values.positive(value)


def _set_element_gap(parameters: SearchParameters, rest: str, value: str) -> None:
    values.element_gap(value)
    parameters.rank_properties[ELEMENT_GAP + rest] = value


def _refuse_source(parameters: SearchParameters, rest: str, value: str) -> None:
    """A parameter for one of the sources alone has its name, and then the parameter's."""
    if "." in rest and value:
        raise ValueError("parameters of single sources are not supported yet")


_FEATURES: Final = "ranking.features."
_OPEN_GROUPS: Final[Mapping[str, Callable[[SearchParameters, str, str], None]]] = {
    _FEATURES: _set_feature,
    "ranking.properties.": _set_property,
    "ranking.elementGap.": _set_element_gap,
    "collapsesize.": _set_collapse_size,
    "source.": _refuse_source,
    "provider.": _refuse_source,
}
"""What the full name of a parameter begins with whose rest the user chooses → what sets it."""
_PREFIXES: Final = (
    *((prefix, _FEATURES) for prefix in ("input.", "rankfeature.", "ranking.features.")),
    *((prefix, "ranking.properties.") for prefix in ("rankproperty.", "ranking.properties.")),
    ("ranking.elementgap.", "ranking.elementGap."),
    *((prefix, "collapsesize.") for prefix in ("collapsesize.", "collapse.size.")),
    *((prefix, prefix) for prefix in ("source.", "provider.")),
)
"""The same in lower case, with the aliases → in full."""
_RESERVED: Final = ("model", "ranking", "presentation")


def full_name(name: str) -> str:
    """The full name of a parameter that may be given by an alias, or in another case."""
    known = _TABLE.get(name) or _TABLE.get(name.lower())
    if known is not None:
        return known[0]
    lower = name.lower()
    for prefix, group in _PREFIXES:
        if lower.startswith(prefix):
            return group + name[len(prefix) :]
    return name


def is_full_name(name: str) -> bool:
    return name in _FULL_NAMES or name.startswith(tuple(_OPEN_GROUPS))


def set_parameter(parameters: SearchParameters, name: str, value: str) -> None:
    """Sets what `name` stands for. Errors: IllegalQuery, InvalidQuery."""
    known = _TABLE.get(name) or _TABLE.get(name.lower())
    try:
        if known is not None:
            known[1](parameters, value)
        else:
            _set_member(parameters, name, value)
    except ValueError as error:
        raise IllegalQuery(f"Could not set '{known[0] if known else full_name(name)}' to '{value}': {error}") from None


def _set_member(parameters: SearchParameters, name: str, value: str) -> None:
    """Sets a parameter whose name has a part of the user's choice, or keeps one that is the application's own."""
    full = full_name(name)
    for prefix, setter in _OPEN_GROUPS.items():
        if full.startswith(prefix):
            setter(parameters, full[len(prefix) :], value)
            return
    group, _, member = name.partition(".")
    if member and group.lower() in _RESERVED:
        raise IllegalQuery(
            f"'{member}' is not a valid property in '{group.lower()}'. "
            f"See the query api for valid keys starting by '{group.lower()}'."
        )
