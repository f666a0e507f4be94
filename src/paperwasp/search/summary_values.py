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

from collections.abc import Callable
from typing import Any, Final

import orjson

from paperwasp.document.arithmetic import half, single
from paperwasp.document.predicate import parse_predicate, printed
from paperwasp.document.types import (
    FLOAT,
    FLOAT16,
    ArrayType,
    DataType,
    InnerStructType,
    MapType,
    StructType,
    TensorFieldType,
)
from paperwasp.errors import LanguageError

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


Pair = Callable[[Any], Any]
"""The JSON of a value → the same with arrays that look like maps as objects."""

_ENTRY: Final = ("key", "value")
_WEIGHT: Final = ("item", "weight")


def pairing_of(type_: DataType) -> Pair | None:
    """The function that shows arrays of structs as maps or weighted sets, where all have just `key` and `value`, or
    `item` and a whole `weight`; None: the type has no such arrays. A struct within itself is left as it is.

    Vespa does so since its content nodes send maps and weighted sets as such arrays: tryEmitAsMap and tryEmitAsWset of
    JsonRenderer.java.
    """
    match type_:
        case ArrayType():
            return _array_pairing(type_.element)
        case MapType():
            item = pairing_of(type_.value)
            return item and (lambda entries: {key: item(value) for key, value in entries.items()})
        case StructType():
            members = {name: pair for name, inner in type_.fields if (pair := pairing_of(inner))}
            return _of_members(members) if members else None
    return None


def _array_pairing(element: DataType) -> Pair | None:
    inner = pairing_of(element)
    names = {name for name, _ in element.fields} if isinstance(element, StructType) else set()
    if isinstance(element, InnerStructType) or not (inner or names.issuperset(_ENTRY) or names.issuperset(_WEIGHT)):
        return None

    def pair(values: Any) -> Any:
        if not isinstance(values, list):
            return values
        shown = values if inner is None else [inner(value) for value in values]
        if _are_all(shown, _ENTRY):
            return {_name(struct["key"]): struct["value"] for struct in shown}
        if _are_all(shown, _WEIGHT) and all(type(struct["weight"]) is int for struct in shown):
            return {_name(struct["item"]): struct["weight"] for struct in shown}
        return shown

    return pair


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
        return printed(parse_predicate(text)) + "\n"
    except LanguageError:  # stored when the field had another type
        return text
