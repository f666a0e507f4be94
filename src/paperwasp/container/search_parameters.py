"""The parameters of a search request: names and aliases, types, and what is not executed yet, in one table.

A query profile gives values for what the request leaves out. In profiles parameters have their full names: an alias
there is a property of the application's own.

Names are found in any case. A plain name that is not in the table is a property of the application's own and is kept
without question; an unknown member of a reserved group (`ranking.…`) is an error. What Vespa knows and paperwasp does
not execute is refused when it would change the answer, and accepted when it would not.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from paperwasp import limits
from paperwasp.application.query_profiles import NO_QUERY_PROFILES, QueryProfiles, ResolvedProfile
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.yql import query_type

MAX_TIMEOUT_MS: Final = 1e9
FORMATS: Final = ("json", "cbor")
_REFERENCE: Final = "See https://docs.vespa.ai/en/reference/api/query.html#native-execution-parameters"


@dataclass(slots=True)
class SearchParameters:
    """One request's parameters, typed. `given` has all of them, as they came and by full names, for `@name` in YQL."""

    yql: str | None = None
    query: str | None = None
    query_type: str = "weakAnd"
    default_index: str = "default"
    hits: int = limits.DEFAULT_HITS
    offset: int = 0
    timeout_ms: float = limits.QUERY_TIMEOUT_MS
    soft_timeout: bool = True
    sources: tuple[str, ...] = ()
    restrict: tuple[str, ...] = ()
    rank_profile: str = "default"
    sorting: str = ""
    list_features: bool = False
    inputs: dict[str, float] = field(default_factory=dict)
    rank_properties: dict[str, str] = field(default_factory=dict)
    summary: str = "default"
    summary_fields: tuple[str, ...] = ()
    bolding: bool = True
    timing: bool = False
    format: str | None = None
    trace_level: int = 0
    trace_timestamps: bool = False
    max_hits: int = limits.MAX_HITS
    max_offset: int = limits.MAX_OFFSET
    profile: ResolvedProfile | None = None
    """The query profile that is used."""
    given: dict[str, str] = field(default_factory=dict)


Setter = Callable[[SearchParameters, str], None]
"""Takes the text of a value. Fails with ValueError, whose text says what the value must be."""


def read_parameters(
    pairs: Iterable[tuple[str, str]], query_profiles: QueryProfiles = NO_QUERY_PROFILES
) -> SearchParameters:
    """The parameters of a request; of several for one thing the last wins.

    Errors: IllegalQuery naming the parameter and the value; InvalidQuery for an unknown search chain.
    """
    pairs = list(pairs)
    parameters = SearchParameters(given=dict(pairs))
    name = _query_profile(pairs)
    if name is not None or query_profiles.has_default:
        parameters.profile = query_profiles.compile(name or "", parameters.given)
    if parameters.profile is not None:
        _set_under_profile(parameters, parameters.profile, pairs, query_profiles)
    elif name is not None:
        raise IllegalQuery(f"Could not resolve query profile '{name}'")
    else:
        for key, value in pairs:
            _set(parameters, key, value)
    _check_window(parameters)
    return parameters


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


def _set_under_profile(
    parameters: SearchParameters,
    profile: ResolvedProfile,
    pairs: Iterable[tuple[str, str]],
    query_profiles: QueryProfiles,
) -> None:
    """Sets what the request says, as far as the profile lets it, and what the profile says of the rest."""
    request = parameters.given
    named = {full_name(name): value for name, value in pairs}
    values = query_profiles.values(profile, named, request, full_name)
    for name, value in values.items():
        if name in named or name in _FULL_NAMES or name.startswith(_OPEN_GROUPS):
            _set(parameters, name, value)
    if profile.fixed:
        request = {name: value for name, value in request.items() if not profile.rule(full_name(name)).is_fixed}
    parameters.given = request | values


