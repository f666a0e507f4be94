"""From the names and values of a request to its settings, under a query profile.

A query profile gives values for what the request leaves out. In profiles parameters have their full names: an alias
there is a property of the application's own.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from paperwasp.application.query_profiles import NO_QUERY_PROFILES, QueryProfiles, ResolvedProfile
from paperwasp.application.services_config import EXPRESSIONS
from paperwasp.container.search import values
from paperwasp.container.search.setters import (
    Convert,
    Setter,
    checks,
    depth,
    flag_only,
    into,
    number,
    only,
    optional,
    part,
    place,
    rank_property,
    to,
)
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.container.search.values import check_format
from paperwasp.container.timeouts import timeout_ms
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.query_languages.yql import query_type
from paperwasp.ranking.query_expressions import PARAMETERS as EXPRESSION_PARAMETERS
from paperwasp.ranking.query_expressions import check_text
from paperwasp.search import matching_settings as matching
from paperwasp.search.features.catalog import feature_named

_REFERENCE: Final = "See https://docs.vespa.ai/en/reference/api/query.html#native-execution-parameters"


def read_parameters(
    pairs: Iterable[tuple[str, str]], query_profiles: QueryProfiles = NO_QUERY_PROFILES
) -> SearchParameters:
    """The parameters of a request; of several for one thing the last wins.

    Errors: IllegalQuery naming the parameter and the value; InvalidQuery for an unknown search chain.
    """
    pairs = list(pairs)
    parameters = SearchParameters(RequestValues(given=dict(pairs)))
    name = _query_profile(pairs)
    if name is not None or query_profiles.has_default:
        parameters.profile = query_profiles.compile(name or "", parameters.values.given)
    if parameters.profile is not None:
        _set_under_profile(parameters, parameters.profile, pairs, query_profiles)
    elif name is not None:
        raise IllegalQuery(f"Could not resolve query profile '{name}'")
    else:
        for key, value in pairs:
            set_parameter(parameters, key, value)
    _check_format(parameters.presentation.format or "")
    check_window(parameters, parameters.values)
    if parameters.presentation.callback and parameters.presentation.format == "cbor":
        raise IllegalQuery("'jsoncallback' needs the format json: cbor is no JavaScript")
    return parameters


def _check_format(name: str) -> None:
    """Errors: IllegalQuery. Only the format that is used is looked for, as in Vespa (SearchHandler.java)."""
    try:
        check_format(name)
    except ValueError as error:
        raise IllegalQuery(f"Could not set 'presentation.format' to '{name}': {error}") from None


def _query_profile(pairs: Iterable[tuple[str, str]]) -> str | None:
    """The name of the query profile that the request names. Errors: IllegalQuery for what only a profile may set."""
    name: str | None = None
    for key, value in pairs:
        lower = key.lower()
        if lower == "queryprofile":
            name = value
        elif lower in _FROM_PROFILE_ONLY:
            raise IllegalQuery(f"{full_name(key)} must be specified in a query profile.")
    return name


_FROM_PROFILE_ONLY: Final = frozenset(("maxhits", "maxoffset", "grouping.globalmaxgroups"))


def _set_under_profile(
    parameters: SearchParameters,
    profile: ResolvedProfile,
    pairs: Iterable[tuple[str, str]],
    query_profiles: QueryProfiles,
) -> None:
    """Sets what the request says, as far as the profile lets it, and what the profile says of the rest."""
    request = parameters.values.given
    named = {full_name(name): value for name, value in pairs}
    values = query_profiles.values(profile, named, request, full_name)
    for name, value in values.items():
        if name in named or is_full_name(name):
            set_parameter(parameters, name, value)
    if profile.fixed:
        request = {name: value for name, value in request.items() if not profile.rule(full_name(name)).is_fixed}
    for name in parameters.values.inputs:
        declared = profile.rule(f"ranking.features.query({name})").declared
        if declared is not None and declared.type.tensor is not None:
            parameters.input_types[name] = declared.type.tensor
    parameters.values.given = request | values


def check_window(parameters: SearchParameters, values: RequestValues) -> None:
    """Errors: IllegalQuery for more hits, or a larger offset, than the query profile allows."""
    hits, offset = values.hits, values.offset
    if hits > parameters.max_hits:
        raise IllegalQuery(f"{hits} hits requested, configured limit: {parameters.max_hits}. {_REFERENCE}")
    if offset > parameters.max_offset:
        raise IllegalQuery(f"Offset of {offset} requested, configured limit: {parameters.max_offset}. {_REFERENCE}")


# The parameters of a search request: names and aliases, types, and what each sets, in one table.
#
# Names are found in any case. A plain name that is not here is kept, as a property of the application's own; an unknown
# member of a reserved group (`ranking.…`) is an error. What is not executed is refused if it would change the answer.
# Vespa: https://docs.vespa.ai/en/reference/api/query.html


# The parameters of a search that bring ranking expressions: `ranking.firstPhase.expression` and its like.


SWITCHED_OFF: Final = (
    f"Ranking expressions in queries are switched off by '{EXPRESSIONS}' in services.xml, or by "
    "'paperwasp serve --no-query-expressions'"
)


def put_expression(field: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Sets an expression; white space alone takes back what a query profile says. Errors: IllegalQuery."""
    parameters.expressions.pop(field, None)
    if not value.strip():
        return
    try:
        check_text(field, value)
    except LanguageError as error:
        raise IllegalQuery(error.message) from None
    parameters.expressions[field] = convert(value)


