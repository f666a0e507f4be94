"""Where the documents of each type are, and how their JSON is read: what the document API knows of an application.

A document type may be in several content clusters. Then a change goes to all of them and a document is read from the
first, unless the request names one: by `cluster`, or by a route, as Vespa derives them from services.xml:

    default · indexing · default-get                the clusters of the type, as their selections say
    <cluster> · <cluster>-index · storage/cluster.<cluster>     that cluster, whatever its selection says

Vespa: https://docs.vespa.ai/en/writing/document-routing.html
Differs: an application has no routes and hops of its own, and no route goes round indexing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Container
from paperwasp.base.env import SYSTEM
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.components.registry import components_of
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Operation, Put, Value
from paperwasp.document.plain_fields import PlainFields, PlainPut, PlainUpdate
from paperwasp.document.selection import (
    PlainSubject,
    Purpose,
    check_condition_length,
    check_selection,
    conjunction,
    is_everything,
    matcher_of,
    parse_selection,
)
from paperwasp.document.sent_numbers import SentFields
from paperwasp.document.types import DataType, DocumentType
from paperwasp.document.updates import FieldUpdate
from paperwasp.errors import InvalidInput
from paperwasp.indexing import Processor, processor_of
from paperwasp.indexing.binary_texts import check_put, check_updates, tokenized_fields
from paperwasp.indexing.components import TimeLeft, no_end
from paperwasp.schema.model import Schema

_FIELD_PATH: Final = compile_later(r"[.\[{]")
_ROUTES_TO_ALL: Final = ("default", "default-get", "indexing")
_ROUTES_TO_ONE: Final = ("{}", "{}-index", "storage/cluster.{}")
_ROUTE_PREFIX: Final = "route:"


class Target(NamedTuple):
    """A content cluster that documents are sent to."""

    cluster: str
    address: str
    accepts: Acceptance | None = None
    """Which operations it takes; None: all."""


class DocumentRoute(Struct, frozen=True):
    """Where the documents of one type are, and how their JSON is read and processed."""

    type: DocumentType
    reader: DocumentReader
    plain: PlainFields
    """The kernel that reads bodies of plain fields at once."""
    targets: tuple[Target, ...]
    """None: the type is in no cluster."""
    is_selective: bool = False
    """Whether there is one that does not take all operations."""
    processor: Processor | None = None
    """The scripts that make fields outside the document; None: there are none."""
    tokenized: frozenset[str] = frozenset()
    """The fields whose texts are tokenized."""

    @property
    def is_slow(self) -> bool:
        """Whether what indexing makes of documents may take long: it is not for the event loop then."""
        return self.processor is not None and self.processor.is_slow

    @property
    def is_direct(self) -> bool:
        """Whether every change goes to one content cluster, with the fields as they were sent."""
        return len(self.targets) == 1 and not self.is_selective and self.processor is None

    @property
    def derived(self) -> frozenset[str]:
        """The fields that indexing makes of the document's."""
        return frozenset() if self.processor is None else self.processor.fields

    def read_put(self, id: DocumentId, fields: Mapping[str, object], time_left: TimeLeft = no_end) -> dict[str, Value]:
        """The values of a put, with what indexing makes of them in the time that is left.

        Errors: InvalidInput that names document and field; Overload, Timeout, Unavailable of a component.
        """
        values = self.reader.read_put(fields, id.text)
        if self.processor is not None:
            values = self.processor.put(id, values, time_left)
        check_put(id, self.tokenized, values)
        return values

    def finish_plain_put(self, id: DocumentId, put: PlainPut, time_left: TimeLeft) -> PlainPut:
        """Adds to a put that was read at once what indexing makes of it. Errors: as `read_put`."""
        if self.processor is None:
            return put
        values = self.processor.put(id, put.fields, time_left)
        check_put(id, self.tokenized, values)
        return PlainPut(values, b"")

    def finish_plain_update(self, id: DocumentId, update: PlainUpdate, time_left: TimeLeft) -> PlainUpdate:
        """Adds to an update that was read at once what indexing makes of it. Errors: as `read_put`."""
        return update if self.processor is None else PlainUpdate(self.process(id, update.updates, time_left), b"")

    def read_update(
        self, id: DocumentId, fields: Mapping[str, object], time_left: TimeLeft = no_end
    ) -> tuple[FieldUpdate, ...]:
        """The updates of an update, with what indexing makes of them. Errors: as `read_put`."""
        return self.process(id, self.reader.read_update(fields, id.text), time_left)

    def process(
        self, id: DocumentId, updates: tuple[FieldUpdate, ...], time_left: TimeLeft = no_end
    ) -> tuple[FieldUpdate, ...]:
        """Adds to updates those that indexing makes of them. Errors: as `read_put`."""
        if self.processor is not None:
            updates = self.processor.update(id, updates, time_left)
        check_updates(id, self.tokenized, updates)
        return updates

    def accepting(self, operation: Operation) -> tuple[Target, ...]:
        """The clusters that take the operation."""
        if not self.is_selective:
            return self.targets
        now_us = SYSTEM.time_ns() // 1000
        return tuple(t for t in self.targets if t.accepts is None or t.accepts(operation, now_us))


