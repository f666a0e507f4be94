"""From a field's value to what a path leads to in it.

A path without an end of its own goes on into all that is there: the elements of an array, the keys of a map or weighted
set, the fields of a struct. Steps pass through arrays: `structs.name` are the names of all structs of an array.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-field-path.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.converters import GeoPosition
from paperwasp.document.selection.tree import Step, Variable, step_text
from paperwasp.document.selection.truth import Binding
from paperwasp.document.selection.values import Many, Operand, Scalar, Special
from paperwasp.document.types import (
    BOOL,
    INT,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    NumericType,
    StructType,
    WeightedSetType,
    unroll,
)
from paperwasp.document.updates import Index, Key, Member, Value

_SCALARS: Final = (str, int, float)
_Bound = dict[str, tuple[str, Any]]
"""Variable → what kind of thing it stands for, `index` or the kind of key, and that."""


class _Mismatch(Exception):
    """The path does not fit the value; a variable stands for a key and is used as an index."""


def operand_of(value: Value | None, type_: DataType | None, steps: tuple[Step, ...]) -> Operand:
    """The value that a path leads to: null where nothing is there, invalid where the path cannot lead anywhere.

    `type_` is the type of the field; None where it is not known.
    """
    if value is None:
        return None
    found: list[tuple[Binding, Scalar]] = []
    try:
        _Walk(steps, found).step(value, type_, 0, {})
    except _Mismatch:
        return Special.INVALID
    if not found:
        return None
    if len(found) == 1 and not found[0][0]:
        return found[0][1]
    return Many(tuple(found))


def key_of(text: str, kind: type) -> Any:
    """The key that a path's text stands for among keys of this kind; None for none."""
    if kind is str:
        return text
    form = _KEY_FORMS.get(kind)
    if form is None or not form.fullmatch(text):
        return None
    return text.lower() == "true" if kind is bool else kind(text)


_KEY_FORMS: Final[Mapping[type, re.Pattern[str]]] = {
    bool: compile_later("true|false", re.IGNORECASE),
    int: compile_later("[+-]?[0-9]{1,20}"),
    float: compile_later(r"[+-]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,5})?"),
}
"""The forms in which keys that are not strings are written."""


class _Walk:
    """A walk along `steps` that leaves what it finds in `found`."""

    def __init__(self, steps: tuple[Step, ...], found: list[tuple[Binding, Scalar]]) -> None:
        self._steps = steps
        self._found = found

    def step(self, value: Any, type_: DataType | None, at: int, bound: _Bound) -> None:
        """From `value`, by the step `at` and those after it."""
        if at == len(self._steps):
            self._all(value, type_, tuple(sorted(bound.items())) if bound else ())
        elif isinstance(value, list):
            self._array(value, type_, at, bound)
        elif isinstance(value, GeoPosition):
            self._struct(value._asdict(), None, at, bound)
        elif isinstance(value, dict):
            if isinstance(type_, StructType):
                self._struct(value, type_, at, bound)
            else:
                self._map(value, type_, at, bound)
        else:
            raise _Mismatch

    def _array(self, value: list[Any], type_: DataType | None, at: int, bound: _Bound) -> None:
        element = type_.element if isinstance(type_, ArrayType) else None
        match self._steps[at]:
            case Index(index):
                if index < len(value):
                    self.step(value[index], element, at + 1, bound)
            case Variable(name) if name in bound:
                kind, index = bound[name]
                if kind != "index":
                    raise _Mismatch
                if index < len(value):
                    self.step(value[index], element, at + 1, bound)
            case Variable(name):
                for index, item in enumerate(value):
                    self.step(item, element, at + 1, {**bound, name: ("index", index)})
            case _:
                for item in value:
                    self.step(item, element, at, bound)

    def _map(self, value: dict[Any, Any], type_: DataType | None, at: int, bound: _Bound) -> None:
        inner = type_.value if isinstance(type_, MapType) else None
        match self._steps[at]:
            case Key(text):
                key = key_of(text, type(next(iter(value)))) if value else None
                if key is not None and key in value:
                    self.step(value[key], inner, at + 1, bound)
            case Variable(name) if name in bound:
                kind, key = bound[name]
                if kind == "index":
                    raise _Mismatch
                if key in value and type(next(iter(value))).__name__ == kind:
                    self.step(value[key], inner, at + 1, bound)
            case Variable(name):
                for key, item in value.items():
                    self.step(item, inner, at + 1, {**bound, name: (type(key).__name__, key)})
            case Member("key"):
                for key in value:
                    self.step(key, None, at + 1, bound)
            case Member("value"):
                for item in value.values():
                    self.step(item, inner, at + 1, bound)
            case _:
                raise _Mismatch

    def _struct(self, value: Mapping[str, Any], type_: StructType | None, at: int, bound: _Bound) -> None:
        step = self._steps[at]
        if not isinstance(step, Member):
            raise _Mismatch
        member = value.get(step.name)
        if member is not None:
            self.step(member, _member_type(member, type_, step.name), at + 1, bound)

    def _all(self, value: Any, type_: DataType | None, binding: Binding) -> None:
        """All that is in the value."""
        if isinstance(value, bool):
            self._found.append((binding, int(value)))
        elif isinstance(value, _SCALARS):
            self._found.append((binding, value))
        elif isinstance(value, list):
            element = type_.element if isinstance(type_, ArrayType) else None
            for item in value:
                self._all(item, element, binding)
        elif isinstance(value, GeoPosition):
            self._found += [(binding, value.x), (binding, value.y)]
        elif isinstance(value, dict):
            if isinstance(type_, StructType):
                for name, member in value.items():
                    self._all(member, _member_type(member, type_, name), binding)
            else:
                for key in value:
                    self._all(key, None, binding)
        else:
            self._found.append((binding, Special.OPAQUE))


def _member_type(member: Any, type_: StructType | None, name: str) -> DataType | None:
    """The type of a struct's field; what is one value needs none."""
    if isinstance(member, _SCALARS) or type_ is None:
        return None
    found = type_.field(name)
    return None if found is None else unroll(found)


def path_problem(type_: DataType, steps: tuple[Step, ...]) -> str:
    """The problem with a path into values of this type, as a message; empty where there is none."""
    for step in steps:
        while isinstance(type_, ArrayType) and isinstance(step, Member):
            type_ = type_.element
        match type_, step:
            case ArrayType(), Index() | Variable():
                type_ = type_.element
            case MapType() | WeightedSetType(), Key(text):
                if problem := _key_problem(type_.key, text):
                    return problem
                type_ = _value_type(type_)
            case MapType() | WeightedSetType(), Variable() | Member("value"):
                type_ = _value_type(type_)
            case MapType() | WeightedSetType(), Member("key"):
                type_ = type_.key
            case StructType(), Member(name):
                found = type_.field(name)
                if found is None:
                    return f"No field '{name}' in struct '{type_}', which has: {', '.join(dict(type_.fields))}"
                type_ = unroll(found)
            case DataType("position"), Member("x" | "y"):
                type_ = INT
            case _:
                return f"a value of type {type_} has nothing at '{step_text(step)}'"
        if isinstance(type_, InnerStructType):
            type_ = type_.structs[type_.name]
    return ""


def _value_type(type_: MapType | WeightedSetType) -> DataType:
    return type_.value if isinstance(type_, MapType) else INT


def _key_problem(type_: DataType, text: str) -> str:
    kind: type = str
    if isinstance(type_, NumericType):
        kind = bool if type_ == BOOL else int if type_.low is not None else float
    return f"'{text}' is no key of type {type_}" if key_of(text, kind) is None else ""
