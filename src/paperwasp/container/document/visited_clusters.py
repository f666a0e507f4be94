"""The content clusters of an application as visits see them: the documents of each, by bucket space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.document.types import DataType, DocumentType
from paperwasp.errors import InvalidInput
from paperwasp.schema.pending import is_derived


class VisitCluster(Struct, frozen=True, dict=True):
    """One content cluster, and where it is served."""

    cluster: ContentCluster
    address: str

    @property
    def id(self) -> str:
        return self.cluster.id

    @cached_property
    def types(self) -> Mapping[str, DocumentType]:
        """Its document types by name."""
        return {name: schema.document for name, schema in self.cluster.schemas.items()}

    @cached_property
    def derived(self) -> Mapping[str, frozenset[str]]:
        """Document type → the fields that indexing makes of its documents."""
        return {
            name: frozenset(field.name for field in schema.fields.values() if is_derived(field))
            for name, schema in self.cluster.schemas.items()
        }

    @cached_property
    def imported(self) -> Mapping[str, Mapping[str, DataType]]:
        """Document type → imported field → its type."""
        return {
            name: {field.name: field.type for field in schema.fields.values() if field.imported is not None}
            for name, schema in self.cluster.schemas.items()
        }

    @cached_property
    def _global_types(self) -> frozenset[str]:
        return frozenset(document.type for document in self.cluster.declared.documents if document.is_global)

    def types_in(self, space: str) -> tuple[str, ...]:
        """The document types in a bucket space: "global", or "default" for all others."""
        return tuple(name for name in self.types if (name in self._global_types) == (space == "global"))

    def types_of(self, document_type: str) -> tuple[str, ...]:
        """A document type and those that inherit it, as a selection by type takes them, in its bucket space.

        Errors: InvalidInput where the cluster does not have it.
        """
        if document_type not in self.types:
            raise InvalidInput(
                f"There is no document type '{document_type}' in cluster '{self.id}', only {_list_names(self.types)}"
            )
        space = "global" if document_type in self._global_types else "default"
        return tuple(name for name in self.types_in(space) if self._is_a(name, document_type))

    def _is_a(self, name: str, ancestor: str) -> bool:
        """A type that is not in the cluster cannot be followed further: nothing of it is here."""
        if name == ancestor:
            return True
        known = self.types.get(name)
        return known is not None and any(self._is_a(parent, ancestor) for parent in known.inherits)


class VisitClusters:
    """All content clusters of an application. Immutable."""

    def __init__(self, model: ApplicationModel, address_of: Callable[[str], str]) -> None:
        clusters = (VisitCluster(cluster, address_of(cluster.id)) for cluster in model.content_clusters)
        self._clusters = {cluster.id: cluster for cluster in clusters}

    def cluster(self, name: str | None, document_type: str | None = None) -> VisitCluster:
        """The cluster of that name; without a name, the only one (that has the document type).

        Errors: InvalidInput, in the words that `vespa visit` looks for.
        """
        if not self._clusters:
            raise InvalidInput("Your Vespa deployment has no content clusters, so the document API is not enabled")
        if name is None:
            return self._only(document_type)
        if name not in self._clusters:
            known = _list_names(self._clusters)
            raise InvalidInput(f"Your Vespa deployment has no content cluster '{name}', only {known}")
        return self._clusters[name]

    def _only(self, document_type: str | None) -> VisitCluster:
        having = [found for found in self if document_type in found.types] if document_type else []
        candidates = having or list(self)
        if len(candidates) > 1:
            names = _list_names(found.id for found in candidates)
            raise InvalidInput(f"Please specify one of the content clusters in your Vespa deployment: {names}")
        return candidates[0]

    def __iter__(self) -> Iterator[VisitCluster]:
        return iter(self._clusters.values())


def _list_names(names: Iterator[str] | Mapping[str, object]) -> str:
    return ", ".join(f"'{name}'" for name in names)
