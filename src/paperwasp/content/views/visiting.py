"""Visiting: the documents of a cluster in the order of their global ids, a chunk at a time.

Nothing is kept between chunks: the token is the global id where the last one ended. A document has one place in that
order for ever, so whatever is written meanwhile, a visit sees each document that exists throughout exactly once; one
that comes or goes meanwhile it sees or not. What it sees of a document is the document of one moment.

A chunk is bounded by documents, bytes, and documents looked at: a selection that matches nothing ends its chunk too.

Threads: any. Vespa: https://docs.vespa.ai/en/writing/visiting.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Final

from paperwasp import limits
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.layouts.selected import matcher, oldest_tombstone_us
from paperwasp.content.views.view import View
from paperwasp.coordination.messages.documents import VisitedDocument, VisitRequest, VisitResponse
from paperwasp.document.selection import is_everything, location_of, parse_selection
from paperwasp.errors import InvalidInput
from paperwasp.storage.documents.document_store import GID_BYTES, DocumentStore, StoredDocument
from paperwasp.storage.documents.gid_map import NO_LID

_SPACE: Final = 1 << 8 * GID_BYTES
"""The number of global ids."""
_CLOCK_DOCUMENTS: Final = 64
"""Documents looked at between two looks at the clock."""
_NO_FIELDS: Final = b"{}"
_LOOKED_AHEAD: Final = 32
"""Documents, at most, for one more that is of the visit."""

_PARSED: Final = 64
_parsed = lru_cache(_PARSED)(parse_selection)
"""A visit asks with the same selection again and again."""

Filter = Callable[[bytes, StoredDocument], bool]
"""Says whether a document, with its global id, is one of the visit."""


def visit(store: DocumentStore, view_of: Callable[[], View], request: VisitRequest) -> VisitResponse:
    """Return the next chunk. `view_of` gives what is published now. Errors: InvalidInput, also LanguageError."""
    start, end = span(request)
    if request.token:
        if len(request.token) != GID_BYTES:
            raise InvalidInput(f"a token of {len(request.token)} bytes was never given out")
        start = max(start, request.token + b"\0")
    if not request.document_types or (end is not None and start >= end):
        return VisitResponse((), None, 1.0)
    before, scan = view_of(), store.scan(start, end, removes=True, in_passing=True)
    first = next(scan, None)
    # Of the view, after the scan began: a view from before would not know of the changes in place that came between.
    view = view_of()
    if view.store is not store:  # all documents have new rows since: those of the scan are not the view's
        return visit(view.store, view_of, request)
    if first is None:
        return VisitResponse((), None, 1.0)
    whole = chain((first,), scan)
    return _chunk(whole if view is before else _as_they_are(whole, view), view, request)


def _as_they_are(scan: Iterator[tuple[bytes, StoredDocument]], view: View) -> Iterator[tuple[bytes, StoredDocument]]:
    """Yield the documents of a scan that began before the view; those replaced or removed since, as they are now."""
    for gid, document in scan:
        if view.is_dead(document.lid):
            now = next(view.store.scan(gid, removes=True), None)
            if now is not None and now[0] == gid:
                yield now
        else:
            yield gid, document


def _chunk(scan: Iterator[tuple[bytes, StoredDocument]], view: View, request: VisitRequest) -> VisitResponse:
    accepts, show = filter_of(view, request), _show_of(view, request)
    wanted, size_wanted, deadline_ns = max(1, request.documents), max(1, request.size_bytes), request.deadline_ns
    found: list[VisitedDocument] = []
    size_bytes = 0
    for scanned, (gid, document) in enumerate(scan, 1):
        changed_us = view.timestamp_of(document)  # before it is looked at: what changes it meanwhile is noticed
        if accepts(gid, document):
            shown = show(document)
            found.append(VisitedDocument(document.id, shown, changed_us))
            size_bytes += len(document.id) + len(shown or b"")
        if (
            len(found) >= wanted
            or size_bytes >= size_wanted
            or scanned >= limits.VISIT_SCANNED
            or (scanned % _CLOCK_DOCUMENTS == 0 and 0 < deadline_ns <= time.monotonic_ns())
        ):
            if _is_over(scan, accepts):
                break
            return VisitResponse(tuple(found), gid, _progress(gid, request))
    return VisitResponse(tuple(found), None, 1.0)


def _is_over(scan: Iterator[tuple[bytes, StoredDocument]], accepts: Filter) -> bool:
    """Return whether nothing of the visit is left, if that is soon seen: it saves a last request for nothing."""
    return not any(looked > _LOOKED_AHEAD or accepts(*found) for looked, found in enumerate(scan, 1))


def _show_of(view: View, request: VisitRequest) -> Callable[[StoredDocument], bytes | None]:
    """Make a function that renders the requested fields of a document; it returns None for one that was removed."""
    fields_of, fields, tensor_form = view.shown_fields_of, request.fields, request.tensor_form
    if fields is not None and not fields:
        return lambda document: None if document.lid == NO_LID else _NO_FIELDS
    return lambda document: None if document.lid == NO_LID else fields_of(document, fields, tensor_form)


def filter_of(view: View, request: VisitRequest) -> Filter:
    """Make the filter of the documents that are visited, from the conditions of the request, the cheapest first.

    Errors: InvalidInput for a selection that is none.
    """
    filters: list[Filter] = [_identity(view, request)]
    if request.removes:
        filters.append(_by_removal_time(request))
    if request.from_us or request.to_us:
        filters.append(_by_time(view, request))
    if request.selection and not is_everything(_parsed(request.selection)):
        filters.append(_by_selection(view, request))
    if len(filters) == 1:
        return filters[0]
    return lambda gid, document: all(accepts(gid, document) for accepts in filters)


def _identity(view: View, request: VisitRequest) -> Filter:
    """Accept documents by id, namespace and type, and only live ones unless removes are wanted."""
    known, hidden_lid = view.layout.types, None if request.removes else NO_LID
    if request.id_prefixes:
        prefixes = tuple(prefix for prefix in request.id_prefixes if type_of_id(prefix) in known)
        return lambda _, document: document.lid != hidden_lid and document.id.startswith(prefixes)
    types = frozenset(request.document_types) & known.keys()
    return lambda _, document: document.lid != hidden_lid and document.id.split(":", 3)[2] in types


def _by_removal_time(request: VisitRequest) -> Filter:
    """Accept all live documents, and those whose removal was recent when the visit began."""
    oldest_us = oldest_tombstone_us(request.now_us)
    return lambda _, document: not document.is_removed or document.timestamp_us >= oldest_us


def _by_time(view: View, request: VisitRequest) -> Filter:
    from_us, to_us = request.from_us, request.to_us or 1 << 64
    return lambda _, document: from_us <= view.timestamp_of(document) < to_us


def _by_selection(view: View, request: VisitRequest) -> Filter:
    """Accept documents that match the selection. Of a removed document nothing is known but its id."""
    matches, now_us = matcher(request.selection), request.now_us

    def accepts(_: bytes, document: StoredDocument) -> bool:
        known = document._replace(fields=_NO_FIELDS) if document.is_removed else document
        return matches(view.subject(known), now_us) is True

    return accepts


def span(request: VisitRequest) -> tuple[bytes, bytes | None]:
    """The global ids of the visit, from and below (None: to the last): its slice, and its location where it has one.

    Errors: InvalidInput.
    """
    slices, place = request.slices, request.slice
    if not 0 <= place < slices:
        raise InvalidInput(f"there is no slice {place} of {slices}")
    start, end = -(-_SPACE * place // slices), -(-_SPACE * (place + 1) // slices)
    demanded = location_of(_parsed(request.selection)) if request.selection else None
    for location in filter(None, (request.location, demanded)):
        width = 1 << 8 * (GID_BYTES - len(location))
        first = int.from_bytes(location, "big") * width
        start, end = max(start, first), min(end, first + width)
    if start >= end:
        return b"\xff" * GID_BYTES, b""
    return start.to_bytes(GID_BYTES, "big"), None if end >= _SPACE else end.to_bytes(GID_BYTES, "big")


def _progress(gid: bytes, request: VisitRequest) -> float:
    """Return the share of its span that the visit has done."""
    start, end = span(request)
    first = int.from_bytes(start, "big")
    last = _SPACE if end is None else int.from_bytes(end, "big")
    return min(1.0, max(0.0, (int.from_bytes(gid, "big") - first) / max(1, last - first)))
