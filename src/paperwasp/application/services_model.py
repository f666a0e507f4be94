"""services.xml as values: containers, content clusters, and what each is made of. Immutable.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Literal

from paperwasp import limits
from paperwasp.application.access_model import OPEN_TO_ALL, Access, ServerTls
from paperwasp.application.bindings import Binding
from paperwasp.base.records import dataclass
from paperwasp.errors import Position
from paperwasp.schema.components import Component
from paperwasp.schema.teaser_settings import DEFAULT_TEASERS, HI_TAGS, Tags, Teasers

Mode = Literal["index", "streaming", "store-only"]

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return _EMPTY


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a cluster as it is written; everything runs in this one process."""

    host_alias: str = ""
    host: str = "localhost"
    """From hosts.xml; localhost where there is no such file."""
    distribution_key: int = 0
    group: str = ""
    """The path of the groups around it."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """One `server` of a container's `http`."""

    id: str
    port: int | None = None
    """None: wherever the service says."""
    position: Position | None = None
    tls: ServerTls | None = None
    request_chain: str = ""
    """The chain of request filters for requests that are of no other; empty: there is none."""
    response_chain: str = ""
    """The same for their answers."""


@dataclass(frozen=True, slots=True)
class FilterChain:
    """A `request-chain`, or a `response-chain`."""

    id: str
    bindings: tuple[Binding, ...] = ()
    filters: tuple[str, ...] = ()
    """Ids, in their order, of those too that it inherits."""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Filtering:
    """The `filtering` of a container's `http`."""

    is_strict: bool
    """Whether a request that is of no chain is refused."""
    chains: tuple[FilterChain, ...] = ()
    answers: tuple[FilterChain, ...] = ()
    """Those of answers."""


@dataclass(frozen=True, slots=True)
class EvaluatedNetwork:
    """How a network runs in `model-evaluation`; None where that is not said."""

    name: str
    intraop_threads: int | None = None
    interop_threads: int | None = None
    execution_mode: str = ""
    gpu_device: int | None = None
    optimizes: bool = True
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class AccessLogSettings:
    """That the answers of a container are logged, and how files of the log are compressed when they are full."""

    compression: Literal["zstd", "gzip", "none"] = "zstd"


@dataclass(frozen=True, slots=True)
class Container:
    """A container cluster and which of the interfaces it has."""

    id: str
    search: bool = False
    document_api: bool = False
    document_processing: bool = False
    model_evaluation: bool = False
    evaluated_networks: tuple[EvaluatedNetwork, ...] = ()
    servers: tuple[HttpServer, ...] = ()
    access: Access = OPEN_TO_ALL
    filtering: Filtering | None = None
    nodes: tuple[Node, ...] = ()
    components: tuple[Component, ...] = ()
    search_chains: tuple[str, ...] = ()
    """Ids of the chains that the package declares, beside the built-in ones."""
    searching_chains: tuple[str, ...] = ()
    """Ids of those of them that inherit another, and so in the end one of Vespa's, which search."""
    significance_models: tuple[tuple[str, Position | None], ...] = ()
    """Paths of files in the package, and where they are named."""
    ignore_undefined_fields: bool = False
    snowball_english: bool = False
    """Whether its linguistics stems English by Snowball's algorithm."""
    allows_expressions: bool = True
    """Whether queries may bring ranking expressions."""
    query_memory_bytes: int = limits.QUERY_MEMORY_BYTES
    """What ranking for one query, or one evaluation of a model, may take."""
    tags: Tags = HI_TAGS
    """How the words of queries are marked."""
    max_document_size_bytes: int | None = None
    access_log: AccessLogSettings | None = None
    """None: its answers are not logged, unless the command line says otherwise."""
    position: Position | None = None

    @property
    def port(self) -> int | None:
        """Where its first server listens; None: wherever the service says."""
        return self.servers[0].port if self.servers else None


@dataclass(frozen=True, slots=True)
class ContentDocument:
    """A document type in a content cluster."""

    type: str
    mode: Mode = "index"
    selection: str = ""
    is_global: bool = False
    teasers: Teasers = DEFAULT_TEASERS
    """How dynamic summaries of the type are made in this cluster."""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """A content cluster, with its document types in the order of services.xml."""

    id: str
    documents: tuple[ContentDocument, ...] = ()
    selection: str = ""
    garbage_collection: bool = False
    garbage_collection_interval_s: int = 3600
    redundancy: int = 1
    searchable_copies: int = 1
    nodes: tuple[Node, ...] = ()
    groups: int = 1
    tuning: Mapping[str, str] = field(default_factory=_empty)
    """Path below the cluster (`tuning/resource-limits/disk`, `search/query-timeout`) → text, for what has an effect."""
    max_document_size_bytes: int = limits.DOCUMENT_BYTES
    """Of the body of a put or an update."""
    processing_cluster: str = ""
    processing_chain: str = ""
    position: Position | None = None

    @property
    def document_types(self) -> tuple[str, ...]:
        return tuple(document.type for document in self.documents)


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that services.xml says."""

    containers: tuple[Container, ...] = ()
    content_clusters: tuple[Content, ...] = ()

    @property
    def components(self) -> tuple[Component, ...]:
        """Those of all containers."""
        return tuple(component for container in self.containers for component in container.components)
