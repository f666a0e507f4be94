"""The page of facets is the one that pages of any tree have."""

from __future__ import annotations

import random

import numpy as np
import pytest

from paperwasp.container.search.groups_json import root_json
from paperwasp.search.grouping.execution import Hits
from paperwasp.search.grouping.facets import facet
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import Layout
from paperwasp.search.grouping.request_builder import layout_of
from paperwasp.search.grouping.shown_groups import ShownRoot, shown, shown_facets
from tests.chance import SEED
from tests.search.grouping.test_facets import columns_of, views_of

ATTRIBUTES = ("text", "year", "long")
EACH = (
    "each()",
    "each(output(count()))",
    "each(output(count()) output(count() as(number)))",
    "each(output(count())) as({name}1) each(output(count())) as({name}2)",
)


def layout(statement: str) -> Layout:
    (operation,) = parse_grouping(statement)
    return layout_of(operation, 1)


def statement_of(chance: random.Random) -> str:
    lists = []
    for name in chance.sample(ATTRIBUTES, chance.randrange(1, 4)):
        most = chance.choice(["", "max(1)", "max(2) precision(3)", "max(40)"])
        order = chance.choice(["", "order(count())", "order(-count())"])
        lists.append(f"all(group({name}) {most} {order} {chance.choice(EACH).format(name=name)})")
    return f"all({' '.join(lists)})"


def found_of(asked: Layout, chance: random.Random) -> dict[int, PartialResult]:
    """The results of all requests, or of some."""
    count = chance.choice([0, 1, 40])
    hits = Hits(np.arange(count, dtype=np.uint32), np.array([chance.choice([0.5, 1.0]) for _ in range(count)]))
    views = views_of(columns_of(chance, count))
    results = [facet(request, views, hits) for request in asked.requests]
    kept = chance.sample(results, chance.randrange(len(results) + 1)) if chance.random() < 0.2 else results
    return {result.number: result for result in kept if result is not None}


def written(root: ShownRoot | None) -> bytes | None:
    return None if root is None else root_json(root, iter(()))


@pytest.mark.parametrize("number", range(100))
def test_pages_of_facets_are_as_all_pages(number: int) -> None:
    chance = random.Random(SEED + number)
    asked = layout(statement_of(chance))
    found = found_of(asked, chance)
    assert written(shown_facets(asked, found)) == written(shown(asked, found))


@pytest.mark.parametrize(
    "statement",
    ["all(group(text) each(output(max(year))))", "all(group(text) each(group(year) each(output(count()))))"],
)
def test_what_is_no_facet_is_left_to_the_general_steps(statement: str) -> None:
    asked = layout(statement)
    found = PartialResult(asked.requests[0].number, ())
    assert shown_facets(asked, {found.number: found}) is None
