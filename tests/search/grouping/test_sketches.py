"""Sketches of values: quantiles against sorted values, counts of distinct values against sets and published numbers."""

from __future__ import annotations

import functools
import itertools
import operator
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.aggregators.count_groups import (
    BUCKETS,
    CountGroups,
    CountGroupsState,
    estimates,
    hashes_of,
    places_of,
    xxh32,
)
from paperwasp.search.grouping.aggregators.quantiles import EXACT, QuantileSketch, merged_sketch, sketch_of
from paperwasp.search.grouping.expression_node import Rows
from paperwasp.search.grouping.tables import StringTable
from paperwasp.search.grouping.values import Kind, ListTable, Values
from paperwasp.storage.attributes.dictionary import StringDictionary
from tests.chance import SEED
from tests.search.grouping.columns import ColumnNode

QUANTILES = (0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0)


def ranks_off(found: float, wanted: float, values: NDArray[np.float64]) -> float:
    """How far the ranks of a value are from the wanted one, as a part of all values."""
    target = max(1, int(np.ceil(wanted * len(values))))
    low, high = np.searchsorted(values, found, "left") + 1, np.searchsorted(values, found, "right")
    return max(int(low) - target, target - int(high), 0) / len(values)


def columns(numbers: np.random.Generator, count: int) -> list[NDArray[np.float64]]:
    return [
        numbers.random(count),
        numbers.integers(0, 5, count).astype(np.float64),
        np.sort(numbers.normal(size=count)),
        np.full(count, 7.0),
    ]


