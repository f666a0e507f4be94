"""A query tree written as YQL: for traces, and for tests that read a tree and write it back.

Vespa: the text follows https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from paperwasp.operators.items import (
    AndItem,
    DotProductItem,
    EquivItem,
    FalseItem,
    FuzzyItem,
    GeoBoundingBoxItem,
    GeoLocationItem,
    InItem,
    Item,
    LabeledItem,
    NearestNeighborItem,
    NearItem,
    NotItem,
    OrItem,
    PhraseItem,
    PredicateItem,
    PrefixItem,
    RangeItem,
    RankItem,
    RegexItem,
    SameElementItem,
    SubstringItem,
    SuffixItem,
    TermItem,
    TextRangeItem,
    TrueItem,
    UriItem,
    WandItem,
    WeakAndItem,
    WeightedSetItem,
    WordAlternativesItem,
    WordItem,
)
from paperwasp.query.annotations import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.query.scope import OF_GROUP
from paperwasp.yql.user_items import NonEmptyItem, UserQueryItem, UserTextItem

_NAMES: Final = {
    "normalize_case": "normalizeCase",
    "accent_drop": "accentDrop",
    "implicit_transforms": "implicitTransforms",
    "use_position_data": "usePositionData",
    "and_segmenting": "andSegmenting",
    "document_frequency": "documentFrequency",
    "profile": "grammar.profile",
}
_ALL_SUBQUERIES: Final = 2**64 - 1


def to_yql(item: Item) -> str:
    """The condition that reads back as `item`; but without target hits inside a weakAnd with them, one takes those."""
    write = _CONTAINED.get(type(item))
    if write is None:
        return _WRITERS[type(item)](item)
    index = _index(item)
    text = f"{index} contains {write(item)}" if index else str(write(item))
    if isinstance(item, PhraseItem | EquivItem) and (of_words := _of_words(item)):
        return f"({_map(of_words)}{text})"
    return text


def _index(item: Item) -> str:
    """The field that what stands after `contains` is about; empty: an element of the field that it is inside of."""
    return item.index if isinstance(item, TermItem | SameElementItem) else _index(item.children_of()[0])


def _annotate(text: str, annotations: Annotations, extra: Mapping[str, Any] | None = None) -> str:
    parts = {**_annotations_of(annotations), **(extra or {})}
    return f"({_map(parts)}{text})" if parts else text


def _annotations_of(annotations: Annotations) -> dict[str, Any]:
    given = {_NAMES.get(name, name): value for name, value in annotations.given().items()}
    if "connectivity" in given:
        given["connectivity"] = dict(zip(("id", "weight"), given["connectivity"], strict=True))
    if "documentFrequency" in given:
        given["documentFrequency"] = dict(zip(("frequency", "count"), given["documentFrequency"], strict=True))
    return given


def _annotated_group(text: str, annotations: Annotations) -> str:
    """An operator over words with the annotations on it as a whole."""
    parts = {name: value for name, value in _annotations_of(annotations).items() if name in OF_GROUP}
    return f"({_map(parts)}{text})" if parts else text


def _of_words(item: PhraseItem | EquivItem) -> dict[str, Any]:
    """The annotations that stand in front of a condition because they are about its words."""
    return {name: value for name, value in _annotations_of(item.annotations).items() if name not in OF_GROUP}


def _map(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_value(value)}" for name, value in values.items()) + "}"


def _value(value: Any) -> str:
    """A literal. Keys of maps are written bare, so they must be names."""
    if isinstance(value, dict):
        return _map(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _string(text: str) -> str:
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def _keys(values: Mapping[str, Any] | tuple[tuple[Any, Any], ...]) -> str:
    """A map whose keys are strings of any kind."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return "{" + ", ".join(f"{_string(key)}: {_value(value)}" for key, value in pairs) + "}"


def _operand(item: Item) -> str:
    """A child of `and`, in parentheses where it would read otherwise without."""
    text = to_yql(item)
    return f"({text})" if isinstance(item, OrItem | AndItem | NotItem) else text


def _and(item: AndItem) -> str:
    return " and ".join(map(_operand, item.children))


def _or(item: OrItem) -> str:
    return " or ".join(map(_operand, item.children))


def _not(item: NotItem) -> str:
    first, *others = item.children
    if not others:
        return to_yql(first)
    negatives = " and ".join(f"!({to_yql(other)})" for other in others)
    if isinstance(first, TrueItem):
        return negatives
    return f"{to_yql(first) if isinstance(first, AndItem) else _operand(first)} and {negatives}"


def _call(name: str, children: tuple[Item, ...]) -> str:
    return f"{name}({', '.join(map(to_yql, children))})"


def _weak_and(item: WeakAndItem) -> str:
    text = _call("weakAnd", item.children)
    return f"({{targetHits: {item.target_hits}}}{text})" if item.target_hits else text


