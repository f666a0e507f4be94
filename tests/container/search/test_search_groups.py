"""Root groups among hits, in JSON, CBOR and XML, and what several clusters say."""

from __future__ import annotations

import math

import cbor2
import orjson
import pytest

from paperwasp.container.search.rendering import SearchResult, respond
from paperwasp.container.search.xml import ShownTypes, render_page, render_xml
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import ResultLayout
from paperwasp.search.grouping.shown_groups import ShownRoot, shown
from paperwasp.search.grouping.values import Kind
from paperwasp.search.query import Hit
from tests.search.grouping.results import groups, root
from tests.search.grouping.test_result import nested, nested_results, one_level


def hit(number: int, relevance: float) -> tuple[str, Hit]:
    return "music", Hit(bytes(12), "song", f"id:n:song::{number}", relevance, b'{"title":"a"}')


def count() -> ShownRoot:
    return rooted(one_level(), PartialResult(0, (root(), groups(2, [0], ["x"], [5]))))


def rooted(layout: ResultLayout, *results: PartialResult) -> ShownRoot:
    found = shown(layout, {result.number: result for result in results})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("relevances", "is_sorted", "place"),
    [
        ([], False, 0),
        ([0.5, 0.4], False, 0),
        ([3.0, 1.0, 0.9], False, 2),
        ([3.0, 2.0], False, 2),
        ([math.nan], False, 0),
        ([0.0, 0.0], True, 2),
    ],
)
def test_groups_stand_among_hits_by_relevance(relevances: list[float], is_sorted: bool, place: int) -> None:
    hits = [hit(number, relevance) for number, relevance in enumerate(relevances)]
    result = SearchResult(hits=hits, groups=[("music", count())], is_sorted=is_sorted)
    children = orjson.loads(respond(result).body)["root"]["children"]
    assert [child["id"] for child in children].index("group:root:0") == place
    rendered = [b'{"id":"a","relevance":%b,"source":"music"}' % orjson.dumps(each) for each in relevances]
    if math.nan not in relevances:
        paged = SearchResult(page=rendered, groups=[("music", count())], is_sorted=is_sorted)
        children = orjson.loads(respond(paged).body)["root"]["children"]
        assert [child["id"] for child in children].index("group:root:0") == place


def test_hits_of_lists_are_shown_as_others() -> None:
    first, second = hit(1, 2.0)[1], hit(2, 1.5)[1]
    layout = nested()
    level = groups(2, [0], ["x"], [2], [[first, second]])
    found = rooted(ResultLayout(0, layout.requests[:1], layout.labels), PartialResult(0, (root(), level)))
    answer = respond(SearchResult(groups=[("music", found)]))
    group = orjson.loads(answer.body)["root"]["children"][0]["children"][0]["children"][0]
    hits = group["children"][0]["children"]
    assert [each["id"] for each in hits] == ["id:n:song::1", "id:n:song::2"]
    assert hits[0] == {
        "id": "id:n:song::1",
        "relevance": 2.0,
        "source": "music",
        "fields": {"sddocname": "song", "documentid": "id:n:song::1", "title": "a"},
    }


def test_cbor_says_the_same() -> None:
    result = SearchResult(groups=[("music", count()), ("books", count())])
    assert cbor2.loads(respond(result, "cbor").body) == orjson.loads(respond(result).body)


def test_xml() -> None:
    found = shown(
        one_level(1),
        {0: PartialResult(0, (root(), groups(2, [0, 0], [(0, 9), (9, 10)], [7, 1], kind=Kind.LONG_BUCKET)))},
    )
    assert found is not None
    assert (
        render_xml(SearchResult(groups=[("music", found)]), ShownTypes())
        == """\
<result total-hit-count="0">
  <group relevance="1.0">
    <id type="root"/>
    <continuation id="this"></continuation>
    <grouplist label="a">
      <continuation id="next">BGAAABEBCBC</continuation>
      <group relevance="1.0">
        <id type="long_bucket">
          <from>0</from>
          <to>9</to>
        </id>
        <output label="count()">7</output>
      </group>
    </grouplist>
  </group>
</result>
"""
    )


def test_xml_of_hits_in_lists() -> None:
    layout = nested()
    level = groups(2, [0], ["<x>"], [2], [[hit(1, 2.0)[1]]])
    found = rooted(ResultLayout(0, layout.requests[:1], layout.labels), PartialResult(0, (root(), level)))
    result = SearchResult(groups=[("music", found)])
    text = render_xml(result, ShownTypes())
    assert '          <id type="string">&lt;x&gt;</id>'.strip() in text
    assert '          <hit relevancy="2.0" source="music">\n            <field name="relevancy">2.0</field>' in text
    assert "<title>a</title>" in render_page(result, ShownTypes())


def test_requests_of_one_statement() -> None:
    result = SearchResult(groups=[("music", rooted(nested(), *[each for each in nested_results() if each.number]))])
    (child,) = orjson.loads(respond(result).body)["root"]["children"]
    assert child["children"][0]["children"][0]["children"][0]["id"] == "grouplist:b"
