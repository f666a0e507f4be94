"""nativeRank and its parts by their kernel: the hits and their scores are those of the features, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put, Remove
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.features import native_query
from paperwasp.search.phases import scored_blocks
from paperwasp.search.query_resources import Helpers
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.phases.test_scored_blocks import Pool
from tests.search.queries import query_of

SCHEMA = """
schema s {
  document s {
    field title type string { indexing: index
      stemming: none }
    field body type string { indexing: index
      stemming: none }
    field lines type array<string> { indexing: index
      stemming: none }
    field tags type weightedset<string> { indexing: attribute }
  }
  fieldset default { fields: title, body }
  fieldset all { fields: title, body, lines }
  rank-profile title_only { first-phase { expression: nativeRank(title) } }
  rank-profile within { first-phase { expression: 2 * nativeRank + 0 * nativeFieldMatch(body) } }
  rank-profile match { first-phase { expression: nativeFieldMatch } }
  rank-profile near { first-phase { expression: nativeProximity } }
  rank-profile near_words { first-phase { expression: nativeProximity(title,body) } }
  rank-profile parts { first-phase { expression: nativeFieldMatch(body) - 3 * nativeProximity(title) } }
  rank-profile dropping {
    first-phase { expression: nativeRank
      rank-score-drop-limit: 0.2 }
  }
  rank-profile tuned {
    first-phase { expression: nativeRank }
    rank-properties {
      "nativeRank.fieldMatchWeight" : "30"
      "nativeRank.proximityWeight" : "55"
      "nativeFieldMatch.firstOccurrenceTable.title" : "linear(-3,40)"
      "nativeFieldMatch.averageFieldLength.body" : "9"
      "nativeProximity.slidingWindowSize" : "2"
      "nativeProximity.proximityImportance.title" : "0.9"
    }
    rank-type title: identity
    weight body: 40
  }
  rank-profile filtering inherits default { filter-threshold: 0.4 }
}
"""
WORDS = "abcdefg"
DOCUMENTS = 1500
PARTS = ("match", "near", "near_words")
WORDS_OR_PHRASE = parse_yql("select * from s where default contains 'a' or body contains phrase('b', 'c')").tree
PROFILES = ("default", "title_only", "within", "dropping", "tuned", "filtering", "parts", *PARTS)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    chance = random.Random(SEED)
    schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas

    def text(most: int) -> str:
        return " ".join(chance.choices(WORDS, [9, 7, 5, 4, 3, 2, 1], k=chance.randint(0, most)))

    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        node.node.configure(1, schemas, {}, 0)
        puts = []
        for number in range(DOCUMENTS):
            fields: dict[str, object] = {"title": text(6), "body": text(40)}
            if chance.random() < 0.3:
                fields["lines"] = [text(5) for _ in range(chance.randint(1, 3))]
            fields["tags"] = {word: chance.randint(1, 90) for word in chance.sample(WORDS, 2)}
            name = DocumentId.parse(f"id:n:s::{number}")
            puts.append(Put(name, read_fields(schemas["s"].document, fields)))
        node.apply(*puts[:900])
        node.apply(*puts[900:])
        node.apply(*(Remove(put.id) for put in chance.sample(puts, 100)))
        yield node


def condition(chance: random.Random) -> str:
    index = chance.choice(("default", "default", "title", "body", "all", "lines"))
    one, other, third = chance.sample(WORDS, 3)
    weight = chance.choice(("", "{weight: 250}", "{weight: 0}", "{significance: 0.9}", "{usePositionData: false}"))
    word = f"{index} contains ({weight}'{one}')"
    parts = [
        word,
        f"{index} contains '{other}'",
        f"default contains '{third}'",
        chance.choice(
            (
                f"body contains phrase('{one}', '{third}')",
                f"title contains equiv('{one}', '{other}')",
                f"(title contains '{other}' and body contains '{third}')",
                f"tags contains '{one}'",
                f"default contains '{chance.choice(WORDS)}'",
            )
        ),
    ][: chance.randint(1, 4)]
    chance.shuffle(parts)
    return chance.choice((" and ", " or ", " or ")).join(parts)


@pytest.mark.parametrize("profile", PROFILES)
def test_hits_are_those_of_the_features(node: TestNode, profile: str) -> None:
    chance = random.Random(f"{SEED} {profile}")
    for _ in range(25):
        where = condition(chance)
        tree = parse_yql(f"select * from s where {where}").tree
        request = query_of(tree, ("s",), profile, hits=chance.choice((1, 7, 40, DOCUMENTS)))
        found = search(node.node.reader.view(), request, ServedSchemas())
        with patch.object(native_query, "word_lists", return_value=None):
            whole = search(node.node.reader.view(), request, ServedSchemas())
        assert found.total_count == whole.total_count, where
        assert [(hit.document_id, hit.relevance) for hit in found.hits] == [
            (hit.document_id, hit.relevance) for hit in whole.hits
        ], where


@pytest.mark.parametrize("profile", ["default", "match"])
def test_the_best_of_parts_are_those_of_all(node: TestNode, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 1)
    chance, pool = random.Random(f"{SEED} parts {profile}"), Pool()
    for _ in range(25):
        tree = parse_yql(f"select * from s where {condition(chance)}").tree
        request = query_of(tree, ("s",), profile, hits=chance.choice((1, 7, 40)))
        one, several = (
            search(node.node.reader.view(), request, served)
            for served in (ServedSchemas(), ServedSchemas(Helpers(pool)))
        )
        assert (one.total_count, one.coverage) == (several.total_count, several.coverage), request
        assert [(hit.document_id, hit.relevance) for hit in one.hits] == [
            (hit.document_id, hit.relevance) for hit in several.hits
        ], request
    assert pool.offered > 25


def test_what_parts_had_no_time_for_is_not_searched(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part without time gives nothing, and the answer has what the others found; without any there is none."""
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 1)
    request = query_of(WORDS_OR_PHRASE, ("s",), "default", hits=3)
    best, late = _core.best_native, list[int]()

    def second_is_late(*asked: Any) -> Any:
        late.append(asked[-2])
        if len(late) == 2:
            raise OutOfTime
        return best(*asked)

    with patch.object(_core, "best_native", second_is_late):
        found = search(node.node.reader.view(), request, ServedSchemas(Helpers(Pool())))
    assert len(late) > 2
    assert found.degraded == {"timeout"}
    assert 0 < found.coverage < 1
    with patch.object(_core, "best_native", side_effect=OutOfTime):
        none = search(node.node.reader.view(), request, ServedSchemas(Helpers(Pool())))
    assert (none.coverage, none.hits) == (0, ())