def full_name(name: str) -> str:
    """The full name of a parameter that may be given by an alias, or in another case."""
    known = _TABLE.get(name) or _TABLE.get(name.lower())
    if known is not None:
        return known[0]
    lower = name.lower()
    for prefix, group in _GROUPS:
        if lower.startswith(prefix):
            return group + name[len(prefix) :]
    return name


def _set(parameters: SearchParameters, name: str, value: str) -> None:
    known = _TABLE.get(name) or _TABLE.get(name.lower())
    if known is None:
        _set_member(parameters, name, value)
        return
    try:
        known[1](parameters, value)
    except ValueError as error:
        raise IllegalQuery(f"Could not set '{known[0]}' to '{value}': {error}") from None


def _check_window(parameters: SearchParameters) -> None:
    hits, offset = parameters.hits, parameters.offset
    if hits > parameters.max_hits:
        raise IllegalQuery(f"{hits} hits requested, configured limit: {parameters.max_hits}. {_REFERENCE}")
    if offset > parameters.max_offset:
        raise IllegalQuery(f"Offset of {offset} requested, configured limit: {parameters.max_offset}. {_REFERENCE}")


def timeout_ms(text: str) -> float:
    """A number with an optional unit: ks, s (when there is none, or an unknown one), ms, µs."""
    text = text.strip()
    end = len(text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ "))
    unit = text[end:].strip()
    value = _number(text[:end]) * _UNITS_MS.get(unit, 1000.0)
    if not 0 <= value <= MAX_TIMEOUT_MS:
        raise ValueError(f"must be from 0 to {MAX_TIMEOUT_MS:.0f} ms")
    return value


_UNITS_MS: Final = {"": 1000.0, "ks": 1e6, "s": 1000.0, "ms": 1.0, "µs": 0.001, "μs": 0.001}


def _number(text: str) -> float:
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise ValueError("must be a number")


def _integer(text: str) -> int:
    body = text[1:] if text[:1] in ("-", "+") else text
    if not (body.isascii() and body.isdecimal() and len(body) <= 10 and abs(int(text)) < 2**31):
        raise ValueError("must be an integer")
    return int(text)


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError("must be true or false")
    return value


_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False, "": True}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _to(attribute: str, convert: Callable[[str], object]) -> Setter:
    def set_attribute(parameters: SearchParameters, value: str) -> None:
        setattr(parameters, attribute, convert(value))

    return set_attribute


def _checked(convert: Callable[[str], object]) -> Setter:
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


def _count(text: str) -> int:
    value = _integer(text)
    if value < 0:
        raise ValueError("must not be negative")
    return value


def _level(text: str) -> int:
    value = _integer(text)
    if not 0 <= value <= 9:
        raise ValueError("must be from 0 to 9")
    return value


