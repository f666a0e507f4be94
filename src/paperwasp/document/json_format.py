"""Document JSON to typed values: the body of a put or an update, checked against the document type.

A reader is compiled once per document type: one converter per field, looked up by name. It is on the feed path, so a
converter is one small function, and a clean document costs a dictionary look-up and a call per field.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
Differs: a number in a bool field is refused; Vespa silently takes it as false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ctypes import c_float
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from paperwasp.document.operations import Assign, FieldUpdate, Value
from paperwasp.document.types import BOOL, FLOAT, STRING, ArrayType, DataType, DocumentType, NumericType
from paperwasp.errors import InvalidInput

Converter = Callable[[Any], Value]
"""JSON value → typed value. Raises ValueError that says what is wrong with the value."""

_CONTROL_CHARACTERS: Final = bytes(set(range(0x20)) - set(b"\t\n\r"))
_NONCHARACTER_BYTES: Final = (b"\xef\xb7", b"\xbf\xbe", b"\xbf\xbf")
"""One of these pairs is in the UTF-8 of every illegal character above ASCII (and of some legal ones)."""
_LAST_TWO_OF_PLANES: Final = "".join(
    f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17)
)
_ILLEGAL_CHARACTER: Final = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\ufdd0-\ufddf{_LAST_TWO_OF_PLANES}]")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?")
_KNOWN_OPERATIONS: Final = frozenset(
    ("add", "remove", "increment", "decrement", "multiply", "divide", "match", "modify")
)
_FIELD_PATH: Final = re.compile(r"[.\[{]")


class Body(NamedTuple):
    """The members of a request body that count; all others are ignored."""

    fields: Mapping[str, object]
    condition: str | None = None
    create: bool | None = None


class DocumentReader:
    """Reads the fields of puts and updates of one document type."""

    def __init__(self, document_type: DocumentType) -> None:
        self._type = document_type
        self._converters = {name: converter_of(data_type) for name, data_type in document_type.fields.items()}

    def read_put(self, fields: Mapping[str, object], document_id: str = "") -> dict[str, Value]:
        """The typed values of a put. A field whose value is null is left unset.

        Errors: InvalidInput that names document, field, type and value.
        """
        converters = self._converters
        values: dict[str, Value] = {}
        try:
            for name, value in fields.items():
                convert = converters[name]
                if value is not None:
                    values[name] = convert(value)
        except KeyError:
            self._refuse_unknown(name, document_id)
        except ValueError as error:
            self._refuse_value(name, error, document_id)
        return values

    def read_update(self, fields: Mapping[str, object], document_id: str = "") -> dict[str, FieldUpdate]:
        """The field updates of an update body, `{"field": {"assign": value}}`; null assigned clears the field.

        Errors: InvalidInput, also for the operations that are not there yet.
        """
        updates: dict[str, FieldUpdate] = {}
        for name, operations in fields.items():
            for operation, value in self._operations(name, operations).items():
                updates[name] = self._field_update(name, operation, value, document_id)
        return updates

    def _operations(self, name: str, operations: object) -> Mapping[str, object]:
        if _FIELD_PATH.search(name):
            raise InvalidInput(f"Error in '{name}': Field path updates are not supported yet")
        if name not in self._converters:
            raise InvalidInput(f"Error in '{name}': No field named '{name}' in document type '{self._type.name}'")
        if not isinstance(operations, dict):
            found = describe(operations)
            raise InvalidInput(f"Error in '{name}': Expected an object of update operations, got {found}")
        return operations

    def _field_update(self, name: str, operation: str, value: object, document_id: str) -> FieldUpdate:
        if operation != "assign":
            reason = "is not supported yet" if operation in _KNOWN_OPERATIONS else "not implemented."
            raise InvalidInput(f"Error in '{name}': Operation '{operation}' {reason}")
        try:
            return Assign(None if value is None else self._converters[name](value))
        except ValueError as error:
            self._refuse_value(name, error, document_id)

    def _refuse_unknown(self, name: str, document_id: str) -> NoReturn:
        known = ", ".join(self._type.fields)
        where = f"In document '{document_id}': " if document_id else ""
        message = f"Field '{name}' is not defined in document type '{self._type.name}', which has the fields: {known}"
        raise InvalidInput(where + message) from None

    def _refuse_value(self, name: str, error: ValueError, document_id: str) -> NoReturn:
        where = f"In document '{document_id}': " if document_id else ""
        data_type = self._type.fields[name]
        raise InvalidInput(f"{where}Could not parse field '{name}' of type '{data_type}': {error}") from None


def read_fields(document_type: DocumentType, fields: Mapping[str, object], document_id: str = "") -> dict[str, Value]:
    """The typed values of one put. Who reads many keeps a DocumentReader."""
    return DocumentReader(document_type).read_put(fields, document_id)


def read_update(
    document_type: DocumentType, fields: Mapping[str, object], document_id: str = ""
) -> dict[str, FieldUpdate]:
    """The field updates of one update. Who reads many keeps a DocumentReader."""
    return DocumentReader(document_type).read_update(fields, document_id)


def read_body(body: bytes) -> Body:
    """The root object of a put or an update. Errors: InvalidInput with line and column."""
    root = _root(body)
    fields = root.get("fields")
    if not isinstance(fields, dict):
        raise InvalidInput('document is missing the required "fields" field')
    if len(root) == 1:
        return Body(fields)
    condition, create = root.get("condition"), root.get("create")
    if condition is not None and not isinstance(condition, str):
        raise InvalidInput(f"expected string value for condition, got {describe(condition)}")
    if create is not None and not isinstance(create, bool):
        raise InvalidInput(f"expected boolean value for create, got {describe(create)}")
    return Body(fields, condition, create)


def _root(body: bytes) -> dict[str, object]:
    if not body or body.isspace():
        raise InvalidInput("expected start of root object, got null")
    try:
        root = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.msg.startswith("unexpected content after"):
            raise InvalidInput(f"expected end of input, got more content at {where}") from None
        raise InvalidInput(f"failed parsing document: {error.msg} at {where}") from None
    if not isinstance(root, dict):
        raise InvalidInput(f"expected start of root object, got {describe(root)}")
    return root


def converter_of(data_type: DataType) -> Converter:
    """The function that turns a JSON value into a value of `data_type`."""
    if isinstance(data_type, ArrayType):
        return _array_converter(converter_of(data_type.element))
    if data_type == STRING:
        return _string
    if data_type == BOOL:
        return _bool
    if data_type == FLOAT:
        return _float
    if isinstance(data_type, NumericType):
        return _double if data_type.low is None else _integer_converter(data_type)
    raise InvalidInput(f"Values of type '{data_type}' are not supported yet")


def check_text(text: str) -> None:
    """Raises ValueError for a string with a character that is not text: control characters, noncharacters."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise _illegal_character(text[error.start]) from None
    clean = len(encoded) == len(encoded.translate(None, _CONTROL_CHARACTERS))
    if clean and (text.isascii() or not any(pair in encoded for pair in _NONCHARACTER_BYTES)):
        return
    if illegal := _ILLEGAL_CHARACTER.search(text):
        raise _illegal_character(illegal[0])


