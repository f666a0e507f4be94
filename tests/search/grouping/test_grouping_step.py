"""The step that groups hits: which hits are grouped, with which relevance, and what else of the answer it leaves alone.

Authority: https://docs.vespa.ai/en/querying/grouping.html, and of a timeout
https://docs.vespa.ai/en/performance/graceful-degradation.html; values are worked by hand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.core.clock import OutOfTime
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Remove
from paperwasp.errors import Timeout
from paperwasp.schema import parse_schemas
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request_builder import layout_of
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.phases.rank import match
from paperwasp.search.query import MatchPhaseOverride, RankingOverride, SearchResponse, SortKey, Streaming
from paperwasp.search.search import FACET_GROUP_NS, FACET_HIT_NS, FACET_NS, BoundSearch, search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

COLOR = "field color type string { indexing: attribute | summary }"
FIELDS = f"""{COLOR}
  field size type int {{ indexing: attribute | summary
    attribute: fast-search }}"""
SCHEMAS = parse_schemas(
    {
        "schemas/shirt.sd": f"""schema shirt {{ document shirt {{ {FIELDS} }}
          rank-profile size {{ first-phase {{ expression: attribute(size) }} }}
          rank-profile again inherits size {{
            second-phase {{ expression: -attribute(size)
              rerank-count: 3 }} }} }}""",
        "schemas/hat.sd": f"""schema hat {{ document hat {{ {FIELDS} }}
          rank-profile size {{ first-phase {{ expression: 100 * attribute(size) }} }} }}""",
    }
).schemas
COLORS = ("red", "green", "blue", "red", "green", "red")
ROOT = 0
BY_COLOR = "all(group(color) each(output(count(), max(relevance()))))"


def puts(kind: str, colors: tuple[str, ...] = COLORS) -> list[Put]:
    """The size of each is its number."""
    return [Put(DocumentId("n", kind, str(n)), {"color": color, "size": n}) for n, color in enumerate(colors)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    with started(tmp_path, dict(SCHEMAS)) as node:
        node.apply(*puts("shirt"))
        yield node


def ask(
    node: TestNode,
    statement: str = BY_COLOR,
    tree: Item | None = None,
    kind: str = "shirt",
    env: Environment = SYSTEM,
    **named: Any,
) -> SearchResponse:
    query = query_of(tree or TrueItem(), (kind,) if kind else (), named.pop("profile", "size"), **named)
    layout = layout_of(parse_grouping(statement)[0], 0)
    query = replace(query, groupings=layout.requests)
    return search(node.node.reader.view(), query, ServedSchemas(), env)


def groups(answer: SearchResponse, level: int = 1) -> dict[Any, list[Any]]:
    """The outputs of each group of a level, in their order."""
    result: PartialResult = answer.groupings[0]
    found = result.levels[level]
    table = found.ids.table
    ids = found.ids.data.tolist() if table is None else table.values_of(found.ids.data)
    columns = [state.shown() for state in found.states]
    return {name: [column[row] for column in columns] for row, name in enumerate(ids)}


def test_all_hits_are_grouped_whatever_is_shown(node: TestNode) -> None:
    """And the hits, their number and the coverage are those without groups."""
    for hits, offset in ((0, 0), (2, 0), (2, 3), (400, 0)):
        answer = ask(node, hits=hits, offset=offset)
        assert groups(answer) == {"red": [3, 5.0], "green": [2, 4.0], "blue": [1, 2.0]}
        plain = query_of(TrueItem(), ("shirt",), "size", hits=hits, offset=offset)
        without = search(node.node.reader.view(), plain, ServedSchemas())
        assert [hit.relevance for hit in answer.hits] == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0][offset : offset + hits]
        assert (without.total_count, without.coverage, without.documents) == (6, 1.0, 6)
        assert (answer.total_count, answer.coverage, answer.documents) == (6, 1.0, 6)


def test_only_matches_are_grouped(node: TestNode) -> None:
    assert groups(ask(node, tree=RangeItem("size", 3, 4))) == {"green": [1, 4.0], "red": [1, 3.0]}
    nothing = ask(node, "all(output(count()) all(group(color) each(output(count()))))", RangeItem("size", 9, 9))
    assert groups(nothing, 0) == {ROOT: [0]} and nothing.total_count == 0


def test_what_is_written_meanwhile_is_grouped(node: TestNode) -> None:
    node.apply(Remove(DocumentId("n", "shirt", "5")), Put(DocumentId("n", "shirt", "0"), {"color": "grey", "size": 7}))
    expected = {"grey": [1, 7.0], "green": [2, 4.0], "red": [1, 3.0], "blue": [1, 2.0]}
    found = groups(ask(node))
    assert found == expected and list(found) == list(expected)


def test_groups_of_all_types_are_one(node: TestNode) -> None:
    node.apply(*puts("hat", ("red", "grey")))
    assert groups(ask(node, kind="")) == {"grey": [1, 100.0], "red": [4, 5.0], "green": [2, 4.0], "blue": [1, 2.0]}
    assert groups(ask(node, kind="hat")) == {"grey": [1, 100.0], "red": [1, 0.0]}


def test_relevance_is_that_of_the_last_phase(node: TestNode) -> None:
    """The second phase ranks 5, 4 and 3 as -5, -4 and -3, and the others come behind these."""
    found = groups(ask(node, profile="again"))
    assert (found["red"], found["green"]) == ([3, -3.0], [2, -4.0])
    assert found["blue"][1] < -5


def test_what_a_limit_drops_is_not_grouped(node: TestNode) -> None:
    answer = ask(node, ranking=RankingOverride(rank_score_drop_limit=2.0))
    assert groups(answer) == {"red": [2, 5.0], "green": [1, 4.0]} and answer.total_count == 3


def test_the_best_hits_are_the_first_of_a_sorting(node: TestNode) -> None:
    best = "all(max(2) all(group(color) each(output(count()))))"
    assert groups(ask(node, best)) == {"red": [1], "green": [1]}
    assert groups(ask(node, best, order_by=(SortKey("size"),))) == {"green": [1], "red": [1]}
    assert groups(ask(node, best, order_by=(SortKey("color"),))) == {"blue": [1], "green": [1]}


def test_of_streamed_documents_the_first_are_grouped(tmp_path: Path) -> None:
    """Those that are read first, by their global ids, in batches of two; whether they match or not for where(true)."""
    with started(tmp_path, dict(SCHEMAS)) as node, patch.object(limits, "STREAMED_DOCUMENTS", 2):
        node.node.configure(2, dict(SCHEMAS), {"shirt": "streaming"})
        node.apply(*puts("shirt"))
        everyone = Streaming(selection="true")
        read = sorted(range(6), key=lambda n: DocumentId("n", "shirt", str(n)).gid)
        for most in range(1, 8):
            best = f"all(max({most}) all(output(count(), sum(size))))"
            assert groups(ask(node, best, streaming=everyone), 0) == {ROOT: [min(most, 6), sum(read[:most])]}
            big = RangeItem("size", 3, 9)
            matches = [n for n in read if n >= 3][:most]
            assert groups(ask(node, best, big, streaming=everyone), 0) == {ROOT: [len(matches), sum(matches)]}
            all_ = f"all(where(true) max({most}) all(output(count(), sum(size))))"
            assert groups(ask(node, all_, big, streaming=everyone), 0) == {ROOT: [min(most, 6), sum(read[:most])]}


def test_what_match_phase_leaves_is_grouped(tmp_path: Path) -> None:
    """128 are looked at, since there are never fewer."""
    with started(tmp_path, dict(SCHEMAS)) as node:
        node.apply(*puts("shirt", ("red", "green") * 500))
        answer = ask(node, match_phase=MatchPhaseOverride("size", False, 100, 1.0))
        assert groups(answer) == {"green": [64, 999.0], "red": [64, 998.0]}
        assert answer.degraded == {"match-phase"} and answer.total_count == 128


def test_a_soft_timeout_groups_what_was_ranked(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock on which a millisecond passes each time that it is asked, blocks of two are ranked."""
    monkeypatch.setattr("paperwasp.search.phases.scoring.BLOCK_LIDS", 2)
    seen = set()
    for milliseconds in range(2, 30):
        ticks = count(1_000_000, 1_000_000)
        clock = Environment(monotonic_ns=lambda ticks=ticks: next(ticks))  # type: ignore[misc]
        deadline = clock.monotonic_ns() + milliseconds * 1_000_000
        answer = ask(node, "all(output(count(), sum(size)))", hits=400, env=clock, deadline_ns=deadline)
        number = answer.total_count
        seen.add(number)
        sizes = [hit.relevance for hit in answer.hits]
        assert groups(answer, 0) == {ROOT: [number, sum(sizes)]} and number == len(sizes)
        assert (answer.degraded == {"timeout"}) == (number < 6)
    assert seen == {0, 2, 4, 6}


