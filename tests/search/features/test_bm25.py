"""bm25 against the published formula, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp.schema.model import RankProfile
from paperwasp.search.features import evaluate
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import compiled, fake_block, schema_of

DOCUMENTS = [{"title": "red red fish"}, {"title": "blue fish"}, {"title": "one fish two fish red"}, {"title": "bird"}]
TERMS = [("red", RankTerm(("title",))), ("fish", RankTerm(("title",)))]


def first_phase_scores(
    expression: str, block: Block, rank_properties: Mapping[str, tuple[str, ...]] | None = None
) -> NDArray[np.float64]:
    profile = RankProfile("p", first_phase=expression, rank_properties=rank_properties or {})
    return evaluate(compiled(schema_of(["title", "body"], profile=profile), profile).first_phase, block)


def test_bm25_by_hand() -> None:
    # N = 4 documents; lengths 3, 2, 5, 1: 2.75 on average. "red" is in 2, "fish" in 3 of them.
    idf_red = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    idf_fish = math.log(1 + (4 - 3 + 0.5) / (3 + 0.5))

    def part(idf: float, occurrences: int, length: int) -> float:
        return idf * occurrences * 2.2 / (occurrences + 1.2 * (0.25 + 0.75 * length / 2.75))

    expected = [
        part(idf_red, 2, 3) + part(idf_fish, 1, 3),
        part(idf_fish, 1, 2),
        part(idf_red, 1, 5) + part(idf_fish, 2, 5),
        0.0,
    ]
    assert first_phase_scores("bm25(title)", fake_block(DOCUMENTS, TERMS)) == pytest.approx(expected, rel=1e-14)


def test_parameters_from_rank_properties() -> None:
    # k1 = 2, b = 0.5, average length 10. "fish" once in 2 tokens: 1 · 3 / (1 + 2 · (0.5 + 0.5 · 2/10)) = 3 / 2.2.
    properties = {"bm25(title).k1": ("2",), "bm25(title).b": ("0.5",), "bm25(title).averageFieldLength": ('"10"',)}
    block = fake_block(DOCUMENTS, [TERMS[1]])
    scores = first_phase_scores("bm25(title)", block, rank_properties=properties)
    assert scores[1] == pytest.approx(math.log(1 + 1.5 / 3.5) * 3 / 2.2, rel=1e-14)


def test_a_significance_of_the_query_stands_for_the_idf() -> None:
    term = RankTerm(("title",), significance=0.25, explicit_significance=True)
    scores = first_phase_scores("bm25(title)", fake_block(DOCUMENTS, [("bird", term)]))
    assert scores[3] == pytest.approx(0.25 * 2.2 / (1 + 1.2 * (0.25 + 0.75 / 2.75)), rel=1e-14)


def test_terms_of_other_fields_do_not_count() -> None:
    block = fake_block(DOCUMENTS, [("fish", RankTerm(("body",)))])
    assert first_phase_scores("bm25(title)", block).tolist() == [0, 0, 0, 0]
