"""Fills the row store behind the writer: a chore that adds the documents which have come since it was last done.

It reads the published view, and from the document store what the writer has not noted as it was put. So a start waits
for no rows, and a node whose row store was lost makes it again while it serves. What is not added stays with the
document store for good: documents whose attributes were changed in place, those of streamed types, and those that are
gone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.content.layouts.layout import INDEX_MODE
from paperwasp.content.views.reader import Reader
from paperwasp.content.views.view import View
from paperwasp.core._core import PlainChange
from paperwasp.storage.documents.row_store import RowDocument

_Document = RowDocument | PlainChange | None
"""None: the row has none to add."""
_STEP: Final = 256
"""Documents that are read from the store together."""


class RowFilling:
    """The chore of a content node. One thread."""

    def __init__(self, reader: Reader, environment: Environment = SYSTEM) -> None:
        self._reader = reader
        self._environment = environment
        self._seen_limit = 0

    def __call__(self) -> float:
        """Add a chunk of documents; return the seconds until the next. It works no more than half of the time."""
        view = self._reader.view()
        view.rows.open(view.gids[: view.limit])
        begun_ns, seen_limit = self._environment.monotonic_ns(), self._seen_limit
        self._seen_limit = view.limit
        waiting = view.limit - view.rows.limit
        if not view.schemas or waiting <= 0 or (waiting < limits.ROW_CHUNK_LEAST and view.limit != seen_limit):
            return limits.ROW_SECONDS
        documents = _next_documents(view)
        view.rows.add(documents, view.gids[: view.limit], view.live)
        if view.rows.limit == view.limit:
            return limits.ROW_SECONDS
        return (self._environment.monotonic_ns() - begun_ns) / 1e9


def _next_documents(view: View) -> list[_Document]:
    """The documents of the next rows, as far as the row store is to have them."""
    first = view.rows.limit
    end = min(view.limit, first + limits.ROW_CHUNK_DOCUMENTS)
    documents: list[_Document] = []
    size_bytes = 0
    for start in range(first, end, _STEP):
        step = _documents_of(view, np.arange(start, min(start + _STEP, end), dtype=np.uint32))
        documents += step
        size_bytes += sum(map(_size_of, step))
        if size_bytes >= limits.ROW_CHUNK_BYTES:
            break
    return documents


def _size_of(document: _Document) -> int:
    """The bytes of its JSON."""
    if document is None:
        return 0
    return document.body_bytes if isinstance(document, PlainChange) else len(document.fields)


def _documents_of(view: View, lids: NDArray[np.uint32]) -> list[_Document]:
    """A document for each of some lids, which follow each other, or None where there is none to add."""
    is_live = (view.live[lids >> 6] >> (lids & 63).astype(np.uint64)) & np.uint64(1) == 1
    numbers = [view.type_numbers[name] for name in view.schemas if view.modes.get(name, INDEX_MODE) == INDEX_MODE]
    is_wanted = is_live & np.isin(view.document_types[lids], numbers) & (view.changed[lids] == 0)
    first = int(lids[0])
    documents: list[_Document] = [*view.rows.noted(range(first, first + len(lids)))]
    for place in np.flatnonzero(~is_wanted).tolist():
        documents[place] = None
    places = [place for place in np.flatnonzero(is_wanted).tolist() if documents[place] is None]
    rows = [first + place for place in places]
    stored = view.store.multi_get(view.gids_of(rows), in_passing=True)
    for place, document in zip(places, stored, strict=True):
        if document is not None and document.lid == first + place:
            documents[place] = RowDocument(document.id.encode(), document.fields)
    return documents
