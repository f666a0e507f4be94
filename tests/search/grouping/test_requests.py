"""Statements become linear requests with the tags, labels and limits that Vespa's RequestBuilder gives them.

Answers to them are made by hand, and say how to turn pages.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from paperwasp.container.search.groups_json import root_json
from paperwasp.errors import InvalidQuery, PaperwaspError
from paperwasp.search.grouping.continuation import PagePosition, decode
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level, OrderKey, ResultLayout
from paperwasp.search.grouping.request_builder import DEFAULTS, Defaults, layout_of
from paperwasp.search.grouping.shown_groups import shown
from tests.search.grouping.results import groups, root

NO_LIMITS = Defaults(-1, -1, -1, 0)
A, B, C = (Expression("attribute", (name,)) for name in "abc")
COUNT = Expression("count")
HITS = Expression("summary", ("",))


def laid_out(text: str, defaults: Defaults = NO_LIMITS, positions: tuple[PagePosition, ...] = ()) -> ResultLayout:
    (operation,) = parse_grouping(text)
    return layout_of(operation, 0, 0, positions, defaults)


def test_levels_outputs_and_hits_have_tags_and_labels() -> None:
    found = laid_out("all(group(a) each(output(count(), sum(b + 1) as(s)) each(output(summary()))) as(x))")
    total = Expression("sum", (Expression("add", (B, Expression("constant", (1,)))),))
    outputs = (Aggregation(3, COUNT), Aggregation(4, total), Aggregation(5, HITS))
    assert found.requests == (GroupingRequest(0, 1, levels=(Level(2, A, aggregations=outputs),)),)
    assert found.labels == {2: "x", 3: "count()", 4: "s", 5: "hits"}
    assert found.maxes == {}


def test_lists_without_a_label_are_named_by_their_expression() -> None:
    found = laid_out("all(group(fixedwidth(a, 3)) each(output(count())))")
    assert found.labels == {2: "fixedwidth(a, 3)", 3: "count()"}


def test_defaults_and_one_more() -> None:
    found = laid_out("all(group(a) each(output(count()) each(output(summary(s)))))", DEFAULTS)
    (level,) = found.requests[0].levels
    assert (level.max_groups, level.precision) == (11, 20)
    assert level.aggregations[1] == Aggregation(4, Expression("summary", ("s",)), 11)
    assert found.maxes == {2: 10, 4: 10}


def test_max_precision_and_unlimited() -> None:
    (level,) = laid_out("all(group(a) max(3) precision(2) each(output(count())))", DEFAULTS).requests[0].levels
    assert (level.max_groups, level.precision) == (4, 4)  # never fewer than are shown
    found = laid_out("all(group(a) max(inf) each(output(count())))", Defaults(global_max_groups=-1))
    assert (found.requests[0].levels[0].max_groups, found.requests[0].levels[0].precision) == (None, None)
    (level,) = laid_out("all(group(a) max(1) each(output(count())))", Defaults(precision_factor=1.2)).requests[0].levels
    assert (level.max_groups, level.precision) == (2, 2)


def test_top_n_and_all() -> None:
    found = laid_out("all(max(7) all(group(a) max(2) each(output(count()))))")
    assert found.requests[0].top_n == 7
    assert found.requests[0].levels[0].max_groups == 3
    assert laid_out("all(group(a) each(output(count()))) where(true)").requests[0].is_all
    assert not laid_out("all(where($query) output(count()))").requests[0].is_all


def test_each_leaf_is_a_request() -> None:
    found = laid_out(
        "all(group(a) each(output(count()) all(group(b) each(output(count()))) all(group(c) each(output(count())))))"
    )
    first, second = found.requests
    level = Level(2, A, aggregations=(Aggregation(3, COUNT),))
    assert first == GroupingRequest(0, 1, levels=(level, Level(4, B, aggregations=(Aggregation(5, COUNT),))))
    assert second == GroupingRequest(1, 1, levels=(level, Level(6, C, aggregations=(Aggregation(7, COUNT),))))


def test_counts_of_groups_know_what_they_count() -> None:
    (request,) = laid_out("all(group(a) output(count()))").requests
    assert request.aggregations == (Aggregation(2, Expression("count_groups", (A,))),)
    (request,) = laid_out("all(group(a) each(group(b) output(count())))").requests
    assert request.levels == (Level(2, A, aggregations=(Aggregation(3, Expression("count_groups", (B,))),)),)


def test_orders() -> None:
    (request,) = laid_out("all(group(a) order(-count(), sum(b) / count()) each(output(count())))").requests
    total = Expression("div", (Expression("sum", (B,)), COUNT))
    assert request.levels[0].order == (OrderKey(COUNT, is_ascending=False), OrderKey(total, is_ascending=True))


def test_filters_belong_to_their_level() -> None:
    (request,) = laid_out('all(group(a) filter(regex("x", attribute(b))) each(output(count())))').requests
    found = request.levels[0].filter
    assert found is not None and (found.kind, found.expression, found.settings) == ("regex", B, ("x",))


def test_what_collects_nothing_is_left_out() -> None:
    assert laid_out("all(group(a) each(group(b) each()))").requests == ()
    (request,) = laid_out("all(group(a) each(output(count()) all(group(b) each())))").requests
    assert len(request.levels) == 1


def test_expressions_are_simplified() -> None:
    (request,) = laid_out(
        "all(group(geo_distance(attribute(p), 1, 2).km) each(output(argmax(a, attribute(b)))))"
    ).requests
    place = Expression("attribute", ("p_zcurve",))
    one, two = (Expression("constant", (number,)) for number in (1, 2))
    assert request.levels[0].expression == Expression("geo_distance.km", (place, one, two))
    assert request.levels[0].aggregations[0].expression == Expression("argmin", (Expression("neg", (A,)), B))


def test_pages_ask_for_more() -> None:
    positions = (PagePosition((0, 0), 2, 10), PagePosition((1, 0), 2, 50))
    found = laid_out("all(group(a) max(10) each(output(count())))", DEFAULTS, positions)
    assert (found.requests[0].levels[0].max_groups, found.requests[0].levels[0].precision) == (21, 30)
    assert found.pages.by_path == {(0, 0): 10}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all(output(count(), count()))", "Can not use output label 'count()' for multiple siblings."),
        (
            "all(group(a) each(output(count())) each(output(sum(b))))",
            "Can not use group list label 'a' for multiple siblings.",
        ),
        ("all(group(a) each(each(output(summary() as(x)))))", "Can not label expression 'summary()'."),
        ("all(group(a) output(sum(sum(b))))", "Can not aggregate on list of groups."),
        ("all(output(sum(a) / count()))", "Can not convert 'div(sum(a), count())' to an aggregator."),
        ("all(group(a) all(group(1)))", "Can not operate on list of list of groups."),
        ("all(group(a) all())", "Can not create anonymous list of groups."),
        ("all(order(1))", "Can not order single group content."),
        ("all(all(where(true)))", "Can not apply 'where' to non-root group."),
        ("all(group(a) where(true))", "Can not apply 'where' to non-root group."),
        ("all(where(x))", "Operation 'where' does not support 'x'."),
    ],
)
def test_what_is_refused(text: str, expected: str) -> None:
    with pytest.raises(PaperwaspError) as caught:
        laid_out(text)
    assert caught.value.message == expected


def test_the_size_of_an_answer_is_bounded() -> None:
    bounded = Defaults(global_max_groups=10 + 10 * 3)
    assert laid_out("all(group(a) each(max(3) each(output(summary()))))", bounded)
    with pytest.raises(InvalidQuery, match=r"\( 50 > 40 \)"):
        laid_out("all(group(a) each(max(4) each(output(summary()))))", bounded)
    with pytest.raises(InvalidQuery, match="unbounded number of groups"):
        laid_out("all(group(a) max(inf) each(output(count())))", DEFAULTS)
    with pytest.raises(InvalidQuery, match="unbounded number of summaries"):
        laid_out("all(group(a) each(max(inf) each(output(summary()))))", DEFAULTS)
    buckets = "all(group(predefined(a, bucket(1, 2), bucket(3, 4))) max(inf) each(output(count())))"
    assert laid_out(buckets, Defaults(global_max_groups=3))
    with pytest.raises(InvalidQuery, match=r"\( 3 > 2 \)"):
        laid_out(buckets, Defaults(global_max_groups=2))


SALES = {"Brown": 3, "Jones": 7, "Smith": 10, "White": 1, "Young": 2}


def page(text: str, *continuations: str) -> dict[str, Any]:
    """The answer to a statement that groups by customer; its node gives as many groups as the request asks for."""
    (operation,) = parse_grouping(text)
    layout = layout_of(operation, 0, 0, [position for each in continuations for position in decode(each)])
    results = []
    for request in layout.requests:
        (level,) = request.levels
        names = list(SALES)[: level.max_groups]
        outputs = [[SALES[name] for name in names] for _ in level.aggregations]
        results.append(PartialResult(request.number, (root(), groups(level.tag, [0] * len(names), names, *outputs))))
    found = shown(layout, {result.number: result for result in results})
    assert found is not None
    answer: dict[str, Any] = orjson.loads(root_json(found, iter(())))
    return answer


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_pages_of_a_statement_show_every_group_once(size: int) -> None:
    text = f"all(group(customer) max({size}) each(output(count())))"
    answer, seen = page(text), []
    while True:
        (listed,) = answer["children"]
        seen += [(each["value"], each["fields"]) for each in listed["children"]]
        if "next" not in listed.get("continuation", {}):
            break
        answer = page(text, answer["continuation"]["this"], listed["continuation"]["next"])
    assert seen == [(name, {"count()": count}) for name, count in SALES.items()]
    if "prev" in listed.get("continuation", {}):
        before = page(text, answer["continuation"]["this"], listed["continuation"]["prev"])["children"][0]["children"]
        assert before[-1]["value"] == list(SALES)[-len(listed["children"]) - 1]


def test_parallel_lists_have_their_labels_and_pages() -> None:
    text = "all(group(customer) max(2) each(output(count() as(n))) as(first) each(output(sum(price))) as(second))"
    first, second = page(text)["children"]
    assert (first["id"], second["label"]) == ("grouplist:first", "second")
    assert [each["fields"] for each in first["children"]] == [{"n": 3}, {"n": 7}]
    assert [each["fields"] for each in second["children"]] == [{"sum(price)": 3}, {"sum(price)": 7}]
    answer = page(text, second["continuation"]["next"])
    first, second = answer["children"]
    assert [each["value"] for each in first["children"]] == ["Brown", "Jones"]
    assert [each["value"] for each in second["children"]] == ["Smith", "White"]
