"""Update operations as JSON: `{"field": {"operation": value}}`, `{"path{to}.a[3].place": {"operation": value}}`.

A reader is compiled once per document type, and has the converter of each field ready. What it has read is written so
that it is read again as the same: the log keeps updates in this form.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html#update
Differs: a place within a field may be named once in an update, in whatever spelling, and be given each operation once;
null assigned at a path takes away what is there; a field path also adds to weighted sets; booleans are no numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.document.converters import Converter, TextOfNumber, converter_of, describe, number_of, within_depth
from paperwasp.document.field_path import is_field_path, parse_field_path, type_after, types_along, write_field_path
from paperwasp.document.sent_numbers import SentFields, quote_numbers, value_with_texts
from paperwasp.document.shown import render_of
from paperwasp.document.tensor.json_output import tensor_json
from paperwasp.document.tensor.modify import read_addresses, read_modify, write_addresses, write_modify
from paperwasp.document.types import (
    BOOL,
    INT,
    POSITION,
    ArrayType,
    DataType,
    DocumentType,
    InnerStructType,
    NumericType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.document.updates import (
    Action,
    Add,
    AddCells,
    Assign,
    Calculate,
    Each,
    FieldUpdate,
    Match,
    ModifyCells,
    RemoveCells,
    Step,
    Take,
)
from paperwasp.errors import InvalidInput

# Updates that give one operation of a field twice: `{"f": {"match": {…}, "match": {…}}}`, or name a field twice.
#
# Vespa reads updates member by member and does all of them, in their order. Dictionaries keep the last of equal names,
# so such an update becomes several parts, each of them an update without equal names; they are read in turn.
#
# Vespa: VespaJsonDocumentReader.java of document/json


def parts_of(fields: SentFields) -> list[SentFields]:
    """The update in parts; nearly always it is one, which is `fields` itself.

    Errors: InvalidInput where there are several, and the body is so large that it is decoded in pieces.
    """
    if not _core.repeats_names(fields.body):
        return [fields]
    if len(fields.body) > limits.JSON_PIECE_BYTES:
        most = f"{limits.JSON_PIECE_BYTES} bytes (JSON_PIECE_BYTES in paperwasp.limits)"
        raise InvalidInput(f"An update of more than {most} names a field, or gives an operation of it, once")
    try:
        values, texts = _parts_of_fields(fields.body), _parts_of_fields(quote_numbers(fields.body))
    except RecursionError:
        raise InvalidInput("An update that is nested so deep gives each operation once") from None
    parts = [SentFields(value, b"", text) for value, text in zip(values, texts, strict=True)]
    return [part.only(name for name in part if name in fields) for part in parts]


class Members(list[tuple[str, Any]]):
    """The members of an object of JSON, also those with equal names."""


def members_of(text: bytes) -> Any:
    """The value that a text says, with `Members` for objects."""
    return json.loads(text, object_pairs_hook=Members)


def _parts_of_fields(body: bytes) -> list[dict[str, Any]]:
    (*_, members) = (value for name, value in members_of(body) if name == "fields")
    parts: list[dict[str, Any]] = [{}]
    for name, operations in members:
        if not isinstance(operations, Members):
            _add(parts, name, operations)
            continue
        if not operations:
            _add(parts, name, {})
        for operation, value in operations:
            _add(parts, name, {operation: _plain(value)})
    return parts


def _add(parts: list[dict[str, Any]], name: str, operations: Any) -> None:
    """To the last part, where what it has of the field leaves room; else to another one."""
    before = parts[-1].get(name)
    if name not in parts[-1]:
        parts[-1][name] = operations
    elif isinstance(before, dict) and isinstance(operations, dict) and not before.keys() & operations.keys():
        before.update(operations)
    else:
        parts.append({name: operations})


def _plain(value: Any) -> Any:
    if isinstance(value, Members):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


_PLAIN: Final = frozenset((int, str, bool))
"""The types of values that are in JSON as they are."""
_ARITHMETIC: Final = ("increment", "decrement", "multiply", "divide")


class _Target(NamedTuple):
    """The target of an operation: a field, or the place of a field path."""

    name: str
    """The field or path as the JSON has it."""
    data_type: DataType
    convert: Converter


class _WrongValue(Exception):
    """A value that is none of the target's type; the message says why."""


