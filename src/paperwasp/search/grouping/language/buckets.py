"""The buckets of `predefined`: each from its low limit, with it, to its high one, without it.

A low limit that is left out, and a high one that is in, become the next larger value.
Vespa: BucketResolver, BucketValue, PredefinedFunction
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from paperwasp.errors import LanguageError
from paperwasp.search.grouping.expression import Bucket, Infinite, Limit
from paperwasp.search.grouping.language.text import bucket_text

_MAX_LONG: Final = 2**63 - 1
_TYPES: Final = {int: "LongValue", float: "DoubleValue", str: "StringValue", bytes: "RawValue"}


def next_value(value: Limit) -> Limit:
    """The least value that is larger."""
    match value:
        case int():
            return min(value + 1, _MAX_LONG)
        case float():
            return math.nextafter(value, math.inf)
        case str():
            return value + " "
        case bytes():
            return value + b"\0"
    return value


class BucketReader:
    """Takes buckets as they are written. Errors: LanguageError for limits of several types, or out of order."""

    def __init__(self) -> None:
        self._last: Limit | None = None
        self.buckets: list[Bucket] = []

    def add(self, low: Limit, has_low: bool, high: Limit, has_high: bool) -> None:
        """Adds a bucket; `has_low`, `has_high`: whether the limit is in it."""
        for limit in (low, high):
            self._check_type(limit)
            self._last = limit
        bucket = Bucket(low if has_low else next_value(low), next_value(high) if has_high else high)
        if _is_below(bucket.high, bucket.low):
            raise LanguageError("Bucket to-value cannot be less than from-value.")
        self.buckets.append(bucket)

    def _check_type(self, limit: Limit) -> None:
        last = self._last
        if last is None:
            return
        if isinstance(last, Infinite) or isinstance(limit, Infinite):
            if isinstance(last, Infinite) and isinstance(limit, Infinite):
                raise LanguageError("Bucket type mismatch, cannot both be infinity.")
        elif type(last) is not type(limit):
            names = f"expected '{_TYPES[type(last)]}' got '{_TYPES[type(limit)]}'"
            raise LanguageError(f"Bucket type mismatch, {names}.")

    def finish(self) -> Sequence[Bucket]:
        """All buckets. Errors: LanguageError where they do not rise."""
        types = {type(limit) for bucket in self.buckets for limit in (bucket.low, bucket.high)} - {Infinite}
        if len(types) > 1:
            raise LanguageError(f"Bucket type mismatch, got {' and '.join(sorted(_TYPES[each] for each in types))}.")
        for bucket, following in zip(self.buckets, self.buckets[1:], strict=False):
            if _is_below(following.low, bucket.high):
                texts = f"{bucket_text(bucket)} before {bucket_text(following)}"
                raise LanguageError(f"Buckets must be monotonically increasing, got {texts}.")
        return self.buckets


def _is_below(value: Limit, other: Limit) -> bool:
    """Whether a limit is smaller than another of the same type. Bytes have signs, as in Java."""
    if isinstance(value, Infinite) or isinstance(other, Infinite):
        low = isinstance(value, Infinite) and value.is_negative
        return (low or (isinstance(other, Infinite) and not other.is_negative)) and value != other
    if isinstance(value, bytes) and isinstance(other, bytes):
        return _signed(value) < _signed(other)
    if isinstance(value, str) and isinstance(other, str):
        return value.encode("utf-16-be", "surrogatepass") < other.encode("utf-16-be", "surrogatepass")
    return value < other  # type: ignore[operator]


def _signed(value: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in value]
