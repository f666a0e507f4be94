"""nativeRank and its parts against the tables of the reference, worked here on their own.

Authority: https://docs.vespa.ai/en/reference/ranking/nativerank.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from paperwasp.document.types import INT, STRING, array_of
from paperwasp.errors import LanguageError
from paperwasp.schema.model import RankProfile
from paperwasp.search.features import evaluate
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import compiled, fake_block, schema_of


def first(x: int) -> float:
    """expdecay(8000,12.50), of at most 256 values."""
    return 8000 * math.exp(-min(x, 255) / 12.5)


def count(x: int) -> float:
    """loggrowth(1500,4000,19)"""
    return 1500 * math.log(1 + min(x, 255) / 19) + 4000


def forward(distance: int) -> float:
    return 500 * math.exp(-min(distance - 1, 255) / 3)


def reverse(distance: int) -> float:
    return 400 * math.exp(-min(distance - 1, 255) / 3)


FIELD_MATCH_MAX = 0.5 * 8000 + 0.5 * count(255)
PROXIMITY_MAX = 0.5 * 500 + 0.5 * 400
NEVER = 1_000_000

SCHEMA = schema_of(["title", "body"], {"year": INT, "genre": STRING}, arrays={"tags": array_of(STRING)})


def scores(
    expression: str,
    block: Block,
    rank_properties: Mapping[str, str] | None = None,
    field_weights: Mapping[str, int] | None = None,
    filter_fields: frozenset[str] = frozenset(),
) -> list[float]:
    properties = {key: (value,) for key, value in (rank_properties or {}).items()}
    profile = RankProfile(
        "p",
        first_phase=expression,
        rank_properties=properties,
        field_weights=field_weights or {},
        filter_fields=filter_fields,
    )
    block.known.clear()  # of another profile
    found: list[float] = evaluate(compiled(SCHEMA, profile).first_phase, block).tolist()
    return found


def title(word: str, connectivity: float = 0.1) -> tuple[str, RankTerm]:
    return word, RankTerm(("title",), connectivity=connectivity)


def test_field_match_of_one_term() -> None:
    # "red" at 0, twice in 3 words, which count as 6: first boost at 0·255/5 = 0, count boost at 2·255/6 = 85.
    # In the second text it is at 4, once in 10 words: at 4·255/9 = 113, and at 1·255/10 = 25.
    block = fake_block(
        [{"title": "red red fish"}, {"title": "a b c d red e f g h i"}, {"title": "blue"}], [title("red")]
    )
    expected = [
        (0.5 * first(0) + 0.5 * count(85)) / FIELD_MATCH_MAX,
        (0.5 * first(113) + 0.5 * count(25)) / FIELD_MATCH_MAX,
        0.0,
    ]
    assert scores("nativeFieldMatch", block) == pytest.approx(expected, rel=1e-13)
    assert scores("nativeFieldMatch(title)", block) == pytest.approx(expected, rel=1e-13)
    assert scores("nativeFieldMatch(body)", block) == [0, 0, 0]


def test_field_match_weighs_terms_and_fields() -> None:
    # Term "red" (significance 0.8, weight 200) searches title (weight 300) and body (100); "fish" (0.5, 100) the title.
    # Only title has both words: red at 0, fish at 1 → 1·255/5 = 51; each once of 6 → 42.
    block = fake_block(
        [{"title": "red fish", "body": "nothing"}],
        [
            ("red", RankTerm(("title", "body"), weight=200, significance=0.8)),
            ("fish", RankTerm(("title",), weight=100, significance=0.5)),
        ],
    )
    red = 0.8 * 200 * 300 * (0.5 * first(0) + 0.5 * count(42)) / FIELD_MATCH_MAX
    fish = 0.5 * 100 * 300 * (0.5 * first(51) + 0.5 * count(42)) / FIELD_MATCH_MAX
    divisor = 0.8 * 200 * (300 + 100) + 0.5 * 100 * 300
    actual = scores("nativeFieldMatch", block, field_weights={"title": 300})
    assert actual == pytest.approx([(red + fish) / divisor], rel=1e-13)


def test_filters_and_fields_without_weight_do_not_count() -> None:
    block = fake_block([{"title": "red", "body": "red"}], [("red", RankTerm(("title", "body")))])
    once = [(0.5 * first(0) + 0.5 * count(42)) / FIELD_MATCH_MAX]
    assert scores("nativeFieldMatch", block, filter_fields=frozenset(["body"])) == pytest.approx(once)
    assert scores("nativeFieldMatch", block, field_weights={"title": 0}) == pytest.approx(once)


def test_proximity_of_two_terms() -> None:
    # "a" then "b": at distance 2 forward; at distance 1 in reverse; both ways; one word alone.
    block = fake_block(
        [{"title": "a x b"}, {"title": "b a"}, {"title": "a b x a"}, {"title": "a"}], [title("a"), title("b")]
    )
    expected = [
        (0.5 * forward(2) + 0.5 * reverse(NEVER)) / PROXIMITY_MAX,
        (0.5 * forward(NEVER) + 0.5 * reverse(1)) / PROXIMITY_MAX,
        (0.5 * forward(1) + 0.5 * reverse(2)) / PROXIMITY_MAX,
        (0.5 * forward(NEVER) + 0.5 * reverse(NEVER)) / PROXIMITY_MAX,
    ]
    assert scores("nativeProximity", block) == pytest.approx(expected, rel=1e-13)


def test_proximity_weighs_pairs_in_a_window() -> None:
    # Window 3 over a b c d: ab, ac, bc, bd, cd. Connectedness: b with a 0.7, c with b 0.3, d with c 0.1 (the default);
    # ac: min(0.7, 0.3)/2, bd: min(0.3, 0.1)/2. All significances 0.5, all weights 100: 100 for each pair.
    terms = [title("a"), title("b", connectivity=0.7), title("c", connectivity=0.3), title("d")]
    block = fake_block([{"title": "a b c d"}], terms)
    near, far = (0.5 * forward(d) + 0.5 * reverse(NEVER) for d in (1, 2))
    pairs = [(0.7, near), (0.15, far), (0.3, near), (0.05, far), (0.1, near)]
    expected = sum(c * boost for c, boost in pairs) / PROXIMITY_MAX / sum(c for c, _ in pairs)
    properties = {"nativeProximity.slidingWindowSize": "3"}
    assert scores("nativeProximity", block, rank_properties=properties) == pytest.approx([expected], rel=1e-13)


def test_attribute_match() -> None:
    # linear(1,0) of a match is 1, out of 255. One of two terms matches the first document.
    terms = [("7", RankTerm(("year",), weight=300)), ("rock", RankTerm(("tags",), weight=100))]
    block = fake_block([{"year": "7", "tags": []}, {"year": "8", "tags": ["rock", "pop"]}], terms)
    assert scores("nativeAttributeMatch", block) == pytest.approx([3 / 4 / 255, 1 / 4 / 255], rel=1e-13)
    assert scores("nativeAttributeMatch(tags)", block) == pytest.approx([0, 1 / 255], rel=1e-13)
    settings = {"nativeAttributeMatch.weightTable.tags": "loggrowth(38,50,1)"}  # the table of the rank type tags
    boost = (38 * math.log(2) + 50) / (38 * math.log(256) + 50)
    assert scores("nativeAttributeMatch(tags)", block, rank_properties=settings) == pytest.approx([0, boost])


def test_native_rank_is_a_weighted_mean() -> None:
    terms = [("a", RankTerm(("title",))), ("b", RankTerm(("title",))), ("7", RankTerm(("year",)))]
    block = fake_block([{"title": "a b", "year": "7"}], terms)
    field_match = (0.5 * (first(0) + first(51)) + 0.5 * 2 * count(42)) / 2 / FIELD_MATCH_MAX
    proximity = (0.5 * forward(1) + 0.5 * reverse(NEVER)) / PROXIMITY_MAX
    expected = (100 * field_match + 25 * proximity + 100 / 255) / 225
    assert scores("nativeRank", block) == pytest.approx([expected], rel=1e-13)
    assert scores("nativeRank(title, year)", block) == pytest.approx([expected], rel=1e-13)
    without = (100 * field_match + 25 * proximity) / 225
    assert scores("nativeRank(title)", block) == pytest.approx([without], rel=1e-13)
    weights = {"nativeRank.fieldMatchWeight": "0", "nativeRank.proximityWeight": "0"}
    assert scores("nativeRank", block, rank_properties=weights) == pytest.approx([1 / 255], rel=1e-13)


def test_native_rank_is_the_first_phase_of_a_profile_without_one() -> None:
    block = fake_block([{"title": "a b"}], [title("a"), title("b")])
    program = compiled(SCHEMA, RankProfile("default")).first_phase
    assert evaluate(program, block).tolist() == scores("nativeRank", block)


def test_tables_of_a_field_and_no_normalization() -> None:
    # linear(2,1,10) at 0 is 1, of count at 42 (beyond the last, 9) is 19. Without normalization nothing is divided.
    properties = {
        "nativeFieldMatch(title).firstOccurrenceTable": "linear(2,1,10)",
        "nativeFieldMatch.occurrenceCountTable.title": "linear(2,1,10)",
        "nativeFieldMatch(title).firstOccurrenceImportance": "0.25",
        "nativeRank.useTableNormalization": "false",
    }
    # "red" at 0: index 0; once in at least 6 words: 1·9/6 = 1 → 3.
    block = fake_block([{"title": "red"}], [title("red")])
    assert scores("nativeFieldMatch", block, rank_properties=properties) == pytest.approx([0.25 * 1 + 0.75 * 3])


@pytest.mark.parametrize(
    "table",
    ["cubic(1,2)", "linear(1)", "linear(1,2,3,4)", "linear(a,b)", "linear", "linear(1,0,0)", "linear(1,0,65537)"],
)
def test_a_wrong_table_is_refused(table: str) -> None:
    with pytest.raises(LanguageError, match="boost table"):
        scores("nativeRank", fake_block([]), rank_properties={"nativeProximity.proximityTable": table})
