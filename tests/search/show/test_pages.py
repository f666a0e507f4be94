"""Hits that are rendered from the row store or from columns, compared byte for byte with those of the general way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

import paperwasp.search.search as search_module
from paperwasp.content.views.view import View
from paperwasp.http.messages import Response
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.query import Query
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import doc_id, put, remove, start, update
from tests.content.row_checks import fill_rows
from tests.search.queries import query_of
from tests.search.search_cluster import SearchCluster, search_cluster

_THING = """schema thing {
  document thing {
    struct person { field name type string {} field age type int {} }
    field title type string { indexing: summary | index
      index: enable-bm25 }
    field bold type string { indexing: summary | index
      bolding: on }
    field name type string { indexing: summary | attribute }
    field year type int { indexing: summary | attribute }
    field price type double { indexing: summary | attribute }
    field score type float { indexing: summary | attribute }
    field alive type bool { indexing: summary | attribute }
    field tags type array<string> { indexing: summary | attribute }
    field weights type weightedset<string> { indexing: summary | attribute }
    field someone type person { indexing: summary }
    field counts type map<string, int> { indexing: summary }
    field vector type tensor(x{}) { indexing: summary | attribute }
    field bytes type raw { indexing: summary }
    field kept type raw { indexing: summary | attribute }
    field hidden type string { indexing: index }
  }
  field made type string { indexing: input title | lowercase | summary }
  fieldset default { fields: title }
  document-summary plain { summary title {}
    summary tags {}
    summary someone {}
    summary counts {}
    summary weights {} }
  document-summary attributes { summary name {}
    summary year {} }
  document-summary all { summary alive {}
    summary weights {}
    summary price {}
    summary score {}
    summary tags {} }
  document-summary named inherits plain { summary documentid {} }
  document-summary renamed { summary other { source: title } }
  document-summary without inherits plain { omit-summary-features }
  rank-profile year { first-phase { expression: attribute(year) / 7 } }
  rank-profile odd { first-phase {
    expression: if (attribute(year) > 5, 1 / 0, if (attribute(year) > 0, 0 / 0, -1e20)) } }
  rank-profile last inherits year { global-phase { rerank-count: 15
    expression: reciprocal_rank_fusion(attribute(year), attribute(price)) } }
  rank-profile gone inherits year { global-phase { rerank-count: 100
    expression: if (attribute(year) > 5, 1 / 0, attribute(year)) } }
  rank-profile matching inherits year { match-features: attribute(year) }
  rank-profile showing inherits year { summary-features: attribute(year) }
}"""
_MUSIC = "schema music { document music { field title type string { indexing: summary | index } } }"
SCHEMAS = parse_schemas({"schemas/thing.sd": _THING, "schemas/music.sd": _MUSIC}).schemas

WORDS = ("", "blue", "Blue trains", 'a "quoted" \\ one', "Ünï\n\t", "æ世", ":[]", ':"",', "x" * 300)


def random_fields(chance: random.Random) -> dict[str, Any]:
    """Fields of a thing as JSON, each absent, empty or filled."""

    def some(value: Any) -> list[Any]:
        return [value() for _ in range(chance.randrange(3))]

    def word() -> str:
        return chance.choice(WORDS)

    makers: dict[str, Callable[[], Any]] = {
        "title": word,
        "bold": word,
        "name": word,
        "year": lambda: chance.choice([-(2**31), *range(-9, 10)]),
        "price": lambda: chance.choice([0.0, -0.5, 1e16, 1e-7, "NaN", chance.random()]),
        "score": lambda: chance.choice([0.1, 2.5, 1e10, "NaN"]),
        "alive": lambda: chance.random() < 0.5,
        "tags": lambda: some(word),
        "weights": lambda: {word: chance.randrange(9) for word in some(word)},
        "someone": lambda: chance.choice([{}, {"name": word()}, {"name": word(), "age": 3}]),
        "counts": lambda: {word: chance.randrange(9) for word in some(word)},
        "vector": lambda: {"cells": dict.fromkeys(chance.sample("abc", chance.randrange(3)), 0.5)},
        "bytes": lambda: chance.choice(["", "AAEC"]),
        "kept": lambda: chance.choice(["", "AAEC"]),
    }
    return {name: make() for name, make in makers.items() if chance.random() < 0.6}


@contextmanager
def cluster(path: Path) -> Iterator[SearchCluster]:
    with search_cluster(path, SCHEMAS) as things:
        yield things


RENDERED: list[dict[str, object]] = [
    {"summary": "plain"},
    {"summary": "plain", "ranking": "year", "hits": 5, "offset": 3},
    {"summary": "plain", "ranking": "odd"},
    {"summary": "plain", "ranking": "unranked", "sorting": "-year +name"},
    {"summary": "plain", "ranking": "year", "presentation__timing": "false", "jsoncallback": "call"},
    {"summary": "without", "ranking": "showing"},
    {"fields": "title, tags"},
    {"fields": "title, documentid"},
    {"fields": "sddocname, name, alive, documentid"},
    {"fields": "title, price, score, bytes"},
    {"summary": "plain", "trace__level": 1},
    {"summary": "named"},
]
"""Queries that are of the class whose hits are rendered from rows."""
FROM_COLUMNS: list[dict[str, object]] = [
    {"summary": "attributes"},
    {"summary": "attributes", "ranking": "year", "hits": 5, "offset": 3},
    {"summary": "all"},
    {"summary": "all", "ranking": "odd"},
    {"summary": "all", "ranking": "unranked", "sorting": "-year +name", "jsoncallback": "call"},
    {"fields": "year"},
    {"fields": "sddocname, name, alive"},
    {"summary": "attributes", "fields": "price, tags"},
    {"summary": "attributes", "ranking": "last", "hits": 7},
    {"summary": "attributes", "ranking": "last", "hits": 20, "offset": 9},
    {"summary": "all", "ranking": "gone", "hits": 100},
    {"summary": "all", "ranking": "gone", "hits": 20, "offset": 3},
    {"summary": "all", "ranking": "last", "ranking__globalPhase__rankScoreDropLimit": "0.03"},
    {"summary": "attributes", "ranking": "last", "trace__level": 1},
]
"""Queries that are of the class whose hits are rendered from columns."""
OTHERS: list[dict[str, object]] = [
    {},
    {"summary": "attributes", "ranking": "matching"},
    {"summary": "attributes", "ranking": "last", "searchAfter": "begin"},
    {"summary": "attributes", "ranking": "last", "collapsefield": "name"},
    {"summary": "attributes", "sources": "things"},
    {"summary": "renamed"},
    {"summary": "plain", "ranking": "matching"},
    {"summary": "plain", "ranking": "showing"},
    {"summary": "plain", "trace__level": 1, "trace__explainLevel": 1},
    {"summary": "plain", "format": "cbor"},
    {"summary": "plain", "format": "xml"},
    {"summary": "plain", "collapsefield": "name"},
    {"summary": "plain", "searchAfter": "begin"},
    {"summary": "plain", "searchAfter": "", "hits": 9},
    {"summary": "attributes", "searchAfter": "", "hits": 9},
    {"summary": "plain", "ranking__listFeatures": "true"},
    {"summary": "plain", "sources": "things"},
    {"fields": "bold"},
    {"fields": "vector"},
    {"fields": "title, made"},
    {"hits": 0, "summary": "plain"},
    {"summary": "none"},
]
"""Queries that are not."""


def ask(things: SearchCluster, query: dict[str, object]) -> Response:
    given = {"hits": 400, **query}
    name = str(given.pop("fields", "*"))
    source = "sources *" if "sources" in given else "thing"
    return things.answer(yql=f"select {name} from {source} where true", **given)


def compared(answer: Response, *, timeless: bool = False) -> tuple[int, object, dict[str, str]]:
    """What must be the same; `timeless`: but for how long it took."""
    headers = {name: value for name, value in answer.headers.items() if "Time" not in name}
    body: object = orjson.loads(answer.body)["root"].get("children") if timeless else answer.body
    return answer.status, body, headers


@pytest.mark.parametrize("number", range(2))
def test_hits_from_rows_are_those_of_the_general_way(tmp_path: Path, number: int) -> None:
    chance = random.Random(SEED * 10 + number)
    print(f"seed {SEED}")  # noqa: T201
    with cluster(tmp_path) as things:
        things.feed({name: random_fields(chance) for name in range(60)})
        queries = [*RENDERED, *OTHERS]
        timeless = ["trace__level" in query for query in queries]
        expected = [compared(ask(things, query), timeless=late) for query, late in zip(queries, timeless, strict=True)]
        assert things.rendered == things.left == 0
        fill_rows(things.node.node)
        for query, before, late in zip(queries, expected, timeless, strict=True):
            things.rendered = 0
            assert compared(ask(things, query), timeless=late) == before, f"{query}, seed {SEED}"
            assert (things.rendered > 0) == (query in RENDERED), query


@pytest.mark.parametrize("query", FROM_COLUMNS, ids=str)
def test_hits_from_columns_are_those_of_the_general_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: dict[str, object]
) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}")  # noqa: T201
    late = "trace__level" in query
    with cluster(tmp_path) as things:
        things.feed({name: random_fields(chance) for name in range(40)})
        shown = compared(ask(things, query), timeless=late)
        assert things.rendered > 0
        monkeypatch.setattr(search_module, "rendered_hits", lambda *_: None)
        things.rendered = 0
        assert compared(ask(things, query), timeless=late) == shown, f"{query}, seed {SEED}"
        assert things.rendered == 0


def test_rows_that_cannot_be_shown_go_the_general_way(tmp_path: Path) -> None:
    """Changed in place, put since the row store was filled, and written by another layout."""
    chance = random.Random(SEED)
    print(f"seed {SEED}")  # noqa: T201
    with cluster(tmp_path) as things:
        things.feed({name: {**random_fields(chance), "year": 1} for name in range(40)})
        fill_rows(things.node.node)
        things.node.apply(*(update(name, "thing", year=7) for name in range(10)))
        things.feed({name: {**random_fields(chance), "year": 1} for name in range(5, 15)})
        query: dict[str, object] = {"fields": "title, year, price, documentid"}
        shown = compared(ask(things, query))
        assert (things.rendered, things.left) == (25, 15)
        view = things.node.node.reader.view()
        plain = search(view, query_of(TrueItem(), ("thing",), hits=40), ServedSchemas())
        years = {hit.document_id: orjson.loads(hit.fields)["year"] for hit in plain.hits}
        body = orjson.loads(shown[1])  # type: ignore[arg-type]
        assert {hit["id"]: hit["fields"]["year"] for hit in body["root"]["children"]} == years
        assert sorted(years.values()) == [1] * 35 + [7] * 5
        fill_rows(things.node.node)
        things.rendered = things.left = 0
        assert compared(ask(things, query)) == shown
        assert (things.rendered, things.left) == (35, 5)


def test_documents_of_an_earlier_layout_are_shown_as_the_new_one_has_them(tmp_path: Path) -> None:
    after = parse_schemas({"schemas/thing.sd": _THING.replace("field name type string", "field name type int")}).schemas
    with cluster(tmp_path) as things:
        things.feed({1: {"name": "one", "title": "a"}, 2: {"name": "two"}})
        fill_rows(things.node.node)
        assert things.node.node.reader.view().rows.limit == 2
        things.node.node.configure(2, {**SCHEMAS, "thing": after["thing"]})
        view, query = (
            things.node.node.reader.view(),
            query_of(TrueItem(), ("thing",), summary="attributes", source="things"),
        )
        ids = [b"index:things/0/%b" % doc_id(number, "thing").gid.hex().encode() for number in (1, 2)]
        assert page_of(view, query) == tuple(  # read from columns alone, of which that of the name is new
            b'{"id":"%b","relevance":0.0,"source":"things","fields":{"sddocname":"thing"}}' % id_ for id_ in ids
        )
        named = query_of(TrueItem(), ("thing",), summary_fields=("name", "title"), source="things")
        found = search(view, named, ServedSchemas())
        assert found.page == (None, None)
        assert sorted(hit.fields for hit in found.hits) == [b'{"title":"a"}', b"{}"]


def page_of(view: View, query: Query) -> tuple[bytes | None, ...] | None:
    return search(view, query, ServedSchemas()).page


def test_what_is_removed_meanwhile_is_shown_as_the_view_has_it(tmp_path: Path) -> None:
    query = query_of(TrueItem(), ("music",), summary_fields=("title", "documentid"), source="things")
    node = start(tmp_path, SCHEMAS)
    node.apply(put(1, title="in a row"))
    fill_rows(node.node)
    node.apply(put(2, title="not yet in one"))
    view = node.node.reader.view()
    node.apply(remove(1), remove(2))
    found = search(view, query, ServedSchemas())
    assert found.page is not None
    assert sorted(filter(None, found.page)) == [
        b'{"id":"id:n:music::1","relevance":0.0,"source":"things",'
        b'"fields":{"documentid":"id:n:music::1","title":"in a row"}}'
    ]
    assert [(hit.document_id, hit.fields) for hit in found.hits] == [("", b"{}")]
    assert search(node.node.reader.view(), query, ServedSchemas()).total_count == 0
    node.close()


def test_several_document_types_go_the_general_way(tmp_path: Path) -> None:
    with cluster(tmp_path) as things:
        things.feed({1: {"title": "a"}})
        things.node.apply(put(1, title="b"))
        fill_rows(things.node.node)
        both = query_of(TrueItem(), summary_fields=("title",), source="things")
        assert page_of(things.node.node.reader.view(), both) is None
        one = query_of(TrueItem(), ("music",), summary_fields=("title",), source="things")
        assert page_of(things.node.node.reader.view(), one) == (
            b'{"id":"index:things/0/%b","relevance":0.0,"source":"things","fields":{"title":"b"}}'
            % doc_id(1).gid.hex().encode(),
        )


def test_no_two_schemas_share_a_step(tmp_path: Path) -> None:
    """A step is remembered by its schema, and forgotten with it."""
    served = ServedSchemas()
    query = query_of(TrueItem(), ("music",), summary_fields=("title",), source="things")
    node = start(tmp_path, SCHEMAS)
    node.apply(put(1, title="b"))
    fill_rows(node.node)
    first = search(node.node.reader.view(), query, served).page
    again: dict[str, Schema] = parse_schemas({"schemas/music.sd": _MUSIC}).schemas  # type: ignore[assignment]
    node.node.configure(2, again)
    served.compile_all(again, {})
    assert search(node.node.reader.view(), query, served).page == first is not None
    node.close()
