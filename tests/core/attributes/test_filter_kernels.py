"""The kernels that match values, strings, weighted tokens, vectors and positions, against their plain twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.document.z_curve import z_curve
from paperwasp.storage.attributes.distances import ANYWHERE
from paperwasp.storage.attributes.vector_graph import METRICS
from tests.oracles import attribute, distances, places, products

SEEDS = st.integers(0, 2**32)
INTEGERS = ("int8", "int32", "int64", "uint32")
DTYPES = (*INTEGERS, "float32", "float64")


def words(rows: int) -> np.ndarray:
    return np.full((rows + 63) // 64, 0xDEADBEEF, np.uint64)


def random_values(random: np.random.Generator, dtype: str, count: int, spread: str) -> np.ndarray:
    """Values that are few, far apart, or extreme."""
    if dtype.startswith("float"):
        scale = {"few": 5, "far": 1e30, "extreme": 1e37}[spread]
        values = (random.integers(-5, 5, count) * scale).astype(dtype)
        odd = [math.nan, math.inf, -math.inf, -0.0, 0.0]
        return np.where(random.random(count) < 0.2, random.choice(np.array(odd, dtype), count), values).astype(dtype)
    kind = np.iinfo(dtype)
    if spread == "few":
        return random.integers(max(-9, kind.min), 9, count).astype(dtype)
    values = random.integers(kind.min, kind.max, count, dtype=dtype, endpoint=True)
    if spread == "far" and dtype != "int8":
        values = (values // 1000 * 1000).astype(dtype)
    return np.where(random.random(count) < 0.2, random.choice(np.array([kind.min, kind.max], dtype), count), values)


@given(
    st.integers(0, 300), st.integers(0, 40), st.sampled_from(DTYPES), st.sampled_from(["few", "far", "extreme"]), SEEDS
)
def test_sets_of_numbers(rows: int, size: int, dtype: str, spread: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random_values(random, dtype, rows, spread)
    some = np.concatenate(
        [random.choice(values, size // 2) if rows else values, random_values(random, dtype, size, spread)]
    )
    numbers = np.unique(some[some == some])
    packed = random.integers(0, max(1, rows), rows).astype(np.uint64) << np.uint64(24)
    packed |= random.integers(0, 4, rows).astype(np.uint64)
    found, expected = words(rows), words(rows)
    _core.set_bitmap(values, numbers, found)
    attribute.set_bitmap(values, numbers, expected)
    assert found.tolist() == expected.tolist()
    _core.array_set_bitmap(values, packed, numbers, found)
    attribute.array_set_bitmap(values, packed, numbers, expected)
    assert found.tolist() == expected.tolist()


def test_a_set_that_does_not_rise_is_refused() -> None:
    with pytest.raises(ValueError, match="rise"):
        _core.set_bitmap(np.zeros(64, np.int32), np.array([9, 8, 7, 6, 5, 4, 3, 9], np.int32), words(64))


# ------------------------------------------------------------------------------------------------ strings

TEXTS = st.text(st.sampled_from("abcé中\n\U0001f600"), max_size=7)


def scanned(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    content, ends = b"\n\xff\n", []
    for text in texts:
        content += text.encode()
        ends.append(len(content))
        content += b"\n\xff\n"
    return np.frombuffer(content, np.uint8), np.array(ends, np.uint64)


@given(st.lists(TEXTS, max_size=20), TEXTS)
def test_parts_of_strings(texts: list[str], part: str) -> None:
    content, ends = scanned(texts)
    table = np.zeros(len(texts), np.uint8)
    for kernel, fits in (
        (_core.texts_beginning, str.startswith), (_core.texts_ending, str.endswith),
        (_core.texts_having, str.__contains__),
    ):  # fmt: skip
        kernel(content, ends, part.encode(), table)
        assert table.tolist() == [int(fits(text, part)) for text in texts]


def edits(word: str, text: str) -> list[int]:
    """Levenshtein's distance from a word to each beginning of a text, the whole last."""
    row = list(range(len(text) + 1))
    for i, a in enumerate(word, 1):
        before, row = row, [i]
        for j, b in enumerate(text, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
    return row


@given(st.lists(TEXTS, max_size=10), TEXTS, st.integers(0, 4) | st.just(2**30), st.integers(0, 3), st.booleans())
def test_strings_near_a_word(texts: list[str], word: str, most: int, same: int, prefix: bool) -> None:
    content, ends = scanned(texts)
    table = np.zeros(len(texts), np.uint8)
    _core.texts_near(content, ends, np.array([ord(c) for c in word], np.uint32), most, same, prefix, table)

    def fits(text: str) -> bool:
        found = edits(word[same:], text[same:])
        return word[:same] == text[:same] and (min(found) if prefix else found[-1]) <= most

    assert table.tolist() == [int(fits(text)) for text in texts]


def test_ends_of_strings_that_cannot_be_are_refused() -> None:
    content, ends = scanned(["ab", "c"])
    for wrong in (ends[::-1].copy(), ends + np.uint64(100)):
        with pytest.raises(ValueError, match="end"):
            _core.texts_beginning(content, wrong, b"a", np.zeros(2, np.uint8))


# ------------------------------------------------------------------------------------------------ weighted tokens


@given(st.integers(1, 60), st.integers(0, 12), st.sampled_from(DTYPES), st.booleans(), st.booleans(), SEEDS)
def test_products(rows: int, size: int, dtype: str, single: bool, weighted: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random_values(random, dtype, rows, "few")
    keys = np.unique(random_values(random, dtype, size, "few"))
    keys = keys[keys == keys]
    weights = (
        random.integers(-(2**31), 2**31, rows, dtype=np.int64).astype(np.int32) if weighted else np.zeros(0, np.int32)
    )
    packed = random.integers(0, rows, rows).astype(np.uint64) << np.uint64(24) | random.integers(0, 5, rows).astype(
        np.uint64
    )
    lids = np.sort(random.integers(0, rows, 20)).astype(np.uint32)
    token_weights = random.integers(-(2**31), 2**31, len(keys)).astype(np.int64)
    found, expected = np.empty(20), np.empty(20)
    arguments = (values, packed[:0] if single else packed, weights, keys, token_weights, lids)
    _core.products(*arguments, found)
    products.products(*arguments, expected)
    assert found.tolist() == expected.tolist()


def test_products_of_lids_without_a_row_are_refused() -> None:
    none = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="without a row"):
        _core.products(np.zeros(3, np.int32), *none, np.array([3], np.uint32), np.zeros(1))


# ------------------------------------------------------------------------------------------------ vectors


@given(
    st.integers(1, 70), st.integers(1, 8), st.sampled_from(["float32", "float64", "int8", "uint16"]),
    st.sampled_from(range(len(METRICS))), SEEDS,
)  # fmt: skip
def test_distances(size: int, count: int, dtype: str, metric: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    if METRICS[metric] == "geodegrees":
        size = 2
    if dtype == "int8":
        cells = random.integers(-128, 128, (count, size)).astype(np.int8)
        query = random.integers(-128, 128, size).astype(np.int8)
    else:
        numbers = random.integers(-90, 90, (count, size)).astype(np.float32)
        query = random.integers(-90, 90, size).astype(np.float32)
        cells = (numbers.view(np.uint32) >> 16).astype(np.uint16) if dtype == "uint16" else numbers.astype(dtype)
        query = query if dtype == "uint16" else query.astype(dtype)
    rows = random.integers(0, count, 10).astype(np.uint64) << np.uint64(24) | random.integers(0, 4, 10).astype(
        np.uint64
    )
    found, which, expected, plain = np.empty(10), np.empty(10, np.uint32), np.empty(10), np.empty(10, np.uint32)
    _core.least_distances(metric, query, cells, rows, found, which)
    distances.least_distances(metric, query, cells, rows, expected, plain)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-5)
    alone = np.empty(10)
    _core.least_distances(metric, query, cells, rows, alone, None)
    assert alone.tolist() == found.tolist()
    for place in np.flatnonzero((which != plain) & np.isfinite(expected)):
        other = cells[(int(rows[place]) >> 24) + int(which[place])]
        widened = (other.astype(np.uint32) << 16).view(np.float32) if dtype == "uint16" else other
        assert distances.distance(METRICS[metric], query, widened) == pytest.approx(expected[place], abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("size", [1, 8, 63, 64, 65, 128, 130])
def test_distances_of_vectors_that_stand_together(size: int, dtype: str) -> None:
    """Rows of one vector each, in runs longer and shorter than what is worked at a time; some have none, or two."""
    random, count = np.random.default_rng(size), 2_500
    cells = random.integers(-128, 128, (count, size)).astype(dtype)
    if dtype == "float32":
        cells[[0, 7, 1_500]] = math.nan
    rows = np.arange(count, dtype=np.uint64) << np.uint64(24) | np.uint64(1)
    rows[[3, 1_200, count - 1]] = 0, 1_200 << 24 | 2, count << 24 | 1
    for metric in range(4):
        found, which, expected, plain = (
            np.empty(count),
            np.empty(count, np.uint32),
            np.empty(count),
            np.empty(count, np.uint32),
        )
        _core.least_distances(metric, cells[9], cells, rows, found, which)
        distances.least_distances(metric, cells[9], cells, rows, expected, plain)
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert (which != plain).sum() <= 1
        alone = np.empty(count)
        _core.least_distances(metric, cells[9], cells, rows, alone, None)
        assert alone.tolist() == found.tolist()


def test_sums_of_the_largest_int8_do_not_overflow() -> None:
    size = 100_003
    query, cells = np.full(size, 127, np.int8), np.full((1, size), -128, np.int8)
    rows, found, which = np.array([1], np.uint64), np.empty(1), np.empty(1, np.uint32)
    for metric, expected in (("euclidean", 255**2 * size), ("product", 127 * 128 * size), ("hamming", 8 * size)):
        _core.least_distances(METRICS.index(metric), query, cells, rows, found, which)
        assert found[0] == expected


def test_vectors_that_are_no_numbers_are_infinitely_far() -> None:
    rows, found, which = np.array([1, 0], np.uint64), np.empty(2), np.empty(2, np.uint32)
    _core.least_distances(0, np.ones(3, np.float32), np.full((1, 3), math.nan, np.float32), rows, found, which)
    assert found.tolist() == [math.inf, math.inf]
    with pytest.raises(ValueError, match="another size"):
        _core.least_distances(0, np.ones(2, np.float32), np.ones((1, 3), np.float32), rows, found, which)


# ------------------------------------------------------------------------------------------------ positions

SIDES = st.integers(-(2**31), 2**31 - 1) | st.integers(-50, 50)


@given(
    st.lists(st.tuples(SIDES, SIDES), max_size=80), st.tuples(SIDES, SIDES, SIDES, SIDES), st.tuples(SIDES, SIDES),
    st.sampled_from([0, 2**31, 2**32 - 1]), st.integers(0, 5000) | st.sampled_from([2**62, ANYWHERE]), SEEDS,
)  # fmt: skip
def test_positions(
    positions: list[tuple[int, int]],
    box: tuple[int, int, int, int],
    center: tuple[int, int],
    aspect: int,
    square: int,
    seed: int,
) -> None:
    numbers = z_curve(np.array(positions, np.int32).reshape(-1, 2))
    unset = np.iinfo(np.int64).min
    single = [number != unset and places.has_place(*place, box, center, aspect, square)
              for number, place in zip(numbers.tolist(), positions, strict=True)]  # fmt: skip
    each = [places.has_place(*place, box, center, aspect, square) for place in positions]
    found = words(len(numbers))
    arguments = (np.array(box, np.int32), *center, aspect, square)
    _core.places_in(numbers, np.zeros(0, np.uint64), *arguments, True, found)
    assert np.unpackbits(found.view(np.uint8), bitorder="little", count=len(numbers)).tolist() == single
    random = np.random.default_rng(seed)
    starts, lengths = random.integers(0, len(numbers) + 1, 9), random.integers(0, 4, 9)
    rows = starts.astype(np.uint64) << np.uint64(24) | lengths.astype(np.uint64)
    found = words(9)
    _core.places_in(numbers, rows, *arguments, False, found)
    expected = [
        start + n <= len(numbers) and any(each[start : start + n]) for start, n in zip(starts, lengths, strict=True)
    ]
    assert np.unpackbits(found.view(np.uint8), bitorder="little", count=9).tolist() == expected
