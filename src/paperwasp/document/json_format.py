"""Document JSON to typed values: the body of a put or an update, checked against the document type.

A reader is compiled once per document type: one converter per field, looked up by name. A clean document costs a
dictionary look-up and a call per field.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.document.converters import TextOfNumber, converter_of, describe
from paperwasp.document.field_path import types_along
from paperwasp.document.sent_numbers import SentFields, load_sent_json, value_with_texts
from paperwasp.document.types import URI, ArrayType, DataType, DocumentType, MapType, StructType, WeightedSetType
from paperwasp.document.update_json import UpdateReader
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Match, Value
from paperwasp.errors import InvalidInput
from paperwasp.text.parsing.tokens import did_you_mean


class Body(NamedTuple):
    """The members of a request body that count; all others are ignored."""

    fields: SentFields
    condition: str | None = None
    create: bool | None = None


class DocumentReader:
    """Reads the fields of puts and updates of one document type."""

    def __init__(self, document_type: DocumentType) -> None:
        self._type = document_type
        self._converters = {name: converter_of(data_type) for name, data_type in document_type.fields.items()}
        self._updates = UpdateReader(document_type)
        self._check = SentCheck(document_type)

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
                    try:
                        values[name] = convert(value)
                    except TextOfNumber:
                        values[name] = convert(value_with_texts(fields, name))
        except KeyError:
            self._refuse_unknown(name, document_id)
        except ValueError as error:
            where = f"In document '{document_id}': " if document_id else ""
            data_type = self._type.fields[name]
            raise InvalidInput(f"{where}Could not parse field '{name}' of type '{data_type}': {error}") from None
        self._check.check_put(values, document_id)
        return values

    def read_update(self, fields: Mapping[str, object], document_id: str = "") -> tuple[FieldUpdate, ...]:
        """The field updates of an update body, `{"field": {"assign": value}}`; null assigned clears the field.

        Errors: InvalidInput that names document, field, type and value.
        """
        updates = self._updates.read(fields, document_id)
        self._check.check_updates(updates, document_id)
        return updates

    def _refuse_unknown(self, name: str, document_id: str) -> NoReturn:
        known = ", ".join(self._type.fields)
        where = f"In document '{document_id}': " if document_id else ""
        near = did_you_mean(name, self._type.fields)
        message = f"Field '{name}' is not defined in document type '{self._type.name}', which has the fields: {known}"
        raise InvalidInput(where + message + near) from None


def read_fields(document_type: DocumentType, fields: Mapping[str, object], document_id: str = "") -> dict[str, Value]:
    """The typed values of one put. Who reads many keeps a DocumentReader."""
    return DocumentReader(document_type).read_put(fields, document_id)


def read_update(
    document_type: DocumentType, fields: Mapping[str, object], document_id: str = ""
) -> tuple[FieldUpdate, ...]:
    """The field updates of one update. Who reads many keeps a DocumentReader."""
    return DocumentReader(document_type).read_update(fields, document_id)


def read_body(body: bytes) -> Body:
    """The root object of a put or an update. Errors: InvalidInput with line and column; TooLarge."""
    root = _root(body)
    fields = root.get("fields")
    if not isinstance(fields, dict):
        raise InvalidInput('document is missing the required "fields" field')
    sent = SentFields(fields, body)
    if len(root) == 1:
        return Body(sent)
    condition, create = root.get("condition"), root.get("create")
    if condition is not None and not isinstance(condition, str):
        raise InvalidInput(f"expected string value for condition, got {describe(condition)}")
    if create is not None and not isinstance(create, bool):
        raise InvalidInput(f"expected boolean value for create, got {describe(create)}")
    return Body(sent, condition, create)


def _root(body: bytes) -> dict[str, object]:
    if not body or body.isspace():
        raise InvalidInput("expected start of root object, got null")
    try:
        root = load_sent_json(body)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.msg.startswith("unexpected content after"):
            raise InvalidInput(f"expected end of input, got more content at {where}") from None
        raise InvalidInput(f"failed parsing document: {error.msg} at {where}") from None
    if not isinstance(root, dict):
        raise InvalidInput(f"expected start of root object, got {describe(root)}")
    return root


# Refuses values in documents that are sent, though their type allows them: values that were stored or logged before
# they were refused are still read.
#
#     uri       the port must be a number, and no line ends in the fragment (com.yahoo.net.Url)
#     divide    not by 0, except at a field path (FieldUpdateHelper.java in Vespa's indexinglanguage)


Check = Callable[[Any], None]
"""Raises ValueError for a typed value that is refused."""

_URL: Final = compile_later(
    r"(?:[^:/?#]+:)?"  # scheme
    r"(?://(?:[^:@/?#]+(?::[^@/?#]+)?@)?(?:\[[^\]]+\]|[^:/?#]+)(?::(?P<port>[^/?#]+))?)?"  # user, host, port
    r"[^?#]*(?:\?[^#]*)?(?:#[^\n\r\x85\u2028\u2029]*)?"  # path, query, fragment
)
_PORT: Final = compile_later(r"[+-]?[0-9]{1,10}")


class SentCheck:
    """The checks of one document type. A type without URIs costs nothing."""

    def __init__(self, document_type: DocumentType) -> None:
        self._type = document_type
        checks = {name: check_of(data_type) for name, data_type in document_type.fields.items()}
        self._checks = {name: check for name, check in checks.items() if check is not None}

    def check_put(self, values: Mapping[str, Value], document_id: str) -> None:
        """Errors: InvalidInput that names document, field and type."""
        for name, check in self._checks.items():
            if name in values:
                self._run(check, values[name], name, document_id)

    def check_updates(self, updates: Iterable[FieldUpdate], document_id: str) -> None:
        """Errors: InvalidInput that names document, field and type."""
        for update in updates:
            action = update.action
            if isinstance(action, Calculate) and action.operation == "divide" and not action.operand:
                if not update.path or isinstance(update.path[0], Match):
                    raise InvalidInput(f"{_in(document_id)}Error in '{update.field}': Division by zero")
            elif update.field in self._checks and isinstance(action, Assign | Add):
                *_, data_type = types_along(update.path, self._type.fields[update.field])
                value = action.value if isinstance(action, Assign) else action.values
                if value is not None and (check := check_of(data_type)) is not None:
                    self._run(check, value, update.field, document_id)

    def _run(self, check: Check, value: Value, name: str, document_id: str) -> None:
        try:
            check(value)
        except ValueError as error:
            where, type_ = _in(document_id), self._type.fields[name]
            raise InvalidInput(f"{where}Could not parse field '{name}' of type '{type_}': {error}") from None


def _in(document_id: str) -> str:
    return f"In document '{document_id}': " if document_id else ""


def check_of(data_type: DataType) -> Check | None:
    """The check of values of a type; None where there is nothing to check."""
    match data_type:
        case ArrayType():
            return _each(check_of(data_type.element), iter)
        case WeightedSetType():
            return _each(check_of(data_type.key), iter)
        case MapType():
            keys, items = _each(check_of(data_type.key), iter), _each(check_of(data_type.value), dict.values)
            return keys if items is None else items if keys is None else lambda value: (keys(value), items(value))[0]
        case StructType():
            return _check_of_members(data_type)
    return check_uri if data_type == URI else None


def _each(check: Check | None, parts: Callable[[Any], Iterable[Any]]) -> Check | None:
    if check is None:
        return None

    def check_each(value: Any) -> None:
        for part in parts(value):
            check(part)

    return check_each


def _check_of_members(data_type: StructType) -> Check | None:
    """The check of a struct; members that are of the same struct are not checked."""
    members = {name: check for name, inner in data_type.fields if (check := check_of(inner)) is not None}
    if not members:
        return None

    def check_members(value: Any) -> None:
        for name, check in members.items():
            if name in value:
                check(value[name])

    return check_members


def check_uri(text: str) -> None:
    """Errors: ValueError."""
    found = _URL.fullmatch(text)
    if found is None:
        raise ValueError("Malformed URL.")
    port = found["port"]
    if port is not None and not (_PORT.fullmatch(port) and -(2**31) <= int(port) < 2**31):
        raise ValueError(f'For input string: "{port}"')
