"""The JSON schema of values of a type, in the form in which documents are fed.

Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html#structured-output, FieldGeneratorUtils.java
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructType,
    WeightedSetType,
)

_SINGLES: Final[Mapping[DataType, str]] = {
    BOOL: "boolean",
    STRING: "string",
    **dict.fromkeys((BYTE, INT, LONG), "integer"),
    **dict.fromkeys((FLOAT16, FLOAT, DOUBLE), "number"),
}


def schema_of_field(name: str, type_: DataType) -> dict[str, Any]:
    """The schema of `{name: value}`, where nothing else may stand. Errors: ValueError for a type that has none."""
    try:
        value = _schema(type_)
    except ValueError as error:
        raise ValueError(f"a field of type {type_} cannot be generated: {error}") from None
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


def _schema(type_: DataType) -> dict[str, Any]:
    if type_ in _SINGLES:
        return {"type": _SINGLES[type_]}
    match type_:
        case ArrayType():
            return {"type": "array", "items": _schema(type_.element)}
        case WeightedSetType():
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        case MapType():
            return {"type": "object", "additionalProperties": _schema(type_.value)}
        case StructType():
            return {
                "type": "object",
                "properties": {name: _schema(each) for name, each in type_.fields},
                "required": [name for name, _ in type_.fields],
                "additionalProperties": False,
            }
    raise ValueError(f"there is no JSON schema for values of type {type_}")