def describe(value: object) -> str:
    """What kind of JSON value this is, for error messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _illegal_character(character: str) -> ValueError:
    return ValueError(f"The string field value contains illegal code point 0x{ord(character):X}")


def _string(value: Any) -> str:
    if type(value) is str:
        check_text(value)
        return value
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    """A scalar in the form JSON writes it: what Vespa parses values from."""
    if isinstance(value, dict | list) or value is None:
        raise ValueError(f"Expected a single value, got {describe(value)}")
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = _scalar_text(value)
    if isinstance(value, str) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError(f'Expected true or false, got "{text}"')


def _integer_converter(data_type: NumericType) -> Converter:
    low, high = data_type.low or 0, data_type.high or 0

    def convert(value: Any) -> int:
        if type(value) is not int:
            value = _parse_integer(value)
        if low <= value <= high:
            return value  # type: ignore[no-any-return]
        raise ValueError(f'For input string: "{value}"')

    return convert


def _parse_integer(value: object) -> int:
    text = _scalar_text(value)
    if isinstance(value, str) and len(text) <= 20 and _INTEGER.fullmatch(text):
        return int(text)
    raise ValueError(f'For input string: "{text}"')


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    text = _scalar_text(value).strip()
    if not text:
        raise ValueError("empty String")
    if isinstance(value, str) and _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
    raise ValueError(f'For input string: "{text}"')


def _float(value: Any) -> float:
    """Rounded to the nearest 32-bit float; what is too large becomes infinite."""
    return c_float(value if type(value) is float else _double(value)).value


def _array_converter(convert: Converter) -> Converter:
    def convert_array(value: Any) -> list[Value]:
        if not isinstance(value, list):
            raise ValueError(f"Expected an array, got {describe(value)}")
        try:
            return [convert(element) for element in value]
        except ValueError:
            raise ValueError(_first_error(convert, value)) from None

    return convert_array


def _first_error(convert: Converter, values: list[object]) -> str:
    for index, value in enumerate(values):
        try:
            convert(value)
        except ValueError as error:
            return f"element {index}: {error}"
    return ""
