"""Applications made by hand, for the tests of changes: only what a comparison looks at."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from paperwasp.application.changes.found import Changes
from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.services_model import Content, ContentDocument
from paperwasp.document.types import STRING, DataType, DocumentType
from paperwasp.schema.model import AttributeSettings, DocumentSummary, Field, IndexSettings, Schema, SummaryField

INDEX = IndexSettings()
ATTRIBUTE = AttributeSettings()


def field(name: str = "f1", type: DataType = STRING, /, **settings: Any) -> Field:
    return Field(name, type, **settings)


def schema(*fields: Field, shown: Iterable[SummaryField] = ()) -> Schema:
    """A schema `music` with those fields, those outside the document marked by `in_document`."""
    document = {each.name: each.type for each in fields if each.in_document and each.imported is None}
    summary = DocumentSummary("default", {each.name: each for each in shown})
    by_name = MappingProxyType({each.name: each for each in fields})
    return Schema("music", DocumentType("music", document), by_name, {}, {}, {"default": summary})


def cluster(
    *documents: ContentDocument, id: str = "content", schemas: Iterable[Schema] = (), **settings: Any
) -> ContentCluster:
    return ContentCluster(Content(id, documents, **settings), {each.name: each for each in schemas})


def application(*clusters: ContentCluster) -> ApplicationModel:
    schemas = {name: found for each in clusters for name, found in each.schemas.items()}
    return ApplicationModel(containers=(), content_clusters=clusters, schemas=schemas, findings=(), checksum="")


def with_fields(*fields: Field, **settings: Any) -> ApplicationModel:
    """An application with one cluster and one document type, in mode index."""
    document = ContentDocument("music", settings.pop("mode", "index"))
    return application(cluster(document, schemas=[schema(*fields, **settings)]))


def lines(changes: Changes) -> list[str]:
    """Each message behind its kind and name, and each refusal that no action has."""
    told = [
        f"{action.kind} {action.name}: {message}".replace(" :", ":")
        for action in changes.actions
        for message in action.messages
    ]
    messages = {message for action in changes.actions for message in action.messages}
    alone = (refusal for refusal in changes.refusals if refusal.message not in messages)
    return told + [f"refused {refusal.validation_id}: {refusal.message}" for refusal in alone]
