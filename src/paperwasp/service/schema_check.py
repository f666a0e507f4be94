"""What a deployment tells of a schema beyond its own language: its indexing scripts and its rank profiles, compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paperwasp.errors import Finding
from paperwasp.features.compile import check_profiles
from paperwasp.indexing import check_scripts
from paperwasp.schema.model import Schema


def check_schema(schema: Schema, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """A `SchemaCheck` of `application.model`. Errors: ProfileError for what is wrong with rank profiles."""
    yield from check_scripts(schema)
    yield from check_profiles(schema, files)
