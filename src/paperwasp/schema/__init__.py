"""The schema language: its syntax (`syntax`), and its meaning as `Schema` (`parse_schemas`)."""

from paperwasp.schema.model import DocumentSummary, Field, Function, RankProfile, Schema
from paperwasp.schema.resolve import SchemaSet, parse_schemas
from paperwasp.schema.tree import InvalidSchemas

__all__ = [
    "DocumentSummary",
    "Field",
    "Function",
    "InvalidSchemas",
    "RankProfile",
    "Schema",
    "SchemaSet",
    "parse_schemas",
]
