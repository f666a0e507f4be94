"""How many distinct values the rows of each group have: exact up to 256, then an estimate by HyperLogLog.

A sketch is made of 32-bit hashes of values. Up to 256 distinct hashes of a group are kept as they are, and counted.
More are put into 1,024 buckets by their lowest 10 bits, and a bucket keeps the greatest place of the highest bit that
is set among the other 22. Estimates are off by 1.04 / sqrt(1024) = 3.25 % (standard error).

The hashes, buckets and estimates are Vespa's: expressioncountaggregationresult.cpp, sketch.h, HyperLogLogEstimator.java
The method: Heule, Nunkesser, Hall: HyperLogLog in Practice (2013), and the tables of its appendix.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.hyperloglog_bias import RAW_ESTIMATES, TRUE_COUNTS
from paperwasp.search.grouping.tables import StringTable, bytes_of, distinct, encoded, values_of
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.string_words import folded_words

BUCKET_BITS: Final = 10
BUCKETS: Final = 1 << BUCKET_BITS
MOST_HASHES: Final = 256
"""The hashes that a group keeps before they are put into buckets."""
MOST_ZEROS: Final = 33 - BUCKET_BITS
"""The greatest number that a bucket holds."""
_SEED: Final = 42
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_LINEAR_MOST: Final = 900
"""Where the estimate is at most this, the number of empty buckets gives a better one."""
_CORRECTED_MOST: Final = 5 * BUCKETS
_ALPHA: Final = 0.7213 / (1 + 1.079 / BUCKETS)

Words = NDArray[np.uint64]
Hashes = NDArray[np.uint32]
Buckets = NDArray[np.uint8]
"""A row of BUCKETS for each group."""


def hashes_of(values: Values) -> Hashes:
    """The hash of each row: that of its value, or of the exclusive or of its values."""
    words = _words_of(values)
    if values.offsets is not None:
        ends = np.concatenate([np.zeros(1, np.uint64), np.bitwise_xor.accumulate(words)])
        words = ends[values.offsets[1:]] ^ ends[values.offsets[:-1]]
    return xxh32(words)


def xxh32(words: Words) -> Hashes:
    """XXH32 with the seed 42 of the 8 bytes of each word, the lowest first.

    The algorithm: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
    """
    _, second, third, fourth, _ = (np.uint32(prime) for prime in _PRIMES)
    halves = words.astype("<u8", copy=False).view("<u4").reshape(-1, 2)
    found = np.full(len(words), (_SEED + _PRIMES[4] + 8) & 0xFFFFFFFF, np.uint32)
    for half in (halves[:, 0], halves[:, 1]):
        found += half * third
        found = (found << np.uint32(17) | found >> np.uint32(15)) * fourth
    found ^= found >> np.uint32(15)
    found *= second
    found ^= found >> np.uint32(13)
    found *= third
    found ^= found >> np.uint32(16)
    return found


def places_of(hashes: Hashes) -> Buckets:
    """What each hash puts into its bucket: the place of the highest bit that is set, of the 22 above the number of the
    bucket, from 1; 23 where none is."""
    _, exponents = np.frexp((hashes | np.uint32(BUCKETS - 1)).astype(np.float64))
    return (33 - exponents).astype(np.uint8)


def estimates(buckets: Buckets) -> NDArray[np.int64]:
    """How many distinct values the buckets of each group have seen."""
    raw = _ALPHA * BUCKETS * BUCKETS / np.exp2(-buckets.astype(np.float64)).sum(axis=1)
    bias = np.interp(raw, RAW_ESTIMATES, RAW_ESTIMATES - TRUE_COUNTS)
    found = np.where(raw <= _CORRECTED_MOST, raw - bias, raw)
    empty = (buckets == 0).sum(axis=1)
    linear = BUCKETS * np.log(BUCKETS / np.maximum(empty, 1))
    found = np.where((empty > 0) & (linear <= _LINEAR_MOST), linear, found)
    counts: NDArray[np.int64] = np.floor(found + 0.5).astype(np.int64)
    return counts


def _words_of(values: Values) -> Words:
    """64 bits of each value, as the `hash` of Vespa's result nodes: numbers as they are, text folded by exclusive or, a
    bucket's low limit."""
    data = values.data
    match values.kind:
        case Kind.LONG | Kind.BOOL:
            return data.astype(np.int64, copy=False).view(np.uint64)
        case Kind.DOUBLE:
            return data.view(np.uint64)
        case Kind.NULL:
            return np.zeros(len(data), np.uint64)
        case Kind.STRING | Kind.RAW:
            if isinstance(values.table, StringTable):
                return values.table.words_of(data)
            codes, places = distinct(data)
            return folded_words(bytes_of(values.table, codes))[places]
    codes, places = distinct(data)
    lows = [None if bucket is None else bucket[0] for bucket in values_of(values.table, codes)]
    return _limit_words(values.kind, lows)[places]


def _limit_words(kind: Kind, lows: list[Any]) -> Words:
    if kind is Kind.LONG_BUCKET:
        return np.array([0 if low is None else low for low in lows], np.int64).view(np.uint64)
    if kind is Kind.DOUBLE_BUCKET:
        return np.array([0.0 if low is None else low for low in lows], np.float64).view(np.uint64)
    return folded_words([low if isinstance(low, bytes) else encoded(low or "") for low in lows])
