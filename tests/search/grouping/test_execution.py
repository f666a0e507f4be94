"""Requests over columns against the plain oracle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from paperwasp.base.records import replace
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.binding import Binding, bound_request
from paperwasp.search.grouping.execution import Hits, execute
from paperwasp.search.grouping.merging import merged
from paperwasp.search.grouping.request import Aggregation, Expression, Filter, GroupingRequest, Level, OrderKey
from paperwasp.search.grouping.values import Kind
from tests.chance import SEED
from tests.search.grouping.columns import ColumnSource, attribute, binding_of
from tests.search.grouping.oracle import Tree, ordered_hits, tree_from, tree_of
from tests.search.grouping.random_requests import columns_of, hits_of, request_of


def assert_same(found: Tree, wanted: Tree) -> None:
    assert found.id == wanted.id
    assert found.relevance == wanted.relevance
    for one, other in zip(found.aggregates, wanted.aggregates, strict=True):
        assert one == (pytest.approx(other, abs=1e-6) if isinstance(other, float) else other)
    assert [group.id for group in found.groups] == [group.id for group in wanted.groups]
    for group, other_group in zip(found.groups, wanted.groups, strict=True):
        assert_same(group, other_group)


@pytest.mark.parametrize("number", range(300))
def test_random_requests_agree_with_the_oracle(number: int) -> None:
    chance = random.Random(SEED + number)
    count = chance.choice([0, 1, 5, 40])
    columns = columns_of(chance, count)
    request = request_of(chance)
    hits, places = hits_of(chance, count)

    wanted = tree_of(request, ordered_hits(hits.lids.tolist(), hits.relevances.tolist(), places), ColumnSource(columns))
    binding = binding_of(columns)
    found = execute(bound_request(request, binding), hits)
    assert_same(tree_from(found, request), wanted)
    if places is None:
        whole = execute(bound_request(request, binding), hits, cuts=False)
        assert_same(tree_from(merged(request, [whole], binding), request), wanted)


def _without_shared_best_hits(request: GroupingRequest, binding: Binding) -> GroupingRequest:
    """The request with all groups from the first level on at which a hit is in several.

    Of groups that are equal but for their ids those whose best hit comes first are taken; where two have the same best
    hit, parts do not say which value came first in it.
    """
    is_multi = [level.node.is_multi for level in bound_request(request, binding).levels]
    whole = is_multi.index(True) if True in is_multi else len(is_multi)
    levels = (replace(level, max_groups=None, precision=None) for level in request.levels[whole:])
    return replace(request, levels=(*request.levels[:whole], *levels))


@pytest.mark.parametrize("number", range(100))
def test_parts_that_are_merged_are_as_the_whole(number: int) -> None:
    chance = random.Random(SEED + number)
    count = chance.choice([2, 5, 40])
    columns = columns_of(chance, count)
    request = _without_shared_best_hits(replace(request_of(chance), top_n=None), binding_of(columns))
    lids = np.arange(count, dtype=np.uint32)
    relevances = np.array(chance.sample(range(count), count), np.float64)
    source = ColumnSource(columns)
    wanted = tree_of(request, ordered_hits(lids.tolist(), relevances.tolist(), None), source)
    binding = binding_of(columns)
    bound = bound_request(request, binding)
    cut = chance.randrange(count + 1)
    parts = [execute(bound, Hits(lids[part], relevances[part]), cuts=False) for part in (slice(cut), slice(cut, None))]
    assert_same(tree_from(merged(request, parts, binding), request), wanted)


def test_a_container_cuts_to_max() -> None:
    columns = {"long": (Kind.LONG, [3, 1, 2, 2, 3, 3])}
    level = Level(
        1,
        attribute("long"),
        max_groups=1,
        precision=3,
        order=(OrderKey(Expression("count"), False),),
        aggregations=(Aggregation(2, Expression("count")),),
    )
    request = GroupingRequest(0, 0, levels=(level,))
    binding = binding_of(columns)
    found = execute(bound_request(request, binding), Hits(np.arange(6, dtype=np.uint32), np.zeros(6)))
    assert found.levels[1].ids.data.tolist() == [3, 2, 1]
    cut = merged(request, [found], binding, lambda level: level.max_groups)
    assert cut.levels[1].ids.data.tolist() == [3]
    assert cut.levels[1].states[0].shown() == [3]


def test_groups_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.grouping.GROUPS", 3)
    request = GroupingRequest(0, 0, levels=(Level(1, attribute("long")),))
    bound = bound_request(request, binding_of({"long": (Kind.LONG, [1, 2, 3, 4])}))
    execute(bound, Hits(np.arange(3, dtype=np.uint32), np.zeros(3)))
    with pytest.raises(InvalidQuery, match="more than 3 groups"):
        execute(bound, Hits(np.arange(4, dtype=np.uint32), np.zeros(4)))


def test_memory_is_limited_over_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group takes 4 bytes for its parent, 8 for its id, 8 for its relevance and 8 for its count: 28. The root takes
    16 without a count. Of 100 groups on each of two levels that makes 5,616."""
    count = (Aggregation(9, Expression("count")),)
    levels = (Level(1, attribute("long"), aggregations=count), Level(2, attribute("long"), aggregations=count))
    bound = bound_request(GroupingRequest(0, 0, levels=levels), binding_of({"long": (Kind.LONG, list(range(100)))}))
    hits = Hits(np.arange(100, dtype=np.uint32), np.zeros(100))
    monkeypatch.setattr("paperwasp.limits.grouping.MEMORY_BYTES", 5_616)
    execute(bound, hits)
    monkeypatch.setattr("paperwasp.limits.grouping.MEMORY_BYTES", 5_615)
    with pytest.raises(InvalidQuery, match="grouping takes more than 5615 bytes of memory"):
        execute(bound, hits)


def test_no_number_and_both_zeros_are_one_group_each() -> None:
    request = GroupingRequest(
        0, 0, levels=(Level(1, attribute("x"), aggregations=(Aggregation(2, Expression("count")),)),)
    )
    bound = bound_request(request, binding_of({"x": (Kind.DOUBLE, [0.0, float("nan"), -0.0, -float("nan")])}))
    groups = execute(bound, Hits(np.arange(4, dtype=np.uint32), np.zeros(4))).levels[1]
    assert groups.states[0].shown() == [2, 2]
    assert str(groups.ids.data.tolist()) == "[nan, 0.0]"


def test_a_filter_leaves_out_hits_of_its_level() -> None:
    columns: dict[str, tuple[Kind, list[Any]]] = {
        "longs": (Kind.LONG, [[1, 2], [2], [3, 1]]),
        "text": (Kind.STRING, ["a", "b", "a"]),
    }
    count = (Aggregation(9, Expression("count")),)
    only = Filter("in", attribute("text"), ("a",))
    below = Level(1, attribute("longs"), filter=only, aggregations=count)
    hits = Hits(np.arange(3, dtype=np.uint32), np.zeros(3))
    request = GroupingRequest(0, 0, count, levels=(below,))
    found = execute(bound_request(request, binding_of(columns)), hits)
    assert found.levels[0].states[0].shown() == [3]
    assert found.levels[1].ids.data.tolist() == [1, 2, 3]
    assert found.levels[1].states[0].shown() == [2, 1, 1]
