"""The application as the rest of the service sees it: containers, content clusters, schemas. Immutable and checked.

These are records only, which name the types of their fields for the type checker alone: a process that has no
application yet has neither the schema language nor semantic rules loaded. `application.build` makes them.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from paperwasp.application.changes.overrides import ValidationOverrides
    from paperwasp.application.query_profiles import QueryProfiles
    from paperwasp.application.services_model import Container, Content
    from paperwasp.errors import Finding
    from paperwasp.query_languages.rules import RuleBases
    from paperwasp.schema.model import Schema

_NO_FILES: Final[Mapping[str, bytes]] = MappingProxyType({})


def _no_query_profiles() -> QueryProfiles:
    from paperwasp.application.query_profiles import NO_QUERY_PROFILES

    return NO_QUERY_PROFILES


def _no_rules() -> RuleBases:
    from paperwasp.query_languages.rules import NO_RULES

    return NO_RULES


def _no_overrides() -> ValidationOverrides:
    from paperwasp.application.changes.overrides import ValidationOverrides

    return ValidationOverrides()


class ContentCluster(Struct, frozen=True):
    """A content cluster: what services.xml says of it, and the schemas of its document types in that order."""

    declared: Content
    schemas: Mapping[str, Schema]
    """Document type → schema."""

    @property
    def id(self) -> str:
        return self.declared.id

    @property
    def document_types(self) -> tuple[str, ...]:
        return tuple(self.schemas)


class ApplicationModel(Struct, frozen=True):
    """An application that can be run. Which generation it becomes is the config server's business."""

    containers: tuple[Container, ...]
    content_clusters: tuple[ContentCluster, ...]
    schemas: Mapping[str, Schema]
    """Schema name → schema; also of schemas that are in no cluster."""
    findings: tuple[Finding, ...]
    """Notes on what is right but worth knowing: no errors."""
    checksum: str
    query_profiles: QueryProfiles = field(default_factory=_no_query_profiles)
    rules: RuleBases = field(default_factory=_no_rules)
    overrides: ValidationOverrides = field(default_factory=_no_overrides)
    files: Mapping[str, bytes] = field(default_factory=lambda: _NO_FILES)
    """The files of the package, for models and constants at run time."""


def empty_model() -> ApplicationModel:
    """The model of an application that was deleted: it has no containers, no content clusters and no schemas."""
    return ApplicationModel((), (), MappingProxyType({}), (), "")
