"""The document type of `document_model` in several schemas: fields of all types, parts, fields that are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from paperwasp.base.records import replace
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    URI,
    DataType,
    MapType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
)
from paperwasp.indexing import processor_of
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import AttributeSettings, Field, Hnsw, IndexSettings, Schema, SubField
from tests.content.nodes import ATTRIBUTE, INDEX, schema

Json = Any

PAIR = StructType("pair", (("a", INT), ("b", STRING)))
DENSE, MAPPED = TensorType.parse("tensor<float>(x[2])"), TensorType.parse("tensor<float>(m{})")


def tensor(type_: TensorType) -> DataType:
    return TensorFieldType(str(type_), type_)


def weighted(key: DataType, create: bool = False, remove: bool = False) -> DataType:
    return WeightedSetType(f"weightedset<{key}>", key, create, remove)


TYPES: Final[dict[str, DataType]] = {
    "title": STRING, "artist": STRING, "lyrics": array_of(STRING),
    "small": BYTE, "count": INT, "total": LONG, "score": FLOAT, "weight": DOUBLE, "flag": BOOL,
    "word": STRING, "link": URI, "blob": RAW, "place": POSITION, "rule": PREDICATE,
    "parent": ReferenceType("reference<thing>", "thing"),
    "numbers": array_of(INT), "tags": array_of(STRING), "reals": array_of(DOUBLE),
    "votes": weighted(STRING), "marks": weighted(INT, True, True),
    "dense": tensor(DENSE), "cells": tensor(MAPPED),
    "sizes": MapType("map<string,int>", STRING, INT), "pair": PAIR, "pairs": array_of(PAIR),
    "named": MapType("map<string,pair>", STRING, PAIR),
}  # fmt: skip
INDEXED: Final = ("title", "artist", "lyrics")
NEVER: Final = frozenset(("title", "lyrics", "sizes", "pair", "pairs", "named", "lower"))
"""Fields that are no attributes in any variant."""
PARTS: Final[dict[str, dict[str, DataType]]] = {
    "sizes": {"key": STRING, "value": INT},
    "pairs": {"a": INT, "b": STRING},
    "named": {"key": STRING, "value.a": INT, "value.b": STRING},
}
"""Those of fields that are attributes, of some of the fields in each variant."""
VARIANTS: Final = 4
GRAPHS: Final = (
    None,
    IndexSettings(hnsw=Hnsw(4, 20)),
    IndexSettings(hnsw=Hnsw(4, 20, multi_threaded_indexing=False)),
    IndexSettings(hnsw=Hnsw(8, 20)),
)
"""The index of dense vectors in each variant."""

MADE_SCHEMA: Final = parse_schemas(
    {
        "schemas/thing.sd": """schema thing {
          document thing {
            field title type string {}
            field total type long {}
            field count type int {}
            field tags type array<string> {}
          }
          field lower type string { indexing: input title | lowercase | summary | index }
          field echo type long { indexing: input total | attribute }
          field tenfold type int { indexing: input count * 10 | attribute }
          field copied type array<string> { indexing: input tags | attribute }
        }"""
    }
).schemas["thing"]
PROCESSOR: Final = processor_of(MADE_SCHEMA)


@dataclass(frozen=True)
class Made:
    """A field outside the document: of which field it is made, what of a value, and whether it is a copy of it."""

    source: str
    make: Callable[[Json], Json]
    is_copy: bool = False


MADE: Final = {
    "lower": Made("title", str.lower),
    "echo": Made("total", lambda value: value, True),
    "tenfold": Made("count", lambda value: value * 10),
    "copied": Made("tags", lambda value: value, True),
}
ALL_FIELDS: Final = (*TYPES, *MADE)


def attributes_of(variant: int) -> frozenset[str]:
    """Which fields are attributes in a variant of the schema; all in the last. References always are."""
    fields = ((place, name) for place, name in enumerate(ALL_FIELDS) if name not in NEVER)
    is_last = variant == VARIANTS - 1
    return frozenset(name for place, name in fields if is_last or (place + variant) % 3 != variant) | {"parent"}


def parts_of(variant: int) -> frozenset[str]:
    """The fields whose parts are attributes in a variant of the schema."""
    return frozenset(name for place, name in enumerate(PARTS) if place != variant)


def variant_schema(variant: int) -> Schema:
    """The same document type; another part of its fields are attributes, some of them with other settings."""
    settings = dict.fromkeys(attributes_of(variant), ATTRIBUTE)
    if variant % 2 == 0 and "count" in settings:
        settings["count"] = AttributeSettings(fast_search=True)
    if variant % 2 == 1 and "dense" in settings:
        settings["dense"] = AttributeSettings(paged=True)
    parts = parts_of(variant)
    made = (replace(MADE_SCHEMA.fields[name], attribute=settings.get(name)) for name in MADE)
    fed = (
        Field(
            name,
            kind,
            index=INDEX if name in INDEXED else GRAPHS[variant] if name == "dense" else None,
            attribute=settings.get(name),
            sub_fields=_parts(name) if name in parts else {},
        )
        for name, kind in TYPES.items()
    )
    return replace(schema("thing", *fed, *made), rank_profiles=MADE_SCHEMA.rank_profiles)


def _parts(name: str) -> dict[str, SubField]:
    return {path: SubField(path, kind, attribute=ATTRIBUTE) for path, kind in PARTS[name].items()}