def _write_labeled(item: LabeledItem) -> str:
    return f"labeled({to_yql(item.children[0])}, {_string(item.label)}, {item.score!r})"


def _word(item: WordItem) -> str:
    return _annotate(_string(item.word), item.annotations)


def _part_of_word(annotation: str) -> Callable[[PrefixItem | SuffixItem | SubstringItem], str]:
    return lambda item: _annotate(_string(item.word), item.annotations, {annotation: True})


def _part(part: str | Item) -> str:
    """An argument of an operator on a field, which has the field already."""
    return _string(part) if isinstance(part, str) else str(_CONTAINED[type(part)](part))


def _phrase(item: PhraseItem) -> str:
    return _annotated_group(f"phrase({', '.join(map(_part, item.words))})", item.annotations)


def _equiv(item: EquivItem) -> str:
    return _annotated_group(f"equiv({', '.join(map(_part, item.children))})", item.annotations)


def _near(item: NearItem) -> str:
    parts = [*map(_part, item.children), *(f"!{_part(child)}" for child in item.exclusions)]
    extra = {"distance": item.distance} if item.distance != 2 else {}
    if item.exclusion_distance >= 0:
        extra["exclusionDistance"] = item.exclusion_distance
    return _annotate(f"{'onear' if item.ordered else 'near'}({', '.join(parts)})", DEFAULT_ANNOTATIONS, extra)


def _alternatives(item: WordAlternativesItem) -> str:
    return _annotate(f"alternatives({_keys(item.alternatives)})", item.annotations)


def _uri(item: UriItem) -> str:
    extra = {"startAnchor": True} if item.start_anchor else {}
    if item.end_anchor != item.index.endswith(".hostname"):
        extra["endAnchor"] = item.end_anchor
    return _annotate(f"uri({_string(item.text)})", item.annotations, extra)


def _fuzzy(item: FuzzyItem) -> str:
    extra: dict[str, Any] = {}
    if item.max_edits != 2:
        extra["maxEditDistance"] = item.max_edits
    if item.prefix_length:
        extra["prefixLength"] = item.prefix_length
    if item.prefix:
        extra["prefix"] = True
    return _annotate(f"fuzzy({_string(item.word)})", item.annotations, extra)


def _same_element(item: SameElementItem) -> str:
    extra = {"elementFilter": [*item.elements]} if item.elements else {}
    return _annotate(_call("sameElement", item.children), DEFAULT_ANNOTATIONS, extra)


def _regex(item: RegexItem) -> str:
    return f"{item.index} matches {_annotate(_string(item.expression), item.annotations)}"


def _in(item: InItem) -> str:
    return _annotate(f"{item.index} in ({', '.join(map(_value, item.values))})", item.annotations)


_BOUNDS: Final = {(False, False): "open", (False, True): "leftOpen", (True, False): "rightOpen"}
"""The annotation `bounds` of a range, by whether its low and high ends belong to it."""


def _range(item: RangeItem) -> str:
    extra: dict[str, Any] = {"hitLimit": item.hit_limit} if item.hit_limit else {}
    if item.low == item.high and item.low is not None and item.low_inclusive and item.high_inclusive:
        return f"{item.index} = {_annotate(repr(item.low), item.annotations, extra)}"
    kind = _BOUNDS.get((item.low_inclusive, item.high_inclusive))
    if kind is not None:
        extra["bounds"] = kind
    low = "-Infinity" if item.low is None else repr(item.low)
    high = "Infinity" if item.high is None else repr(item.high)
    return _annotate(f"range({item.index}, {low}, {high})", item.annotations, extra)


def _text_range(item: TextRangeItem) -> str:
    kind = _BOUNDS.get((item.low_inclusive or item.low is None, item.high_inclusive or item.high is None))
    low = "-Infinity" if item.low is None else _value(item.low)
    high = "Infinity" if item.high is None else _value(item.high)
    extra = {"bounds": kind} if kind is not None else {}
    return _annotate(f"range({item.index}, {low}, {high})", item.annotations, extra)


def _writer_of_weighted(name: str) -> Callable[[WeightedSetItem | DotProductItem | WandItem], str]:
    def write(item: WeightedSetItem | DotProductItem | WandItem) -> str:
        if item.tokens and all(isinstance(key, int) for key, _ in item.tokens):
            tokens = f"[{', '.join(f'[{key}, {weight}]' for key, weight in item.tokens)}]"
        else:
            tokens = _keys(item.tokens)
        extra: dict[str, Any] = {}
        if isinstance(item, WandItem):
            if item.target_hits:
                extra["targetHits"] = item.target_hits
            if item.score_threshold:
                extra["scoreThreshold"] = item.score_threshold
            if item.threshold_boost_factor != 1.0:
                extra["thresholdBoostFactor"] = item.threshold_boost_factor
        return _annotate(f"{name}({item.index}, {tokens})", item.annotations, extra)

    return write