def test_quantiles_of_few_values_are_exact() -> None:
    numbers = np.random.default_rng(SEED)
    for count in (1, 2, 3, 10, 199, EXACT):
        for values in columns(numbers, count):
            sketch = sketch_of(values, np.zeros(count, np.uint32), 1)
            for wanted in (*QUANTILES, 1 / 3, 0.1, 0.7):
                rank = max(1, -(-Fraction(wanted).limit_denominator(1000) * count // 1))
                assert sketch.quantiles(wanted).tolist() == [np.sort(values)[int(rank) - 1]]


def test_quantiles_of_many_values_are_within_their_bound() -> None:
    numbers = np.random.default_rng(SEED)
    for count in (EXACT + 1, 5_000, 100_003):
        for values in columns(numbers, count):
            whole = sketch_of(values, np.zeros(count, np.uint32), 1)
            assert len(whole.values) == EXACT
            assert whole.weights.sum() == count
            cuts = np.sort(numbers.integers(0, count, 4))
            parts = [sketch_of(part, np.zeros(len(part), np.uint32), 1) for part in np.split(values, cuts)]
            merged = merged_sketch(
                np.concatenate([part.values for part in parts]),
                np.concatenate([part.weights for part in parts]),
                np.zeros(sum(len(part.values) for part in parts), np.int64),
                1,
            )
            assert merged.weights.sum() == count
            for wanted in QUANTILES:
                assert ranks_off(whole.quantiles(wanted)[0], wanted, np.sort(values)) <= 1 / EXACT
                assert ranks_off(merged.quantiles(wanted)[0], wanted, np.sort(values)) <= 2 / EXACT
            assert [whole.quantiles(0.0)[0], merged.quantiles(1.0)[0]] == [values.min(), values.max()]


@pytest.mark.parametrize("count", [1, 2, 7, 9, 300, 70_000])
def test_each_group_has_its_own_sketch(count: int) -> None:
    numbers = np.random.default_rng(SEED)
    rows = 5_000
    values, groups = (
        numbers.integers(0, 50, rows).astype(np.float64),
        numbers.integers(0, count, rows).astype(np.uint32),
    )
    found = sketch_of(values, groups, count)
    for group in {0, 1, int(groups[0]), int(groups[-1]), count - 1} & set(range(count)):
        own = sketch_of(values[groups == group], np.zeros((groups == group).sum(), np.uint32), 1)
        assert_same(found, group, own)


def assert_same(found: QuantileSketch, group: int, own: QuantileSketch) -> None:
    low, high = found.offsets[group : group + 2].tolist()
    assert found.values[low:high].tolist() == own.values.tolist()
    assert found.weights[low:high].tolist() == own.weights.tolist()
    for wanted in QUANTILES:
        assert found.quantiles(wanted)[group] == own.quantiles(wanted)[0]


def test_xxh32() -> None:
    """Against python-xxhash: xxhash.xxh32(struct.pack("<Q", word), seed=42)."""
    words = np.array([0, 1, 42, 0x0123456789ABCDEF, 2**64 - 1], np.uint64)
    assert xxh32(words).tolist() == [0x40285DCF, 0x4B34DE73, 0x3FD2B99E, 0x501CC623, 0xFB300B3A]


def test_the_place_of_the_highest_bit() -> None:
    hashes = np.array([0, 1 << 31, 1 << 30, 1 << 10, 0x3FF, 0xFFFFFFFF], np.uint32)
    assert places_of(hashes).tolist() == [23, 1, 2, 22, 23, 1]


def test_what_is_hashed() -> None:
    """64 bits of a value: a number as it is, text by the exclusive or of its words, a bucket by its low limit."""
    texts = ["", "a", "12345678", "12345678a", "é"]
    word = int.from_bytes(b"12345678", "little")
    coded = np.arange(5, dtype=np.uint32)
    plain = [0, 97, word, word ^ 97, 0xA9C3]
    for values, words in (
        (Values(Kind.STRING, coded, ListTable(texts)), plain),
        (Values(Kind.RAW, coded, ListTable([text.encode() for text in texts])), plain),
        (Values(Kind.LONG, np.array([0, -1])), [0, 2**64 - 1]),
        (Values(Kind.BOOL, np.array([False, True])), [0, 1]),
        (Values(Kind.DOUBLE, np.array([1.0])), [0x3FF0000000000000]),
        (Values(Kind.NULL, np.zeros(2, np.uint32)), [0, 0]),
        (Values(Kind.LONG_BUCKET, coded[:2], ListTable([(-1, 5), None])), [2**64 - 1, 0]),
        (Values(Kind.DOUBLE_BUCKET, coded[:2], ListTable([(1.0, 5.0), None])), [0x3FF0000000000000, 0]),
        (Values(Kind.STRING_BUCKET, coded[:2], ListTable([("a", "b"), None])), [97, 0]),
        (Values(Kind.RAW_BUCKET, coded[:2], ListTable([(b"a", b"b"), None])), [97, 0]),
        (Values(Kind.LONG, np.array([1, 2, 3]), None, np.array([0, 2, 2, 3], np.uint32)), [3, 0, 3]),
    ):
        assert hashes_of(values).tolist() == xxh32(np.array(words, np.uint64)).tolist()


@pytest.mark.parametrize("strings", [1, 100_000])
def test_strings_of_a_column_are_hashed_as_others(strings: int) -> None:
    """Also where most strings of its dictionary are in no row, and after it has grown."""
    dictionary = StringDictionary()
    texts = ["", "B", "b", "12345678a", "é" * 9]
    for added in (texts, [f"other {number}" for number in range(strings)], ["later", *texts]):
        codes = dictionary.encode(added)[:6]
        found = hashes_of(Values(Kind.STRING, codes, StringTable(dictionary)))
        plain = [functools.reduce(operator.xor, words(text.encode()), 0) for text in added[:6]]
        assert found.tolist() == xxh32(np.array(plain, np.uint64)).tolist()


def words(text: bytes) -> list[int]:
    return [int.from_bytes(text[start : start + 8], "little") for start in range(0, len(text), 8)]


def test_estimates() -> None:
    """Of few values the empty buckets count, of more a published bias is taken off."""
    few = np.zeros((1, BUCKETS), np.uint8)
    few[0, :10] = 1
    many = np.full((1, BUCKETS), 20, np.uint8)
    alpha = 0.7213 / (1 + 1.079 / 1024)
    middle = np.full((1, BUCKETS), 1, np.uint8)  # raw: alpha * 1024 * 2 = 1475.7…, between 1474.8792 and 1494.118
    share = (alpha * 2048 - 1474.8792) / (1494.118 - 1474.8792)
    true = alpha * 2048 - (271.8792 + share * (265.118 - 271.8792))
    assert estimates(few).tolist() == [10]  # 1024 ln(1024 / 1014) = 10.05
    assert estimates(many).tolist() == [round(alpha * 1024 * 2**20)]
    assert estimates(middle).tolist() == [round(true)]


def counted(values: list[Any], parts: int = 1) -> int:
    node, count = ColumnNode("x", Kind.LONG, values), len(values)
    bounds = np.linspace(0, count, parts + 1).astype(int)
    states = []
    for low, high in itertools.pairwise(bounds):
        lids = np.arange(low, high, dtype=np.uint32)
        states.append(CountGroups(node).collect(Rows(lids, np.zeros(len(lids))), np.zeros(len(lids), np.uint32), 1))
    read = [CountGroupsState.from_arrays(dict(state.arrays())) for state in states]
    merged = CountGroupsState.merged(read, [np.zeros(1, np.int64)] * parts, 1)
    (found,) = merged.shown()
    if parts == 1:
        assert states[0].shown() == [found]
    return int(found)


def test_up_to_256_distinct_values_are_counted() -> None:
    assert counted([]) == 0
    assert counted(list(range(256)) * 3, parts=3) == 256


@pytest.mark.parametrize("count", [257, 900, 3_000, 20_000])
def test_more_are_estimated(count: int) -> None:
    chance = random.Random(SEED)
    values = [chance.randrange(1 << 60) for _ in range(count)]
    found = counted(values * 2)
    assert found == counted(values * 2, parts=5)
    assert abs(found - count) <= 5 * 0.0325 * count  # five standard errors


def test_groups_of_many_and_of_few_stand_beside_each_other() -> None:
    values = [*range(1000), *range(10), *range(1000)]
    groups = np.array([0] * 1000 + [1] * 10 + [2] * 1000, np.uint32)
    lids = np.arange(len(values), dtype=np.uint32)
    state = CountGroups(ColumnNode("x", Kind.LONG, values)).collect(Rows(lids, np.zeros(len(lids))), groups, 4)
    alone = counted(list(range(1000)))
    assert state.shown() == [alone, 10, alone, 0]
    assert state.selected(np.array([3, 2, 1])).shown() == [0, alone, 10]
    merged = CountGroupsState.merged(
        [state.selected(np.array([1])), state.selected(np.array([0]))], [np.zeros(1, np.int64)] * 2, 1
    )
    assert merged.shown() == [alone]


@pytest.mark.parametrize("most", [0, BUCKETS * 3, 1 << 24])
def test_buckets_are_those_of_each_hash_alone(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a plain loop over hashes, with groups of few, of some more than 256, and of many distinct ones."""
    monkeypatch.setattr("paperwasp.search.grouping.aggregators.count_groups._MOST_LEAST", most)
    chance = random.Random(SEED)
    sizes = [0, 3, 256, 257, 300, 2_000]
    pairs = [(group, chance.randrange(1 << 60)) for group, size in enumerate(sizes) for _ in range(size)]
    pairs += chance.sample(pairs, 500) + [(1, 7)] * 1_000
    chance.shuffle(pairs)
    values, groups = [value for _, value in pairs], np.array([group for group, _ in pairs], np.uint32)
    lids = np.arange(len(values), dtype=np.uint32)
    state = CountGroups(ColumnNode("x", Kind.LONG, values)).collect(Rows(lids, np.zeros(len(lids))), groups, len(sizes))
    hashes = hashes_of(Values(Kind.LONG, np.array(values))).tolist()
    for group in range(len(sizes)):
        own = sorted({found for found, of in zip(hashes, groups.tolist(), strict=True) if of == group})
        row, low, high = int(state.rows[group]), int(state.offsets[group]), int(state.offsets[group + 1])
        assert (row < 0) == (len(own) <= 256)
        assert state.hashes[low:high].tolist() == (own if row < 0 else [])
        if row >= 0:
            wanted = [0] * BUCKETS
            for each in own:
                zeros = 22 - (each >> 10).bit_length()
                wanted[each % BUCKETS] = max(wanted[each % BUCKETS], zeros + 1)
            assert state.buckets[row].tolist() == wanted


def test_memory_of_sketches_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.grouping.MEMORY_BYTES", BUCKETS - 1)
    assert counted(list(range(256))) == 256
    with pytest.raises(InvalidQuery, match="more than 1023 bytes of memory"):
        counted(list(range(257)))
