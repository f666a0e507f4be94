"""The selections of content clusters among the documents that are sent to them: `selection` in services.xml.

A put is taken where its document is selected. An update does not say what the other fields are, and a remove says none:
they are taken unless the id alone is against it.

Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html#document
"""

from __future__ import annotations

from collections.abc import Callable

from paperwasp.application.model import ContentCluster
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Put
from paperwasp.document.selection import PlainSubject, conjunction, is_everything, matcher_of, parse_selection
from paperwasp.document.types import DataType, DocumentType
from paperwasp.document.updates import Value

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