SETTERS: Final = tuple(((name,), partial(put_expression, field, str)) for field, name in EXPRESSION_PARAMETERS.items())
"""(name,), and what sets the parameter."""


SHAPE: Final = "shape"
"""The plan of a query depends on the value of the parameter, which is set in SearchParameters."""
VALUE: Final = "value"
"""One plan serves all values of the parameter, which is set in RequestValues."""


def _type(parameters: SearchParameters, value: str) -> None:
    parameters.text.type = query_type(value)


SEARCH_CHAINS: Final = ("default", "vespa", "native", "service")
"""All of them do the same, and so do those of an application that inherit one: there are no components between which
they could choose."""


def check_search_chain(name: str, declared: Collection[str]) -> None:
    """Errors: InvalidQuery for a search chain that is neither Vespa's own nor one of the container."""
    if name and name.partition(":")[0] not in (*SEARCH_CHAINS, *declared):
        raise InvalidQuery(f"No search chain named '{name}' was found")


def or_default(text: str) -> str:
    """A name; the empty text is that of the default."""
    return text or "default"


def true_or_false(text: str) -> str:
    """A boolean as the rank property has it."""
    return "true" if values.boolean(text) else "false"


def gram_match(text: str) -> str:
    """How the grams of a word match."""
    return GRAM_MATCHES(text) or "all"


GRAM_MATCHES: Final = values.one_of("all", "any", "weakAnd", "phrase", "near", "onear")


_NO_TIME: Final = only("", "0")
_ON: Final = flag_only(True)
_OFF: Final = flag_only(False)
_FLAG: Final = checks(values.boolean)
_COUNT: Final = checks(values.count)
_FRACTION: Final = checks(values.fraction)
_INTEGER: Final = checks(values.integer)
_TEXT: Final = checks(str)

