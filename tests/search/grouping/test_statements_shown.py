"""From the text of a statement to its pages: requests are answered by hand, and answers say how to turn pages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from paperwasp.container.search.groups_json import root_json
from paperwasp.search.grouping.continuation import decode
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request_builder import layout_of
from paperwasp.search.grouping.shown_groups import shown
from tests.search.grouping.results import groups, root

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