@pytest.mark.parametrize("profile", ["default", "title_only", "match"])
def test_the_best_are_found_by_a_kernel(node: TestNode, profile: str) -> None:
    """So that the tests above compare two things."""
    with (
        patch.object(_core, "best_native", wraps=_core.best_native) as best,
        patch.object(_core, "native_scores", wraps=_core.native_scores) as scores,
    ):
        search(node.node.reader.view(), query_of(WORDS_OR_PHRASE, ("s",), profile, hits=3), ServedSchemas())
    assert best.call_count == 1
    assert not scores.called


@pytest.mark.parametrize("profile", PARTS)
def test_the_kernel_runs_where_it_can(node: TestNode, profile: str) -> None:
    with (
        patch.object(_core, "best_native", return_value=None),
        patch.object(_core, "native_scores") as kernel,
    ):
        search(node.node.reader.view(), query_of(WORDS_OR_PHRASE, ("s",), profile, hits=3), ServedSchemas())
    assert kernel.call_count > 1
    floors = [call.args[-2] for call in kernel.call_args_list]
    assert floors[0] == float("-inf")


def test_scores_of_blocks_are_those_of_the_features(node: TestNode) -> None:
    """Where the best are not found by a kernel: the scores of all hits are, block by block."""
    chance = random.Random(f"{SEED} blocks")
    for _ in range(25):
        where = condition(chance)
        request = query_of(parse_yql(f"select * from s where {where}").tree, ("s",), "default", hits=7)
        with patch.object(_core, "best_native", return_value=None):
            found = search(node.node.reader.view(), request, ServedSchemas())
        with patch.object(native_query, "word_lists", return_value=None):
            whole = search(node.node.reader.view(), request, ServedSchemas())
        assert [(hit.document_id, hit.relevance) for hit in found.hits] == [
            (hit.document_id, hit.relevance) for hit in whole.hits
        ], where
