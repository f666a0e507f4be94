"""Columns: the values of one attribute of one document type, by lid.

A `Column` belongs to the writer: it appends rows for rising lids and changes single rows in place. A `ColumnView`
belongs to readers: it covers the lids below its limit and never changes length. A row that is changed in place shows
its old or its new value to readers of earlier views, never a mixture; a row once appended is never used for another
document.

Bitmaps: np.uint64, bit (lid & 63) of word (lid >> 6), (limit + 63) // 64 words; bits from the limit on are zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Value
from paperwasp.errors import InternalError, InvalidQuery
from paperwasp.storage.attributes.patterns import TextPattern, no_clock
from paperwasp.storage.attributes.wanted import NOTHING, Tokens, Wanted

Bitmap = NDArray[np.uint64]
Lids = NDArray[np.uint32]
Number = int | float
Arrays = Mapping[str, NDArray[Any]]
Frozen = Callable[[], Arrays]
"""Gives the arrays that are saved; nothing done to the column since shows in them."""


ElementNumbers = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""As in `core/attributes/elements.cpp`: offsets[rows + 1], and which elements of each row, from 0, rising."""


class Elements(NamedTuple):
    """Elements of some rows, one row after another."""

    counts: NDArray[np.int64]
    """The number of elements of each row."""
    numbers: NDArray[np.int64]
    """Which ones, from 0, rising within a row; 0 of a single value."""
    weights: NDArray[np.int32]
    """The weights of the keys of a weighted set; 1 elsewhere."""
    values: NDArray[Any]
    """As the column keeps them."""


class ColumnView(ABC):
    """One immutable view of a column: rows of the lids below `limit`."""

    __slots__ = ()

    limit: int
    is_array: bool = False
    """True where a row has any number of values: arrays, weighted sets."""
    is_string: bool = False
    is_searched: bool = True
    """True where terms and ranges are matched against the values."""

    @abstractmethod
    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        """The values of a range. Unset values are in no range, and strings neither. None leaves a side open."""

    @abstractmethod
    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        """One of these values. Text stands for a number in a numeric column, if it is one; strings are compared
        without case unless the field is cased."""

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        """The strings that fit a pattern; nothing in a column of numbers. `check_time` may raise meanwhile."""
        return NOTHING

    @abstractmethod
    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        """The rows below `limit` (default: the view's) with a value that is wanted."""

    @abstractmethod
    def estimate(self, wanted: Wanted) -> int:
        """About how many rows those are: for planning only."""

    def prepare(self) -> bool:
        """Does ahead what a query would else wait for; says whether there was anything to do."""
        return False

    def elements(self, lids: Lids, wanted: Wanted) -> Elements:
        """Which elements of the rows are wanted."""
        raise InternalError(f"{type(self).__name__} is not matched by terms")

    def element_numbers(self, lids: Lids, wanted: Wanted) -> ElementNumbers:
        """The same, no more than which ones."""
        found = self.elements(lids, wanted)
        return np.concatenate([[0], np.cumsum(found.counts)]).astype(np.uint32), found.numbers.astype(np.uint32)

    def tokens(self, tokens: Sequence[tuple[Value, int]]) -> Tokens:
        """Weighted tokens of a query as numbers of this column. Adds up those that stand for one value."""
        raise InternalError(f"{type(self).__name__} is not matched by terms")

    def products(self, lids: Lids, tokens: Tokens) -> NDArray[np.float64]:
        """For each row the sum of the products of weights, over its elements that are tokens."""
        raise InternalError(f"{type(self).__name__} is not matched by terms")

    def values_at(self, lids: Lids, wanted: Wanted) -> NDArray[Any]:
        """The numbers in the column that are wanted of these rows: in each row each once, in no order."""
        raise InternalError(f"{type(self).__name__} is not matched by terms")

    def range_bitmap(
        self,
        low: Number | None,
        high: Number | None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        limit: int | None = None,
    ) -> Bitmap:
        """The rows with a value in the range."""
        return self.bitmap(self.in_range(low, high, low_inclusive, high_inclusive), limit)

    def equal_bitmap(self, values: Value | Sequence[Value], limit: int | None = None) -> Bitmap:
        """The rows with one of these values."""
        return self.bitmap(self.any_of(values), limit)

    @abstractmethod
    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        """The single value as a number; NaN where unset, for arrays, and for strings."""

    @abstractmethod
    def counts(self, lids: Lids) -> NDArray[np.float64]:
        """How many values each row has: the length of an array; 1 for any single value, set or not."""

    @abstractmethod
    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        """Element `element` of a numeric array; 0 where it has fewer, and for all else."""

    def weights(self, lids: Lids, key: Value) -> NDArray[np.float64]:
        """The weight of just this key of a weighted set; NaN where a row does not have it, and for all else."""
        return np.full(len(lids), np.nan)

    @abstractmethod
    def gather(self, lids: Lids) -> list[Value | None]:
        """The values for people: None where unset (a bool is false)."""

    def get(self, lid: int) -> Value | None:
        """The value of one row; None where unset, a bool too."""
        return self.gather(np.array([lid], np.uint32))[0]

    def get_all(self, lids: Lids) -> list[Value | None]:
        """The values of rows as `get` has them."""
        return self.gather(lids)