def names_of(targets: Iterable[Target]) -> str:
    """The clusters, as messages name them."""
    return ", ".join(f"'{target.cluster}'" for target in targets)


class DocumentRoutes:
    """The routes of an application through one of its containers. Immutable."""

    def __init__(
        self, model: ApplicationModel, address_of: Callable[[str], str], container: Container | None = None
    ) -> None:
        self._clusters = tuple(cluster.id for cluster in model.content_clusters)
        self._named = _named_routes(self._clusters)
        self._ignores_undefined = container is not None and container.ignore_undefined_fields
        self.check_condition = ConditionCheck(model.schemas.values())
        self._routes: dict[str, DocumentRoute] = {}
        self.slow_types: set[str] = set()
        """The document types with a route that `is_slow`."""
        self._to_one: dict[tuple[str, str], DocumentRoute] = {}
        for schema in model.schemas.values():
            document = schema.document
            targets = tuple(
                Target(cluster.id, address_of(cluster.id), acceptance_of(cluster, document))
                for cluster in model.content_clusters
                if document.name in cluster.document_types
            )
            is_selective = any(target.accepts for target in targets)
            processor = processor_of(schema, components_of(schema))
            route = DocumentRoute(
                document,
                DocumentReader(document),
                PlainFields(document),
                targets,
                is_selective,
                processor,
                tokenized_fields(schema),
            )
            self._routes[document.name] = route
            if route.is_slow:
                self.slow_types.add(document.name)
            for target in targets:
                named = replace(route, targets=(target._replace(accepts=None),), is_selective=False)
                self._to_one[document.name, target.cluster] = named

    def check_cluster(self, cluster: str | None) -> None:
        """Errors: InvalidInput that names the clusters that there are, in the words that `vespa visit` looks for."""
        if cluster is not None and cluster not in self._clusters:
            known = ", ".join(f"'{name}'" for name in self._clusters)
            raise InvalidInput(f"Your Vespa deployment has no content cluster '{cluster}', only {known}")

    def cluster_of(self, route: str) -> str | None:
        """The cluster that a route leads to; None: to all with the document type. Errors: InvalidInput."""
        name = route.removeprefix(_ROUTE_PREFIX)
        if name not in self._named:
            known = ", ".join(f"'{known}'" for known in self._named)
            raise InvalidInput(f"There is no route '{route}', only {known}")
        return self._named[name]

    def has_type(self, document_type: str) -> bool:
        return document_type in self._routes

    def is_direct(self, document_type: str) -> bool:
        """Whether all puts of the type go to one content cluster, and reading their fields takes little time."""
        route = self._routes.get(document_type)
        if route is None or route.is_selective or route.is_slow or self._ignores_undefined:
            return False
        return len(route.targets) == 1

    def ignores(self, document_type: str, cluster: str | None) -> bool:
        """Whether a remove goes to no cluster, since none selects documents of a type that there is not."""
        return cluster is None and bool(self._clusters) and document_type not in self._routes

    def route(self, document_type: str, cluster: str | None = None) -> DocumentRoute:
        """Errors: InvalidInput for a type or cluster that there is not, and for a type that is not in the cluster.

        Where no cluster is named, a type that is in none of them has a route that leads nowhere.
        """
        self.check_cluster(cluster)
        route = self._routes.get(document_type)
        if route is None:
            raise InvalidInput(f"Document type {document_type} does not exist")
        if not route.targets and (cluster is not None or not self._clusters):
            raise InvalidInput(f"No route to documents of type '{document_type}': no content cluster has it")
        if cluster is None:
            return route
        if (document_type, cluster) not in self._to_one:
            raise InvalidInput(
                f"No route to documents of type '{document_type}': content cluster '{cluster}' does not have it, "
                f"only {names_of(route.targets)}"
            )
        return self._to_one[document_type, cluster]

    def select_defined(self, fields: SentFields, route: DocumentRoute) -> tuple[SentFields, bool]:
        """The fields that are to be read, and whether others are ignored, where the container is configured so."""
        if not self._ignores_undefined:
            return fields, False
        known = fields.only(name for name in fields if _FIELD_PATH.split(name, 1)[0] in route.type.fields)
        return known, len(known) < len(fields)


