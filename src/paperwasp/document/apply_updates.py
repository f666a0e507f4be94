"""Applies updates to values: pure functions of value, update and type. They never fail for what the reader accepted.

A value is None where it is unset. Values are shared, so none is changed: what changes is copied along the path, once
for all updates that are applied together.

Vespa: document/src/vespa/document/update; https://docs.vespa.ai/en/reference/schemas/document-json-format.html#update
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from paperwasp.document import numbers
from paperwasp.document.converters import GeoPosition
from paperwasp.document.field_path import type_after
from paperwasp.document.tensor import modify
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import POSITION, DataType, TensorFieldType, WeightedSetType
from paperwasp.document.updates import (
    Action,
    Add,
    AddCells,
    Assign,
    Calculate,
    Each,
    FieldUpdate,
    Index,
    Key,
    Match,
    Member,
    ModifyCells,
    RemoveCells,
    Step,
    Take,
    Value,
)

Steps = tuple[Step, ...]
Owned = dict[int, Any]
"""Containers by their identity, which they keep as long as they are here."""


def updated_fields(
    fields: Mapping[str, Value],
    updates: Iterable[FieldUpdate],
    types: Mapping[str, DataType],
    attributes: frozenset[str],
) -> dict[str, Value]:
    """The fields after these updates, in their order; a field that is unset is not among them.

    `attributes`: the fields that are attributes. An update of a field that is not in `types` does nothing.
    """
    changed = dict(fields)
    owned: Owned = {}
    for update in updates:
        name = update.field
        if name not in types:
            continue
        value = updated_value(changed.get(name), update, types[name], name in attributes, owned)
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def updated_value(
    value: Value | None, update: FieldUpdate, data_type: DataType, is_attribute: bool, owned: Owned | None = None
) -> Value | None:
    """The value of a field after one update; None: unset.

    `owned`: arrays and maps that updates before this one have made, which nobody else has seen.
    """
    action, path = update.action, update.path
    if path:
        change = _Change(action, _kind(path, data_type, is_attribute), {} if owned is None else owned)
        return change.at(value, path, data_type)
    kind = numbers.of_attribute if is_attribute else numbers.of_value
    return _ACTIONS[type(action)](action, value, data_type, kind)


class _Change(Struct):
    """An action on its way along a path."""

    action: Action
    kind: numbers.Kind
    owned: Owned
    variables: dict[str, int | Value] = field(default_factory=dict)

    def at(self, value: Value | None, steps: Steps, data_type: DataType) -> Value | None:
        """The value after the action has been done where `steps` lead from it. The same object: nothing changed."""
        if not steps:
            return _ACTIONS[type(self.action)](self.action, value, data_type, self.kind)
        return _STEPS[type(steps[0])](self, value, steps[0], steps[1:], data_type)

    def own(self, container: Any) -> Any:
        """The container, or a copy of it that may be changed."""
        if id(container) in self.owned:
            return container
        copy = container.copy()
        self.owned[id(copy)] = copy
        return copy

    def beyond(self, step: Step, value: Value | None, steps: Steps, data_type: DataType) -> Value | None:
        """As `at`; `value`: what `step` leads to from a value of `data_type`."""
        return self.at(value, steps, type_after(step, data_type))


def _kind(path: Steps, data_type: DataType, is_attribute: bool) -> numbers.Kind:
    """How numbers are calculated at the end of a path."""
    if not isinstance(path[0], Match):
        return numbers.of_path
    return numbers.of_weight if is_attribute and isinstance(data_type, WeightedSetType) else numbers.of_value


# Steps: change, value, step, further steps, type of the value


def _into_member(change: _Change, value: Any, step: Member, steps: Steps, data_type: DataType) -> Value | None:
    if data_type == POSITION:
        position = GeoPosition(*value) if value else GeoPosition(0, 0)
        found = change.beyond(step, getattr(position, step.name), steps, data_type)
        return value if found is None else position._replace(**{step.name: found})
    return _with_entry(change, value, step.name, change.beyond(step, (value or {}).get(step.name), steps, data_type))


def _into_key(change: _Change, value: Any, step: Key, steps: Steps, data_type: DataType) -> Value | None:
    return _with_entry(change, value, step.key, change.beyond(step, (value or {}).get(step.key), steps, data_type))


def _with_entry(
    change: _Change, entries: dict[Value, Value] | None, key: Value, item: Value | None
) -> dict[Value, Value] | None:
    """The entries with another value of a key; None: without it."""
    if item is (entries or {}).get(key):
        return entries
    found: dict[Value, Value] = change.own({} if entries is None else entries)
    if item is None:
        del found[key]
    else:
        found[key] = item
    return found


def _into_index(change: _Change, value: Any, step: Index, steps: Steps, data_type: DataType) -> Value | None:
    return _into_element(change, value, step, step.index, steps, data_type)


def _into_element(
    change: _Change, value: Any, step: Step, index: int, steps: Steps, data_type: DataType
) -> Value | None:
    if value is None or not 0 <= index < len(value):
        return value
    element = change.beyond(step, value[index], steps, data_type)
    if element is value[index]:
        return value
    found: list[Value] = change.own(value)
    found[index : index + 1] = [] if element is None else [element]
    return found


def _into_each(change: _Change, value: Any, step: Each, steps: Steps, data_type: DataType) -> Value | None:
    name = step.variable
    if value is None:
        return value
    if name in change.variables:
        return _into_bound(change, value, step, steps, data_type)
    changed: list[tuple[Any, Value]] = []
    for place, item in list(enumerate(value)) if isinstance(value, list) else value.items():
        if name:
            change.variables[name] = place
        found = change.beyond(step, item, steps, data_type)
        if found is not None:
            changed.append((place, found))
    change.variables.pop(name, None)
    return [item for _, item in changed] if isinstance(value, list) else dict(changed)


def _into_bound(change: _Change, value: Any, step: Each, steps: Steps, data_type: DataType) -> Value | None:
    """Into what a variable means that has a meaning already."""
    place = change.variables[step.variable]
    if isinstance(value, list):
        return _into_element(change, value, step, place, steps, data_type) if type(place) is int else value
    if place not in value:
        return value
    return _with_entry(change, value, place, change.beyond(step, value[place], steps, data_type))


def _into_match(change: _Change, value: Any, step: Match, steps: Steps, data_type: DataType) -> Value | None:
    if not isinstance(data_type, WeightedSetType):
        return _into_element(change, value, step, step.element, steps, data_type)
    weights = {} if value is None else value
    if step.element not in weights and not data_type.create_if_nonexistent:
        return value
    weight = change.beyond(step, weights.get(step.element, 0), steps, data_type)
    return _with_entry(change, weights, step.element, None if weight == 0 and data_type.remove_if_zero else weight)


_STEPS: Final[Mapping[type[Step], Callable[..., Value | None]]] = {
    Member: _into_member,
    Key: _into_key,
    Index: _into_index,
    Each: _into_each,
    Match: _into_match,
}


# Actions: action, value, its type, how numbers are calculated


def _assign(action: Assign, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    return action.value


def _add(action: Add, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    if not action.values:
        return value
    if not isinstance(data_type, WeightedSetType):
        return [*(value or ()), *action.values]
    weights = {**(value or {}), **action.values}
    if not data_type.remove_if_zero:
        return weights
    return {key: weight for key, weight in weights.items() if weight != 0 or key not in action.values}


def _take(action: Take, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    if action.values is None or value is None:
        return None
    taken = frozenset(map(_frozen, action.values))
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in taken}
    return [item for item in value if _frozen(item) not in taken]


def _frozen(value: Value) -> Any:
    """The value, to be found in a set."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    return value


def _calculate(action: Calculate, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    return kind(action.operation, value, action.operand, data_type)


def _modify_cells(action: ModifyCells, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    if value is None and action.create_default is None:
        return None
    return modify.modify(_tensor(value, data_type), action.operation, action.cells, action.create_default)


def _add_cells(action: AddCells, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    return modify.add(_tensor(value, data_type), action.tensor)


def _remove_cells(action: RemoveCells, value: Any, data_type: DataType, kind: numbers.Kind) -> Value | None:
    return None if value is None else modify.remove(value, action.addresses)


def _tensor(value: Tensor | None, data_type: DataType) -> Tensor:
    assert isinstance(data_type, TensorFieldType)
    return modify.empty(data_type.tensor) if value is None else value


_ACTIONS: Final[Mapping[type[Action], Callable[..., Value | None]]] = {
    Assign: _assign,
    Add: _add,
    Take: _take,
    Calculate: _calculate,
    ModifyCells: _modify_cells,
    AddCells: _add_cells,
    RemoveCells: _remove_cells,
}
