"""The readers' side of a content node: its present view, and single documents.

Any thread reads; the writer shows another view after each batch, by swapping one reference.
"""

from __future__ import annotations

from collections.abc import Container

from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.document.ids import DocumentId
from paperwasp.document.shown import DEFAULT_FORM


class Reader:
    """The reading side of a content node. Any thread reads; the writer exchanges the one reference to the view."""

    def __init__(self, view: View) -> None:
        self._view = view

    def view(self) -> View:
        """The view that is published now."""
        return self._view

    def show(self, view: View) -> None:
        """Publish a view: queries that begin from now on see it. The process forgets all routes, which hold views."""
        self._view = view
        _core.forget_routes()

    def get(
        self, id: DocumentId, fields: Container[str] | None = None, tensor_form: str = DEFAULT_FORM
    ) -> bytes | None:
        """The JSON object of a document's fields as they were fed, or of some; None: there is no such document."""
        view = self._view
        document = view.store.get(id.gid)
        # Of the view after that: a view from before would not know of a change in place that came between.
        if (later := self._view).store is not view.store:
            return self.get(id, fields, tensor_form)
        if document is not None and later.is_dead(document.lid):  # it was replaced, or removed, in between
            return self.get(id, fields, tensor_form)
        if document is None or id.document_type not in later.layout.types:
            return None
        return later.shown_fields_of(document, fields, tensor_form)