class UpdateReader:
    """Reads the updates of one document type."""

    def __init__(self, document_type: DocumentType) -> None:
        self._type = document_type
        self._targets = {
            name: _Target(name, data_type, converter_of(data_type)) for name, data_type in document_type.fields.items()
        }

    def read(
        self, fields: Mapping[str, object] | list[Mapping[str, object]], document_id: str = ""
    ) -> tuple[FieldUpdate, ...]:
        """The field updates of `fields`, or of several parts of one update: those of whole fields, in their order, then
        those of places in fields.

        Errors: InvalidInput that names field, type and value.
        """
        updates: list[FieldUpdate] = []
        path_updates: list[FieldUpdate] = []
        places: set[tuple[str, tuple[Step, ...]]] = set()
        for part in _parts(fields):
            if len(part) > limits.UPDATE_PLACES:
                _check_count(sum(name not in self._targets for name in part))
            for name in part:
                read = self._read_member(part, name, document_id)
                if name in self._targets:
                    updates += read
                else:
                    path_updates += _unique(name, read, places)
        if path_updates:
            _check_count(len(path_updates))
            walks = sum(any(isinstance(step, Each) for step in update.path) for update in path_updates)
            if walks > limits.UPDATE_WALKS:
                raise InvalidInput(f"An update has at most {limits.UPDATE_WALKS} operations on each element of a field")
        return (*updates, *path_updates)

    def _read_member(self, part: Mapping[str, object], name: str, document_id: str) -> list[FieldUpdate]:
        """The updates of a member of `fields`. Errors: InvalidInput."""
        operations = part[name]
        try:
            if not isinstance(operations, dict):
                raise ValueError(f"Expected an object of update operations, got {describe(operations)}")
            try:
                return self._read_place(name, operations)
            except TextOfNumber:
                return self._read_place(name, value_with_texts(part, name))
        except ValueError as error:
            raise InvalidInput(f"Error in '{name}': {error}") from None
        except _WrongValue as error:
            where = f"In document '{document_id}': " if document_id else ""
            raise InvalidInput(f"{where}{error}") from None

    def _read_place(self, name: str, operations: Mapping[str, object]) -> list[FieldUpdate]:
        target = self._targets.get(name)
        if target is None:
            return list(self._read_path(name, operations))
        updates = []
        for operation, value in operations.items():
            read = _OPERATIONS.get(operation)
            if read is None:
                raise ValueError(f"Operation '{operation}' not implemented.")
            updates.append(read(target, value))
        return updates

    def _read_path(self, name: str, operations: Mapping[str, object]) -> Iterator[FieldUpdate]:
        if not is_field_path(name):
            raise ValueError(f"No field named '{name}' in document type '{self._type.name}'")
        path = parse_field_path(name, self._type.fields, self._type.name)
        target = _Target(name, path.data_type, _nested_converter(path.data_type, len(path.steps)))
        for operation, value in operations.items():
            read = _PATH_OPERATIONS.get(operation.lower())
            if read is None:
                raise ValueError(f"Field path update type '{operation.lower()}' not supported.")
            action = read(target, value)
            if action in (Take(), Assign(None)):
                *_, before, _ = types_along(path.steps, self._type.fields[path.field])
                if before == POSITION:
                    raise ValueError("A part of a position cannot be removed")
            yield FieldUpdate(path.field, action, path.steps)


