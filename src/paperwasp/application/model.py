"""The application as the rest of the service sees it: containers, content clusters, schemas. Immutable and checked.

`build_model` is the one way from a package to a model. It collects everything that is wrong before it refuses, so that
one deployment tells all of it.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.application.extras import check_extras
from paperwasp.application.package import ApplicationPackage
from paperwasp.application.services import Container, DeclaredContent, Note, Services, parse_services
from paperwasp.errors import InvalidPackage, PaperwaspError
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema


@dataclass(frozen=True, slots=True)
class ContentCluster:
    """A content cluster and the schemas of its document types, in the order of services.xml."""

    id: str
    schemas: Mapping[str, Schema]
    """Document type → schema."""
    redundancy: int = 1

    @property
    def document_types(self) -> tuple[str, ...]:
        return tuple(self.schemas)


@dataclass(frozen=True, slots=True)
class ApplicationModel:
    """An application that can be run. Which generation it becomes is the config server's business."""

    containers: tuple[Container, ...]
    content_clusters: tuple[ContentCluster, ...]
    schemas: Mapping[str, Schema]
    """Schema name → schema; also of schemas that are in no cluster."""
    notes: tuple[Note, ...]
    checksum: str

    @property
    def has_search(self) -> bool:
        """Whether any container answers queries."""
        return any(container.search for container in self.containers)

    @property
    def has_document_api(self) -> bool:
        """Whether any container takes documents."""
        return any(container.document_api for container in self.containers)

    def cluster_of(self, document_type: str) -> ContentCluster | None:
        """The first content cluster with that document type."""
        return next((c for c in self.content_clusters if document_type in c.schemas), None)


SchemaCheck = Callable[[Schema], object]
"""Raises where something is wrong with a schema beyond its own language: with its rank profiles."""

_SCHEMA_FOLDERS: Final = ("schemas", "searchdefinitions")
_SERVICES: Final = "services.xml"


def build_model(package: ApplicationPackage, check_schema: SchemaCheck) -> ApplicationModel:
    """The model of the application in the package.

    Errors: InvalidPackage with every problem found, each with file and place where there is one.
    """
    problems: list[str] = []
    notes: list[Note] = []
    services = _services(package, problems)
    schemas = _schemas(package, check_schema, notes, problems)
    clusters = [_cluster(content, schemas or {}) for content in services.content_clusters]
    check_extras(package, notes, problems)
    if schemas is not None:
        problems.extend(_missing(services, clusters))
        notes.extend(_unused(clusters, schemas))
    if problems or schemas is None:
        raise InvalidPackage(_told(problems))
    return ApplicationModel(
        containers=services.containers,
        content_clusters=tuple(clusters),
        schemas=schemas,
        notes=(*services.notes, *notes),
        checksum=package.checksum,
    )


def _services(package: ApplicationPackage, problems: list[str]) -> Services:
    content = package.files.get(_SERVICES)
    if content is None:
        found = f"There are {len(package.files)} files in the package"
        problems.append(f"{_SERVICES} does not exist in application package. {found}")
        return Services()
    services = parse_services(content)
    problems.extend(str(problem) for problem in services.problems)
    return services


def _schemas(
    package: ApplicationPackage, check_schema: SchemaCheck, notes: list[Note], problems: list[str]
) -> Mapping[str, Schema] | None:
    """The schemas of the package by name; None where they do not parse."""
    try:
        found = parse_schemas(_schema_texts(package, problems))
    except PaperwaspError as error:
        problems.extend(error.message.splitlines())
        return None
    notes.extend(Note(message) for message in found.notes)
    for schema in found.schemas.values():
        problems.extend(_checked(schema, check_schema))
    return found.schemas


def _schema_texts(package: ApplicationPackage, problems: list[str]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for folder in _SCHEMA_FOLDERS:
        for path, content in package.under(folder, ".sd", ".profile", ".expression"):
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError as error:
                problems.append(f"{path}: not UTF-8 at byte {error.start}")
    return texts


def _checked(schema: Schema, check_schema: SchemaCheck) -> list[str]:
    try:
        check_schema(schema)
    except PaperwaspError as error:
        return error.message.splitlines()
    return []


def _cluster(content: DeclaredContent, schemas: Mapping[str, Schema]) -> ContentCluster:
    by_type = {schema.document.name: schema for schema in schemas.values()}
    found = {name: by_type[name] for name in content.document_types if name in by_type}
    return ContentCluster(content.id, MappingProxyType(found), content.redundancy)


def _missing(services: Services, clusters: list[ContentCluster]) -> Iterator[str]:
    for content, cluster in zip(services.content_clusters, clusters, strict=True):
        for name in content.document_types:
            if name not in cluster.schemas:
                yield f"{content.position}: no schema for document type '{name}' in content cluster '{content.id}'"


def _unused(clusters: list[ContentCluster], schemas: Mapping[str, Schema]) -> Iterator[Note]:
    used = {schema.name for cluster in clusters for schema in cluster.schemas.values()}
    for name in sorted(schemas.keys() - used):
        yield Note(f"Schema '{name}' is in no content cluster", "INFO")


def _told(problems: list[str]) -> str:
    if len(problems) == 1:
        return f"Invalid application package: {problems[0]}"
    lines = problems[: limits.PACKAGE_PROBLEMS]
    if len(problems) > len(lines):
        lines.append(f"and {len(problems) - len(lines)} more")
    return f"Invalid application package: {len(problems)} problems:\n" + "\n".join(lines)
