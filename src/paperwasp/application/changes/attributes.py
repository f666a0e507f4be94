"""Finds columns that must be built again. Vespa does that at a restart; here it is done during the activation.

The settings that matter are three tables: of an attribute, of an attribute with other values than on and off, and of
the hnsw index over it. What is in none of them (sorting, `mutable`) needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.document.types import ArrayType, DataType, MapType, StructType, TensorFieldType
from paperwasp.schema.model import AttributeSettings, Field, Hnsw, IndexSettings, Schema, SubField


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """A change of the settings of a column. `validation_id`: the override that must allow it; None: it needs none."""

    name: str
    change: str
    validation_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Attribute:
    settings: AttributeSettings
    index: IndexSettings | None
    rank_filter: bool
    hnsw: Hnsw | None


_FLAGS: Final[Mapping[str, Callable[[_Attribute], bool]]] = {
    "fast-search": lambda attribute: attribute.settings.fast_search,
    "fast-rank": lambda attribute: attribute.settings.fast_rank,
    "fast-access": lambda attribute: attribute.settings.fast_access,
    "paged": lambda attribute: attribute.settings.paged,
    "rank: filter": lambda attribute: attribute.rank_filter or attribute.settings.enable_only_bit_vector,
    "indexing: index": lambda attribute: attribute.hnsw is not None,
}
_PROPERTIES: Final[Mapping[str, Callable[[_Attribute], object]]] = {
    "dictionary: btree/hash": lambda attribute: _dictionary(attribute.settings),
    "dictionary: cased/uncased": lambda attribute: "CASED" if attribute.settings.cased else "UNCASED",
    "dense-posting-list-threshold": lambda attribute: _dense_threshold(attribute.index),
    "distance-metric": lambda attribute: _metric(attribute.settings),
}
_HNSW: Final[Mapping[str, Callable[[Hnsw], object]]] = {
    "max-links-per-node": lambda hnsw: hnsw.max_links_per_node,
    "neighbors-to-explore-at-insert": lambda hnsw: hnsw.neighbors_to_explore_at_insert,
}
_REBUILDING: Final = ("distance-metric", "max-links-per-node")
"""The settings whose change has the whole graph built again, which an override must allow."""
_DENSE_THRESHOLD: Final = 0.4


def attribute_changes(active: Schema, new: Schema) -> Iterator[AttributeChange]:
    """The changes of all columns, those of struct fields included. New and removed fields need nothing."""
    before, after = _attributes(active), _attributes(new)
    for name in after:
        if name in before:
            yield from _settings(name, before[name], after[name])
        elif _had_values(active, name):
            yield AttributeChange(name, "add attribute aspect")
    for name in sorted(before.keys() - after.keys()):
        if name in new.document.fields and not _is_indexed(active, new, name):
            yield AttributeChange(name, "remove attribute aspect")


def fast_access_changes(active: Schema, new: Schema) -> Iterator[AttributeChange]:
    """All that matters to documents in streaming mode: which columns are kept."""
    before, after = _fast_access(active), _fast_access(new)
    yield from (AttributeChange(name, "add fast-access attribute") for name in sorted(after - before))
    yield from (AttributeChange(name, "remove fast-access attribute") for name in sorted(before - after))


def find_unpaged(active: Schema, new: Schema) -> Iterator[str]:
    """The attributes that lose `paged`, whose columns from then on must fit into memory."""
    before, after = _attributes(active), _attributes(new)
    for name in sorted(before.keys() & after.keys()):
        if before[name].settings.paged and not after[name].settings.paged:
            yield name


def _attributes(schema: Schema) -> dict[str, _Attribute]:
    """Name → column; of struct fields by their path. Imported fields have theirs in the other document type."""
    found: dict[str, _Attribute] = {}
    for name, field in schema.fields.items():
        if field.imported is None:
            parts: list[tuple[str, Field | SubField]] = [(name, field)]
            parts += [(f"{name}.{path}", part) for path, part in field.sub_fields.items()]
            found |= {path: _attribute(part, part.attribute) for path, part in parts if part.attribute is not None}
    return found


def _attribute(field: Field | SubField, settings: AttributeSettings) -> _Attribute:
    hnsw = None
    if isinstance(field.type, TensorFieldType) and field.index is not None:
        hnsw = field.index.hnsw or Hnsw()
    return _Attribute(settings, field.index, field.rank_filter, hnsw)


def _settings(name: str, before: _Attribute, after: _Attribute) -> Iterator[AttributeChange]:
    for setting, flag in _FLAGS.items():
        if flag(before) != flag(after):
            yield AttributeChange(name, f"{'add' if flag(after) else 'remove'} attribute '{setting}'")
    for setting, value in _PROPERTIES.items():
        if value(before) != value(after):
            validation_id = _rebuilding(setting) if before.hnsw and after.hnsw else None
            change = f"change property '{setting}' from '{value(before)}' to '{value(after)}'"
            yield AttributeChange(name, change, validation_id)
    if before.hnsw and after.hnsw:
        yield from _hnsw(name, before.hnsw, after.hnsw)


def _hnsw(name: str, before: Hnsw, after: Hnsw) -> Iterator[AttributeChange]:
    for setting, value in _HNSW.items():
        if value(before) != value(after):
            change = f"change hnsw index property '{setting}' from '{value(before)}' to '{value(after)}'"
            yield AttributeChange(name, change, _rebuilding(setting))


def _rebuilding(setting: str) -> str | None:
    return "hnsw-settings-change" if setting in _REBUILDING else None


def _had_values(schema: Schema, name: str) -> bool:
    """Whether there are values that a new column must be filled with. `a.b` is a part of the field `a`."""
    field, _, path = name.partition(".")
    if field not in schema.document.fields:
        return False
    return not path or path in _paths(schema.document.fields[field])


def _paths(type_: DataType) -> set[str]:
    """The paths below a field of that type at which there can be a column."""
    match type_:
        case StructType():
            return {name for name, _ in type_.fields}
        case ArrayType():
            return _paths(type_.element)
        case MapType():
            return {"key", *({f"value.{path}" for path in _paths(type_.value)} or {"value"})}
    return set()


def _fast_access(schema: Schema) -> set[str]:
    return {name for name, attribute in _attributes(schema).items() if attribute.settings.fast_access}


def _is_indexed(active: Schema, new: Schema, name: str) -> bool:
    return active.fields[name].index is not None and new.fields[name].index is not None


def _dictionary(settings: AttributeSettings) -> str:
    if settings.hashed:
        return "BTREE_AND_HASH" if settings.ordered else "HASH"
    return "BTREE"


def _dense_threshold(index: IndexSettings | None) -> float:
    threshold = index.dense_posting_list_threshold if index else None
    return _DENSE_THRESHOLD if threshold is None else threshold


def _metric(settings: AttributeSettings) -> str:
    return (settings.distance_metric or "euclidean").upper().replace("-", "_")
