"""What is searched of too many documents: match-phase, diversity, timeouts; and what a trace tells of a plan.

Authority: https://docs.vespa.ai/en/reference/schemas/schemas.html#match-phase (and #diversity),
https://docs.vespa.ai/en/querying/result-diversity.html, https://docs.vespa.ai/en/performance/graceful-degradation.html
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.core.clock import OutOfTime
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.errors import InvalidQuery, Timeout, TooLarge
from paperwasp.ranking import Program
from paperwasp.schema import parse_schemas
from paperwasp.search.features.block import Block
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.patterns import RegexItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.phases.match_phase import Diversifier
from paperwasp.search.phases.scoring import scores_of
from paperwasp.search.query import (
    DiversityOverride,
    MatchPhaseOverride,
    RankingOverride,
    SearchResponse,
    SortKey,
)
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

SHOP = """
schema shop {
  document shop {
    field title type string { indexing: index | summary
      index: enable-bm25 }
    field popularity type int { indexing: attribute
      attribute: fast-search }
    field score type int { indexing: attribute | summary }
    field domain type string { indexing: attribute }
    field names type array<string> { indexing: attribute }
  }
  rank-profile score { first-phase { expression: attribute(score) } }
  rank-profile limited inherits score {
    match-phase { attribute: popularity
      max-hits: 100
      max-filter-coverage: 1.0 } }
  rank-profile carefully inherits limited {
    match-phase { attribute: popularity
      order: ascending
      max-hits: 100 } }
  rank-profile diverse inherits score {
    second-phase { expression: attribute(score) + 1000
      rerank-count: 6 }
    diversity { attribute: domain
      min-groups: 3 } }
  rank-profile both inherits limited {
    diversity { attribute: domain
      min-groups: 50 } }
  rank-profile again inherits score {
    second-phase { expression: -attribute(score)
      rerank-count: 100 } }
  rank-profile global inherits score {
    global-phase { expression: 100 + attribute(score) } }
  rank-profile words { first-phase { expression: bm25(title) } }
}
"""
SCHEMAS = parse_schemas({"schemas/shop.sd": SHOP}).schemas


@contextmanager
def node_with(documents: list[dict[str, object]]) -> Iterator[TestNode]:
    puts = [Put(DocumentId("n", "shop", str(n)), fields) for n, fields in enumerate(documents)]
    with TemporaryDirectory() as directory, started(Path(directory), dict(SCHEMAS)) as node:
        node.apply(*puts)
        yield node


def ask(
    node: TestNode, tree: Item | None = None, profile: str = "score", env: Environment = SYSTEM, **parameters: object
) -> SearchResponse:
    parameters.setdefault("hits", 400)
    request = query_of(tree or TrueItem(), rank_profile=profile, **parameters)  # type: ignore[arg-type]
    return search(node.node.reader.view(), request, ServedSchemas(), env)


def numbers(response: SearchResponse) -> list[int]:
    return [int(hit.document_id.rsplit(":", 1)[1]) for hit in response.hits]


def shop(number: int) -> list[dict[str, object]]:
    """The popularity of document n is n, its score falls; every second is even."""
    return [
        {"title": "even thing" if n % 2 == 0 else "odd thing", "popularity": n, "score": -n, "domain": f"d{n % 4}"}
        for n in range(number)
    ]


@pytest.fixture(scope="module")
def thousand() -> Iterator[TestNode]:
    with node_with(shop(1000)) as node:
        yield node


def test_too_many_matches_are_limited_to_the_best(thousand: TestNode) -> None:
    """1000 match, 100 are wanted: 128 documents are looked at, since there are never fewer."""
    answer = ask(thousand, profile="limited")
    assert sorted(numbers(answer)) == list(range(872, 1000))
    assert (answer.total_count, answer.covered_documents) == (128, 128)
    assert answer.degraded == {"match-phase"} and answer.coverage == 0.128


def test_as_many_documents_are_looked_at_as_give_the_hits(thousand: TestNode) -> None:
    """Half of the documents match: 200 have 100 hits."""
    answer = ask(thousand, WordItem("title", "even"), "limited")
    assert numbers(answer) == list(range(800, 1000, 2))
    assert (answer.total_count, answer.covered_documents) == (100, 200)


def test_few_matches_are_not_limited(thousand: TestNode) -> None:
    """Not up to 128 matches; nor where more documents would be looked at than max-filter-coverage allows (0.2)."""
    few = ask(thousand, RangeItem("popularity", 0, 127), "limited")
    assert few.total_count == 128 and not few.degraded and few.coverage == 1
    assert ask(thousand, WordItem("title", "even"), "carefully").total_count == 500
    all_ = ask(thousand, profile="carefully")
    assert sorted(numbers(all_)) == list(range(128))


def test_a_range_of_the_query_bounds_what_is_looked_at(thousand: TestNode) -> None:
    answer = ask(thousand, AndItem((RangeItem("popularity", 200, 699), WordItem("title", "thing"))), "limited")
    assert sorted(numbers(answer)) == list(range(500, 700))


def test_the_query_overrides(thousand: TestNode) -> None:
    override = MatchPhaseOverride("score", True, 300, 1.0)
    answer = ask(thousand, profile="score", match_phase=override)
    assert sorted(numbers(answer)) == list(range(700, 1000))
    assert ask(thousand, profile="limited", match_phase=MatchPhaseOverride(max_hits=0)).total_count == 1000
    assert sorted(numbers(ask(thousand, profile="limited", match_phase=MatchPhaseOverride(ascending=True))))[-1] == 127
    assert ask(thousand, profile="limited", match_phase=MatchPhaseOverride(max_filter_coverage=0.1)).total_count == 1000
    for name in ("domain", "title", "nothing", "names"):
        with pytest.raises(InvalidQuery, match=f"Cannot limit matching by '{name}'"):
            ask(thousand, match_phase=MatchPhaseOverride(name, max_hits=1))


def test_sorting_is_limited_too(thousand: TestNode) -> None:
    answer = ask(thousand, profile="limited", order_by=(SortKey("score", True),), hits=2)
    assert numbers(answer) == [872, 873] and answer.degraded == {"match-phase"}


def test_diversity_within_match_phase() -> None:
    """250 documents are wanted in 50 groups: at most 5 of each. d1..d99 have one each, d0 has all the rest."""
    documents = shop(1000)
    for n, fields in enumerate(documents):
        fields["domain"] = f"d{n}" if 0 < n < 100 else "d0"
    with node_with(documents) as node:
        answer = ask(node, profile="both", match_phase=MatchPhaseOverride(max_hits=250))
        assert sorted(numbers(answer)) == list(range(1, 100)) + list(range(995, 1000))
        more = ask(
            node,
            profile="both",
            match_phase=MatchPhaseOverride(max_hits=250, diversity=DiversityOverride(min_groups=1)),
        )
        assert sorted(numbers(more)) == list(range(750, 1000))


def naive_chosen(groups: list[int], most: int, most_of_group: int, cutoff: int, strict: bool) -> list[bool]:
    """One after the other, as Vespa's filter does."""
    seen: dict[int, int] = {}
    chosen: list[bool] = []
    for group in groups:
        taken = False
        if sum(chosen) < most:
            if len(seen) < cutoff:
                taken = seen.setdefault(group, 0) < most_of_group
                seen[group] += taken
            elif not strict or group not in seen:
                taken = True
            else:
                taken = seen[group] < most_of_group
                seen[group] += taken
        chosen.append(taken)
    return chosen


