"""Features of labels, and of each element: bm25 with a label, and those that are tensors.

Authority: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.types import INT, STRING, array_of
from paperwasp.ranking import ProfileError
from paperwasp.ranking.expression import parse_expression
from paperwasp.schema.model import RankProfile
from paperwasp.search.features import default_rank_features, evaluate_all
from paperwasp.search.features.block import Block
from paperwasp.search.features.elements import OUTPUTS as COMPLETENESS
from paperwasp.search.features.family import RankSetup
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import compiled, fake_block, schema_of

TERMS = [
    ("red", RankTerm(("title", "tags"), label="color", significance=2.0, explicit_significance=True)),
    ("apple", RankTerm(("title",), label="fruit", significance=3.0, explicit_significance=True)),
    ("blue", RankTerm(("title",), label="color", significance=5.0, explicit_significance=True)),
    ("1", RankTerm(("number",), label="count")),
    ("x", RankTerm(("title", "tags"), significance=7.0, explicit_significance=True)),
]
DOCUMENTS: list[dict[str, object]] = [
    {"title": "red apple", "tags": ["x x", "", "red x"], "number": 1},
    {"title": "blue red", "tags": ["red"]},
    {"title": "pear x", "tags": []},
]


def values(*names: str, rank_properties: Mapping[str, str] | None = None) -> dict[str, list[object]]:
    """name → of each document the number, or label → cell."""
    properties = {key: (value,) for key, value in (rank_properties or {}).items()}
    profile = RankProfile("p", match_features=names, rank_properties=properties)
    schema = schema_of(["title", "tags"], {"number": INT}, profile, index_types={"tags": array_of(STRING)})
    block = fake_block(DOCUMENTS, TERMS)
    found = evaluate_all(compiled(schema, profile).match_features, block)
    return {name: _shown(found[str(parse_expression(name))], block) for name in names}


def _shown(found: NDArray[np.float64] | TensorBatch, block: Block) -> list[object]:
    if not isinstance(found, TensorBatch):
        return list(found.tolist())
    tensors = found.tensors(block.labels)
    return [{label: float(cell) for (label,), cell in zip(t.labels, t.cells, strict=True)} for t in tensors]


def test_bm25_of_the_terms_with_a_label() -> None:
    # All titles are of average length: a term that occurs once adds its weight.
    found = values(
        "bm25(title)", "bm25(field:title,label:color)", "bm25(title,label:fruit)", "bm25(field:title,label:a)"
    )
    assert list(found.values()) == [
        pytest.approx([5, 7, 7]),
        pytest.approx([2, 7, 0]),
        pytest.approx([3, 0, 0]),
        [0, 0, 0],
    ]


def test_a_cell_for_each_label_that_scores() -> None:
    found = values(
        "bm25_for_labels(title)", "matches_for_labels", "matches_for_labels(title)", "matches_for_labels(tags)"
    )
    assert list(found.values()) == [
        [{"color": 2, "fruit": 3}, {"color": 7}, {}],
        [{"color": 1, "fruit": 1, "count": 1}, {"color": 1}, {}],
        [{"color": 1, "fruit": 1}, {"color": 1}, {}],
        [{"color": 1}, {"color": 1}, {}],
    ]


def test_bm25_of_each_element() -> None:
    # The elements have 2, 0, 2 and 1 words; a field without any has none.
    name = "elementwise(bm25(tags),e,float)"
    shorter = values(name, rank_properties={f"{name}.averageElementLength": "2", f"{name}.b": "1"})[name]
    twice = 2 * 2.2 / (2 + 1.2)
    assert shorter == [
        {"0": pytest.approx(7 * twice), "2": pytest.approx(7 + 2)},
        {"0": pytest.approx(2 * 2.2 / (1 + 1.2 * 0.5))},
        {},
    ]
    average = 5 / 4

    def score(occurrences: int, length: int) -> float:
        return occurrences * 2.2 / (occurrences + 1.2 * (0.25 + 0.75 * length / average))

    assert values(name)[name] == [
        {"0": pytest.approx(7 * score(2, 2)), "2": pytest.approx((7 + 2) * score(1, 2))},
        {"0": pytest.approx(2 * score(1, 1))},
        {},
    ]


def test_bm25_of_each_element_falls_back_to_the_properties_of_bm25() -> None:
    name = "elementwise(bm25(tags),e)"
    found = values(name, rank_properties={"bm25(tags).k1": "0", "bm25(tags).averageElementLength": "9"})[name]
    assert found == [{"0": 7, "2": 9}, {"0": 2}, {}]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bm25(title,fruit)", "bm25 takes field: and label:"),
        ("bm25(field:title,label:a,label:b)", "bm25 takes field: and label:"),
        ("bm25(label:a)", "bm25 takes field: and label:"),
        ("elementwise(bm25(tags),e,number)", "the cell type is"),
        ("elementwise(fieldMatch(tags),e)", "elementwise takes bm25"),
        ("elementwise(bm25(number),e)", "has no index"),
        ("matches_for_labels(nothing)", "has no field"),
        ("fieldMatch(tags)", "a single value is expected"),
        ("textSimilarity(tags)", "a single value is expected"),
        ("elementSimilarity(tags).mine", "has no output 'mine'"),
    ],
)
def test_what_is_wrong_is_refused(name: str, told: str) -> None:
    with pytest.raises(ProfileError, match=told):
        values(name)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("fieldMatch(title).proximityLimit", "4", "has 21 values: with a proximityLimit of 4 there are 9"),
        ("fieldMatch(title).proximityTable", "1", "has 1 values"),
        ("fieldMatch(title).proximityTable", "near", "something else than numbers"),
        ("fieldMatch(title).maxOccurrences", "0", "too small"),
        ("elementSimilarity(tags).output.default", "p", "no max, avg, sum of an expression"),
        ("elementSimilarity(tags).output.default", "mix(p)", "no max, avg, sum of an expression"),
        ("elementSimilarity(tags).output.default", "max(z)", "knows p, o, q, f, w"),
        ("elementSimilarity(tags).output.other", "max(w+)", "output 'other'"),
        ("elementSimilarity(tags).output.other", "max(bm25(title))", "knows p, o, q, f, w"),
    ],
)
def test_wrong_rank_properties_are_refused(key: str, value: str, told: str) -> None:
    with pytest.raises(ProfileError, match=told):
        values(key.partition(").")[0] + ")", rank_properties={key: value})


def test_the_default_rank_features_of_texts() -> None:
    properties = {"elementSimilarity(tags).output.mine": ("sum(w)",)}
    profile = RankProfile("p", rank_properties=properties, filter_fields=frozenset({"kind"}))
    schema = schema_of(["title", "kind", "tags"], profile=profile, index_types={"tags": array_of(STRING)})
    listed = default_rank_features(RankSetup(schema, profile))
    shown = [name for name in listed if not name.startswith("fieldMatch(title)")]
    families = ("fieldMatch", "textSimilarity", "elementCompleteness", "elementSimilarity", "fieldInfo", "elementwise")
    assert len(listed) - len(shown) == 30
    assert [name for name in shown if name.startswith(families)] == [
        *[f"elementCompleteness(title).{output}" for output in COMPLETENESS],
        *[f"elementCompleteness(tags).{output}" for output in COMPLETENESS],
        "elementSimilarity(tags)",
        "elementSimilarity(tags).mine",
        "fieldMatch(kind)",
        *[f"fieldMatch(kind).{name}" for name in ("completeness", "queryCompleteness", "weight", "matches")],
        "fieldMatch(kind).degradedMatches",
        *[
            f"textSimilarity(title).{name}"
            for name in ("score", "proximity", "order", "queryCoverage", "fieldCoverage")
        ],
    ]
