"""Checks of a schema at a deployment beyond its own language: compiles its indexing scripts and its rank profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paperwasp.components.registry import components_of
from paperwasp.errors import Finding
from paperwasp.indexing import check_scripts
from paperwasp.schema.model import Schema
from paperwasp.search.features.compile import check_profiles


def check_schema(schema: Schema, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """A `SchemaCheck` of `application.build`. Errors: ProfileError for what is wrong with rank profiles."""
    yield from check_scripts(schema, components_of(schema))
    yield from check_profiles(schema, files)
