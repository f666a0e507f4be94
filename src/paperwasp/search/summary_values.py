"""Values of summaries that are shown otherwise than in documents.

    tensors             the fewest digits of their cells' own type (`tensor.json_output`)
    floats within       in arrays, maps and structs: the digits of a double, as they travel in Vespa's summaries;
                        a field that is a single float has the fewest digits of a float
    raw                 base64, or a text for people where the schema says so
    predicates          as the content node prints them, on a line

Vespa: slime_filler.cpp in searchsummary, StructuredData.java and RawData.java in container-search,
predicate_printer.cpp and predicatefieldvalue.cpp in document
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paperwasp.document.arithmetic import half, single
from paperwasp.document.predicate import parse_predicate, printed
from paperwasp.document.types import FLOAT, FLOAT16, ArrayType, DataType, MapType, StructType, TensorFieldType
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
            return _member_widening(members) if members else None
    if not is_within or type_ not in (FLOAT, FLOAT16):
        return None
    nearest = single if type_ == FLOAT else half
    return lambda value: value if isinstance(value, str) else nearest(float(value))


def _member_widening(members: dict[str, Widen]) -> Widen:
    return lambda struct: {name: members[name](item) if name in members else item for name, item in struct.items()}


def raw_text(content: bytes) -> str:
    """Bytes for people, which cannot be read back in all cases."""
    return "".join(chr(byte) if 31 < byte < 127 or byte in b"\n\t" else f"\\x{byte:02x}" for byte in content)


def predicate_text(text: str) -> str:
    """A predicate as Vespa prints it, its newline included."""
    try:
        return printed(parse_predicate(text)) + "\n"
    except LanguageError:  # stored when the field had another type
        return text