def test_what_is_chosen_beside_one_after_the_other() -> None:
    seed = 20265
    random_ = random.Random(seed)
    for _ in range(300):
        length, groups = random_.randint(0, 60), random_.randint(1, 8)
        values = np.array([random_.randrange(groups) for _ in range(length)], np.int64)
        most, least, cutoff = random_.randint(1, 30), random_.randint(1, 10), random_.randint(1, 9)
        strict = random_.random() < 0.5
        diversifier = Diversifier(None, least, 10.0, strict)  # type: ignore[arg-type]
        chosen = diversifier.chosen_of(values, most, cutoff)
        expected = naive_chosen(values.tolist(), most, max(1, most // least), cutoff, strict)
        assert chosen.tolist() == expected, (seed, values.tolist(), most, least, cutoff, strict)


def test_diversity_before_the_second_phase() -> None:
    """The best six have domains a a a a b c: two of a, b and c are ranked anew, the others follow below them."""
    domains = ["a", "a", "a", "a", "b", "c", "d"]
    documents: list[dict[str, object]] = [{"score": 10 - n, "domain": d} for n, d in enumerate(domains)]
    with node_with(documents) as node:
        answer = ask(node, profile="diverse")
        assert numbers(answer) == [0, 1, 4, 5, 2, 3, 6]
        assert [hit.relevance for hit in answer.hits[:4]] == [1010, 1009, 1006, 1005]
        assert all(hit.relevance <= 1005 for hit in answer.hits[4:])
        other = MatchPhaseOverride(diversity=DiversityOverride(attribute="score"))
        assert numbers(ask(node, profile="diverse", match_phase=other)) == [0, 1, 2, 3, 4, 5, 6]
        with pytest.raises(InvalidQuery, match="Cannot diversify by 'names'"):
            ask(node, profile="diverse", match_phase=MatchPhaseOverride(diversity=DiversityOverride("names")))
        with pytest.raises(InvalidQuery, match="Unknown cutoff strategy"):
            wrong = DiversityOverride(cutoff_strategy="hard")
            ask(node, profile="diverse", match_phase=MatchPhaseOverride(diversity=wrong))


def test_what_a_query_says_instead_of_its_profile() -> None:
    with node_with([{"score": n} for n in range(10)]) as node:
        dropped = ask(node, ranking=RankingOverride(rank_score_drop_limit=6.0))
        assert sorted(numbers(dropped)) == [7, 8, 9] and dropped.total_count == 3
        reranked = ask(node, profile="diverse", ranking=RankingOverride(rerank_count=2))
        assert [hit.relevance >= 1000 for hit in reranked.hits].count(True) == 1  # one of the one group
        cut = ask(node, profile="diverse", ranking=RankingOverride(second_phase_rank_score_drop_limit=1007.0))
        assert sorted(numbers(cut)) == [8, 9] and cut.total_count == 2


def stepping() -> Environment:
    """A clock on which a millisecond passes each time that it is asked."""
    ticks = count(1_000_000, 1_000_000)
    return Environment(monotonic_ns=lambda: next(ticks))


def test_soft_timeout_gives_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.search.phases.scoring.BLOCK_LIDS", 10)
    with node_with([{"score": n} for n in range(200)]) as node:
        clock = stepping()
        answer = ask(node, env=clock, deadline_ns=clock.monotonic_ns() + 10_000_000)
        assert answer.degraded == {"timeout"} and answer.timed_out
        assert 0 < len(answer.hits) < 200 and answer.total_count == len(answer.hits)
        assert answer.coverage == len(answer.hits) / 200
        longer = ask(node, env=clock, deadline_ns=clock.monotonic_ns() + 10_000_000, soft_timeout_factor=1.0)
        assert len(longer.hits) > len(answer.hits)
        with pytest.raises(Timeout):
            ask(node, env=clock, deadline_ns=clock.monotonic_ns() + 10_000_000, soft_timeout=False)
        with pytest.raises(Timeout, match="no time was left"):
            ask(node, env=clock, deadline_ns=clock.monotonic_ns())


def test_what_was_scored_of_a_block_before_the_time_was_over_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensors of more than four hits are too large together, so parts are scored; the time is over in the third."""
    parts = []

    def evaluate(program: Program, block: Block) -> NDArray[np.float64]:
        if block.hits > 4:
            raise TooLarge("too many")
        parts.append(block.hits)
        if len(parts) > 2:
            raise OutOfTime
        return block.lids.astype(np.float64)

    monkeypatch.setattr("paperwasp.search.phases.scoring.evaluate", evaluate)
    with node_with([{"score": n} for n in range(16)]) as node:
        answer = ask(node)
        assert [hit.relevance for hit in answer.hits] == list(range(7, -1, -1)) and parts == [4, 4, 4]
        assert (answer.total_count, answer.degraded, answer.coverage) == (8, frozenset({"timeout"}), 0.5)
        parts[:] = [4, 4]
        assert ask(node).hits == ()


def test_the_second_phase_ends_between_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it ends: all hits as the second phase ranks them, or those that there are as the first one did."""
    monkeypatch.setattr("paperwasp.search.phases.scoring.BLOCK_LIDS", 10)
    ranked: list[int] = []

    def scored(block: Block, program: Program) -> NDArray[np.float64]:
        ranked.append(block.hits)
        return scores_of(block, program)

    monkeypatch.setattr("paperwasp.search.phases.later_phases.scores_of", scored)
    begun = set()
    with node_with([{"score": n} for n in range(100)]) as node:
        for milliseconds in range(2, 90):
            clock = stepping()
            ranked.clear()
            answer = ask(node, profile="again", env=clock, deadline_ns=clock.monotonic_ns() + milliseconds * 1_000_000)
            begun.add(sum(ranked))
            scores = [int(hit.relevance) for hit in answer.hits]
            if answer.degraded:
                assert answer.timed_out and scores == sorted(scores, reverse=True) and all(n >= 0 for n in scores)
            else:
                assert scores == [-n for n in range(100)] and ranked == [10] * 10
    assert begun == set(range(0, 101, 10))


def test_a_global_phase_ranks_what_a_soft_timeout_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the time is over, each of the hits that it may rank has what it needs, or there is no answer."""
    monkeypatch.setattr("paperwasp.search.phases.scoring.BLOCK_LIDS", 10)
    degraded, lengths = set(), set()
    with node_with([{"score": n} for n in range(100)]) as node:
        for milliseconds in range(1, 30):
            clock = stepping()
            deadline = clock.monotonic_ns() + milliseconds * 1_000_000
            try:
                answer = ask(node, profile="global", env=clock, deadline_ns=deadline, global_hits=5)
            except Timeout:
                degraded.add("no answer")
                continue
            degraded.update(answer.degraded or {"whole"})
            lengths.add(len(answer.hits))
            known = [hit.global_inputs for hit in answer.hits]
            assert all(found is not None for found in known[:5]) and not any(known[5:])
            assert [found and found[0] for found in known[:5]] == [hit.relevance for hit in answer.hits[:5]]
            with pytest.raises(Timeout):
                ask(node, profile="global", env=stepping(), deadline_ns=3_000_000, soft_timeout=False, global_hits=5)
    assert degraded == {"no answer", "timeout", "whole"} and {10, 20, 100} <= lengths


def test_matching_ends_when_the_time_is_over() -> None:
    """Each word of the query looks at the clock."""
    words = AndItem(tuple(WordItem("title", "thing") for _ in range(20)))
    with node_with(shop(10)) as node:
        clock = stepping()
        answer = ask(
            node,
            OrItem((words, RangeItem("score", None, None))),
            env=clock,
            deadline_ns=clock.monotonic_ns() + 8_000_000,
        )
        assert answer.degraded == {"timeout"} and answer.coverage == 0 and answer.hits == ()


def test_planning_telling_and_writing_end_when_the_time_is_over() -> None:
    """Whenever it is over, the answer is a part of the hits or that there was no time, never a failure."""
    words = OrItem(tuple(WordItem("title", "thing") for _ in range(20)))
    near = NearItem((WordItem("title", "thing"), WordItem("title", "thing")), 3)
    outcomes: set[object] = set()
    with node_with(shop(10)) as node:
        for milliseconds in range(1, 600, 3):
            clock = stepping()
            deadline = clock.monotonic_ns() + milliseconds * 1_000_000
            try:
                answer = ask(
                    node, AndItem((words, near)), env=clock, deadline_ns=deadline, explain_level=2, trace_level=9
                )
                outcomes.add(answer.degraded)
            except Timeout:
                outcomes.add(Timeout)
    assert {frozenset(), frozenset({"timeout"})} <= outcomes


def test_a_trace_tells_what_finds_or_scores_less_than_may_be_meant(thousand: TestNode) -> None:
    """Vespa: YqlParser.java warns of `matches` in an index."""

    def warnings(tree: Item, profile: str) -> list[str]:
        trace: Any = ask(thousand, tree, profile, trace_level=1).trace
        return [each["message"] for each in trace[0]["traces"] if each.get("tag") == "warning"]

    assert warnings(WordItem("title", "thing"), "words") == []
    assert warnings(WordItem("domain", "a"), "words") == [
        "bm25(title) is 0 in all hits: no term of the query searches field title"
    ]
    assert warnings(RegexItem("title", "th.*"), "score") == [
        "matches takes the expression for a word of field title, which has an index"
    ]
    assert warnings(RegexItem("domain", "a.*"), "score") == []


def test_a_trace_tells_the_plan(thousand: TestNode) -> None:
    tree = AndItem((WordItem("title", "thing"), NotItem((RangeItem("popularity", 0, 99), WordItem("title", "odd")))))
    assert ask(thousand, tree).trace is None
    short = ask(thousand, tree, trace_level=1).trace
    assert short is not None and "query_execution_plan" not in str(short)
    trace = ask(thousand, tree, trace_level=1, explain_level=2).trace
    assert trace == orjson.loads(orjson.dumps(trace))
    assert trace is not None
    told: Any = trace[0]
    assert len(trace) == 1
    assert set(told) == {"start_time", "distribution-key", "document-type", "duration_ms", "traces"}
    tags = {each["tag"]: each for each in told["traces"] if "tag" in each}
    assert tags["query_setup"]["document_type"] == "shop" and tags["query_setup"]["documents"] == 1000
    plan = tags["query_execution_plan"]["optimized"]
    assert plan["operator"] == "and" and plan["hits"] == 50 and plan["time_us"] >= 0
    word, rest = plan["children"]
    assert (word["operator"], word["hits"], word["order"]) == ("contains", 1000, 1)
    assert (rest["operator"], rest["hits"], rest["order"]) == ("andNot", 50, 0)
    assert word["fields"] == [{"field": "title", "by": "index"}]
    assert tags["matching"]["matches"] == 50 and tags["first_phase"]["scored"] == 50
    pruned = ask(
        thousand, OrItem((WordItem("title", "odd"), WordItem("title", "even"))), "words", trace_level=1, hits=5
    )
    assert pruned.trace is not None
    (top_k,) = (each for each in pruned.trace[0]["traces"] if each.get("tag") == "top_k")  # type: ignore[index]
    assert top_k["lists"] == 2 and top_k["found"] == 1000 and top_k["threshold"] > 0


def test_and_runs_first_what_matches_least(thousand: TestNode) -> None:
    ranked = RankItem((WordItem("title", "thing"), WordItem("title", "odd")))
    trace = ask(thousand, AndItem((ranked, RangeItem("popularity", 5, 9), TrueItem())), trace_level=6).trace
    (plan,) = (each["optimized"] for each in trace[0]["traces"] if each.get("tag") == "query_execution_plan")  # type: ignore[index]
    assert [child["order"] for child in plan["children"]] == [1, 0, 2] and plan["hits"] == 5
    assert "order" not in plan["children"][0]["children"][1], "what only ranks is not run"


def test_queries_beside_feeding_see_whole_batches() -> None:
    """Sixteen documents are replaced again and again: a query sees each once."""
    documents: list[dict[str, object]] = [{"title": "round", "popularity": 0, "score": n} for n in range(16)]
    torn: list[object] = []
    with node_with(documents) as node:
        done = False

        def read() -> None:
            while not done:
                answer = ask(node, WordItem("title", "round"), order_by=(SortKey("score"),), prefetch=("popularity",))
                seen = {(hit.attributes or {}).get("popularity") for hit in answer.hits}
                if len(answer.hits) != 16 or answer.total_count != 16 or len(seen) > 2:
                    torn.append((len(answer.hits), answer.total_count, seen))

        readers = [Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for round_ in range(1, 60):
            puts = [
                Put(DocumentId("n", "shop", str(n)), {**fields, "popularity": round_})
                for n, fields in enumerate(documents)
            ]
            node.apply(*puts)
        done = True
        for reader in readers:
            reader.join()
    assert torn == []
