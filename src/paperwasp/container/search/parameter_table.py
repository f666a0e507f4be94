"""The parameters of a search request: names and aliases, types, and what each sets, in one table.

Names are found in any case. A plain name that is not here is kept, as a property of the application's own; an unknown
member of a reserved group (`ranking.…`) is an error. What is not executed is refused if it would change the answer.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from paperwasp.container.search import values
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.features.catalog import feature_named
from paperwasp.search import matching_properties as matching
from paperwasp.yql import query_type

SHAPE: Final = "shape"
"""The plan of a query depends on the value of the parameter, which is set in SearchParameters."""
VALUE: Final = "value"
"""One plan serves all values of the parameter, which is set in RequestValues."""
Setter = Callable[[Any, str], None]
"""Takes what is set, and the text of a value. Fails with ValueError, whose text says what the value must be."""
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


def _number(attribute: str, convert: Convert) -> Setter:
    """The same of a number: the empty text says nothing."""
    put = _to(attribute, convert)

    def set_said(parameters: Any, value: str) -> None:
        if value:
            put(parameters, value)

    return set_said


def _part(name: str, *words: str) -> Setter:
    """A part of the type of the user's text."""
    convert = values.one_of(*words)

    def put(parameters: SearchParameters, value: str) -> None:
        parameters.text.parts[name] = convert(value)

    return put


def _optional(convert: Convert) -> Convert:
    """None for the empty text."""
    return lambda text: convert(text) if text else None


def _place(name: str) -> Setter:
    """A part of the position of a request."""

    def put(request: RequestValues, value: str) -> None:
        request.position = replace(request.position, **{name: value})

    return put


def _checks(convert: Convert) -> Setter:
    """A parameter that must be well-formed, if it is not empty, and changes nothing here."""

    def check(parameters: SearchParameters, value: str) -> None:
        if value:
            convert(value)

    return check


def _only(*allowed: str) -> Setter:
    """A parameter that is not executed: accepted with the values that ask for nothing, refused with others."""

    def refuse(parameters: SearchParameters, value: str) -> None:
        if value.lower() not in allowed:
            raise ValueError("this is not supported yet")

    return refuse


def _flag_only(allowed: bool) -> Setter:
    """The same of a parameter that is true or false."""

    def refuse(parameters: SearchParameters, value: str) -> None:
        if values.boolean(value) != allowed:
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
        if value:
            parameters.trace.profiling[phase] = values.integer(value)

    return put


def _or_default(text: str) -> str:
    return text or "default"


_NO_VALUE: Final = _only("")
_NO_TIME: Final = _only("", "0")
_ON: Final = _flag_only(True)
_OFF: Final = _flag_only(False)
_FLAG: Final = _checks(values.boolean)
_COUNT: Final = _checks(values.count)
_FRACTION: Final = _checks(values.fraction)
_INTEGER: Final = _checks(values.integer)
_TEXT: Final = _checks(str)


def _property(name: str, convert: Callable[[str], object]) -> Setter:
    """A parameter that content nodes know as a rank property; an empty one says nothing."""

    def put(parameters: SearchParameters, value: str) -> None:
        if value:
            parameters.rank_properties[name] = str(convert(value))

    return put


def _true_or_false(text: str) -> str:
    return "true" if values.boolean(text) else "false"


def _gram_match(text: str) -> str:
    return values.one_of("all", "any", "weakAnd", "phrase", "near", "onear")(text) or "all"


