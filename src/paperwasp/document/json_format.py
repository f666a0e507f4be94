"""Document JSON to typed values: the body of a put or an update, checked against the document type.

A reader is compiled once per document type: one converter per field, looked up by name. A clean document costs a
dictionary look-up and a call per field.

Vespa: https://docs.vespa.ai/en/reference/schemas/document-json-format.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, NoReturn

import orjson

from paperwasp.document.converters import TextOfNumber, converter_of, describe
from paperwasp.document.sent_values import SentCheck
from paperwasp.document.types import DocumentType
from paperwasp.document.update_json import UpdateReader
from paperwasp.document.updates import FieldUpdate, Value
from paperwasp.document.written_numbers import SentFields, load_sent_json, value_with_texts
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
            self._refuse_value(name, error, document_id)
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

    def _refuse_value(self, name: str, error: ValueError, document_id: str) -> NoReturn:
        where = f"In document '{document_id}': " if document_id else ""
        data_type = self._type.fields[name]
        raise InvalidInput(f"{where}Could not parse field '{name}' of type '{data_type}': {error}") from None


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
