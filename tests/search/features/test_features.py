"""Every feature but bm25 and nativeRank, against values worked by hand.

Authority: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from paperwasp.document.types import BOOL, DOUBLE, INT, LONG, STRING, array_of
from paperwasp.schema.model import RankProfile
from paperwasp.search.features import evaluate
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import compiled, fake_block, numbers, schema_of

SCHEMA = schema_of(
    ["title", "body", "plain"],
    {"year": INT, "price": DOUBLE, "sold": BOOL, "genre": STRING, "time": LONG},
    arrays={"sizes": array_of(INT), "tags": array_of(STRING)},
)
DOCUMENTS: list[dict[str, object]] = [
    {"title": "to be or not to be", "body": "a question", "year": 1603, "sizes": [4, 5], "tags": ["a", "b", "c"]},
    {"title": "the best", "body": "", "price": 2.5, "sold": 1, "sizes": [7], "tags": []},
]
TERMS = [
    ("to", RankTerm(("title", "body"), weight=150, significance=0.7)),
    ("be", RankTerm(("title",), connectivity=0.4)),
    ("best", RankTerm(("title",))),
    ("not to", RankTerm(("title",), phrase_length=2)),
]


def values(*names: str, second_phase: str | None = None) -> dict[str, list[float]]:
    """name → values of features, for the two documents."""
    profile = RankProfile("p", first_phase="0", second_phase=second_phase, match_features=names)
    relevance = {"firstPhase": [10, 20], "secondPhase": [1, 2], "relevance": [3, 4]}
    block = fake_block(DOCUMENTS, TERMS, {"boost": 3.0}, relevance=relevance)
    found = numbers(compiled(SCHEMA, profile).match_features, block)
    return {name: column.tolist() for name, column in found.items()}


CASES = {
    "attribute(year)": [1603, math.nan],
    "attribute(price).value": [math.nan, 2.5],
    "attribute(sold)": [0, 1],  # a bool is false when unset
    "attribute(year).count": [1, 1],
    "attribute(genre).count": [1, 1],
    "attribute(sizes,1)": [5, 0],
    "attribute(sizes, 0)": [4, 7],
    "attribute(sizes)": [0, 0],
    "attribute(tags).count": [3, 0],
    "attribute(year,3)": [1603, math.nan],
    "query(boost)": [3, 3],
    "query(absent)": [0, 0],
    "queryTermCount": [4, 4],
    "term(0).significance": [0.7, 0.7],
    "term(0).weight": [150, 150],
    "term(1).connectedness": [0.4, 0.4],
    "term(1)": [0.4, 0.4],
    "term(2).connectedness": [0.1, 0.1],
    "term(9).weight": [0, 0],
    "fieldLength(title)": [6, 2],
    "fieldLength(body)": [1_000_000, 1_000_000],  # no term matched there
    "averageFieldLength(title)": [4, 4],
    "matches(title)": [1, 1],
    "matches(body)": [0, 0],
    "matches(title,0)": [1, 0],
    "matches(title,2)": [0, 1],
    "matches(title,9)": [0, 0],
    "matchCount(title)": [3, 1],
    "matchCount(body)": [0, 0],
    "fieldTermMatch(title,0).firstPosition": [0, 1_000_000],
    "fieldTermMatch(title,0)": [0, 1_000_000],
    "fieldTermMatch(title,1).lastPosition": [5, 1_000_000],
    "fieldTermMatch(title,1).occurrences": [2, 0],
    "fieldTermMatch(body,1).occurrences": [0, 0],
    "fieldTermMatch(body,1).firstPosition": [1_000_000, 1_000_000],
    "termDistance(title,0,1).forward": [1, 1_000_000],  # to be: 0 1, 4 5
    "termDistance(title,0,1).forwardTermPosition": [0, 1_000_000],
    "termDistance(title,0,1).reverse": [3, 1_000_000],  # be at 1, to at 4
    "termDistance(title,0,1).reverseTermPosition": [1, 1_000_000],
    "termDistance(title,3,1).forward": [1, 1_000_000],  # from the end of the phrase "not to", 4, to 5
    "termDistance(title,3,1).forwardTermPosition": [3, 1_000_000],
    "termDistance(body,0,1).forward": [1_000_000, 1_000_000],
    "firstPhase": [10, 20],
    "secondPhase": [0, 0],  # there is no second phase
    "relevanceScore": [3, 4],
    "value(2.5)": [2.5, 2.5],
}


@pytest.mark.parametrize("name", CASES)
def test_features(name: str) -> None:
    [(shown, actual)] = values(name).items()
    assert shown == name.replace(" ", "")
    np.testing.assert_array_equal(actual, CASES[name])


def test_scores_of_a_second_phase() -> None:
    found = values("secondPhase", "relevanceScore", second_phase="firstPhase * 2")
    assert found == {"secondPhase": [1, 2], "relevanceScore": [3, 4]}


def test_freshness() -> None:
    # Now is a day of 86,400 seconds after the first document's time, and before the second's.
    day = 86_400
    documents = [{"time": 1000 * day}, {"time": 1002 * day}]
    profile = RankProfile("p", match_features=("age(time)", "freshness(time)", "freshness(time).logscale", "now"))
    block = fake_block(documents, now_seconds=1001 * day + 0.75)
    found = numbers(compiled(SCHEMA, profile).match_features, block)
    assert found["now"].tolist() == [1001 * day, 1001 * day]
    assert found["age(time)"].tolist() == [day, 0]
    assert found["freshness(time)"].tolist() == [1 - 1 / 90, 1]
    scale = (7 * day) ** 2 / (90 * day - 2 * 7 * day)
    highest = math.log(90 * day + scale)
    logscale = (highest - math.log(day + scale)) / (highest - math.log(scale))
    assert found["freshness(time).logscale"] == pytest.approx([logscale, 1], rel=1e-13)


def test_freshness_is_set_by_rank_properties_and_is_half_where_it_says() -> None:
    properties = {"freshness(time).maxAge": ("1000",), "freshness(time).halfResponse": ("100",)}
    profile = RankProfile(
        "p", match_features=("freshness(time)", "freshness(time).logscale"), rank_properties=properties
    )
    block = fake_block([{"time": 900}, {"time": 0}, {}], now_seconds=1000)
    found = numbers(compiled(SCHEMA, profile).match_features, block)
    assert found["freshness(time)"] == pytest.approx([0.9, 0, 0])
    assert found["freshness(time).logscale"] == pytest.approx([0.5, 0, 0])


def test_bm25_without_enable_bm25_counts_a_match_as_one_occurrence_in_a_field_of_average_length() -> None:
    profile = RankProfile("p", first_phase="bm25(plain)")
    programs = compiled(SCHEMA, profile)
    block = fake_block([{"plain": "x x x"}, {"plain": "y"}], [("x", RankTerm(("plain",)))])
    scores = evaluate(programs.first_phase, block)
    assert scores.tolist() == pytest.approx([math.log(1 + 1.5 / 1.5) * 2.2 / (1 + 1.2), 0])
    assert programs.bm25_sum is None, "an index that keeps no frequencies cannot be pruned by"


def test_a_block_without_hits() -> None:
    profile = RankProfile("p", match_features=tuple(CASES))
    block = fake_block([], TERMS, relevance={"firstPhase": [], "secondPhase": [], "relevance": []})
    found = numbers(compiled(SCHEMA, profile).match_features, block)
    assert {len(column) for column in found.values()} == {0}


def test_a_feature_of_several_programs_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = RankProfile("p", first_phase="matchCount(title) + 1", match_features=("matchCount(title)",))
    programs = compiled(SCHEMA, profile)
    block = fake_block(DOCUMENTS, TERMS)
    assert evaluate(programs.first_phase, block).tolist() == [4, 2]
    monkeypatch.setattr(Block, "matched", None)
    assert numbers(programs.match_features, block)["matchCount(title)"].tolist() == [3, 1]
