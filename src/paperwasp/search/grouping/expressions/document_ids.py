"""docidnsspecific(): what a user chose of the id of a document, `x` of `id:namespace:type::x`.

It is known in streaming search; where documents are found by an index it is the empty text, as in Vespa.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html; getdocidnamespacespecificfunctionnode.h
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paperwasp.document.ids import DocumentId
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.expressions.constants import ConstantNode
from paperwasp.search.grouping.memory import TextMemory
from paperwasp.search.grouping.node import Lids, Node, Rows, Scope, bind_arguments, register
from paperwasp.search.grouping.tables import TextTable, distinct, encoded, mapped
from paperwasp.search.grouping.values import Kind, Values


class UserSpecified(Node):
    """That part of the ids of documents."""

    kind = Kind.STRING

    def __init__(self, document_ids: Callable[[Lids], Sequence[str]], memory: TextMemory) -> None:
        self._document_ids = document_ids
        self._table = TextTable(memory=memory)

    def values(self, rows: Rows) -> Values:
        lids, places = distinct(rows.lids)
        return Values(self.kind, mapped(_user_specified, self._document_ids(lids), self._table)[places], self._table)


def _user_specified(document_id: str) -> bytes:
    return encoded(DocumentId.parse(document_id).user_specified)


@register("docidnsspecific")
def _document_id(expression: Expression, scope: Scope) -> Node:
    bind_arguments(expression, scope, 0, 0)
    return ConstantNode("") if scope.document_ids is None else UserSpecified(scope.document_ids, scope.texts)
