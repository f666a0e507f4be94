"""A query tree written as YQL: for traces, and for tests that read a tree and write it back.

Vespa: the text follows https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final

import orjson

from paperwasp.query.items import (
    DEFAULT_ANNOTATIONS,
    AndItem,
    Annotations,
    FalseItem,
    Item,
    NotItem,
    OrItem,
    PhraseItem,
    RangeItem,
    RankItem,
    TrueItem,
    WeakAndItem,
    WordItem,
)
from paperwasp.yql.user_text import UserQueryItem, UserTextItem

_NAMES: Final = {
    "normalize_case": "normalizeCase",
    "accent_drop": "accentDrop",
    "implicit_transforms": "implicitTransforms",
    "use_position_data": "usePositionData",
}


def to_yql(item: Item) -> str:
    """The condition that reads back as `item`; but a weakAnd without target hits inside one with them takes those."""
    return _WRITERS[type(item)](item)


def _annotated(text: str, annotations: Annotations, extra: Mapping[str, Any] | None = None) -> str:
    parts = {**_given(annotations), **(extra or {})}
    return f"({_map(parts)}{text})" if parts else text


def _given(annotations: Annotations) -> dict[str, Any]:
    given = {}
    for field in fields(Annotations):
        value = getattr(annotations, field.name)
        if value != getattr(DEFAULT_ANNOTATIONS, field.name):
            given[_NAMES.get(field.name, field.name)] = value
    if "connectivity" in given:
        to, weight = given["connectivity"]
        given["connectivity"] = {"id": to, "weight": weight}
    return given


def _map(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {_value(value)}" for name, value in values.items()) + "}"


def _value(value: Any) -> str:
    return _map(value) if isinstance(value, dict) else orjson.dumps(value).decode()


def _string(text: str) -> str:
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


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
    negatives = " and ".join(f"!({to_yql(other)})" for other in others)
    if isinstance(first, TrueItem):
        return negatives
    return f"{to_yql(first) if isinstance(first, AndItem) else _operand(first)} and {negatives}"


def _call(name: str, item: RankItem | WeakAndItem) -> str:
    return f"{name}({', '.join(map(to_yql, item.children))})"


def _weak_and(item: WeakAndItem) -> str:
    text = _call("weakAnd", item)
    return f"({{targetHits: {item.target_hits}}}{text})" if item.target_hits else text


def _word(item: WordItem) -> str:
    return f"{item.index} contains {_annotated(_string(item.word), item.annotations)}"


def _phrase(item: PhraseItem) -> str:
    words = (_string(part) if isinstance(part, str) else to_yql(part) for part in item.words)
    text = f"phrase({', '.join(words)})"
    return f"{item.index} contains {_annotated(text, item.annotations)}"


def _range(item: RangeItem) -> str:
    extra: dict[str, Any] = {"hitLimit": item.hit_limit} if item.hit_limit else {}
    if item.low == item.high and item.low is not None and item.low_inclusive and item.high_inclusive:
        return f"{item.index} = {_annotated(repr(item.low), item.annotations, extra)}"
    bounds = {(False, False): "open", (False, True): "leftOpen", (True, False): "rightOpen"}
    kind = bounds.get((item.low_inclusive, item.high_inclusive))
    if kind is not None:
        extra["bounds"] = kind
    low = "-Infinity" if item.low is None else repr(item.low)
    high = "Infinity" if item.high is None else repr(item.high)
    return _annotated(f"range({item.index}, {low}, {high})", item.annotations, extra)


def _user_text(item: UserTextItem) -> str:
    argument = f"@{item.parameter}" if item.parameter is not None else _string(item.text or "")
    extra: dict[str, Any] = {"grammar": item.type}
    if item.fields_allowed:
        extra["defaultIndex"] = item.default_index
    if item.target_hits:
        extra["targetHits"] = item.target_hits
    if item.allow_empty:
        extra["allowEmpty"] = True
    if item.fields_allowed:
        return _annotated(f"userInput({argument})", item.annotations, extra)
    return f"{item.default_index} contains {_annotated(f'text({argument})', item.annotations, extra)}"


_WRITERS: Final[Mapping[type[Item], Callable[[Any], str]]] = {
    TrueItem: lambda item: "true",
    FalseItem: lambda item: "false",
    AndItem: _and,
    OrItem: _or,
    NotItem: _not,
    RankItem: lambda item: _call("rank", item),
    WeakAndItem: _weak_and,
    WordItem: _word,
    PhraseItem: _phrase,
    RangeItem: _range,
    UserQueryItem: lambda item: "userQuery()",
    UserTextItem: _user_text,
}