def _named_routes(clusters: Iterable[str]) -> dict[str, str | None]:
    """Route → the cluster that it leads to; None: all."""
    to_one = {pattern.format(cluster): cluster for cluster in clusters for pattern in _ROUTES_TO_ONE}
    return {**dict.fromkeys(_ROUTES_TO_ALL), **{name: to_one[name] for name in to_one if name not in _ROUTES_TO_ALL}}


# Test-and-set conditions, before the log: whether a selection can be asked of the documents of an application.
#
# Vespa: https://docs.vespa.ai/en/writing/document-v1-api-guide.html#conditional-writes
# Differs: a condition that cannot be read is a 400 that says where; Vespa's content cluster fails with 500.


_CHECKED: Final = 1024
"""Conditions that are remembered to be right: feeders send the same over and over."""


class ConditionCheck:
    """Checks conditions against the document types of an application. Immutable but for what it remembers."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        known = tuple(schemas)
        self._types = {schema.document.name: schema.document for schema in known}
        self._imported = {
            schema.document.name: {
                field.name: field.type for field in schema.fields.values() if field.imported is not None
            }
            for schema in known
        }
        self._remembered = lru_cache(maxsize=_CHECKED)(self._check)

    def __call__(self, condition: str) -> None:
        """Errors: InvalidInput for one that is too long; LanguageError with line and column."""
        check_condition_length(condition)
        self._remembered(condition)

    def _check(self, condition: str) -> None:
        check_selection(parse_selection(condition, "condition"), self._types, self._imported, Purpose.CONDITION)


# The selections of content clusters among the documents that are sent to them: `selection` in services.xml.
#
# A put is taken where its document is selected. An update does not say what the other fields are, and a remove says
# none: they are taken unless the id alone is against it.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html#document


Acceptance = Callable[[Operation, int], bool]
"""The operation and the time in microseconds since 1970 → whether the cluster takes it."""


def acceptance_of(cluster: ContentCluster, document_type: DocumentType) -> Acceptance | None:
    """The predicate of the operations that the cluster takes of one of its document types; None: it takes all."""
    declared = cluster.declared
    of_type = next(document.selection for document in declared.documents if document.type == document_type.name)
    selection = conjunction(*(parse_selection(text) for text in (declared.selection, of_type)))
    if is_everything(selection):
        return None
    matches = matcher_of(selection)

    def accepts(operation: Operation, now_us: int) -> bool:
        if isinstance(operation, Put):
            return matches(PlainSubject(operation.id, operation.fields, document_type), now_us) is True
        return matches(_Unseen(operation.id), now_us) is not False

    return accepts


class _Unseen:
    """A document of which only the id is known: what a selection asks of its fields has no answer."""

    def __init__(self, document_id: DocumentId) -> None:
        self.id = document_id

    def is_a(self, type_name: str) -> bool:
        return False

    def field(self, name: str) -> Value | None:
        return None

    def data_type(self, name: str) -> DataType | None:
        return None
