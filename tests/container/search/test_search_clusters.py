"""Queries over several real clusters: merged by sort keys and by relevance, collapsed, sorted; beside Python.

Authority: https://docs.vespa.ai/en/querying/federation.html, result-diversity.html, sorting-language.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.container.search.search_nodes import Running, put, running

YEARS = {
    **{("music", number): number % 4 for number in range(12)},
    **{("book", number): (number * 7) % 5 for number in range(10)},
    **{("thing", number): (number * 3) % 6 for number in range(8)},
}
"""(document type, name) → year; the price is the name, so that every document has another."""


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as started:
        for (kind, number), year in YEARS.items():
            started.apply(put(number, kind, title="a", year=year, price=float(number), name=f"{kind}{number}"))
        started.apply(put("unset", "music", title="a", price=100.0))
        yield started


SAID = {"query": "a", "default-index": "title"}


def shown(root: dict[str, Any], *fields: str) -> list[tuple[object, ...]]:
    assert "errors" not in root, root
    return [tuple(hit["fields"].get(field) for field in fields) for hit in root.get("children", [])]


@pytest.mark.parametrize(("offset", "hits"), [(0, 400), (0, 5), (7, 6), (28, 10), (100, 3)])
@pytest.mark.parametrize(("sign", "unset_at"), [("%2B", 0), ("-", -1)])
def test_sorted_over_clusters(service: Running, offset: int, hits: int, sign: str, unset_at: int) -> None:
    falling = sign == "-"
    keys = [(year, name) for (kind, name), year in YEARS.items()]
    keys.sort(key=lambda key: (-key[0] if falling else key[0], key[1]))
    expected: list[tuple[object, ...]] = [(year, float(name)) for year, name in keys]
    expected.insert(0 if unset_at == 0 else len(expected), (None, 100.0))
    root = service.ask(sorting=f"{'-' if falling else '+'}year +price", offset=offset, hits=hits, **SAID)
    assert shown(root, "year", "price") == expected[offset : offset + hits]
    assert root["fields"]["totalCount"] == len(expected)


def test_by_relevance_over_clusters(service: Running) -> None:
    root = service.ask(ranking="year", hits=400, sources="media,other", **SAID)
    found = [hit["relevance"] for hit in root["children"] if hit["fields"].get("year") is not None]
    assert found == sorted((float(year) for year in YEARS.values()), reverse=True)
    assert {hit["source"] for hit in root["children"]} == {"media", "other"}
    assert root["coverage"]["documents"] == len(YEARS) + 1
    assert root["coverage"]["nodes"] == 2


def test_by_source(service: Running) -> None:
    for sorting, expected in (("+[source] +price", ["media", "other"]), ("-[source] +price", ["other", "media"])):
        root = service.ask(sorting=sorting, hits=400, **SAID)
        assert list(dict.fromkeys(hit["source"] for hit in root["children"])) == expected


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("offset", "hits"), [(0, 3), (2, 4), (0, 20)])
@pytest.mark.parametrize("sources", ["media", "media,other"])
def test_collapsed(service: Running, size: int, offset: int, hits: int, sources: str) -> None:
    kinds = {"media": ("music", "book"), "media,other": ("music", "book", "thing")}[sources]
    ordered = sorted((number, kind, year) for (kind, number), year in YEARS.items() if kind in kinds)
    seen: dict[int, int] = {}
    expected: list[tuple[object, ...]] = []
    for number, kind, year in ordered:
        seen[year] = seen.get(year, 0) + 1
        if seen[year] <= size:
            expected.append((year, f"{kind}{number}"))
    expected.append((None, None))
    said = {"collapsefield": "year", "collapsesize": size, "offset": offset, "hits": hits, "sources": sources, **SAID}
    root = service.ask(sorting="+price +name", **said)
    assert shown(root, "year", "name") == expected[offset : offset + hits]
    assert root["fields"]["totalCount"] == len(ordered) + 1


def test_a_cluster_that_cannot_sort_so_says_it_beside_the_hits_of_the_other(service: Running) -> None:
    root = service.ask(sorting="title", **SAID)
    assert root["errors"][0]["code"] == 4
    assert "sortable attribute" in root["errors"][0]["message"]


NOT_EXECUTED = (
    "rank profile 'partly' of schema 'book': not executed yet: xgboost(\"trees.json\"), whose file is not available"
)


def test_a_profile_that_one_document_type_cannot_execute_leaves_the_others(service: Running) -> None:
    root = service.ask(ranking="partly", hits=400, **SAID)
    assert root["errors"] == [
        {"code": 4, "summary": "Invalid query parameter", "source": "media", "message": NOT_EXECUTED}
    ]
    assert {hit["fields"]["sddocname"] for hit in root["children"]} == {"music", "thing"}
    assert root["fields"]["totalCount"] == 12 + 1 + 8


@pytest.mark.parametrize("said", [{"restrict": "music,thing"}, {"sources": "music"}, {"sources": "other"}])
def test_a_profile_is_only_looked_at_where_it_ranks(service: Running, said: dict[str, str]) -> None:
    assert "errors" not in service.ask(ranking="partly", **said, **SAID)


def test_a_profile_that_nothing_left_can_execute_is_an_error(service: Running) -> None:
    answer = service.answer(ranking="partly", restrict="book", **SAID)
    assert answer.status == 400
    assert orjson.loads(answer.body)["root"]["errors"][0]["message"] == NOT_EXECUTED


def test_a_summary_class_that_not_all_types_have(service: Running) -> None:
    """Hits of the others are there without fields, with an error. A class that no type has is refused before."""
    root = service.ask(summary="short", restrict="music,book", hits=2, sorting="-price", **SAID)
    assert [hit.get("fields", {}).get("name") for hit in root["children"]] == [None, "music11"]
    assert "errors" not in root and root["fields"]["totalCount"] == 23
    answer = service.answer(summary="short", restrict="book,thing,music", hits=9, sorting="-name", **SAID)
    root = orjson.loads(answer.body)["root"]
    assert [hit["id"].split("/")[0] for hit in root["children"]] == ["index:other"] * 8 + ["index:media"]
    assert [hit.get("fields") for hit in root["children"]] == [None] * 8 + [{"sddocname": "music", "name": "music9"}]
    assert [(error["code"], error["source"], error["message"]) for error in root["errors"]] == [
        (4, "other", "Summary 'short' does not exist")
    ]
    assert answer.status == 200
    assert service.answer(summary="none", restrict="book,music", **SAID).status == 400


def test_fields_that_a_summary_class_does_not_have(service: Running) -> None:
    """They are as the class `default` has them."""
    root = service.ask(
        summary="short", summaryFields="name,year,documentid", restrict="music", sorting="-price", **SAID
    )
    assert root["children"][1]["fields"] == {"documentid": "id:n:music::11", "name": "music11", "year": 3}
