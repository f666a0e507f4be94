"""The schema language: its syntax (`syntax`), and its meaning as `Schema` (`parse_schemas`)."""

from paperwasp.schema.model import Field, Function, RankProfile, Schema
from paperwasp.schema.problems import InvalidSchemas
from paperwasp.schema.resolve import SchemaSet, parse_schemas
from paperwasp.schema.summary_model import DocumentSummary

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
