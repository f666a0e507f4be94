"""Results of queries and visits, as objects, frames, and tables to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct

from paperwasp.embedded.frames import arrow_table, pandas_frame, row_of
from paperwasp.embedded.html import explanation_html, framed, hits_html, table_html
from paperwasp.embedded.requests import Document, HasFields, json_request, refuse_failure
from paperwasp.http.messages import Request, Response

if TYPE_CHECKING:
    import pandas
    import pyarrow

# Groups of an answer as tables: a row a group, a column for each level and each output.


Json = Mapping[str, Any]


class GroupTable(Struct, frozen=True):
    """The groups of one list, with those within them. A row is an innermost group, or one that has outputs."""

    name: str
    """The expression that the groups are of, as the query names it."""
    rows: tuple[Mapping[str, Any], ...]
    """By column: the value of each level by what it groups by, then the outputs."""

    def to_pandas(self) -> pandas.DataFrame:
        """Errors: MissingLibrary."""
        return pandas_frame(self.rows)

    def to_arrow(self) -> pyarrow.Table:
        """Errors: MissingLibrary."""
        return arrow_table(self.rows)

    def _repr_html_(self) -> str:
        return framed(table_html(self.rows, self.name))


def group_tables(root: Json) -> Iterator[GroupTable]:
    """The tables of a root group: of what it is all about, where that has outputs, and of each list in it."""
    if outputs := root.get("fields"):
        yield GroupTable("all", (dict(outputs),))
    for each in root.get("children", ()):
        if _is_list(each):
            yield GroupTable(str(each["label"]), tuple(_rows(each, {})))


def _rows(group_list: Json, outer: Json) -> Iterator[dict[str, Any]]:
    for group in group_list.get("children", ()):
        levels = {**outer, str(group_list["label"]): _value(group)}
        lists = [each for each in group.get("children", ()) if _is_list(each)]
        outputs = group.get("fields", {})
        if outputs or not lists:
            yield {**levels, **outputs}
        for each in lists:
            yield from _rows(each, levels)


def _is_list(child: Json) -> bool:
    return str(child.get("id", "")).startswith("grouplist:")


def _value(group: Json) -> Any:
    """Return the value that identifies the group; the bounds of one that is a range."""
    if "limits" in group:
        return f"{group['limits']['from']} … {group['limits']['to']}"
    return group.get("value")


_EXPLAIN: Final = {"trace.level": 1, "trace.explainLevel": 1}
Explain = Callable[[Mapping[str, object]], "QueryResult"]


class Hit(Struct, HasFields, frozen=True):
    """One hit. `hit["title"]` is a field of it."""

    id: str
    relevance: float
    source: str
    fields: Mapping[str, Any]


class SearchProblem(Struct, frozen=True):
    """Something that is wrong with an answer."""

    code: int
    summary: str
    message: str


class QueryResult:
    """The answer to a query. It is read when it is asked for something."""

    def __init__(self, body: bytes, ask_again: Explain | None = None) -> None:
        """`ask_again` asks the same query with more parameters."""
        self._body = body
        self._ask_again = ask_again

    @cached_property
    def json(self) -> dict[str, Any]:
        """The whole answer, as HTTP would have given it."""
        content: dict[str, Any] = orjson.loads(self._body)
        return content

    @property
    def root(self) -> dict[str, Any]:
        root: dict[str, Any] = self.json["root"]
        return root

    @cached_property
    def hits(self) -> list[Hit]:
        """The hits of this page, best first."""
        return [_hit(child) for child in self.root.get("children", ()) if not _is_group(child)]

    @property
    def total(self) -> int:
        """How many documents match."""
        total: int = self.root.get("fields", {}).get("totalCount", 0)
        return total

    @property
    def coverage(self) -> dict[str, Any]:
        """How much of all documents was searched."""
        coverage: dict[str, Any] = self.root.get("coverage", {})
        return coverage

    @cached_property
    def problems(self) -> list[SearchProblem]:
        """The errors of an answer that is not complete; most often none."""
        errors = self.root.get("errors", ())
        return [SearchProblem(each["code"], each["summary"], each.get("message", "")) for each in errors]

    @cached_property
    def groups(self) -> list[GroupTable]:
        """The lists of groups, one table for each list at the outermost level."""
        return [table for child in self.root.get("children", ()) if _is_group(child) for table in group_tables(child)]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, number: int) -> Hit:
        return self.hits[number]

    def __repr__(self) -> str:
        return f"<QueryResult: {len(self.hits)} of {self.total} hits>"

    def rows(self) -> list[dict[str, Any]]:
        """A row a hit: id, relevance, source and its fields; those of these three names are `fields.id` and so on."""
        return [
            row_of({"id": hit.id, "relevance": hit.relevance, "source": hit.source}, hit.fields) for hit in self.hits
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with a row a hit. Errors: MissingLibrary."""
        return pandas_frame(self.rows())

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row a hit. Errors: MissingLibrary."""
        return arrow_table(self.rows())

    def explain(self) -> Explanation:
        """Why each hit ranks where it does: the query is asked again. Errors: RequestFailed."""
        if self._ask_again is None:
            return Explanation(self.root.get("children", ()))
        return Explanation(self._ask_again(_EXPLAIN).root.get("children", ()))

    def _repr_html_(self) -> str:
        problems = [f"{each.summary}: {each.message}" for each in self.problems]
        tables = [table_html(table.rows, table.name) for table in self.groups]
        if tables and not self.hits and not problems:
            return framed(*tables)
        return framed(hits_html(self.rows(), self.total, problems), *tables)


class Explanation:
    """Why hits rank where they do: for each the tree of its score."""

    def __init__(self, hits: Sequence[Mapping[str, Any]]) -> None:
        self.hits = [hit for hit in hits if not _is_group(hit)]

    def _repr_html_(self) -> str:
        return framed(explanation_html(self.hits))

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.hits)} hits>"

    def __str__(self) -> str:
        from rich.console import Console

        from paperwasp.client.answers import explanation_tree

        console = Console(width=120)
        with console.capture() as captured:
            for number, hit in enumerate(self.hits, 1):
                console.print(explanation_tree(number, hit))
        return captured.get()


def _hit(child: Mapping[str, Any]) -> Hit:
    fields = child.get("fields", {})
    identity = child.get("id") or fields.get("documentid", "")
    return Hit(identity, child.get("relevance", 0.0), child.get("source", ""), fields)


def _is_group(child: Mapping[str, Any]) -> bool:
    return str(child.get("id", "")).startswith("group:root:")


# Visits: all documents, or those that a selection takes, page by page.


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
