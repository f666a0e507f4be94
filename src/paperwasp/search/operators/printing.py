"""Parts of conditions as YQL: literals, maps, annotations. `Item.to_yql` and `Item.contained` write with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from paperwasp.search.language.annotations import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.search.language.scope import OF_GROUP
from paperwasp.search.operators.item import Annotated, Item

_NAMES: Final = {
    "normalize_case": "normalizeCase",
    "accent_drop": "accentDrop",
    "implicit_transforms": "implicitTransforms",
    "use_position_data": "usePositionData",
    "and_segmenting": "andSegmenting",
    "document_frequency": "documentFrequency",
    "profile": "grammar.profile",
}
_BOUNDS: Final = {(False, False): "open", (False, True): "leftOpen", (True, False): "rightOpen"}


def annotated(text: str, annotations: Annotations = DEFAULT_ANNOTATIONS, extra: Mapping[str, Any] | None = None) -> str:
    """A text with annotations, those of terms and others, in front of it."""
    parts = {**_annotations_of(annotations), **(extra or {})}
    return f"({_map(parts)}{text})" if parts else text


def _annotations_of(annotations: Annotations) -> dict[str, Any]:
    given = {_NAMES.get(name, name): value for name, value in annotations.given().items()}
    if "connectivity" in given:
        given["connectivity"] = dict(zip(("id", "weight"), given["connectivity"], strict=True))
    if "documentFrequency" in given:
        given["documentFrequency"] = dict(zip(("frequency", "count"), given["documentFrequency"], strict=True))
    return given


def group_to_yql(item: Annotated) -> str:
    """The condition of an operator over words, with the annotations about its words in front of it."""
    text = Item.to_yql(item)
    of_words = {name: value for name, value in _annotations_of(item.annotations).items() if name not in OF_GROUP}
    return f"({_map(of_words)}{text})" if of_words else text


def group(name: str, parts: Iterable[str | Item], annotations: Annotations) -> str:
    """An operator over words with the annotations on it as a whole."""
    given = {name: value for name, value in _annotations_of(annotations).items() if name in OF_GROUP}
    text = call(name, map(argument, parts))
    return f"({_map(given)}{text})" if given else text


def call(name: str, arguments: Iterable[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def argument(part: str | Item) -> str:
    """An argument of an operator on a field, which has the field already."""
    return string(part) if isinstance(part, str) else part.contained()


def operand(item: Item) -> str:
    """A child of `and` and its kin, in parentheses where it would read otherwise without."""
    text = item.to_yql()
    return f"({text})" if item.is_joined else text


def _map(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {literal(value)}" for name, value in values.items()) + "}"


def literal(value: Any) -> str:
    """A literal. Keys of maps are written bare, so they must be names."""
    if isinstance(value, dict):
        return _map(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def string(text: str) -> str:
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def keys(pairs: Iterable[tuple[Any, Any]]) -> str:
    """A map whose keys are strings of any kind."""
    return "{" + ", ".join(f"{string(key)}: {literal(value)}" for key, value in pairs) + "}"


def bounds(low_inclusive: bool, high_inclusive: bool) -> dict[str, str]:
    """The annotation of a range, by whether its low and high ends belong to it."""
    kind = _BOUNDS.get((low_inclusive, high_inclusive))
    return {} if kind is None else {"bounds": kind}
