"""Where the documents of each type are, and how their JSON is read: what the document API knows of an application.

A document type may be in several content clusters. Then a change goes to all of them and a document is read from the
first, unless the request names one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from paperwasp.application import ApplicationModel, Container
from paperwasp.document.json_format import DocumentReader
from paperwasp.errors import InvalidInput, TooLarge

_FIELD_PATH: Final = re.compile(r"[.\[{]")


@dataclass(frozen=True, slots=True)
class Route:
    """Where the documents of one type are, and how their JSON is read."""

    document_type: str
    reader: DocumentReader
    fields: frozenset[str]
    addresses: Mapping[str, str]
    """Content cluster → its address; none: the type is in no cluster."""

    @property
    def clusters(self) -> str:
        """As messages name them."""
        return ", ".join(f"'{cluster}'" for cluster in self.addresses)


class Routes:
    """The routes of an application through one of its containers. Immutable."""

    def __init__(
        self, model: ApplicationModel, address_of: Callable[[str], str], container: Container | None = None
    ) -> None:
        clusters = {cluster.id: cluster.document_types for cluster in model.content_clusters}
        self._clusters = tuple(clusters)
        self._routes: dict[str, Route] = {}
        self._ignores_undefined = container is not None and container.ignore_undefined_fields
        self._size_limit_bytes = container.max_document_size_bytes if container is not None else None
        for schema in model.schemas.values():
            document = schema.document
            addresses = {name: address_of(name) for name, types in clusters.items() if document.name in types}
            reader, fields = DocumentReader(document), frozenset(document.fields)
            self._routes[document.name] = Route(document.name, reader, fields, addresses)

    def check_cluster(self, cluster: str | None) -> None:
        """Errors: InvalidInput that names the clusters that there are, in the words that `vespa visit` looks for."""
        if cluster is not None and cluster not in self._clusters:
            known = ", ".join(f"'{name}'" for name in self._clusters)
            raise InvalidInput(f"Your Vespa deployment has no content cluster '{cluster}', only {known}")

    def route(self, document_type: str, cluster: str | None) -> Route:
        """Errors: InvalidInput for a type or cluster that there is not, and for a type that is not in the cluster."""
        self.check_cluster(cluster)
        route = self._routes.get(document_type)
        if route is None:
            raise InvalidInput(f"Document type {document_type} does not exist")
        if not route.addresses:
            raise InvalidInput(f"No route to documents of type '{document_type}': no content cluster has it")
        if cluster is None:
            return route
        if cluster not in route.addresses:
            raise InvalidInput(
                f"No route to documents of type '{document_type}': content cluster '{cluster}' does not have it, "
                f"only {route.clusters}"
            )
        return replace(route, addresses={cluster: route.addresses[cluster]})

    def defined(self, fields: Mapping[str, object], route: Route) -> tuple[Mapping[str, object], bool]:
        """The fields that are to be read, and whether others are ignored, where the container says so."""
        if not self._ignores_undefined:
            return fields, False
        known = {name: value for name, value in fields.items() if _FIELD_PATH.split(name, 1)[0] in route.fields}
        return known, len(known) < len(fields)

    def check_size(self, size_bytes: int) -> None:
        """Errors: TooLarge where the container takes no document of that size."""
        limit = self._size_limit_bytes
        if limit is not None and size_bytes > limit:
            raise TooLarge(f"Document size is {size_bytes} bytes, above the limit of {limit} bytes in services.xml")
