"""May a new application replace the active one, its documents kept? What the content nodes cannot do live is refused.

Adding fields, schemas, rank profiles, functions, summaries and clusters is fine, and so is everything that
only queries see. What would need documents to be indexed again, or would lose them, is not done yet.

Vespa: https://docs.vespa.ai/en/reference/applications/validation-overrides.html (there such changes are re-indexing,
re-feeding, or need an override).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from paperwasp.schema.model import Field, IndexSettings, Schema

if TYPE_CHECKING:
    from paperwasp.application.model import ApplicationModel, ContentCluster


def refused_changes(active: ApplicationModel, new: ApplicationModel) -> list[str]:
    """What in `new` cannot replace what `active` has, one sentence each; empty: it may be activated."""
    clusters = {cluster.id: cluster for cluster in new.content_clusters}
    problems: list[str] = []
    for cluster in active.content_clusters:
        if cluster.id in clusters:
            problems.extend(_cluster(cluster, clusters[cluster.id]))
        else:
            problems.append(f"Content cluster '{cluster.id}' is removed, with all its documents")
    return problems


def _cluster(active: ContentCluster, new: ContentCluster) -> Iterator[str]:
    for name, schema in active.schemas.items():
        if name in new.schemas:
            yield from _schema(schema, new.schemas[name])
        else:
            yield f"Document type '{name}' is removed from content cluster '{active.id}', with all its documents"


def _schema(active: Schema, new: Schema) -> Iterator[str]:
    for name, field in active.fields.items():
        where = f"Field '{name}' of schema '{active.name}'"
        if name in new.fields:
            yield from (f"{where}: {change}" for change in _field(field, new.fields[name]))
        else:
            yield f"{where} is removed"


def _field(active: Field, new: Field) -> Iterator[str]:
    if active.type != new.type:
        yield f"the type changes from {active.type} to {new.type}"
    if active.in_document != new.in_document:
        yield "it moves " + ("into the document" if new.in_document else "out of the document")
    if _stored(active.index) != _stored(new.index):
        yield _presence("index", active.index is not None, new.index is not None)
    if active.attribute != new.attribute:
        yield _presence("attribute", active.attribute is not None, new.attribute is not None)
    if active.cased != new.cased:
        yield f"matching becomes {'cased' if new.cased else 'uncased'}"
    if active.match != new.match:
        yield f"match changes from {active.match or 'the default'} to {new.match or 'the default'}"


def _stored(index: IndexSettings | None) -> IndexSettings | None:
    """The settings that an index on disk depends on. What bm25 needs is in every index."""
    return replace(index, enable_bm25=False) if index else None


def _presence(what: str, before: bool, after: bool) -> str:
    if before and after:
        return f"the settings of its {what} change"
    return f"its {what} is {'added' if after else 'removed'}"
