"""Values of summaries that are shown otherwise than in documents.

    tensors             the fewest digits of their cells' own type (`tensor.json_output`)
    floats within       in arrays, maps and structs: the digits of a double, as they travel in Vespa's summaries;
                        a field that is a single float has the fewest digits of a float
    raw                 base64, or a text for people where the schema says so
    predicates          as the content node prints them, on a line
    arrays of structs   that look like the entries of a map, or of a weighted set, as that

Vespa: slime_filler.cpp in searchsummary, StructuredData.java, RawData.java and JsonRenderer.java in container-search,
predicate_printer.cpp and predicatefieldvalue.cpp in document
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from paperwasp.document.numbers import half, single
from paperwasp.document.predicate import parse_predicate, printed, simplified
from paperwasp.document.shown import Render
from paperwasp.document.types import (
    FLOAT,
    FLOAT16,
    STRING,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    NumericType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.errors import LanguageError
from paperwasp.storage.attributes import unset_value

Widen = Callable[[Any], Any]
"""The JSON of a value → the same with the digits of doubles."""


def has_float_tensors(type_: DataType) -> bool:
    """Whether tensors in it have cells that results show otherwise than documents."""
    return any(isinstance(inner, TensorFieldType) and inner.tensor.cell_type != "int8" for inner in type_.walk())


def widening_of(type_: DataType, *, is_within: bool = False) -> Widen | None:
    """The function that widens floats in a value of this type; None: there are none. `is_within`: a part of a field."""
    match type_:
        case ArrayType():
            element = widening_of(type_.element, is_within=True)
            return element and (lambda values: [element(value) for value in values])
        case MapType():
            item = widening_of(type_.value, is_within=True)
            return item and (lambda entries: {key: item(value) for key, value in entries.items()})
        case StructType():
            members = {name: widen for name, inner in type_.fields if (widen := widening_of(inner, is_within=True))}
            return _of_members(members) if members else None
    if not is_within or type_ not in (FLOAT, FLOAT16):
        return None
    nearest = single if type_ == FLOAT else half
    return lambda value: value if isinstance(value, str) else nearest(float(value))


def _of_members(members: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda struct: {name: members[name](item) if name in members else item for name, item in struct.items()}


class Objects(NamedTuple):
    """Kinds of values that are JSON objects below fields of a hit. False: arrays of structs, as which Vespa's content
    nodes send them, with `key` and `value`, or `item` and `weight`."""

    maps: bool = True
    """The field itself is an object all the same, if its keys are strings."""
    weighted_sets: bool = True


ALL_OBJECTS: Final = Objects()

Shape = Callable[[Any], Any]
"""The JSON of a value → the same with other objects and arrays in it."""

_ENTRY: Final = ("key", "value")
_WEIGHT: Final = ("item", "weight")
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")


def shape_of(type_: DataType, objects: Objects = ALL_OBJECTS, *, is_within: bool = False) -> Shape | None:
    """The function that shows maps and weighted sets as `objects` says, and with them arrays of structs that all have
    just `key` and `value`, or `item` and a whole `weight`; None: all is shown as it is. A struct within itself is left
    as it is. `is_within`: a part of a field.

    Vespa does not know them apart, since its content nodes send maps and weighted sets as such arrays: emitTopLevel,
    tryEmitAsMap and tryEmitAsWset of JsonRenderer.java.
    """
    match type_:
        case ArrayType():
            return _array_shape(type_.element, objects, is_within)
        case MapType():
            return _map_shape(type_, objects, is_within)
        case WeightedSetType() if not objects.weighted_sets:
            return _pairs(_WEIGHT, _value_of(type_.key), lambda weight: weight)
        case StructType():
            members = {
                name: shape for name, inner in type_.fields if (shape := shape_of(inner, objects, is_within=True))
            }
            return _of_members(members) if members else None
    return None


def _map_shape(type_: MapType, objects: Objects, is_within: bool) -> Shape | None:
    item = shape_of(type_.value, objects, is_within=True)
    if objects.maps or (type_.key == STRING and not is_within):
        return item and (lambda entries: {key: item(value) for key, value in entries.items()})
    return _pairs(_ENTRY, _value_of(type_.key), item or (lambda value: value))


def _pairs(names: tuple[str, str], name_of: Callable[[str], Any], value_of: Callable[[Any], Any]) -> Shape:
    """Shows an object as an array of its members."""
    first, second = names

    def pairs(members: Any) -> Any:
        return [{first: name_of(name), second: value_of(value)} for name, value in members.items()]

    return pairs


def _value_of(type_: DataType) -> Callable[[str], Any]:
    """From the name of a member to the value of this type that it stands for."""
    return _number_named if isinstance(type_, NumericType) else str


def _number_named(name: str) -> Any:
    """A number, or the text of one that is not finite, as which JSON has it."""
    return name if name in _NOT_FINITE else orjson.loads(name)


def _array_shape(element: DataType, objects: Objects, is_within: bool) -> Shape | None:
    inner = shape_of(element, objects, is_within=True)
    members = dict(element.fields) if isinstance(element, StructType) else {}
    has_entries = members.keys() >= set(_ENTRY) and (objects.maps or (not is_within and members[_ENTRY[0]] == STRING))
    has_weights = members.keys() >= set(_WEIGHT) and objects.weighted_sets
    if isinstance(element, InnerStructType) or not (inner or has_entries or has_weights):
        return None

    def shape(values: Any) -> Any:
        if not isinstance(values, list):
            return values
        shown = values if inner is None else [inner(value) for value in values]
        if has_entries and _are_all(shown, _ENTRY):
            return {_name(struct["key"]): struct["value"] for struct in shown}
        if has_weights and _are_all(shown, _WEIGHT) and all(type(struct["weight"]) is int for struct in shown):
            return {_name(struct["item"]): struct["weight"] for struct in shown}
        return shown

    return shape


def _are_all(values: list[Any], names: tuple[str, str]) -> bool:
    """Whether there are values, and all are objects with these two members."""
    return bool(values) and all(
        isinstance(value, dict) and len(value) == 2 and names[0] in value and names[1] in value for value in values
    )


def _name(value: Any) -> str:
    """A value as the name of a member."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def raw_text(content: bytes) -> str:
    """Bytes for people, which cannot be read back in all cases."""
    return "".join(chr(byte) if 31 < byte < 127 or byte in b"\n\t" else f"\\x{byte:02x}" for byte in content)


