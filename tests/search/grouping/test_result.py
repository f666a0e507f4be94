"""Trees of groups from results by hand, page by page; expected values are by hand, too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from paperwasp.container.search.groups_json import hits_in, root_json
from paperwasp.search.grouping.continuation import PagePosition, Pages, decode
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level, OrderKey, ResultLayout
from paperwasp.search.grouping.shown_groups import shown
from paperwasp.search.grouping.values import Kind
from tests.search.grouping.results import groups, root

COUNT, HITS, UNIQUE = Expression("count"), Expression("summary"), Expression("count_groups")
BY = Expression("attribute", ("a",))
BEST = (OrderKey(COUNT, is_ascending=False),)


def answer(layout: ResultLayout, *results: PartialResult) -> Any:
    """The root group as JSON; hits are shown as they are."""
    found = shown(layout, {result.number: result for result in results})
    assert found is not None
    return orjson.loads(root_json(found, iter([orjson.dumps(hit) for hit in hits_in(found.groups)])))


def one_level(
    maximum: int | None = None, pages: Pages | None = None, order: tuple[OrderKey, ...] = BEST
) -> ResultLayout:
    """all(group(a) max(…) order(-count()) each(output(count())))."""
    level = Level(2, BY, order=order, aggregations=(Aggregation(3, COUNT),))
    maxes = {} if maximum is None else {2: maximum}
    return ResultLayout(0, (GroupingRequest(0, 1, levels=(level,)),), {2: "a", 3: "count()"}, maxes, pages or Pages())


def test_one_level() -> None:
    found = PartialResult(0, (root(), groups(2, [0, 0], ["rock", "C# x"], [7, 3])))
    assert answer(one_level(), found) == {
        "id": "group:root:0",
        "relevance": 1.0,
        "continuation": {"this": ""},
        "children": [
            {
                "id": "grouplist:a",
                "relevance": 1.0,
                "label": "a",
                "children": [
                    {"id": "group:string:rock", "relevance": 1.0, "value": "rock", "fields": {"count()": 7}},
                    {"id": "group:string:C", "relevance": 0.5, "value": "C# x", "fields": {"count()": 3}},
                ],
            }
        ],
    }


def test_without_an_order_groups_have_the_relevance_of_their_best_hits() -> None:
    found = PartialResult(
        0, (root(), groups(2, [0, 0, 0], ["x", "y", "z"], [1, 1, 1], relevances=[2.5, 0.1, math.nan]))
    )
    (listed,) = answer(one_level(order=()), found)["children"]
    assert [group["relevance"] for group in listed["children"]] == [2.5, 0.1, "NaN"]


def test_no_groups_make_no_list() -> None:
    found = PartialResult(0, (root(), groups(2, [], [], [])))
    assert answer(one_level(), found) == {"id": "group:root:0", "relevance": 1.0, "continuation": {"this": ""}}


@pytest.mark.parametrize(
    ("kind", "ids", "expected"),
    [
        (Kind.LONG, [-3], [("group:long:-3", "-3")]),
        (Kind.DOUBLE, [1e10, math.nan, -math.inf], [("1.0E10",) * 2, ("NaN",) * 2, ("-Infinity",) * 2]),
        (Kind.BOOL, [True, False], [("group:bool:true", "true"), ("group:bool:false", "false")]),
        (Kind.RAW, [b"\x01\xfe"], [("group:raw:Af4=", "Af4=")]),
        (Kind.STRING, ["", 'a","b\\', "end "], [("group:string:", ""), ('a","b\\',) * 2, ("group:string:end", "end ")]),
        (Kind.LONG_BUCKET, [(0, 10), None], [("group:long_bucket:0:10", ("0", "10")), None]),
        (Kind.DOUBLE_BUCKET, [(-math.inf, 0.5)], [("group:double_bucket:-Infinity:0.5", ("-Infinity", "0.5"))]),
        (
            Kind.STRING_BUCKET,
            [("%a", "b"), ("", "")],
            [("group:string_bucket:%a:b", ("%a", "b")), ("group:string_bucket::", ("", ""))],
        ),
        (Kind.RAW_BUCKET, [(b"\x01", b"")], [("group:raw_bucket:AQ==:", ("AQ==", ""))]),
        (Kind.STRING, ["50%", None], [("group:string:50%", "50%"), None]),
    ],
)
def test_ids(kind: Kind, ids: list[Any], expected: list[Any]) -> None:
    found = PartialResult(0, (root(), groups(2, [0] * len(ids), ids, [1] * len(ids), kind=kind)))
    (listed,) = answer(one_level(), found)["children"]
    for group, wanted in zip(listed["children"], expected, strict=True):
        if wanted is None:
            assert group["id"] == "group:null"
            assert group.keys() == {"id", "relevance", "fields"}
            continue
        id_, value = wanted
        assert group["id"] == (id_ if id_.startswith("group:") else f"group:{kind.value}:{id_}")
        if isinstance(value, tuple):
            assert group["limits"] == {"from": value[0], "to": value[1]}
        else:
            assert group["value"] == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63 - 1, 2**63 - 1),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        ("text", "text"),
        (b"\xff", "/w=="),
        (True, True),
        ([{"quantile": 0.5, "value": math.nan}], [{"quantile": 0.5, "value": "NaN"}]),
    ],
)
def test_outputs(value: Any, expected: Any) -> None:
    found = PartialResult(0, (root(), groups(2, [0, 0], ["x", "y"], [value, value])))
    (listed,) = answer(one_level(), found)["children"]
    assert [group["fields"] for group in listed["children"]] == [{"count()": expected}] * 2


def test_empty_texts_are_not_shown() -> None:
    found = PartialResult(0, (root(), groups(2, [0, 0], ["x", "y"], ["", "b"])))
    (listed,) = answer(one_level(), found)["children"]
    assert [group.get("fields") for group in listed["children"]] == [None, {"count()": "b"}]


PATH = (0, 0, 0)


@pytest.mark.parametrize(
    ("offset", "names", "this", "following", "before"),
    [
        (0, ["a", "b"], [], [2], []),
        (2, ["c", "d"], [2], [4], [0]),
        (3, ["d", "e"], [3], [], [1]),
        (4, ["e"], [4], [], [2]),
        (9, [], [9], [], [3]),
    ],
)
def test_pages(offset: int, names: list[str], this: list[int], following: list[int], before: list[int]) -> None:
    pages = Pages.of(0, [PagePosition(PATH, 2, offset, 1)] if offset else [])
    found = PartialResult(0, (root(), groups(2, [0] * 5, list("abcde"), [5, 4, 3, 2, 1])))
    shown_root = answer(one_level(2, pages), found)
    (listed,) = shown_root["children"]
    assert [group["value"] for group in listed.get("children", [])] == names
    turns = listed.get("continuation", {})
    assert list(turns) == ["next"] * len(following) + ["prev"] * len(before)
    assert decode(shown_root["continuation"]["this"]) == tuple(PagePosition(PATH, 2, each) for each in this)
    assert decode(turns.get("next", "")) == tuple(PagePosition(PATH, 2, each, 1) for each in following)
    assert decode(turns.get("prev", "")) == tuple(PagePosition(PATH, 2, each, 1) for each in before)


def nested(pages: Pages | None = None) -> ResultLayout:
    """Groups of a with their counts and hits, and in each of these groups of b with their counts; pages of one. Two
    requests, which share the level of a."""
    above = (Aggregation(3, COUNT),)
    hits = GroupingRequest(0, 1, levels=(Level(2, BY, aggregations=(*above, Aggregation(4, HITS))),))
    below = GroupingRequest(
        1, 1, levels=(Level(2, BY, aggregations=above), Level(5, BY, aggregations=(Aggregation(6, COUNT),)))
    )
    labels = {2: "a", 3: "count()", 4: "hits", 5: "b", 6: "n"}
    return ResultLayout(0, (hits, below), labels, {2: 1, 4: 1, 5: 1}, pages or Pages())


def nested_results() -> Iterator[PartialResult]:
    yield PartialResult(0, (root(), groups(2, [0, 0], ["x", "y"], [3, 1], [[1, 2, 3], [4]])))
    yield PartialResult(
        1, (root(), groups(2, [0, 0], ["x", "y"], [3, 1]), groups(5, [0, 0, 1], ["p", "q", "p"], [2, 1, 1]))
    )


def test_requests_that_share_a_level_are_one_tree() -> None:
    (listed,) = answer(nested(), *nested_results())["children"]
    (group,) = listed["children"]
    assert listed["continuation"] == {"next": "BGAAABEBCBC"}
    assert (group["value"], group["fields"]) == ("x", {"count()": 3})
    hits, below = group["children"]
    assert (hits["id"], hits["children"]) == ("hitlist:hits", [1])
    assert decode(hits["continuation"]["next"]) == (PagePosition((0, 0, 0, 0, 0), 4, 1, 1),)
    assert [each["value"] for each in below["children"]] == ["p"]
    assert decode(below["continuation"]["next"]) == (PagePosition((0, 0, 0, 0, 0), 5, 1, 1),)


def test_pages_of_inner_lists_and_the_order_of_this() -> None:
    """The lists of hits and of groups of the first group have the same path; a list comes after what is below it."""
    first = (0, 0, 0, 0, 0)
    positions = [PagePosition(first, 5, 1), PagePosition((0, 0, 0, 1, 0), 5, 1)]
    shown_root = answer(nested(Pages.of(0, positions)), *nested_results())
    (group,) = shown_root["children"][0]["children"]
    hits, below = group["children"]
    assert (hits["children"], [each["value"] for each in below["children"]]) == ([2], ["q"])
    this = decode(shown_root["continuation"]["this"])
    assert this == (PagePosition(first, 4, 1), PagePosition(first, 5, 1))
    second = Pages.of(0, [PagePosition((0, 0, 0, 1, 0), 5, 0), PagePosition(PATH, 2, 1)])
    shown_root = answer(nested(second), *nested_results())
    assert decode(shown_root["continuation"]["this"]) == (PagePosition(PATH, 2, 1),)


def test_what_is_below_a_list_that_turns_begins_again() -> None:
    pages = Pages.of(0, [PagePosition((0, 0, 0, 1, 0), 5, 1), PagePosition(PATH, 2, 1, 1)])
    (listed,) = answer(nested(pages), *nested_results())["children"]
    (group,) = listed["children"]
    assert [each["value"] for each in group["children"][1]["children"]] == ["p"]


def test_groups_that_only_one_request_has() -> None:
    """The first request has ended before it saw y; the second found the groups in another order."""
    results = (
        PartialResult(0, (root(), groups(2, [0], ["x"], [3], [[1]]))),
        PartialResult(
            1, (root(), groups(2, [0, 0], ["y", "x"], [1, 3]), groups(5, [0, 1, 1], ["p", "q", "r"], [1, 2, 1]))
        ),
    )
    layout = nested()
    open_ = ResultLayout(0, layout.requests, layout.labels)
    (listed,) = answer(open_, *results)["children"]
    x, y = listed["children"]
    assert (x["value"], x["fields"]) == ("x", {"count()": 3})
    assert [child["id"] for child in x["children"]] == ["hitlist:hits", "grouplist:b"]
    assert [each["value"] for each in x["children"][1]["children"]] == ["q", "r"]
    assert (y["value"], y["fields"]) == ("y", {"count()": 1})
    assert [child["id"] for child in y["children"]] == ["grouplist:b"]
    assert [each["fields"] for each in y["children"][0]["children"]] == [{"n": 1}]


@pytest.mark.parametrize(("maximum", "expected"), [(None, 3), (5, 3), (3, 42)])
def test_the_estimate_of_groups_is_corrected_where_all_are_there(maximum: int | None, expected: int) -> None:
    level = Level(3, BY, aggregations=(Aggregation(4, COUNT),))
    request = GroupingRequest(0, 1, (Aggregation(2, UNIQUE),), levels=(level,))
    layout = ResultLayout(0, (request,), {2: "count()", 3: "a", 4: "n"}, {} if maximum is None else {3: maximum})
    found = PartialResult(0, (root(42), groups(3, [0, 0, 0], list("abc"), [1, 1, 1])))
    assert answer(layout, found)["fields"] == {"count()": expected}
    alone = ResultLayout(0, (GroupingRequest(0, 1, (Aggregation(2, UNIQUE),)),), {2: "count()"})
    assert answer(alone, PartialResult(0, (root(42),)))["fields"] == {"count()": 42}


def test_what_only_order_needs_is_not_shown() -> None:
    layout = one_level()
    hidden = ResultLayout(0, layout.requests, {2: "a"})
    (listed,) = answer(hidden, PartialResult(0, (root(), groups(2, [0], ["x"], [1]))))["children"]
    assert listed["children"] == [{"id": "group:string:x", "relevance": 1.0, "value": "x"}]


def test_nothing_is_shown_of_no_results() -> None:
    assert shown(one_level(), {}) is None