class Column(ABC):
    """The writer's side. `length` rows are appended; the writer alone calls these."""

    @property
    @abstractmethod
    def length(self) -> int: ...

    @abstractmethod
    def append(self, values: Sequence[Value | None]) -> None:
        """The rows of the next lids. None: unset."""

    def append_plain(self, puts: list[PlainChange], name: str, first: int) -> None:
        """The rows from lid `first` on: what plain puts have in the field of that name. Those before are unset, where
        there are none yet."""
        self.pad(first)
        self.append([put.get(name) for put in puts])

    @abstractmethod
    def pad(self, length: int) -> None:
        """Unset rows up to `length`."""

    @abstractmethod
    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        """Gives values to rows that are unset, in a column that nobody reads yet."""

    @abstractmethod
    def set(self, lid: int, value: Value | None) -> None:
        """Changes one row in place."""

    def get(self, lid: int) -> Value | None:
        """The value of one row; None where unset."""
        return self.snapshot().get(lid)

    def settle(self, dead: Lids) -> int:
        """Brings up to date what is derived from the rows, before a batch is published. `dead`: documents that are gone
        since the last time; rows of other columns may be among them. Returns how many bytes, as JSON, are given back of
        values that no row has any more."""
        return 0

    @abstractmethod
    def snapshot(self) -> ColumnView:
        """A view of all rows appended so far."""

    @abstractmethod
    def freeze(self) -> Frozen:
        """The rows as they are now. Quick: what takes time is done when the arrays are first read, on any thread."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Becomes what was frozen. Errors: KeyError, ValueError for arrays of another kind of column."""

    @abstractmethod
    def size_bytes(self) -> int: ...

    def spare_strings(self) -> int:
        """How many strings are kept, at least, that no row has any more; 0 where these are fewer than the others."""
        return 0


def are_many_spare(strings: int, used: int) -> bool:
    """Tell whether a column of rows is to go on at once without the spare ones of its strings."""
    is_quick = used <= limits.STRINGS_KEPT_AT_ONCE
    return is_quick and strings - 1 - used >= max(limits.SPARE_STRINGS_LEAST, used // 2)


def spare_of(strings: int, used: int) -> int:
    """The spare ones of a dictionary's strings, of which at most `used` are used."""
    spare = strings - 1 - used
    return spare if spare >= used else 0


def single_elements(values: NDArray[Any], wanted: Wanted) -> Elements:
    """Keep the single values that are wanted."""
    found = wanted.among(values)
    count = int(np.count_nonzero(found))
    return Elements(found.astype(np.int64), np.zeros(count, np.int64), np.ones(count, np.int32), values[found])


def products_of(
    values: NDArray[Any], rows: NDArray[np.uint64], weights: NDArray[np.int32], lids: Lids, tokens: Tokens
) -> NDArray[np.float64]:
    """Sums of products of weights. No `rows`: single values; no `weights`: elements that weigh 1."""
    sums = np.zeros(len(lids))
    if len(tokens.keys):
        _core.products(values, rows, weights, tokens.keys, tokens.weights, np.ascontiguousarray(lids), sums)
    return sums


NO_ROWS: Final = np.zeros(0, np.uint64)
NO_WEIGHTS: Final = np.zeros(0, np.int32)


def empty_bitmap(limit: int) -> Bitmap:
    return np.zeros((limit + 63) // 64, np.uint64)


def bitmap_of(lids: NDArray[Any], limit: int) -> Bitmap:
    """The bitmap of these lids (any order, all below `limit`)."""
    flags = np.zeros((limit + 63) // 64 * 64, np.bool_)
    flags[lids] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def as_list(values: Value | Sequence[Value]) -> list[Value]:
    """One value or several, as a list."""
    return list(values) if isinstance(values, list | tuple | set | frozenset) else [values]


class OpaqueView(ColumnView):
    """A view of values against which no terms and ranges are matched, and that are no numbers: tensors, raw, positions.

    Operators and rank features of their own read their views directly.
    """

    __slots__ = ()

    is_searched = False

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        raise InvalidQuery("An attribute of this type has no ranges")

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        raise InvalidQuery("An attribute of this type is not matched by terms")

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        raise InvalidQuery("An attribute of this type is not matched by terms")

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        return empty_bitmap(self.limit if limit is None else limit)

    def estimate(self, wanted: Wanted) -> int:
        return 0

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))
