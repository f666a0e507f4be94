"""The comparison of two applications, cluster by cluster and document type by document type.

Fields, rank profiles, summaries, query profiles, containers and clusters come and go freely; what needs more than that
is here. Where a part of an application is removed, nothing within it is compared: only the removal is reported.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#modifying-schemas
Differs: types are compared in every mode and inside arrays and maps too, since documents are kept in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from paperwasp.application.changes.attributes import attribute_changes, fast_access_changes, find_unpaged
from paperwasp.application.changes.found import KINDS, Action, Changes, Kind, Refusal, Service
from paperwasp.application.changes.indexing import indexing_changes
from paperwasp.application.changes.types import type_changes
from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Content, ContentDocument, Mode, Node
from paperwasp.base.records import dataclass
from paperwasp.schema.model import Schema

_MODE_NAMES: Final[Mapping[Mode, str]] = {"index": "indexed", "streaming": "streaming", "store-only": "store-only"}
_WITHOUT_ID: Final = "reindexing"
"""The name of a reindexing that nothing need allow."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One change: what it needs (None: no action), and what must allow it (None: nothing)."""

    kind: Kind | None
    message: str
    validation_id: str | None = None
    document_type: str = ""


def find_changes(active: ApplicationModel, new: ApplicationModel) -> Changes:
    """The actions and overrides that are needed before `new` may replace `active`: a pure function of the two."""
    clusters = {cluster.id: cluster for cluster in new.content_clusters}
    actions: list[Action] = []
    refusals: dict[Refusal, None] = {}
    for cluster in active.content_clusters:
        after = clusters.get(cluster.id)
        changes = tuple(_cluster(cluster, after) if after else _report_removal(cluster))
        refusals |= {Refusal(change.validation_id, change.message): None for change in changes if change.validation_id}
        if after:
            actions += _actions(after.declared, changes)
    return Changes(tuple(sorted(actions, key=lambda action: KINDS.index(action.kind))), tuple(refusals))


def _report_removal(cluster: ContentCluster) -> Iterator[_Change]:
    message = f"Content cluster '{cluster.id}' is removed. This will cause loss of all data in this cluster"
    yield _Change(None, message, "content-cluster-removal")


def _cluster(active: ContentCluster, new: ContentCluster) -> Iterator[_Change]:
    before, after = _documents(active), _documents(new)
    for name, document in before.items():
        if name not in after:
            message = f"Schema '{name}' is removed in content cluster '{active.id}'"
            yield _Change(None, f"{message}. This will cause loss of all data in this schema", "schema-removal")
            continue
        yield from _document(active.id, document, after[name])
        if name in active.schemas and name in new.schemas:
            yield from _schema(document, after[name], active.schemas[name], new.schemas[name])


def _documents(cluster: ContentCluster) -> dict[str, ContentDocument]:
    return {document.type: document for document in cluster.declared.documents}


def _document(cluster: str, active: ContentDocument, new: ContentDocument) -> Iterator[_Change]:
    """The changes of what services.xml declares of a document type."""
    where = f"Document type '{active.type}' in cluster '{cluster}'"
    if active.mode != new.mode:
        modes = f"from '{_MODE_NAMES[active.mode]}' to '{_MODE_NAMES[new.mode]}'"
        # Between the two modes without an index there is nothing to index again.
        if "index" in (active.mode, new.mode):
            message = f"{where} changed indexing mode {modes}"
            yield _Change("reindex", message, "indexing-mode-change", active.type)
    if active.is_global != new.is_global:
        flags = f"from {str(active.is_global).lower()} to {str(new.is_global).lower()}"
        yield _Change(None, f"{where} changed global {flags}", "global-document-change")


def _schema(old: ContentDocument, document: ContentDocument, active: Schema, new: Schema) -> Iterator[_Change]:
    """The changes of a schema, of those fields that hold values in the mode before and in the mode after."""
    where, name = f"Document type '{document.type}'", document.type
    modes = (old.mode, document.mode)
    if modes == ("index", "index"):
        for column in attribute_changes(active, new):
            message = f"{where}: Field '{column.name}' changed: {column.change}"
            yield _Change("restart", message, column.validation_id)
        for field in find_unpaged(active, new):
            message = f"{where}: Attribute '{field}' has setting 'paged' removed. This may take much more memory"
            yield _Change(None, message, "paged-setting-removal")
        for made in indexing_changes(active, new):
            yield _Change("reindex", f"{where}: {made.message}", made.validation_id, name)
    elif modes == ("streaming", "streaming"):
        for column in fast_access_changes(active, new):
            yield _Change("restart", f"{where}: Field '{column.name}' changed: {column.change}")
    for field, change in type_changes(active, new):
        yield _Change("refeed", f"{where}: Field '{field}' changed: {change}", "field-type-change", name)


def _actions(content: Content, changes: Iterable[_Change]) -> Iterator[Action]:
    """Changes of one cluster, put together by what is to be done, with what."""
    messages: dict[tuple[Kind, str, str, str | None], list[str]] = {}
    for change in changes:
        if change.kind == "restart":
            messages.setdefault(("restart", "", "", None), []).append(change.message)
        elif change.kind is not None:
            name = change.validation_id or _WITHOUT_ID
            key = (change.kind, name, change.document_type, change.validation_id)
            messages.setdefault(key, []).append(change.message)
    services = tuple(_service(content.id, node) for node in content.nodes or (Node(),))
    for (kind, name, document_type, validation_id), reasons in messages.items():
        yield Action(kind, name, content.id, document_type, tuple(sorted(reasons)), services, validation_id)


def _service(cluster: str, node: Node) -> Service:
    config_id = f"{cluster}/search/cluster.{cluster}/{node.distribution_key}"
    return Service("searchnode", "searchnode", config_id, node.host)