PARAMETERS: Final[tuple[tuple[tuple[str, ...], Setter, str], ...]] = (
    (("yql",), to("yql", str), SHAPE),
    (("hits", "count"), number("hits", values.window("hits")), VALUE),
    (("offset", "start"), number("offset", values.window("offset")), VALUE),
    (("searchAfter",), to("search_after", str), VALUE),
    (("timeout",), to("timeout_ms", timeout_ms), VALUE),
    (("queryProfile",), _TEXT, SHAPE),
    (("searchChain",), to("search_chain", str), SHAPE),
    (("maxHits",), number("max_hits", values.count), SHAPE),
    (("maxOffset",), number("max_offset", values.count), SHAPE),
    (("maxQueryItems",), number("text.max_items", values.items), SHAPE),
    (("noCache",), to("no_cache", values.boolean), SHAPE),
    (("noCacheWrite",), to("no_cache_write", values.boolean), SHAPE),
    (("groupingSessionCache",), _FLAG, SHAPE),
    (("hitcountestimate",), to("is_estimate", values.boolean), SHAPE),
    (("recall",), to("text.recall", str), SHAPE),
    (("weakAnd.replace",), to("text.weak_and_replaces_or", values.boolean), SHAPE),
    (("weakAnd.opportunistic.and",), _OFF, SHAPE),
    (("weakAnd.opportunistic.factor",), checks(values.number), SHAPE),
    (("wand.hits",), number("text.wand_hits", values.count), SHAPE),
    (("wand.field",), to("wand.field", str), SHAPE),
    (("wand.tokens",), to("wand.tokens", str), SHAPE),
    (("wand.type",), to("wand.type", str), SHAPE),
    (("wand.heapSize",), number("wand.heap_size", values.count), SHAPE),
    (("wand.scoreThreshold",), number("wand.score_threshold", values.number), SHAPE),
    (("wand.thresholdBoostFactor",), number("wand.threshold_boost_factor", values.number), SHAPE),
    (("boolean.field",), to("predicate.field", str), SHAPE),
    (("boolean.attributes",), to("predicate.attributes", str), SHAPE),
    (("boolean.rangeAttributes",), to("predicate.range_attributes", str), SHAPE),
    (("user",), _TEXT, VALUE),
    (("sourceName",), _TEXT, SHAPE),
    (("providerName",), _TEXT, SHAPE),
    (("metrics.ignore",), _FLAG, SHAPE),
    (("renderer.json.jsonMaps",), to("presentation.has_map_objects", values.boolean), SHAPE),
    (("renderer.json.jsonWsets",), to("presentation.has_weighted_set_objects", values.boolean), SHAPE),
    (("renderer.json.rawAsBase64",), _ON, SHAPE),
    (("renderer.json.debug",), _OFF, SHAPE),
    (("FieldFilter.disable",), _OFF, SHAPE),
    (("FieldFiller.disable",), _OFF, SHAPE),
    (("jsoncallback",), to("presentation.callback", values.callback), SHAPE),
    (("model.queryString", "query"), to("query", str), VALUE),
    (("model.type", "type"), _type, SHAPE),
    (("model.type.composite",), part("composite", "and", "near", "oNear", "or", "phrase", "weakAnd"), SHAPE),
    (("model.type.tokenization",), part("tokenization", "internal", "linguistics"), SHAPE),
    (("model.type.syntax",), part("syntax", "none", "simple", "web", "yql", "json", "programmatic"), SHAPE),
    (("model.type.profile",), to("text.profile", str), SHAPE),
    (("model.type.isYqlDefault",), to("text.is_yql_default", values.boolean), SHAPE),
    (("model.defaultIndex", "default-index"), to("text.default_index", optional(str)), SHAPE),
    (("model.filter", "filter"), to("text.filter", str), SHAPE),
    (("model.language", "language", "lang"), to("text.language", values.language_tag), SHAPE),
    (("model.locale", "locale"), to("text.locale", values.language_tag), SHAPE),
    (("model.encoding", "encoding"), to("text.encoding", str.lower), SHAPE),
    (("nostemming",), to("text.is_unstemmed", values.boolean), SHAPE),
    (("suggestonly",), _FLAG, SHAPE),
    (("model.sources", "sources", "search"), to("sources", values.names), SHAPE),
    (("model.restrict", "restrict"), to("restrict", values.names), SHAPE),
    (("gram.match",), to("text.gram_match", gram_match), SHAPE),
    (("model.searchPath", "searchpath"), checks(values.search_path), SHAPE),
    (("model.searchGroup", "searchgroup"), _TEXT, SHAPE),
    (("ranking.profile", "ranking"), to("rank_profile", or_default), SHAPE),
    (("ranking.sorting", "sorting", "sortspec"), to("sorting", str), SHAPE),
    (("ranking.listFeatures", "rankfeatures"), to("list_features", values.boolean), SHAPE),
    (("ranking.location", "location"), to("location", str), VALUE),
    (("pos.ll",), place("ll"), VALUE),
    (("pos.xy",), place("xy"), VALUE),
    (("pos.bb",), place("bb"), VALUE),
    (("pos.radius",), place("radius"), VALUE),
    (("pos.attribute",), place("attribute"), VALUE),
    (("ranking.freshness", "datetime"), to("now", values.freshness), SHAPE),
    (("ranking.queryCache",), _FLAG, SHAPE),
    (("ranking.rerankCount",), into("ranking", "rerank_count", values.count), SHAPE),
    (("ranking.keepRankCount",), into("ranking", "keep_rank_count", values.count), SHAPE),
    (("ranking.totalKeepRankCount",), into("ranking", "keep_rank_count", values.count), SHAPE),
    (("ranking.rankScoreDropLimit",), into("ranking", "rank_score_drop_limit", values.number), SHAPE),
    (("ranking.secondPhase.rerankCount",), into("ranking", "rerank_count", values.count), SHAPE),
    (("ranking.secondPhase.totalRerankCount",), into("ranking", "rerank_count", values.count), SHAPE),
    (
        ("ranking.secondPhase.rankScoreDropLimit",),
        into("ranking", "second_phase_rank_score_drop_limit", values.number),
        SHAPE,
    ),
    (("ranking.globalPhase.rerankCount",), to("global_phase.rerank_count", optional(values.count)), SHAPE),
    (
        ("ranking.globalPhase.rankScoreDropLimit",),
        to("global_phase.rank_score_drop_limit", optional(values.number)),
        SHAPE,
    ),
    *((names, setter, SHAPE) for names, setter in SETTERS),
    (("ranking.significance.useModel",), to("use_significance_model", values.boolean), SHAPE),
    (("ranking.softtimeout.enable",), to("soft_timeout", values.boolean), SHAPE),
    (("ranking.softtimeout.factor",), number("soft_timeout_factor", values.fraction), SHAPE),
    (("ranking.softtimeout.tailcost",), _FRACTION, SHAPE),
    (("ranking.matching.termwiseLimit",), _FRACTION, SHAPE),
    (("ranking.matching.numThreadsPerSearch",), rank_property(matching.THREADS_OF_SEARCH, values.count), SHAPE),
    (("ranking.matching.numSearchPartitions",), rank_property(matching.SEARCH_PARTITIONS, values.count), SHAPE),
    (("ranking.matching.minHitsPerThread",), rank_property(matching.HITS_OF_THREAD, values.count), SHAPE),
    (("ranking.matching.postFilterThreshold",), rank_property(matching.POST_FILTER_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.approximateThreshold",), rank_property(matching.APPROXIMATE_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.filterFirstThreshold",), rank_property(matching.FILTER_FIRST_THRESHOLD, values.share), SHAPE),
    (
        ("ranking.matching.filterFirstExploration",),
        rank_property(matching.FILTER_FIRST_EXPLORATION, values.share),
        SHAPE,
    ),
    (("ranking.matching.explorationSlack",), rank_property(matching.EXPLORATION_SLACK, values.share), SHAPE),
    (("ranking.matching.anntimebudget",), rank_property(matching.TIME_BUDGET, values.budget_ms), SHAPE),
    (("ranking.matching.anntimeout.enable",), _FLAG, SHAPE),
    (("ranking.matching.anntimeout.factor",), _FRACTION, SHAPE),
    (
        ("ranking.matching.targetHitsMaxAdjustmentFactor",),
        rank_property(matching.TARGET_FACTOR, values.from_one),
        SHAPE,
    ),
    (("ranking.matching.filterThreshold",), rank_property(matching.FILTER_THRESHOLD, values.share), SHAPE),
    (("ranking.matching.weakand.stopwordLimit",), rank_property(matching.STOPWORD_LIMIT, values.share), SHAPE),
    (("ranking.matching.weakand.adjustTarget",), rank_property(matching.ADJUST_TARGET, values.share), SHAPE),
    (("ranking.matching.weakand.allowDropAll",), rank_property(matching.ALLOW_DROP_ALL, true_or_false), SHAPE),
    (
        ("ranking.matchPhase.attribute", "ranking.matchPhase", "matchPhase"),
        into("match_phase", "attribute", str),
        SHAPE,
    ),
    (("ranking.matchPhase.maxHits",), into("match_phase", "max_hits", values.long_count), SHAPE),
    (("ranking.matchPhase.totalMaxHits",), into("match_phase", "max_hits", values.long_count), SHAPE),
    (("ranking.matchPhase.ascending",), into("match_phase", "ascending", values.boolean), SHAPE),
    (("ranking.matchPhase.maxFilterCoverage",), into("match_phase", "max_filter_coverage", values.fraction), SHAPE),
    (("ranking.matchPhase.diversity.attribute",), into("diversity", "attribute", str), SHAPE),
    (("ranking.matchPhase.diversity.minGroups",), into("diversity", "min_groups", values.long_count), SHAPE),
    (("ranking.matchPhase.diversity.cutoff.factor",), into("diversity", "cutoff_factor", values.number), SHAPE),
    (
        ("ranking.matchPhase.diversity.cutoff.strategy",),
        into("diversity", "cutoff_strategy", values.one_of("loose", "strict")),
        SHAPE,
    ),
    (("sorting.degrading",), _FLAG, SHAPE),
    (("dispatch.topKProbability",), _FRACTION, SHAPE),
    (("dispatch.maxHitsPerNode",), _COUNT, SHAPE),
    (("dispatch.compression",), _TEXT, SHAPE),
    (("presentation.summary", "summary"), to("presentation.summary", or_default), SHAPE),
    (("presentation.summaryFields", "summaryFields"), to("presentation.summary_fields", values.names), SHAPE),
    (("presentation.bolding", "bolding"), to("presentation.bolding", values.boolean), SHAPE),
    (("presentation.timing", "timing"), to("presentation.timing", values.boolean), SHAPE),
    (("presentation.format", "format", "template"), to("presentation.format", values.renderer), SHAPE),
    (("presentation.template",), _TEXT, SHAPE),
    (("presentation.format.tensors", "format.tensors"), to("presentation.tensor_form", values.tensor_form), SHAPE),
    (("dynteaser",), _FLAG, SHAPE),
    (("trace.level", "tracelevel"), number("trace.level", values.level), SHAPE),
    (("trace.explainLevel", "explainlevel"), number("trace.explain_level", values.explain_level), SHAPE),
    (("trace.profileDepth",), number("trace.profile_depth", values.integer), SHAPE),
    (("trace.profiling.matching.depth",), depth("matching"), SHAPE),
    (("trace.profiling.firstPhaseRanking.depth",), depth("first_phase"), SHAPE),
    (("trace.profiling.secondPhaseRanking.depth",), depth("second_phase"), SHAPE),
    (("trace.timestamps",), to("trace.timestamps", values.boolean), SHAPE),
    (("trace.timingDetails",), _FLAG, SHAPE),
    (("trace.query",), to("trace.query", values.boolean), SHAPE),
    (("trace.profile", "profile"), _FLAG, SHAPE),
    (("rules.off",), to("rules.off", values.boolean), SHAPE),
    (("rules.rulebase",), to("rules.base", str), SHAPE),
    (("tracelevel.rules",), number("rules.trace_level", values.count), SHAPE),
    (("select",), to("grouping.select", str), SHAPE),
    (("validate_select",), to("grouping.is_validated", values.boolean), SHAPE),
    (("select.where",), to("select_where", str), SHAPE),
    (("select.grouping",), to("grouping.select_json", str), SHAPE),
    (("select.fields",), to("select_fields", values.names_of_json), SHAPE),
    (("grouping.defaultMaxGroups",), number("grouping.max_groups", values.integer), SHAPE),
    (("grouping.defaultMaxHits",), number("grouping.max_hits", values.integer), SHAPE),
    (("grouping.globalMaxGroups",), number("grouping.global_max_groups", values.integer), SHAPE),
    (("grouping.defaultPrecisionFactor",), number("grouping.precision_factor", values.number), SHAPE),
    (("timezone",), number("grouping.timezone", str), SHAPE),
    (("collapsefield", "collapse.field"), to("collapse.fields", values.names), SHAPE),
    (("collapsesize", "collapse.size"), number("collapse.size", values.positive), SHAPE),
    (("collapse.summary",), to("collapse.summary", str), SHAPE),
    (("streaming.groupname",), into("streaming", "group", str), VALUE),
    (("streaming.selection",), into("streaming", "selection", str), VALUE),
    (("streaming.userid",), into("streaming", "userid", partial(values.integer, bits=63)), VALUE),
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