def test_what_was_found_is_grouped_when_the_soft_timeout_is_over(node: TestNode) -> None:
    """Kernels that group work until the query ends: here no time is left to match, and all of it to group."""
    statement = "all(output(count()) all(group(color) each(output(count()))))"
    deadline = time.monotonic_ns() + 60_000_000_000
    answer = ask(node, statement, deadline_ns=deadline, soft_timeout_factor=0.0)
    assert groups(answer, 0) == {ROOT: [0]} and groups(answer) == {}
    assert answer.degraded == {"timeout"} and answer.coverage == 0
    with pytest.raises(Timeout):
        ask(node, soft_timeout=False, deadline_ns=time.monotonic_ns() + 1)


def test_the_trace_says_how_many_groups_there_are(node: TestNode) -> None:
    answer = ask(node, "all(group(color) each(group(size) each(output(count()))))", trace_level=1)
    assert answer.trace is not None
    (told,) = (each for each in answer.trace[0]["traces"] if each.get("tag") == "grouping")  # type: ignore[index]
    assert told["groups"] == [[1, 3, 6]]


FACETS = "all(all(group(color) max(2) order(-count()) each(output(count()))) all(group(size) each(output(count()))))"


@pytest.mark.parametrize("profile", ["size", "again", "default"])
def test_facets_are_counted_where_they_are_asked(node: TestNode, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What matches is looked for once: to know how long counting takes, and to count."""
    query = query_of(RangeItem("size", 1, 9), ("shirt",), profile, hits=3)
    query = replace(query, groupings=layout_of(parse_grouping(FACETS)[0], 0).requests)
    view, served, calls = node.node.reader.view(), ServedSchemas(), count()

    def counted(bound: Any) -> Any:
        next(calls)
        return match(bound)

    monkeypatch.setattr("paperwasp.search.search.match", counted)
    monkeypatch.setattr("paperwasp.search.phases.rank.match", counted)
    bound = BoundSearch.if_short(view, query, served)
    assert bound is not None
    expected_ns = bound.expected_ns()
    answer = bound.answer()
    assert next(calls) == 1
    whole = search(view, query, served)
    assert (answer.hits, answer.total_count, answer.coverage) == (whole.hits, whole.total_count, whole.coverage)
    assert [groups(answer), answer.groupings[1].levels[1].ids.data.tolist()] == [
        groups(whole),
        whole.groupings[1].levels[1].ids.data.tolist(),
    ]
    assert answer.total_count == 5 and groups(answer) == {"red": [2], "green": [2], "blue": [1]}
    least_ns = 2 * FACET_NS + 5 * 2 * FACET_HIT_NS + (2 + 5) * FACET_GROUP_NS
    assert least_ns < expected_ns < limits.INLINE_QUERY_NS


def test_other_groups_are_not(node: TestNode) -> None:
    query = query_of(TrueItem(), ("shirt",), "size")
    query = replace(query, groupings=layout_of(parse_grouping(BY_COLOR)[0], 0).requests)
    assert BoundSearch.if_short(node.node.reader.view(), query, ServedSchemas()) is None


def test_facets_that_there_is_no_time_to_match_are_not_counted_where_they_are_asked(
    node: TestNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(bound: Any) -> Any:
        raise OutOfTime

    monkeypatch.setattr("paperwasp.search.search.match", late)
    query = query_of(TrueItem(), ("shirt",), "size")
    query = replace(query, groupings=layout_of(parse_grouping(FACETS)[0], 0).requests)
    bound = BoundSearch.if_short(node.node.reader.view(), query, ServedSchemas())
    assert bound is not None and bound.expected_ns() == math.inf
