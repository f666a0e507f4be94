"""services.xml as values: containers, content clusters, and what each is made of. Immutable.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.access_model import OPEN_TO_ALL, Access, ServerTls
from paperwasp.base.patterns import compile_later
from paperwasp.errors import Position
from paperwasp.schema.files import Component
from paperwasp.schema.teaser_settings import DEFAULT_TEASERS, HI_TAGS, Tags, Teasers

# Bindings of filter chains: `http://*/search/*`, and which of several that fit a request is meant.
#
#     scheme://host[:port]/path      `*` in the path stands for any characters, slashes too
#
# The path is compared as it came, and, where it has percent signs, as it reads too: a page that is found by either must
# not get past a filter by being written in another way. The scheme may be any; both are served alike. The port is one
# that services.xml gives to a server. Of several that fit the strictest counts: a path without `*` at its end before
# one with it, `*` alone last of all.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#binding
# Differs: the host must be `*`: any client can say another.


_PATTERN: Final = compile_later(r"([^:]+)://([^:/]+)(?::(\*|[0-9]{1,5}))?/(.*)")


class Binding(Struct, frozen=True):
    """A pattern of requests."""

    text: str
    port: int | None
    """None: any."""
    parts: tuple[str, ...]
    """Of the path, behind its first slash: what stands between its stars. `()` where it is a star alone."""

    def fits(self, port: int | None, path: str) -> bool:
        """Return whether a request to that path, at a server with that port in services.xml, is meant.

        Time: that of reading the path once.
        """
        if self.port is not None and self.port != port:
            return False
        return not self.parts or _fits(self.parts, path.removeprefix("/"))


def read_binding(text: str) -> Binding:
    """Errors: ValueError that says why."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text[:100]}' is no binding like http://*/search/*")
    scheme, host, port, path = found.groups()
    if scheme not in ("http", "https", "*"):
        raise ValueError(f"the scheme of the binding '{text[:100]}' must be http, https or *")
    if host != "*":
        raise ValueError(f"the host of the binding '{text[:100]}' must be *: any client can say another")
    parts = () if path == "*" else tuple(path.split("*"))
    return Binding(text, None if port in (None, "*") else int(port), parts)


def strictest_first(bindings: list[Binding]) -> list[Binding]:
    """In the order in which they are tried."""
    return sorted(bindings, key=cmp_to_key(_compare))


def _fits(parts: tuple[str, ...], path: str) -> bool:
    if len(parts) == 1:
        return path == parts[0]
    first, *middle, last = parts
    if not path.startswith(first) or not path.endswith(last) or len(path) < len(first) + len(last):
        return False
    start, end = len(first), len(path) - len(last)
    for part in middle:
        found = path.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True


def _compare(one: Binding, other: Binding) -> int:
    """Negative where `one` is the stricter."""
    return _compare_paths(one.parts, other.parts) or (one.port is None) - (other.port is None)


def _compare_paths(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    if not one or not other:
        return len(other) - len(one)
    if (one[-1] == "") != (other[-1] == ""):
        return 1 if one[-1] == "" else -1
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return -1 if mine > theirs else 1
    return len(other) - len(one)


Mode = Literal["index", "streaming", "store-only"]

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return _EMPTY


class ClusterNode(Struct, frozen=True):
    """One node of a cluster as it is written; everything runs in this one process."""

    host_alias: str = ""
    host: str = "localhost"
    """From hosts.xml; localhost where there is no such file."""
    distribution_key: int = 0
    group: str = ""
    """The path of the groups around it."""


class HttpServer(Struct, frozen=True):
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


class FilterChain(Struct, frozen=True):
    """A `request-chain`, or a `response-chain`."""

    id: str
    bindings: tuple[Binding, ...] = ()
    filters: tuple[str, ...] = ()
    """Ids, in their order, of those too that it inherits."""
    position: Position | None = None


class Filtering(Struct, frozen=True):
    """The `filtering` of a container's `http`."""

    is_strict: bool
    """Whether a request that is of no chain is refused."""
    chains: tuple[FilterChain, ...] = ()
    answers: tuple[FilterChain, ...] = ()
    """The filters of answers."""


class EvaluatedNetwork(Struct, frozen=True):
    """How a network runs in `model-evaluation`; None where that is not said."""

    name: str
    intraop_threads: int | None = None
    interop_threads: int | None = None
    execution_mode: str = ""
    gpu_device: int | None = None
    optimizes: bool = True
    position: Position | None = None


class AccessLogSettings(Struct, frozen=True):
    """That the answers of a container are logged, and how files of the log are compressed when they are full."""

    compression: Literal["zstd", "gzip", "none"] = "zstd"


class Container(Struct, frozen=True):
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
    nodes: tuple[ClusterNode, ...] = ()
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
    """Bytes that ranking for one query, or one evaluation of a model, may take."""
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


class ContentDocument(Struct, frozen=True):
    """A document type in a content cluster."""

    type: str
    mode: Mode = "index"
    selection: str = ""
    is_global: bool = False
    teasers: Teasers = DEFAULT_TEASERS
    """How dynamic summaries of the type are made in this cluster."""
    position: Position | None = None


class Content(Struct, frozen=True):
    """A content cluster, with its document types in the order of services.xml."""

    id: str
    documents: tuple[ContentDocument, ...] = ()
    selection: str = ""
    garbage_collection: bool = False
    garbage_collection_interval_s: int = 3600
    redundancy: int = 1
    searchable_copies: int = 1
    nodes: tuple[ClusterNode, ...] = ()
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


class Services(Struct, frozen=True):
    """Everything that services.xml says."""

    containers: tuple[Container, ...] = ()
    content_clusters: tuple[Content, ...] = ()

    @property
    def components(self) -> tuple[Component, ...]:
        """The components of all containers."""
        return tuple(component for container in self.containers for component in container.components)