PARAMETERS: Final[tuple[tuple[tuple[str, ...], Setter, str], ...]] = (
    (("yql",), _to("yql", str), SHAPE),
    (("hits", "count"), _number("hits", values.window("hits")), VALUE),
    (("offset", "start"), _number("offset", values.window("offset")), VALUE),
    (("searchAfter",), _to("search_after", str), VALUE),
    (("timeout",), _to("timeout_ms", values.timeout_ms), VALUE),
    (("queryProfile",), _TEXT, SHAPE),
    (("searchChain",), _search_chain, SHAPE),
    (("maxHits",), _number("max_hits", values.count), SHAPE),
    (("maxOffset",), _number("max_offset", values.count), SHAPE),
    (("noCache",), _to("no_cache", values.boolean), SHAPE),
    (("noCacheWrite",), _to("no_cache_write", values.boolean), SHAPE),
    (("groupingSessionCache",), _FLAG, SHAPE),
    (("hitcountestimate",), _to("is_estimate", values.boolean), SHAPE),
    (("recall",), _to("text.recall", str), SHAPE),
    (("weakAnd.replace",), _to("text.weak_and_replaces_or", values.boolean), SHAPE),
    (("weakAnd.opportunistic.and",), _OFF, SHAPE),
    (("weakAnd.opportunistic.factor",), _checks(values.number), SHAPE),
    (("wand.hits",), _number("text.wand_hits", values.count), SHAPE),
    (("wand.field",), _to("wand.field", str), SHAPE),
    (("wand.tokens",), _to("wand.tokens", str), SHAPE),
    (("wand.type",), _to("wand.type", str), SHAPE),
    (("wand.heapSize",), _number("wand.heap_size", values.count), SHAPE),
    (("wand.scoreThreshold",), _number("wand.score_threshold", values.number), SHAPE),
    (("wand.thresholdBoostFactor",), _number("wand.threshold_boost_factor", values.number), SHAPE),
    (("boolean.field",), _to("predicate.field", str), SHAPE),
    (("boolean.attributes",), _to("predicate.attributes", str), SHAPE),
    (("boolean.rangeAttributes",), _to("predicate.range_attributes", str), SHAPE),
    (("user",), _TEXT, VALUE),
    (("sourceName",), _TEXT, SHAPE),
    (("providerName",), _TEXT, SHAPE),
    (("metrics.ignore",), _FLAG, SHAPE),
    (("renderer.json.jsonMaps",), _ON, SHAPE),
    (("renderer.json.jsonWsets",), _ON, SHAPE),
    (("renderer.json.rawAsBase64",), _ON, SHAPE),
    (("renderer.json.debug",), _OFF, SHAPE),
    (("FieldFilter.disable",), _OFF, SHAPE),
    (("FieldFiller.disable",), _OFF, SHAPE),
    (("jsoncallback",), _to("presentation.callback", values.callback), SHAPE),
    (("model.queryString", "query"), _to("query", str), VALUE),
    (("model.type", "type"), _type, SHAPE),
    (("model.type.composite",), _part("composite", "and", "near", "oNear", "or", "phrase", "weakAnd"), SHAPE),
    (("model.type.tokenization",), _part("tokenization", "internal", "linguistics"), SHAPE),
    (("model.type.syntax",), _part("syntax", "none", "simple", "web", "yql", "json", "programmatic"), SHAPE),
    (("model.type.profile",), _to("text.profile", str), SHAPE),
    (("model.type.isYqlDefault",), _to("text.is_yql_default", values.boolean), SHAPE),
    (("model.defaultIndex", "default-index"), _to("text.default_index", _optional(str)), SHAPE),
    (("model.filter", "filter"), _to("text.filter", str), SHAPE),
    (("model.language", "language", "lang"), _to("text.language", values.language_tag), SHAPE),
    (("model.locale", "locale"), _to("text.locale", values.language_tag), SHAPE),
    (("model.encoding", "encoding"), _to("text.encoding", str.lower), SHAPE),
    (("nostemming",), _to("text.is_unstemmed", values.boolean), SHAPE),
    (("suggestonly",), _FLAG, SHAPE),
    (("model.sources", "sources", "search"), _to("sources", values.names), SHAPE),
    (("model.restrict", "restrict"), _to("restrict", values.names), SHAPE),
    (("gram.match",), _to("text.gram_match", _gram_match), SHAPE),
    (("model.searchPath", "searchpath"), _checks(values.search_path), SHAPE),
    (("model.searchGroup", "searchgroup"), _TEXT, SHAPE),
    (("ranking.profile", "ranking"), _to("rank_profile", _or_default), SHAPE),
    (("ranking.sorting", "sorting", "sortspec"), _to("sorting", str), SHAPE),
    (("ranking.listFeatures", "rankfeatures"), _to("list_features", values.boolean), SHAPE),
    (("ranking.location", "location"), _to("location", str), VALUE),
    (("pos.ll",), _place("ll"), VALUE),
    (("pos.xy",), _place("xy"), VALUE),
    (("pos.bb",), _place("bb"), VALUE),
    (("pos.radius",), _place("radius"), VALUE),
    (("pos.attribute",), _place("attribute"), VALUE),
    (("ranking.freshness", "datetime"), _to("now", values.freshness), SHAPE),
    (("ranking.queryCache",), _FLAG, SHAPE),
    (("ranking.rerankCount",), _into("ranking", "rerank_count", values.count), SHAPE),
    (("ranking.keepRankCount",), _into("ranking", "keep_rank_count", values.count), SHAPE),
    (("ranking.totalKeepRankCount",), _into("ranking", "keep_rank_count", values.count), SHAPE),
    (("ranking.rankScoreDropLimit",), _into("ranking", "rank_score_drop_limit", values.number), SHAPE),
    (("ranking.secondPhase.rerankCount",), _into("ranking", "rerank_count", values.count), SHAPE),
    (("ranking.secondPhase.totalRerankCount",), _into("ranking", "rerank_count", values.count), SHAPE),
    (
        ("ranking.secondPhase.rankScoreDropLimit",),
        _into("ranking", "second_phase_rank_score_drop_limit", values.number),
        SHAPE,
    ),
    (("ranking.globalPhase.rerankCount",), _to("global_phase.rerank_count", _optional(values.count)), SHAPE),
    (
        ("ranking.globalPhase.rankScoreDropLimit",),
        _to("global_phase.rank_score_drop_limit", _optional(values.number)),
        SHAPE,
    ),
    (("ranking.significance.useModel",), _to("use_significance_model", values.boolean), SHAPE),
    (("ranking.softtimeout.enable",), _to("soft_timeout", values.boolean), SHAPE),
    (("ranking.softtimeout.factor",), _number("soft_timeout_factor", values.fraction), SHAPE),
    (("ranking.softtimeout.tailcost",), _FRACTION, SHAPE),
    (("ranking.matching.termwiseLimit",), _FRACTION, SHAPE),
    (("ranking.matching.numThreadsPerSearch",), _COUNT, SHAPE),
    (("ranking.matching.numSearchPartitions",), _COUNT, SHAPE),
    (("ranking.matching.minHitsPerThread",), _COUNT, SHAPE),
    (("ranking.matching.postFilterThreshold",), _property(matching.POST_FILTER_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.approximateThreshold",), _property(matching.APPROXIMATE_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.filterFirstThreshold",), _property(matching.FILTER_FIRST_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.filterFirstExploration",), _property(matching.FILTER_FIRST_EXPLORATION, values.share), SHAPE),
    (("ranking.matching.explorationSlack",), _property(matching.EXPLORATION_SLACK, values.share), SHAPE),
    (("ranking.matching.anntimebudget",), _property(matching.TIME_BUDGET, values.budget_ms), SHAPE),
    (("ranking.matching.anntimeout.enable",), _FLAG, SHAPE),
    (("ranking.matching.anntimeout.factor",), _FRACTION, SHAPE),
    (("ranking.matching.targetHitsMaxAdjustmentFactor",), _property(matching.TARGET_FACTOR, values.from_one), SHAPE),
    (("ranking.matching.filterThreshold",), _property(matching.FILTER_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.weakand.stopwordLimit",), _property(matching.STOPWORD_LIMIT, values.share), SHAPE),
    (("ranking.matching.weakand.adjustTarget",), _property(matching.ADJUST_TARGET, values.share), SHAPE),
    (("ranking.matching.weakand.allowDropAll",), _property(matching.ALLOW_DROP_ALL, _true_or_false), SHAPE),
    (
        ("ranking.matchPhase.attribute", "ranking.matchPhase", "matchPhase"),
        _into("match_phase", "attribute", str),
        SHAPE,
    ),
    (("ranking.matchPhase.maxHits",), _into("match_phase", "max_hits", values.long_count), SHAPE),
    (("ranking.matchPhase.totalMaxHits",), _into("match_phase", "max_hits", values.long_count), SHAPE),
    (("ranking.matchPhase.ascending",), _into("match_phase", "ascending", values.boolean), SHAPE),
    (("ranking.matchPhase.maxFilterCoverage",), _into("match_phase", "max_filter_coverage", values.fraction), SHAPE),
    (("ranking.matchPhase.diversity.attribute",), _into("diversity", "attribute", str), SHAPE),
    (("ranking.matchPhase.diversity.minGroups",), _into("diversity", "min_groups", values.long_count), SHAPE),
    (("ranking.matchPhase.diversity.cutoff.factor",), _into("diversity", "cutoff_factor", values.number), SHAPE),
    (
        ("ranking.matchPhase.diversity.cutoff.strategy",),
        _into("diversity", "cutoff_strategy", values.one_of("loose", "strict")),
        SHAPE,
    ),
    (("sorting.degrading",), _FLAG, SHAPE),
    (("dispatch.topKProbability",), _FRACTION, SHAPE),
    (("dispatch.maxHitsPerNode",), _COUNT, SHAPE),
    (("dispatch.compression",), _TEXT, SHAPE),
    (("presentation.summary", "summary"), _to("presentation.summary", _or_default), SHAPE),
    (("presentation.summaryFields", "summaryFields"), _to("presentation.summary_fields", values.names), SHAPE),
    (("presentation.bolding", "bolding"), _to("presentation.bolding", values.boolean), SHAPE),
    (("presentation.timing", "timing"), _to("presentation.timing", values.boolean), SHAPE),
    (("presentation.format", "format", "template"), _to("presentation.format", values.renderer), SHAPE),
    (("presentation.template",), _TEXT, SHAPE),
    (("presentation.format.tensors", "format.tensors"), _to("presentation.tensor_form", values.tensor_form), SHAPE),
    (("dynteaser",), _FLAG, SHAPE),
    (("trace.level", "tracelevel"), _number("trace.level", values.level), SHAPE),
    (("trace.explainLevel", "explainlevel"), _number("trace.explain_level", values.explain_level), SHAPE),
    (("trace.profileDepth",), _number("trace.profile_depth", values.integer), SHAPE),
    (("trace.profiling.matching.depth",), _profile("matching"), SHAPE),
    (("trace.profiling.firstPhaseRanking.depth",), _profile("first_phase"), SHAPE),
    (("trace.profiling.secondPhaseRanking.depth",), _profile("second_phase"), SHAPE),
    (("trace.timestamps",), _to("trace.timestamps", values.boolean), SHAPE),
    (("trace.timingDetails",), _FLAG, SHAPE),
    (("trace.query",), _to("trace.query", values.boolean), SHAPE),
    (("trace.profile", "profile"), _FLAG, SHAPE),
    (("rules.off",), _to("rules.off", values.boolean), SHAPE),
    (("rules.rulebase",), _to("rules.base", str), SHAPE),
    (("tracelevel.rules",), _number("rules.trace_level", values.count), SHAPE),
    (("select",), _to("grouping.select", str), SHAPE),
    (("validate_select",), _to("grouping.is_validated", values.boolean), SHAPE),
    (("select.where",), _to("select_where", str), SHAPE),
    (("select.grouping",), _to("grouping.select_json", str), SHAPE),
    (("select.fields",), _to("select_fields", values.names_of_json), SHAPE),
    (("grouping.defaultMaxGroups",), _number("grouping.max_groups", values.integer), SHAPE),
    (("grouping.defaultMaxHits",), _number("grouping.max_hits", values.integer), SHAPE),
    (("grouping.globalMaxGroups",), _number("grouping.global_max_groups", values.integer), SHAPE),
    (("grouping.defaultPrecisionFactor",), _number("grouping.precision_factor", values.number), SHAPE),
    (("timezone",), _number("grouping.timezone", str), SHAPE),
    (("collapsefield", "collapse.field"), _to("collapse.fields", values.names), SHAPE),
    (("collapsesize", "collapse.size"), _number("collapse.size", values.positive), SHAPE),
    (("collapse.summary",), _to("collapse.summary", str), SHAPE),
    (("streaming.groupname",), _into("streaming", "group", str), VALUE),
    (("streaming.selection",), _into("streaming", "selection", str), VALUE),
    (("streaming.userid",), _into("streaming", "userid", lambda text: values.integer(text, 63)), VALUE),
    (("streaming.fromtimestamp",), _NO_TIME, SHAPE),
    (("streaming.totimestamp",), _NO_TIME, SHAPE),
    (("streaming.priority",), _TEXT, SHAPE),
    (("streaming.maxbucketspervisitor",), _COUNT, SHAPE),
)
"""(the name, then its aliases), what sets or refuses it, and whether the plan depends on its value."""


def _table() -> Mapping[str, tuple[str, Setter, str]]:
    table: dict[str, tuple[str, Setter, str]] = {}
    for names, setter, kind in PARAMETERS:
        for name in names:
            table[name] = table[name.lower()] = (names[0], setter, kind)
    return table


_TABLE: Final = _table()
_FULL_NAMES: Final = frozenset(names[0] for names, *_ in PARAMETERS)


def _set_feature(parameters: SearchParameters, rest: str, value: str) -> None:
    if rest.startswith("query(") and rest.endswith(")"):
        parameters.values.inputs[rest[len("query(") : -1]] = value
        return
    try:
        parameters.features[feature_named(rest)] = values.number(value)
    except LanguageError:
        reason = "only query(name) and numbers of rank features can be set"
        raise IllegalQuery(f"Could not set '{_FEATURES}{rest}' to '{value}': {reason}") from None


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
    if value:
        parameters.collapse.sizes[rest] = values.positive(value)


def _set_element_gap(parameters: SearchParameters, rest: str, value: str) -> None:
    values.element_gap(value)
    parameters.rank_properties[matching.ELEMENT_GAP + rest] = value


def _refuse_source(parameters: SearchParameters, rest: str, value: str) -> None:
    """A parameter for one of the sources alone has its name, and then the parameter's."""
    if "." in rest and value:
        raise ValueError("parameters of single sources are not supported yet")


_FEATURES: Final = "ranking.features."
_INPUT: Final = f"{_FEATURES}query("
_OPEN_GROUPS: Final[Mapping[str, Callable[[SearchParameters, str, str], None]]] = {
    _FEATURES: _set_feature,
    "ranking.properties.": _set_property,
    "ranking.elementGap.": _set_element_gap,
    "collapsesize.": _set_collapse_size,
    "source.": _refuse_source,
    "provider.": _refuse_source,
}
"""The beginning of the full name of a parameter whose rest the user chooses → its setter."""
_PREFIXES: Final = (
    *((prefix, _FEATURES) for prefix in ("input.", "rankfeature.", "ranking.features.")),
    *((prefix, "ranking.properties.") for prefix in ("rankproperty.", "ranking.properties.")),
    ("ranking.elementgap.", "ranking.elementGap."),
    *((prefix, "collapsesize.") for prefix in ("collapsesize.", "collapse.size.")),
    *((prefix, prefix) for prefix in ("source.", "provider.")),
)
"""The same in lower case, with the aliases → in full."""
_RESERVED: Final = ("model", "ranking", "presentation", "select", "trace")


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
            known[1](parameters.values if known[2] == VALUE else parameters, value)
        else:
            _set_member(parameters, name, value)
    except ValueError as error:
        raise IllegalQuery(f"Could not set '{known[0] if known else full_name(name)}' to '{value}': {error}") from None


def value_setter(name: str) -> Setter | None:
    """The setter of the parameter in RequestValues; None: the plan depends on its value."""
    known = _TABLE.get(name) or _TABLE.get(name.lower())
    if known is not None:
        return known[1] if known[2] == VALUE else None
    full = full_name(name)
    if full.startswith(_INPUT) and full.endswith(")"):
        return partial(_set_input, full[len(_INPUT) : -1])
    is_own = not full.startswith(tuple(_OPEN_GROUPS)) and full.partition(".")[0].lower() not in _RESERVED
    return _set_nothing if is_own else None


def _set_input(name: str, values: RequestValues, value: str) -> None:
    values.inputs[name] = value


def _set_nothing(values: RequestValues, value: str) -> None:
    """A property of the application's own is only among those that are given."""


def _set_member(parameters: SearchParameters, name: str, value: str) -> None:
    """Sets a parameter whose name has a part of the user's choice, or keeps one that is the application's own."""
    full = full_name(name)
    for prefix, setter in _OPEN_GROUPS.items():
        if full.startswith(prefix):
            setter(parameters, full[len(prefix) :], value)
            return
    group, _, member = name.partition(".")
    if group.lower() in _RESERVED and (member or parameters.profile is None):
        group = group.lower()
        raise ValueError(
            f"'{member}' is not a valid property in '{group}'. See the query api for valid keys starting by '{group}'."
        )
