"""Queries about fields imported from parents, and about weighted sets: matching, ranking, sorting, summaries.

Authority: https://docs.vespa.ai/en/schemas/parent-child.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest

from paperwasp.document.converters import GeoPosition
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import SearchResponse, SortKey
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, doc_id, put, remove, started, update
from tests.search.queries import query_of

CAMPAIGN = """schema campaign { document campaign {
    struct shop { field city type string {}
      field size type int {}
      field open type bool {}
      field value type float {}
      field note type string {} }
    field shops type array<shop> { indexing: summary
      struct-field city { indexing: attribute }
      struct-field size { indexing: attribute }
      struct-field open { indexing: attribute }
      struct-field value { indexing: attribute } }
    field sold type map<int, string> { indexing: summary
      struct-field key { indexing: attribute }
      struct-field value { indexing: attribute } }
    field named type map<string, shop> { indexing: summary
      struct-field key { indexing: attribute }
      struct-field value.size { indexing: attribute }
      struct-field value.value { indexing: attribute } }
    field keyless type map<string, shop> { indexing: summary
      struct-field value.size { indexing: attribute } }
    field budget type int { indexing: attribute }
    field title type string { indexing: attribute }
    field tags type weightedset<string> { indexing: attribute | summary }
    field days type array<int> { indexing: attribute }
    field place type position { indexing: attribute }
    field vector type tensor<float>(x[2]) { indexing: attribute | summary }
  }
  rank-profile tagged { first-phase { expression: attribute(tags,sport).weight }
    match-features: attribute(tags,sport).contains attribute(tags).count attribute(tags,food).weight }
}"""
AD = """schema ad { document ad {
    field campaign type reference<campaign> { indexing: attribute | summary }
    field clicks type int { indexing: attribute | summary }
  }
  import field campaign.budget as budget {}
  import field campaign.title as title {}
  import field campaign.tags as tags {}
  import field campaign.days as days {}
  import field campaign.place as place {}
  import field campaign.vector as vector {}
  import field campaign.shops as shops {}
  import field campaign.sold as sold {}
  import field campaign.named as named {}
  import field campaign.keyless as keyless {}
  fieldset default { fields: title, tags }
  rank-profile budgeted { first-phase { expression: attribute(budget) * 10 + attribute(clicks) }
    match-features {
      attribute(budget) attribute(tags).count attribute(tags,sport).weight attribute(days,1) attribute(days).count } }
  document-summary all { summary campaign {}
    summary budget {}
    summary title {}
    summary tags {}
    summary days {}
    summary place {}
    summary vector {}
    summary clicks {} }
  document-summary parts { summary shops {}
    summary stores { source: shops }
    summary sold {}
    summary named {}
    summary keyless {} }
  document-summary cities { summary towns { source: shops
      struct-field: city }
    summary matching { source: shops
      matched-elements-only } }
}"""
SCHEMAS = dict(parse_schemas({"schemas/campaign.sd": CAMPAIGN, "schemas/ad.sd": AD}).schemas)
PROFILES = ServedSchemas()
EVERYTHING = TrueItem()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    with started(tmp_path, SCHEMAS) as running:
        running.apply(
            put("ski", "campaign", budget=5, title="Ski", tags={"sport": 3, "snow": 1}, days=[1, 7],
                place=GeoPosition(1_000_000, 2_000_000)),
            put("golf", "campaign", budget=9, title="golf", tags={"sport": 7}),
            put("a", "ad", campaign=str(doc_id("ski", "campaign")), clicks=4),
            put("b", "ad", campaign=str(doc_id("golf", "campaign")), clicks=1),
            put("c", "ad", campaign=str(doc_id("ski", "campaign")), clicks=2),
            put("lost", "ad", campaign=str(doc_id("gone", "campaign")), clicks=3),
            put("free", "ad", clicks=5),
        )  # fmt: skip
        yield running


def ask(node: TestNode, tree: Item, kind: str = "ad", **parameters: Any) -> SearchResponse:
    return search(node.node.reader.view(), query_of(tree, (kind,), **parameters), PROFILES)


def found(node: TestNode, tree: Item, kind: str = "ad", **parameters: Any) -> list[str]:
    hits = ask(node, tree, kind, **parameters).hits
    names = [hit.document_id.rsplit(":", 1)[1] for hit in hits]
    return names if "order_by" in parameters else sorted(names)


def test_terms_and_ranges(node: TestNode) -> None:
    assert found(node, WordItem("title", "SKI")) == ["a", "c"]
    assert found(node, RangeItem("budget", 6, None)) == ["b"]
    assert found(node, WordItem("budget", "5")) == ["a", "c"]
    assert found(node, WordItem("tags", "sport")) == ["a", "b", "c"]
    assert found(node, WordItem("days", "7")) == ["a", "c"]
    assert found(node, WordItem("default", "snow")) == ["a", "c"]
    assert found(node, AndItem((WordItem("tags", "sport"), RangeItem("clicks", None, 3)))) == ["b", "c"]
    assert found(node, OrItem((WordItem("title", "golf"), RangeItem("clicks", 5, 5)))) == ["b", "free"]
    assert found(node, NotItem((EVERYTHING, WordItem("tags", "sport")))) == ["free", "lost"]


def test_the_next_query_sees_what_the_parent_is_now(node: TestNode) -> None:
    node.apply(update("ski", "campaign", budget=50))
    assert found(node, RangeItem("budget", 50, 50)) == ["a", "c"]
    node.apply(update("a", "ad", campaign=str(doc_id("golf", "campaign"))))
    assert found(node, WordItem("title", "golf")) == ["a", "b"]
    node.apply(remove("golf", "campaign"), put("gone", "campaign", title="golf"))
    assert found(node, WordItem("title", "golf")) == ["lost"]


def test_a_reference_is_matched_by_the_whole_id(node: TestNode) -> None:
    assert found(node, WordItem("campaign", str(doc_id("ski", "campaign")))) == ["a", "c"]
    assert found(node, WordItem("campaign", "ski")) == []


def test_ranking(node: TestNode) -> None:
    response = ask(node, RangeItem("clicks", 1, 4), rank_profile="budgeted")
    by_name = {hit.document_id.rsplit(":", 1)[1]: hit for hit in response.hits}
    assert [by_name[name].relevance for name in "abc"] == [54, 91, 52]
    assert by_name["a"].match_features == {
        "attribute(budget)": 5, "attribute(tags).count": 2, "attribute(tags,sport).weight": 3,
        "attribute(days,1)": 7, "attribute(days).count": 2,
    }  # fmt: skip
    lost = by_name["lost"].match_features
    assert lost is not None and lost["attribute(tags).count"] == 0 and lost["attribute(tags,sport).weight"] == 0


def test_weights_of_keys(node: TestNode) -> None:
    hits = ask(node, EVERYTHING, "campaign", rank_profile="tagged").hits
    assert [hit.relevance for hit in hits] == [7, 3]
    assert hits[1].match_features == {
        "attribute(tags,sport).contains": 1, "attribute(tags).count": 2, "attribute(tags,food).weight": 0,
    }  # fmt: skip


def test_sorting(node: TestNode) -> None:
    def order(*keys: SortKey) -> list[str]:
        return found(node, EVERYTHING, order_by=keys)

    assert order(SortKey("budget", True), SortKey("clicks", False)) == ["b", "c", "a", "lost", "free"]
    assert order(SortKey("title", False), SortKey("clicks", False)) == ["lost", "free", "b", "c", "a"]


def test_summaries(node: TestNode) -> None:
    ids = [hit.document_id for hit in ask(node, EVERYTHING).hits]  # the class shows attributes alone, and so no id
    hits = ask(node, EVERYTHING, summary="all").hits
    fields = {id_.rsplit(":", 1)[1]: orjson.loads(hit.fields) for id_, hit in zip(ids, hits, strict=True)}
    assert fields["a"] == {
        "campaign": "id:n:campaign::ski", "budget": 5, "title": "Ski", "tags": {"sport": 3, "snow": 1},
        "days": [1, 7], "place": {"lat": 2.0, "lng": 1.0}, "clicks": 4,
    }  # fmt: skip
    assert fields["lost"] == {"campaign": "id:n:campaign::gone", "clicks": 3}
    [hit] = ask(node, WordItem("title", "golf"), summary="all", summary_fields=("budget", "clicks")).hits
    assert orjson.loads(hit.fields) == {"budget": 9, "clicks": 1}


def test_summaries_of_structs_and_maps(node: TestNode) -> None:
    """Vespa: array_attribute_combiner_dfw.cpp and struct_map_attribute_combiner_dfw.cpp: the parts that are attributes,
    without numbers that are unset and empty texts (attribute_field_writer.cpp); a map of texts shows empty ones
    (WriteStringFieldNeverSkip), and one without its keys is not shown (struct_fields_resolver.cpp)."""
    shops = [{"city": "Oslo", "size": 3, "open": True, "note": "far"}, {"city": "", "value": 0.1}, {}]
    sold = {2023: "", 2024: "yes"}
    named = {"x": {"city": "Rome", "size": 4, "value": 2.0}, "y": {}}
    node.apply(update("ski", "campaign", shops=shops, sold=sold, named=named, keyless=named))
    shown = [{"city": "Oslo", "open": True, "size": 3}, {"open": False, "value": 0.10000000149011612}, {"open": False}]
    hits = ask(node, WordItem("title", "ski"), summary="parts").hits
    assert [orjson.loads(hit.fields) for hit in hits] == 2 * [
        {
            "shops": shown, "stores": shown, "sold": {"2023": "", "2024": "yes"},
            "named": {"x": {"size": 4, "value": 2.0}, "y": {}},
        }
    ]  # fmt: skip
    in_oslo = SameElementItem("shops", (WordItem("city", "oslo"),))
    hits = ask(node, in_oslo, summary="cities").hits
    assert [orjson.loads(hit.fields) for hit in hits] == 2 * [
        {"towns": [{"city": "Oslo"}, {}, {}], "matching": shown[:1]}
    ]
    [hit] = ask(node, WordItem("title", "golf"), summary="parts").hits
    assert hit.fields == b"{}"
    node.apply(remove("ski", "campaign"))
    assert {hit.fields for hit in ask(node, EVERYTHING, summary="parts").hits} == {b"{}"}


def test_what_is_not_searched_by_values_says_so(node: TestNode) -> None:
    for name, message in (
        ("vector", "Cannot search for terms in 'vector': It is a tensor field"),
        ("place", "Field 'place' of type .* is not searched by values"),
    ):
        with pytest.raises(InvalidQuery, match=message):
            ask(node, WordItem(name, "1"))


def test_an_earlier_view_shows_what_was_then(node: TestNode) -> None:
    view = node.node.reader.view()
    node.apply(put("gone", "campaign", budget=5, title="gone"), remove("ski", "campaign"))
    for number in range(300):
        node.apply(put(f"new{number}", "ad", campaign=str(doc_id(f"more{number}", "campaign"))))
    request = query_of(RangeItem("budget", 5, 5), ("ad",))
    assert search(view, request, PROFILES).total_count == 2
    assert search(node.node.reader.view(), request, PROFILES).total_count == 1


COUNTRY = """schema country { document country {
  field place type position { indexing: attribute }
  field vector type tensor<float>(x[2]) { indexing: attribute
    attribute { distance-metric: euclidean } } } }"""
TOWN = """schema town { document town { field country type reference<country> { indexing: attribute } }
  import field country.place as place {}
  import field country.vector as vector {} }"""
SHOP = """schema shop { document shop {
    field town type reference<town> { indexing: attribute }
    field title type string { indexing: index } }
  import field town.place as place {}
  import field town.vector as vector {}
  fieldset default { fields: title, place }
  rank-profile near { inputs { query(q) tensor<float>(x[2]) }
    match-features: distance(place).km distance(field,vector) } }"""


def test_places_and_vectors_over_two_parents() -> None:
    """Also in a field set, where words are searched in the fields that have words."""
    texts = {"schemas/country.sd": COUNTRY, "schemas/town.sd": TOWN, "schemas/shop.sd": SHOP}
    with TemporaryDirectory() as directory, started(Path(directory), dict(parse_schemas(texts).schemas)) as node:
        node.apply(
            put(
                "no",
                "country",
                place=GeoPosition(10_000_000, 60_000_000),
                vector=parse_tensor("tensor<float>(x[2]):[0,3]"),
            )
        )
        node.apply(put("oslo", "town", country=str(doc_id("no", "country"))), put("lost", "town"))
        node.apply(put("a", "shop", title="one", town=str(doc_id("oslo", "town"))), put("b", "shop", title="one"))
        node.apply(put("c", "shop", title="one", town=str(doc_id("lost", "town"))))
        inputs = {"q": parse_tensor("tensor<float>(x[2]):[4,0]")}
        for where, found in (
            ('geoLocation(place, 60.0, 10.0, "5 km")', "a"),
            ('geoLocation(place, 60.0, 12.0, "5 km")', ""),
            ("({targetHits: 5}nearestNeighbor(vector, q))", "a"),
            ('default contains "one"', "abc"),
        ):
            tree = parse_yql(f"select * from shop where {where}").tree
            hits = search(
                node.node.reader.view(), query_of(tree, ("shop",), "near", inputs=inputs), ServedSchemas()
            ).hits
            assert "".join(sorted(hit.document_id[-1] for hit in hits)) == found, where
        both = parse_yql("select * from shop where ({targetHits: 5}nearestNeighbor(vector, q))").tree
        [hit] = search(node.node.reader.view(), query_of(both, ("shop",), "near", inputs=inputs), ServedSchemas()).hits
        assert hit.match_features == {"distance(place).km": 40_000.0, "distance(field,vector)": 5.0}