def _nearest_neighbor(item: NearestNeighborItem) -> str:
    extra: dict[str, Any] = {"targetHits": item.target_hits}
    if not item.approximate:
        extra["approximate"] = False
    if item.explore_additional_hits:
        extra["hnsw.exploreAdditionalHits"] = item.explore_additional_hits
    if item.distance_threshold is not None:
        extra["distanceThreshold"] = item.distance_threshold
    extra.update(item.tuning)
    return _annotate(f"nearestNeighbor({item.index}, {item.tensor})", item.annotations, extra)


def _geo_location(item: GeoLocationItem) -> str:
    place = f"{item.index}, {item.latitude!r}, {item.longitude!r}"
    return _annotate(f'geoLocation({place}, "{item.radius_degrees!r} deg")', item.annotations)


def _geo_bounding_box(item: GeoBoundingBoxItem) -> str:
    corners = (item.south, item.west, item.north, item.east)
    return _annotate(f"geoBoundingBox({item.index}, {', '.join(map(repr, corners))})", item.annotations)


def _predicate(item: PredicateItem) -> str:
    features = f"{_features(item.attributes)}, {_features(item.ranges)}"
    return _annotate(f"predicate({item.index}, {features})", item.annotations)


def _features(features: tuple[tuple[str, Any, int], ...]) -> str:
    """A map of names and their values, and of maps for some of the subqueries."""
    plain: dict[str, Any] = {}
    for name, value, subqueries in features:
        into = plain if subqueries == _ALL_SUBQUERIES else plain.setdefault(hex(subqueries), {})
        into.setdefault(name, []).append(value)
    return _feature_map(plain) if plain else "0"


def _feature_map(features: Mapping[str, Any]) -> str:
    parts = []
    for name, values in features.items():
        if isinstance(values, dict):
            text = _feature_map(values)
        else:
            text = _value(values[0]) if len(values) == 1 else f"[{', '.join(map(_value, values))}]"
        parts.append(f"{_string(name)}: {text}")
    return "{" + ", ".join(parts) + "}"


def _user_text(item: UserTextItem) -> str:
    argument = f"@{item.parameter}" if item.parameter is not None else _string(item.text or "")
    extra: dict[str, Any] = {"grammar": item.grammar.name} if item.grammar.name else {}
    for part in ("composite", "tokenization", "syntax", "profile"):
        if getattr(item.grammar, part):
            extra[f"grammar.{part}"] = getattr(item.grammar, part)
    if item.fields_allowed and item.default_index not in ("", "default"):
        extra["defaultIndex"] = item.default_index
    if item.target_hits:
        extra["targetHits"] = item.target_hits
    if item.distance is not None:
        extra["distance"] = item.distance
    for name, said in (("allowEmpty", item.allow_empty), ("nfkc", item.nfkc)):
        if said:
            extra[name] = True
    if item.fields_allowed:
        return _annotate(f"userInput({argument})", item.annotations, extra)
    text = _annotate(f"text({argument})", item.annotations, extra)
    return f"{item.default_index} contains {text}" if item.default_index else text


_CONTAINED: Final[Mapping[type[Item], Callable[[Any], str]]] = {
    WordItem: _word,
    PrefixItem: _part_of_word("prefix"),
    SuffixItem: _part_of_word("suffix"),
    SubstringItem: _part_of_word("substring"),
    PhraseItem: _phrase,
    EquivItem: _equiv,
    NearItem: _near,
    WordAlternativesItem: _alternatives,
    UriItem: _uri,
    FuzzyItem: _fuzzy,
    SameElementItem: _same_element,
}
"""Item type → writes the operator to the right of `contains`."""

_WRITERS: Final[Mapping[type[Item], Callable[[Any], str]]] = {
    TrueItem: lambda item: "true",
    FalseItem: lambda item: "false",
    AndItem: _and,
    OrItem: _or,
    NotItem: _not,
    RankItem: lambda item: _call("rank", item.children),
    WeakAndItem: _weak_and,
    LabeledItem: _write_labeled,
    RegexItem: _regex,
    InItem: _in,
    RangeItem: _range,
    TextRangeItem: _text_range,
    WeightedSetItem: _writer_of_weighted("weightedSet"),
    DotProductItem: _writer_of_weighted("dotProduct"),
    WandItem: _writer_of_weighted("wand"),
    NearestNeighborItem: _nearest_neighbor,
    GeoLocationItem: _geo_location,
    GeoBoundingBoxItem: _geo_bounding_box,
    PredicateItem: _predicate,
    UserQueryItem: lambda item: "userQuery()",
    UserTextItem: _user_text,
    NonEmptyItem: lambda item: _call("nonEmpty", item.children),
}