def _parts(fields: Mapping[str, object] | list[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
    if isinstance(fields, list):
        return fields
    return parts_of(fields) if isinstance(fields, SentFields) else [fields]


def _check_count(places: int) -> None:
    """Errors: InvalidInput for an update that would take too long to read, or to apply."""
    if places > limits.UPDATE_PLACES:
        raise InvalidInput(f"An update has at most {limits.UPDATE_PLACES} operations at places within fields")


def _unique(name: str, updates: list[FieldUpdate], places: set[tuple[str, tuple[Step, ...]]]) -> list[FieldUpdate]:
    """The updates of one place. Errors: InvalidInput for a place, or an operation there, that is given twice."""
    kinds = {(type(update.action), getattr(update.action, "operation", "")) for update in updates}
    if any((update.field, update.path) in places for update in updates) or len(kinds) < len(updates):
        raise InvalidInput(f"Error in '{name}': The same place and operation are given twice")
    places |= {(update.field, update.path) for update in updates}
    return updates


def _nested_converter(data_type: DataType, depth: int) -> Converter:
    """The converter of what lies so deep within a field. All of it together must not be deeper than a value may be."""
    convert = converter_of(data_type)
    if not any(isinstance(inner, InnerStructType) for inner in data_type.walk()):
        return convert
    return lambda value: convert(within_depth(value, depth))


# Operations: JSON to actions. ValueError: the operation is wrong; _WrongValue: the value is.


def _value(target: _Target, value: object, convert: Converter | None = None) -> Any:
    try:
        return (convert or target.convert)(value)
    except ValueError as error:
        message = f"Could not parse field '{target.name}' of type '{target.data_type}': {error}"
        raise _WrongValue(message) from None


def _read_assign(target: _Target, value: object) -> Action:
    return Assign(None if value is None else _value(target, value))


def _read_add(target: _Target, value: object) -> Action:
    if isinstance(target.data_type, TensorFieldType):
        return AddCells(_value(target, value, lambda cells: _cells_to_add(target, cells)))
    _check_collection(target)
    return Add(_value(target, value))


def _cells_to_add(target: _Target, value: object) -> Any:
    assert isinstance(target.data_type, TensorFieldType)
    type_ = target.data_type.tensor
    if not type_.mapped:
        raise ValueError("An add update can only be applied to tensors with at least one sparse dimension")
    tensor = target.convert(value)
    if not tensor.labels:
        raise ValueError(f"Add update for field '{target.name}' does not contain tensor cells")
    return tensor


def _read_remove(target: _Target, value: object) -> Action:
    if isinstance(target.data_type, TensorFieldType):
        tensor = target.data_type.tensor
        return RemoveCells(_value(target, value, lambda addresses: read_addresses(addresses, tensor, target.name)))
    _check_collection(target)
    return Take(tuple(_value(target, value)))


def _check_collection(target: _Target) -> None:
    if not isinstance(target.data_type, ArrayType | WeightedSetType):
        type_ = target.data_type
        raise ValueError(
            f"Trying to add or remove from a field of a type the reader does not know how to handle: {type_}"
        )


def _read_modify(target: _Target, value: object) -> Action:
    if not isinstance(target.data_type, TensorFieldType):
        raise ValueError(
            "A modify update can only be applied to tensor fields. "
            f"Field '{target.name}' is of type '{target.data_type}'"
        )
    tensor = target.data_type.tensor
    found = _value(target, value, lambda cells: read_modify(cells, tensor, target.name))
    return ModifyCells(found.operation, found.cells, found.create_default)


def _arithmetic_reader(operation: Any) -> Callable[[_Target, object], Action]:
    def read(target: _Target, value: object) -> Action:
        if not isinstance(target.data_type, NumericType) or target.data_type == BOOL:
            raise ValueError(
                f"Can not perform arithmetic update on non-numeric field '{target.name}' of type '{target.data_type}'"
            )
        return Calculate(operation, _value(target, value, _operand))

    return read


def _operand(value: object) -> int | float:
    number = number_of(value)
    if not math.isfinite(number):
        raise ValueError(f"Expected a finite number, got {value}")
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    return number


def _read_removal(target: _Target, value: object) -> Action:
    if isinstance(value, dict | list):
        raise ValueError(f"Expected a single value with remove, got {describe(value)}")
    return Take()


_ARITHMETIC_READERS: Final = {operation: _arithmetic_reader(operation) for operation in _ARITHMETIC}
_WHOLE_OPERATIONS: Final[Mapping[str, Callable[[_Target, object], Action]]] = {
    "assign": _read_assign,
    "add": _read_add,
    "remove": _read_remove,
    "modify": _read_modify,
    **_ARITHMETIC_READERS,
}
_MATCH_OPERATIONS: Final = {"assign": _read_assign, **_ARITHMETIC_READERS}
_PATH_OPERATIONS: Final[Mapping[str, Callable[[_Target, object], Action]]] = {
    "assign": _read_assign,
    "add": _read_add,
    "remove": _read_removal,
    **_ARITHMETIC_READERS,
}


def _read_match(target: _Target, value: object) -> FieldUpdate:
    """`{"element": …, "operation": …}`; another `match` within, for collections of collections."""
    steps: list[Step] = []
    data_type = target.data_type
    while True:
        if len(steps) == limits.FIELD_PATH_STEPS:
            raise ValueError(f"match is nested deeper than {limits.FIELD_PATH_STEPS}")
        operation, operand, element = _match_parts(value)
        if not isinstance(data_type, ArrayType | WeightedSetType):
            raise ValueError(f"Container type {data_type} not supported for match update.")
        of_key = converter_of(INT if isinstance(data_type, ArrayType) else data_type.key)
        steps.append(Match(_value(target, element, of_key)))
        data_type = type_after(steps[-1], data_type)
        if operation != "match":
            break
        value = operand
    read = _MATCH_OPERATIONS.get(operation)
    if read is None:
        raise ValueError(f"Operation '{operation}' not implemented.")
    inner = _Target(target.name, data_type, _nested_converter(data_type, len(steps)))
    return FieldUpdate(target.name, read(inner, operand), tuple(steps))


def _match_parts(value: object) -> tuple[str, object, object]:
    """The operation, its value and the element."""
    if not isinstance(value, dict):
        raise ValueError(f"Expected object for match update, got {describe(value)}")
    if "element" not in value:
        raise ValueError("Expected an element in match update")
    if len(value) != 2:
        raise ValueError(f"Expected one operation in match update, got {len(value) - 1}")
    (operation,) = value.keys() - {"element"}
    return operation, value[operation], value["element"]


def _whole(read: Callable[[_Target, object], Action]) -> Callable[[_Target, object], FieldUpdate]:
    return lambda target, value: FieldUpdate(target.name, read(target, value))


_OPERATIONS: Final[Mapping[str, Callable[[_Target, object], FieldUpdate]]] = {
    **{operation: _whole(read) for operation, read in _WHOLE_OPERATIONS.items()},
    "match": _read_match,
}
"""The operations on a field, by their names in JSON."""


# Writing


def write_updates(
    updates: Iterable[FieldUpdate], types: DocumentType | Mapping[str, DataType]
) -> dict[str, dict[str, Any]] | list[dict[str, dict[str, Any]]]:
    """The JSON object whose reading gives these updates, which have been read from one. It may hold NumPy scalars.

    An array of several objects where an operation of a field is given twice.
    """
    fields = types.fields if isinstance(types, DocumentType) else types
    written: dict[str, dict[str, Any]] = {}
    before: list[dict[str, dict[str, Any]]] = []
    for update in updates:
        data_type = fields[update.field]
        if not update.path:
            name, operation, value = update.field, *_write_action(update.action, data_type)
        elif isinstance(update.path[0], Match):
            name, operation, value = update.field, "match", _written_match(update, data_type)
        else:
            name = write_field_path(update.field, update.path, data_type)
            *_, data_type = types_along(update.path, data_type)
            operation, value = _write_action(update.action, data_type)
        if operation in written.get(name, ()):
            before.append(written)
            written = {}
        written.setdefault(name, {})[operation] = value
    return [*before, written] if before else written


def _write_action(action: Action, data_type: DataType) -> tuple[str, Any]:
    """The operation and its value."""
    return _WRITERS[type(action)](action, data_type)


def _written_match(update: FieldUpdate, data_type: DataType) -> dict[str, Any]:
    types = list(types_along(update.path, data_type))
    operation, value = _write_action(update.action, types[-1])
    for step, type_ in zip(reversed(update.path), reversed(types[:-1]), strict=True):
        assert isinstance(step, Match)
        element = step.element if isinstance(type_, ArrayType) else _render(step.element, type_.inner[0])
        operation, value = "match", {"element": element, operation: value}
    return value  # type: ignore[no-any-return]


def _render(value: Any, data_type: DataType) -> Any:
    if value is None or type(value) in _PLAIN:
        return value
    render = render_of(data_type)
    return value if render is None else render(value)


def _write_take(action: Take, data_type: DataType) -> tuple[str, Any]:
    if action.values is None:
        return "remove", 0
    if isinstance(data_type, WeightedSetType):
        return "remove", _render(dict.fromkeys(action.values, 0), data_type)
    return "remove", _render(list(action.values), data_type)


_WRITERS: Final[Mapping[type[Action], Callable[..., tuple[str, Any]]]] = {
    Assign: lambda action, data_type: ("assign", _render(action.value, data_type)),
    Add: lambda action, data_type: ("add", _render(action.values, data_type)),
    Take: _write_take,
    Calculate: lambda action, data_type: (action.operation, action.operand),
    ModifyCells: lambda action, data_type: ("modify", write_modify(action, data_type.tensor)),
    AddCells: lambda action, data_type: ("add", tensor_json(action.tensor)),
    RemoveCells: lambda action, data_type: ("remove", write_addresses(action.addresses)),
}
