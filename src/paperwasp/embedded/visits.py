"""Visits: all documents, or those that a selection takes, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from paperwasp.embedded.frames import arrow_table, pandas_frame, row_of
from paperwasp.embedded.requests import Document, json_request, refuse_failure
from paperwasp.http.messages import Request, Response

if TYPE_CHECKING:
    import pandas
    import pyarrow

_SPACES: Final = ("global", "default")
"""The bucket spaces, in the order in which Vespa's command line visits them."""
_DOCUMENTS_A_PAGE: Final = 500


class Pages:
    """How far a visit is: the request for the next page, and what its answer says."""

    def __init__(self, schema: str | None, clusters: Sequence[str], options: Mapping[str, object]) -> None:
        selection = options.get("selection")
        if schema is not None:
            selection = schema if selection is None else f"{schema} and ({selection})"
        self._options = {"wantedDocumentCount": _DOCUMENTS_A_PAGE, **options, "selection": selection}
        self._places = [(cluster, space) for cluster in reversed(clusters) for space in reversed(_SPACES)]
        self._continuation: str | None = None

    @property
    def request(self) -> Request | None:
        """None after the last page."""
        if not self._places:
            return None
        cluster, space = self._places[-1]
        place = {"cluster": cluster, "bucketSpace": space, "continuation": self._continuation}
        return json_request("GET", "/document/v1/", **{**self._options, **place})

    def read(self, response: Response) -> list[Document]:
        """The documents of a page. Errors: RequestFailed."""
        page = refuse_failure(response)
        self._continuation = page.get("continuation")
        if self._continuation is None:
            self._places.pop()
        return [Document(each["id"], each["fields"]) for each in page["documents"] if "id" in each]


class Visit:
    """An iterator over documents, whose pages are asked for as they are needed."""

    def __init__(self, pages: Pages, ask: Callable[[Request], Response]) -> None:
        self._documents = _walk(pages, ask)

    def __iter__(self) -> Iterator[Document]:
        return self._documents

    def __next__(self) -> Document:
        return next(self._documents)

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a document: its id and its fields; one of that name is `fields.id`."""
        return (row_of({"id": document.id}, document.fields) for document in self)

    def to_arrow(self) -> pyarrow.Table:
        """All that is left, as a table. Errors: MissingLibrary."""
        return arrow_table(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """All that is left, as a frame. Errors: MissingLibrary."""
        return pandas_frame(self.rows())


def _walk(pages: Pages, ask: Callable[[Request], Response]) -> Iterator[Document]:
    while (request := pages.request) is not None:
        yield from pages.read(ask(request))


async def walk_later(pages: Pages, ask: Callable[[Request], Awaitable[Response]]) -> AsyncIterator[Document]:
    """The documents of a visit, for an event loop."""
    while (request := pages.request) is not None:
        for document in pages.read(await ask(request)):
            yield document
