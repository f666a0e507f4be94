"""What groups are identified by, as texts.

Vespa: GroupId and its subclasses in com.yahoo.search.grouping.result; RawBase64.java
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.document.float_text import double_text
from paperwasp.search.grouping.values import Kind, Values

BUCKETS: Final = frozenset((Kind.LONG_BUCKET, Kind.DOUBLE_BUCKET, Kind.STRING_BUCKET, Kind.RAW_BUCKET))


@dataclass(frozen=True, slots=True, eq=False)
class GroupIds:
    """The ids of groups of one kind, one a group; those of no value are null."""

    kind: Kind
    texts: Sequence[str | None]
    """Of the values, or the lower limits; None: null."""
    highs: Sequence[str | None] = ()
    """The upper limits, where these are buckets."""

    @property
    def has_nulls(self) -> bool:
        return self.kind is Kind.NULL or None in self.texts


def ids_of(values: Values) -> GroupIds:
    """The ids of groups that have these values, one each. A value in no bucket is null."""
    kind = values.kind
    if kind is Kind.NULL:
        return GroupIds(kind, [None] * len(values.data))
    if kind is Kind.LONG:
        return GroupIds(kind, list(map(str, values.data.tolist())))
    shown = values_of(values)
    if kind not in BUCKETS:
        return GroupIds(kind, _texts(shown))
    buckets = [(None, None) if bucket is None else bucket for bucket in shown]
    return GroupIds(kind, _texts([low for low, _ in buckets]), _texts([high for _, high in buckets]))


def values_of(values: Values) -> Sequence[Any]:
    """The value of each row: int, float, bool, str, bytes, (low, high) of a bucket; None for null."""
    if values.table is None:
        return values.data.tolist() if values.kind is not Kind.NULL else [None] * len(values.data)
    return values.table.values_of(values.data)


def same_ids(values: Values, others: Values) -> bool:
    """Whether the rows of both have the same values."""
    if values.kind is not others.kind or len(values.data) != len(others.data):
        return False
    if values.table is others.table:
        return bool(np.array_equal(_bits(values.data), _bits(others.data)))
    return keys_of(values) == keys_of(others)


def keys_of(values: Values) -> list[Any]:
    """What can be compared and hashed, and is the same for the same value: of doubles their bits."""
    found = _bits(values.data).tolist() if values.table is None else values_of(values)
    return [(values.kind, value) for value in found]


def _bits(data: NDArray[Any]) -> NDArray[Any]:
    return data.view(np.int64) if data.dtype == np.float64 else data


def _texts(values: Sequence[Any]) -> Sequence[str | None]:
    if set(map(type, values)) == {str}:
        return values
    return [text_of(value) for value in values]


def text_of(value: Any) -> str | None:
    """The text of a value, in Java's form; None for None."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes():
            return raw_text(value)
    return str(value)


def raw_text(value: bytes) -> str:
    """A raw value in base64."""
    return b64encode(value).decode()