def predicate_text(text: str) -> str:
    """A predicate as Vespa prints it, its newline included."""
    try:
        return printed(simplified(parse_predicate(text))) + "\n"
    except LanguageError:  # stored when the field had another type
        return text


def picked(value: Any, numbers: Sequence[int]) -> Any:
    """Only these elements of an array, or entries of a map or weighted set; None where there are none."""
    if isinstance(value, dict):
        entries = list(value.items())
        return dict(entries[n] for n in numbers if n < len(entries)) or None
    if isinstance(value, list):
        return [value[n] for n in numbers if n < len(value)] or None
    return value


def with_members(value: Any, paths: Sequence[tuple[str, ...]], is_map: bool) -> Any:
    """Structs with these members alone; of a map's entries, `key` and `value` (or `value.member`)."""
    if not is_map:
        return [{path[0]: item[path[0]] for path in paths if path[0] in item} for item in value]
    members = [path[1] for path in paths if len(path) > 1]
    if not members:
        return value
    return {key: {name: item[name] for name in members if name in item} for key, item in value.items()}


def unset_json(type_: DataType, render: Render | None) -> bytes | None:
    """The JSON of the value that an attribute of this type keeps as it keeps none; None: there is no such value, or it
    is empty. `render`: how values become JSON."""
    value = unset_value(type_)
    if value is None:
        return None
    return orjson.dumps(value if render is None else render(value), option=orjson.OPT_SERIALIZE_NUMPY)
