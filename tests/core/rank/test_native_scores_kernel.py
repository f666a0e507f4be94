"""The kernel of nativeRank beside its plain twin, on random indexes cut into random parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.core.index.test_index_kernels import TERMS, Corpus, corpora, cut_points
from tests.oracles.native_scores import FIELD_NUMBERS, plain_native_scores
from tests.oracles.plain_index import PlainIndex

FIRST, COUNT = 12.0 * np.exp(-np.arange(40) / 9), 2.0 * np.log1p(np.arange(64) / 5) + 1
FORWARD, REVERSE = 5.0 * np.exp(-np.arange(30) / 3), 4.0 * np.exp(-np.arange(20) / 2)
NOTHING = np.zeros(0)


@dataclass
class Query:
    """Terms of one field, some as their postings and some as given positions."""

    terms: list[int]
    given: list[bool]
    lengths: list[int]
    term_weights: list[float]
    pair_weights: list[float]
    numbers: list[float]
    weights: list[float]

    def arguments(self) -> dict[str, Any]:
        count = len(self.terms)
        pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
        lists = [(0, term, owner, self.lengths[owner]) for owner, term in enumerate(self.terms)]
        return {
            "numbers": np.array(self.numbers),
            "tables": [FIRST, COUNT, FORWARD, REVERSE],
            "lists": np.array(lists, np.uint32).reshape(-1),
            "term_weights": np.array(self.term_weights[:count]),
            "pairs": np.array(pairs, np.uint32).reshape(-1),
            "pair_weights": np.array(self.pair_weights[: len(pairs)]),
            "weights": np.array(self.weights),
        }


weight_values = st.floats(0, 100) | st.integers(0, 3).map(float)
queries = st.builds(
    Query,
    st.lists(st.integers(0, TERMS - 1), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
    st.lists(weight_values, min_size=4, max_size=4),
    st.lists(weight_values, min_size=6, max_size=6),
    st.tuples(
        st.just(0.0), weight_values, st.floats(0, 1), st.floats(0.1, 20), st.sampled_from([-1.0, 0.0, 12.0]),
        st.sampled_from([0.0, 1.0, 6.0]), st.floats(0, 1), st.floats(0.1, 20), st.floats(0, 40),
    ).map(list),
    st.tuples(*[st.floats(0, 200)] * 5, st.floats(0.1, 300)).map(list),
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(corpus=corpora, cuts=cut_points, query=queries, share=st.sampled_from([0.1, 0.6, 1.0]), seed=st.integers(0, 99))
def test_scores_are_those_of_the_twin(corpus: Corpus, cuts: list[int], query: Query, share: float, seed: int) -> None:
    """To the last bit; and with a floor, every score above it is there, and nothing else is."""
    rng = np.random.default_rng(seed)
    lids = np.flatnonzero(rng.random(len(corpus.documents)) < share).astype(np.uint32)
    plain = PlainIndex(corpus.documents)
    positions = [[plain.positions(term, lid) for lid in lids.tolist()] for term in query.terms]
    given_lists = {
        number: (
            np.concatenate([[0], np.cumsum([len(places) for places in of_list])]).astype(np.uint32),
            np.array([place for places in of_list for place in places], np.uint32),
        )
        for number, of_list in enumerate(positions)
        if query.given[number]
    }
    attribute = rng.random(len(lids))
    shared = query.arguments()
    lengths = [plain.lengths()[lids].tolist()]
    expected = plain_native_scores(positions, lengths, **shared, attribute=attribute)
    reader = corpus.reader(cuts, [10.0])
    for floor in (-np.inf, float(np.median([0.0, *expected]))):
        found = np.empty(len(lids))
        _core.native_scores(
            reader,
            lids,
            **shared,
            given=given_lists,
            proximity=NOTHING,
            attribute=attribute,
            floor=floor,
            results=found,
        )
        above = np.array(expected) > floor
        assert found[above].tolist() == np.array(expected)[above].tolist()
        assert np.all((found[~above] == -np.inf) | (found[~above] <= floor))


def test_worked_by_hand() -> None:
    """a at 0, b at 1 and 5 of six words: a before b at distance 1, b before a nowhere."""
    corpus = Corpus([[(0, 0), (1, 1), (2, 2), (2, 3), (2, 4), (1, 5)]])
    numbers = dict.fromkeys(FIELD_NUMBERS, 0.0)
    numbers |= {"weight": 3.0, "first_importance": 0.5, "highest": 2.0, "fixed_length": -1.0, "least_length": 1.0}
    numbers |= {"forward_importance": 0.75, "near_highest": 4.0, "pairs_weight": 7.0}
    tables = [np.array([10.0, 6.0, 2.0]), np.array([1.0, 4.0]), np.array([8.0, 1.0]), np.array([16.0, 0.0])]
    found = np.empty(1)
    _core.native_scores(
        corpus.reader([], [6.0]),
        np.array([0], np.uint32),
        np.array(list(numbers.values())),
        tables,
        np.array([0, 0, 0, 1, 0, 1, 1, 1], np.uint32),
        {},
        np.array([1.0, 10.0]),
        np.array([0, 1], np.uint32),
        np.array([7.0]),
        np.array([5.0, 3.0, 100.0, 25.0, 0.0, 125.0]),
        NOTHING,
        NOTHING,
        -np.inf,
        found,
    )
    # a: first 0 * 2 // 5 = 0, once 1 * 1 // 6 = 0; b: first 1 * 2 // 5 = 0, twice 2 * 1 // 6 = 0
    match = ((10.0 * 0.5 + 1.0 * 0.5) * 3 / 2) * (1 + 10) / 5
    proximity = (8.0 * 0.75 + 0.0 * 0.25) * 7 / 4 * 3 / 7 / 3
    assert found[0] == pytest.approx((match * 100 + proximity * 25) / 125, rel=1e-15)


def small() -> dict[str, Any]:
    query = Query([0, 1], [False] * 4, [1] * 4, [1.0] * 4, [1.0] * 6, [0.0, *[1.0] * 8], [1.0] * 6)
    return {
        "reader": Corpus.random(3, 90).reader([], [10.0]),
        "lids": np.arange(5, dtype=np.uint32),
        **query.arguments(),
        "given": {},
        "proximity": NOTHING,
        "attribute": NOTHING,
        "floor": 0.0,
        "results": np.empty(5),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"results": np.empty(4)},
        {"lids": np.array([1, 1, 2, 3, 4], np.uint32)},
        {"numbers": np.ones(8)},
        {"numbers": np.array([1.0, *[1.0] * 8])},
        {"numbers": np.array([np.nan, *[1.0] * 8])},
        {"numbers": np.array([0.0, 1.0, 1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0])},
        {"tables": [FIRST, COUNT, FORWARD]},
        {"tables": [FIRST, COUNT, FORWARD, NOTHING]},
        {"lists": np.array([0, 0, 0], np.uint32)},
        {"lists": np.array([1, 0, 0, 1, 0, 1, 1, 1], np.uint32)},
        {"lists": np.array([0, 0, 2, 1, 0, 1, 1, 1], np.uint32)},
        {"lists": np.array([0, 0, 0, 0, 0, 1, 1, 1], np.uint32)},
        {"pairs": np.array([0, 2], np.uint32)},
        {"pair_weights": NOTHING},
        {"weights": np.ones(5)},
        {"proximity": np.ones(4)},
        {"attribute": np.ones(4)},
        {"given": {2: (np.zeros(6, np.uint32), np.zeros(0, np.uint32))}},
        {"given": {0: (np.zeros(5, np.uint32), np.zeros(0, np.uint32))}},
        {"given": {0: (np.array([0, 0, 2, 1, 2, 2], np.uint32), np.zeros(2, np.uint32))}},
        {"given": {0: (np.array([0, 0, 0, 0, 0, 3], np.uint32), np.zeros(2, np.uint32))}},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    arguments = small()
    _core.native_scores(**arguments)
    with pytest.raises(ValueError):
        _core.native_scores(**(arguments | change))