def _fraction(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise ValueError("must be from 0 to 1")
    return value


def _format(text: str) -> str:
    if text.lower() in ("", "default"):
        return "json"
    if text.lower() not in FORMATS:
        raise ValueError(f"No renderer with id or alias '{text}'. Available renderers are: [{', '.join(FORMATS)}]")
    return text.lower()


def _tensor_format(text: str) -> str:
    if text not in ("short", "long", "short-value", "long-value", "hex", "hex-value"):
        raise ValueError("must be short, long, short-value, long-value, hex or hex-value")
    return text


def _language(text: str) -> str:
    if text and not text.lower().startswith(("en", "un")):
        raise ValueError("this is not supported yet: only English is")
    return text


def _type(parameters: SearchParameters, value: str) -> None:
    parameters.query_type = query_type(value)


def _search_chain(parameters: SearchParameters, value: str) -> None:
    if value not in ("default", "vespa", "native", "service"):
        raise InvalidQuery(f"No search chain named '{value}' was found")


_FROM_PROFILE_ONLY: Final = frozenset(("maxhits", "maxoffset"))
_NO_VALUE: Final = _only("")
_NOT_TRUE: Final = _only("", "false", "0")

PARAMETERS: Final[tuple[tuple[tuple[str, ...], Setter], ...]] = (
    (("yql",), _to("yql", str)),
    (("hits", "count"), _to("hits", _count)),
    (("offset", "start"), _to("offset", _count)),
    (("timeout",), _to("timeout_ms", timeout_ms)),
    (("queryProfile",), _checked(str)),
    (("searchChain",), _search_chain),
    (("maxHits",), _to("max_hits", _count)),
    (("maxOffset",), _to("max_offset", _count)),
    (("noCache",), _checked(_boolean)),
    (("noCacheWrite",), _checked(_boolean)),
    (("groupingSessionCache",), _checked(_boolean)),
    (("hitcountestimate",), _NOT_TRUE),
    (("recall",), _NO_VALUE),
    (("weakAnd.replace",), _NOT_TRUE),
    (("jsoncallback",), _NO_VALUE),
    (("model.queryString", "query"), _to("query", str)),
    (("model.type", "type"), _type),
    (("model.type.composite",), _NO_VALUE),
    (("model.type.tokenization",), _NO_VALUE),
    (("model.type.syntax",), _NO_VALUE),
    (("model.type.profile",), _NO_VALUE),
    (("model.type.isYqlDefault",), _NOT_TRUE),
    (("model.defaultIndex", "default-index"), _to("default_index", lambda text: text or "default")),
    (("model.filter", "filter"), _NO_VALUE),
    (("model.language", "language", "lang"), _checked(_language)),
    (("model.locale", "locale"), _checked(_language)),
    (("model.encoding", "encoding"), _only("", "utf-8", "utf8")),
    (("model.sources", "sources", "search"), _to("sources", _names)),
    (("model.restrict", "restrict"), _to("restrict", _names)),
    (("model.searchPath", "searchpath"), _NO_VALUE),
    (("model.searchGroup", "searchgroup"), _NO_VALUE),
    (("ranking.profile", "ranking"), _to("rank_profile", lambda text: text or "default")),
    (("ranking.sorting", "sorting", "sortspec"), _to("sorting", str)),
    (("ranking.listFeatures", "rankfeatures"), _to("list_features", _boolean)),
    (("ranking.location", "location"), _NO_VALUE),
    (("ranking.freshness", "datetime"), _only("", "now")),
    (("ranking.queryCache",), _checked(_boolean)),
    (("ranking.rerankCount",), _NO_VALUE),
    (("ranking.keepRankCount",), _NO_VALUE),
    (("ranking.rankScoreDropLimit",), _NO_VALUE),
    (("ranking.secondPhase.rerankCount",), _NO_VALUE),
    (("ranking.secondPhase.totalRerankCount",), _NO_VALUE),
    (("ranking.secondPhase.rankScoreDropLimit",), _NO_VALUE),
    (("ranking.globalPhase.rerankCount",), _NO_VALUE),
    (("ranking.globalPhase.rankScoreDropLimit",), _NO_VALUE),
    (("ranking.significance.useModel",), _NOT_TRUE),
    (("ranking.softtimeout.enable",), _to("soft_timeout", _boolean)),
    (("ranking.softtimeout.factor",), _checked(_fraction)),
    (("ranking.softtimeout.tailcost",), _checked(_fraction)),
    (("ranking.matching.termwiseLimit",), _checked(_fraction)),
    (("ranking.matching.numThreadsPerSearch",), _checked(_count)),
    (("ranking.matching.numSearchPartitions",), _checked(_count)),
    (("ranking.matching.minHitsPerThread",), _checked(_count)),
    (("ranking.matching.postFilterThreshold",), _checked(_fraction)),
    (("ranking.matching.approximateThreshold",), _checked(_fraction)),
    (("ranking.matchPhase", "matchPhase"), _NO_VALUE),
    (("ranking.matchPhase.attribute",), _NO_VALUE),
    (("ranking.matchPhase.maxHits",), _NO_VALUE),
    (("ranking.matchPhase.ascending",), _checked(_boolean)),
    (("ranking.matchPhase.maxFilterCoverage",), _checked(_fraction)),
    (("ranking.matchPhase.diversity.attribute",), _NO_VALUE),
    (("ranking.matchPhase.diversity.minGroups",), _NO_VALUE),
    (("sorting.degrading",), _checked(_boolean)),
    (("presentation.summary", "summary"), _to("summary", lambda text: text or "default")),
    (("presentation.summaryFields", "summaryFields"), _to("summary_fields", _names)),
    (("presentation.bolding", "bolding"), _to("bolding", _boolean)),
    (("presentation.timing", "timing"), _to("timing", _boolean)),
    (("presentation.format", "format", "presentation.template", "template"), _to("format", _format)),
    (("presentation.format.tensors", "format.tensors"), _checked(_tensor_format)),
    (("trace.level", "tracelevel"), _to("trace_level", _level)),
    (("trace.explainLevel", "explainlevel"), _checked(_count)),
    (("trace.profileDepth",), _checked(_integer)),
    (("trace.timestamps",), _to("trace_timestamps", _boolean)),
    (("trace.timingDetails",), _checked(_boolean)),
    (("trace.query",), _checked(_boolean)),
    (("trace.profile",), _checked(_boolean)),
    (("select",), _NO_VALUE),
    (("select.where",), _NO_VALUE),
    (("select.grouping",), _NO_VALUE),
    (("collapsefield", "collapse.field"), _NO_VALUE),
    (("collapsesize", "collapse.size"), _only("", "1")),
    (("collapse.summary",), _NO_VALUE),
    (("streaming.groupname",), _NO_VALUE),
    (("streaming.selection",), _NO_VALUE),
    (("streaming.userid",), _NO_VALUE),
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
_FEATURES: Final = "ranking.features."
_PROPERTIES: Final = "ranking.properties."
_OPEN_GROUPS: Final = (_FEATURES, _PROPERTIES)
_GROUPS: Final = (
    *((prefix, _FEATURES) for prefix in ("input.", "rankfeature.", _FEATURES)),
    *((prefix, _PROPERTIES) for prefix in ("rankproperty.", _PROPERTIES)),
)
"""What the name of a parameter begins with whose rest the user chooses → the same in full."""
_RESERVED: Final = ("model", "ranking", "presentation")


def _set_member(parameters: SearchParameters, name: str, value: str) -> None:
    """Sets a parameter whose name has a part of the user's choice, or keeps one that is the application's own."""
    full = full_name(name)
    if full.startswith(_FEATURES):
        _set_feature(parameters, full[len(_FEATURES) :], value)
    elif full.startswith(_PROPERTIES):
        parameters.rank_properties[full[len(_PROPERTIES) :]] = value
    else:
        _check_group(name)


def _check_group(name: str) -> None:
    group, _, member = name.partition(".")
    if member and group.lower() in _RESERVED:
        raise IllegalQuery(
            f"'{member}' is not a valid property in '{group.lower()}'. "
            f"See the query api for valid keys starting by '{group.lower()}'."
        )


def _set_feature(parameters: SearchParameters, name: str, value: str) -> None:
    if not (name.startswith("query(") and name.endswith(")")):
        raise IllegalQuery(f"Could not set 'ranking.features.{name}' to '{value}': only query(name) can be set")
    bare = name[len("query(") : -1]
    try:
        number = _number(value)
    except ValueError:
        raise IllegalQuery(
            f"Could not set 'ranking.features.{name}' to '{value}': "
            "only numbers are supported yet, neither tensors nor texts"
        ) from None
    if number in (inf, -inf) or number != number:
        raise IllegalQuery(f"Could not set 'ranking.features.{name}' to '{value}': must be a finite number")
    parameters.inputs[bare] = number
