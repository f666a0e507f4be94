"""What pyvespa's own integration tests ask with its query builder, asked of VespaLocal.

The facts (which documents are found) are those that the tests of pyvespa hold Vespa to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import vespa.querybuilder
from vespa.application import Vespa
from vespa.io import VespaQueryResponse, VespaResponse
from vespa.querybuilder import Grouping

from tests.testing.pyvespa_applications import deployed, operators, purchases

pytestmark = pytest.mark.clients
Fields = dict[str, Any]
G = Grouping
qb: Any = vespa.querybuilder
"""Its functions are made when it is imported, so that a type checker does not see them."""


class Case(NamedTuple):
    """A condition of the query builder, documents that are numbered from 1, and which of them are found."""

    condition: Any
    fed: list[Fields]
    found: list[int]
    parameters: Fields = {}
    ending: str = ""


def _named(*fields: str) -> list[Any]:
    return [qb.QueryField(name) for name in fields]


def _texts(*rows: tuple[str, str]) -> list[Fields]:
    return [{"description": description, "text": text} for description, text in rows]


def _letters(*rows: tuple[str, ...]) -> list[Fields]:
    return [{f"f{number}": value for number, value in enumerate(row, 1)} for row in rows]


F1, F2, F3, F4 = _named("f1", "f2", "f3", "f4")
AGE, STATUS, PERSONS, URL = _named("age", "status", "persons", "myUrlField")
FIRST, LAST, BORN = _named("first_name", "last_name", "year_of_birth")
AGES = [{**each, "age": 10 * number} for number, each in enumerate(_letters(*[("v1", "v2", "v3", "d")] * 3), 1)]
FOO = _texts(("foo", "foo"), ("foo", "bar"), ("bar", "baz"))
PANDA = _texts(("a panda is cute", "foo"), ("foo", "you are a cool panda"), ("bar", "baz"))
CASES = {
    "a dot product": Case(
        qb.dotProduct("weightedset_field", {"feature1": 1, "feature2": 2}, annotations={"label": "myDotProduct"}),
        [{"weightedset_field": {"feature1": 2, "feature2": 4}}],
        [1],
        {"ranking": "dotproduct"},
    ),
    "a place": Case(
        qb.geoLocation("location_field", 37.7749, -122.4194, "10km", annotations={"targetHits": 100}),
        [{"location_field": {"lat": 37.77491, "lng": -122.41941}}, {"location_field": {"lat": 38, "lng": -122}}],
        [1],
        {"ranking": "geolocation"},
    ),
    "all, any and none, ordered and cut": Case(
        ((F1.contains("v1") & F2.contains("v2")) | F3.contains("v3")) & ~F4.contains("v4"),
        [{**AGES[0], "f2": "x", "f3": "x"}, AGES[1], AGES[2], {**AGES[2], "f4": "v4", "age": 40}],
        [2],
        ending=" order by age desc, duration asc limit 2 offset 1 timeout 60000",
    ),
    "expressions that match": Case(
        ((F1.matches("v1") & F2.matches("v2")) | F3.matches("v3")) & ~F4.matches("v4"),
        _letters(("v1", "v2", "x", "x"), ("v1", "v2", "v3", "v4"), ("x", "x", "v3", "x"), ("x", "x", "x", "v4")),
        [1, 3],
    ),
    "conditions in conditions": Case(
        F1.contains("1") & ~((F2.contains("2") & F3.contains("3")) | (F2.contains("4") & ~F3.contains("5"))),
        _letters(("1", "2", "3"), ("1", "4", "5"), ("x", "2", "3"), ("1", "4", "x")),
        [2],
    ),
    "the user's query in the field set": Case(qb.userQuery(), FOO, [1, 2], {"query": "foo"}),
    "the user's query in a field": Case(
        qb.userQuery(), FOO, [1], {"query": "foo", "model.defaultIndex": "text", "ranking": "bm25"}
    ),
    "what a user typed": Case(qb.userInput("@myvar"), PANDA, [1, 2], {"myvar": "panda", "ranking": "bm25"}),
    "what a user typed, in a field": Case(
        qb.userInput("@myvar").annotate({"defaultIndex": "text"}), PANDA, [2], {"myvar": "panda", "ranking": "bm25"}
    ),
    "one of some numbers": Case(AGE.in_(10, 20, 30), [{"age": age} for age in (10, 20, 31, 40)], [1, 2]),
    "one of some texts": Case(
        STATUS.in_("active", "inactive"), [{"status": text} for text in ("active", "inactive", "foo", "bar")], [1, 2]
    ),
    "a predicate": Case(
        qb.predicate("predicate_field", attributes={"gender": "Female"}, range_attributes={"age": "20L"}),
        [
            {"predicate_field": f'gender in ["{gender}"] and age in [{ages}]'}
            for gender, ages in (("Female", "20..30"), ("Male", "20..30"), ("Female", "30..40"))
        ],
        [1],
    ),
    "a word of about these letters": Case(
        F1.contains(qb.fuzzy("parantesis", annotations={"prefixLength": 1, "maxEditDistance": 2})),
        _letters(("parantesis",), ("paranthesis",), ("parrenthesis",)),
        [1, 2],
    ),
    "an address": Case(
        URL.contains(qb.uri("vespa.ai/foo")),
        [{"myUrlField": f"https://{address}"} for address in ("vespa.ai/foo", "vespa.ai/bar", "google.com/foo")],
        [1],
    ),
    "the same element": Case(
        PERSONS.contains(qb.sameElement(FIRST.contains("Joe"), LAST.contains("Smith"), BORN < 1940)),
        [
            {"persons": [{"first_name": "Joe", "last_name": last, "year_of_birth": year}]}
            for last, year in (("Smith", 1930), ("Johnson", 1930), ("Smith", 1940))
        ],
        [1],
    ),
}
FEATURES = {
    "a dot product": ("rawScore(weightedset_field)", 10),
    "a place": ("distance(location_field).km", 0.0014173640),
}


@pytest.fixture(scope="module")
def app() -> Iterator[Vespa]:
    with deployed(operators()) as app:
        yield app


@pytest.mark.parametrize("name", CASES)
def test_the_query_builder(app: Vespa, name: str) -> None:
    case = CASES[name]
    app.delete_all_docs(content_cluster_name="querybuilder_content", schema="sd1")
    fed = [{"id": str(number), "fields": fields} for number, fields in enumerate(case.fed, 1)]
    answers: list[VespaResponse] = []
    app.feed_iterable(fed, schema="sd1", callback=lambda answer, _: answers.append(answer))
    assert [answer.status_code for answer in answers] == [200] * len(fed)
    query = str(qb.select("*").from_("sd1").where(case.condition)) + case.ending
    with app.syncio() as client:
        answer = client.query(body={"yql": query, "timeout": "60s", **case.parameters})
    assert sorted(hit["id"] for hit in answer.hits) == [f"id:sd1:sd1::{number}" for number in case.found], query
    if name in FEATURES:
        feature, value = FEATURES[name]
        assert answer.hits[0]["fields"]["summaryfeatures"][feature] == pytest.approx(value, abs=1e-7)


BOUGHT = """
Smith 1000 1000 2000 1300 5500 6100 2584
Jones 3000 5000 2100 8900 9870 4181 6765
Brown 8000 3400 1440 2330 3770 1597
"""
"""Customers, and the prices of what they bought."""


@pytest.fixture(scope="module")
def shop() -> Iterator[Vespa]:
    rows = [(row[0], price) for row in map(str.split, BOUGHT.split("\n")[1:-1]) for price in row[1:]]
    fed = [
        {"id": str(number), "fields": {"customer": customer, "price": price, "tax": "0.24", "date": 1157526000}}
        for number, (customer, price) in enumerate(rows)
    ]
    with deployed(purchases()) as app:
        app.feed_iterable(fed, schema="purchase")
        yield app


def _groups(app: Vespa, grouping: str, **parameters: str) -> list[Fields]:
    query = qb.select("*").from_("purchase").where(True).groupby(grouping)
    with app.syncio() as client:
        answer = client.query(yql=str(query), timeout="60s", **parameters)
    assert isinstance(answer, VespaQueryResponse)
    (root,) = (child for child in answer.json["root"]["children"] if child["id"] == "group:root:0")
    return list(root["children"][0]["children"])


def test_sums_of_groups(shop: Vespa) -> None:
    found = _groups(shop, G.all(G.group("customer"), G.each(G.output(G.sum("price")))))
    assert [(each["id"], each["value"], each["fields"]["sum(price)"]) for each in found] == [
        ("group:string:Brown", "Brown", 20537),
        ("group:string:Jones", "Jones", 39816),
        ("group:string:Smith", "Smith", 19484),
    ]


def test_the_largest_groups(shop: Vespa) -> None:
    most = (G.max(2), G.precision(12), G.order(-G.count()))
    found = _groups(shop, G.all(G.group("customer"), *most, G.each(G.output(G.sum("price")))))
    assert [(each["value"], each["fields"]["sum(price)"]) for each in found] == [("Jones", 39816), ("Smith", 19484)]


def test_hits_of_groups(shop: Vespa) -> None:
    hits = G.each(G.max(3), G.each(G.output(G.summary())))
    found = _groups(shop, G.all(G.group("customer"), hits), ranking="pricerank")
    assert [(each["value"], each["relevance"]) for each in found] == [("Jones", 9870), ("Brown", 8000), ("Smith", 6100)]
    prices = [[hit["fields"]["price"] for hit in each["children"][0]["children"]] for each in found]
    assert prices == [[9870, 8900, 6765], [8000, 3770, 3400], [6100, 5500, 2584]]
