"""What the row store of a node has, compared with the document store."""

from __future__ import annotations

from paperwasp.content.node import ContentNode
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.content.views.view import View


def fill_rows(node: ContentNode) -> None:
    """Adds all documents that are there to the row store, which an earlier process may have left behind."""
    filling = RowFilling(node.reader)
    filling()
    while node.reader.view().rows.limit < node.reader.view().limit:
        filling()


def check_rows(view: View, *, whole: bool = False) -> int:
    """Every row is the document that was put with its lid, and was not changed in place before; with `whole`, each
    live document has its row where it may have one. Gives the number of live rows that are there."""
    lids = lids_of(view.live).tolist()
    documents = view.store.multi_get(view.gids_of(lids)) if lids else []
    found = 0
    for lid, document in zip(lids, documents, strict=True):
        row = view.rows.rows.get(lid)
        if document is None or document.lid != lid or view.changed[lid]:
            continue
        assert row is None or row == (document.id.encode(), document.fields), f"row {lid}"
        assert row is not None or not whole, f"row {lid} is missing"
        found += row is not None
    assert view.rows.rows.get(view.limit) is None
    return found
