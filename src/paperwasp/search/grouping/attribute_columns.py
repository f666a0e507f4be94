"""The columns of attributes as expressions read them: single values, and elements of arrays, weighted sets and parts of
structs and maps. An imported column is read through its references; positions are their numbers on a z-curve.

An unset value is what Vespa has for it: the least integer of the attribute's type, NaN, the empty string, false; and
the same where a reference leads nowhere. Strings are equal only if their case is, in uncased attributes too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import BOOL
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expression_node import Lids, Scope
from paperwasp.search.grouping.tables import InternedTable, StringTable
from paperwasp.search.grouping.values import Kind, Table, Values
from paperwasp.storage.attributes.array import ArrayView, PartView
from paperwasp.storage.attributes.column import ColumnView
from paperwasp.storage.attributes.elements import numbers_within, own_rows
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.position import PositionView
from paperwasp.storage.attributes.raw import RawView
from paperwasp.storage.attributes.rows import split, spread
from paperwasp.storage.attributes.string import StringView

Z_CURVE_SUFFIX: Final = "_zcurve"
_MOST_VALUES: Final = 2**32 - 1
"""The most values of all rows: their offsets have 32 bits."""
Lengths = NDArray[np.int64]


class AttributeColumn:
    """The column of one attribute. `undefined` is the datum of an unset value."""

    def __init__(self, name: str, view: ColumnView) -> None:
        self._view = view
        inner = view.innermost if isinstance(view, ImportedView) else view
        if isinstance(inner, PositionView):
            inner = inner.numbers
        self._inner = inner
        self.name = name
        self.is_multi = isinstance(inner, ArrayView)
        self.kind = _kind_of(name, inner)
        self.size_bytes = 8
        self.undefined: Any = 0
        self.table: Table | None = None
        self._raw: InternedTable | None = None
        self._is_set = inner.is_set if isinstance(inner, PartView) else None
        if isinstance(inner, StringView | ArrayView) and inner.dictionary is not None:
            self.table = StringTable(inner.dictionary)
        elif isinstance(inner, RawView):
            self.table = self._raw = InternedTable((b"",))
        elif isinstance(inner, NumericView | ArrayView):
            self.size_bytes = 8 if self.kind == Kind.DOUBLE else inner.values.dtype.itemsize
            if self.kind != Kind.BOOL:
                self.undefined = np.nan if self.kind == Kind.DOUBLE else int(np.iinfo(inner.values.dtype).min)

    def code_of(self, text: str) -> int | None:
        """The code of a string; None: no document has it. Only of strings."""
        inner = self._inner
        assert isinstance(inner, StringView | ArrayView) and inner.dictionary is not None
        return inner.dictionary.find(text)

    def single(self, lids: Lids) -> Values:
        """The single value of each row."""
        _, rows, _, is_there = own_rows(self._view, lids)
        found = self._single(rows)
        if len(rows) == len(lids):
            return Values(self.kind, found, self.table)
        data = np.full(len(lids), self.undefined, found.dtype)
        data[is_there] = found
        return Values(self.kind, data, self.table)

    def elements(self, lids: Lids) -> Values:
        """All elements of each row that are set."""
        starts, lengths = self.runs(lids)
        places = spread(starts, lengths)
        if (is_set := self._is_set) is not None:
            kept = is_set[places]
            lengths = np.bincount(np.repeat(np.arange(len(lids)), lengths)[kept], minlength=len(lids))
            places = places[kept]
        return Values(self.kind, self.at(places), self.table, offsets_of(lengths))

    def numbers_of_set(self, lids: Lids) -> NDArray[np.int64] | None:
        """The numbers, in their rows, of all elements that are set; None: all are."""
        if self._is_set is None:
            return None
        starts, lengths = self.runs(lids)
        return numbers_within(lengths)[self._is_set[spread(starts, lengths)]]

    def runs(self, lids: Lids) -> tuple[Lengths, Lengths]:
        """Where the elements of each row stand, and how many there are."""
        _, rows, lengths, is_there = own_rows(self._view, lids)
        starts = np.zeros(len(lids), np.int64)
        assert isinstance(self._inner, ArrayView)
        starts[is_there], lengths[is_there] = split(self._inner.rows[rows])
        return starts, lengths

    def are_set(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the elements that stand at these places have a value at all."""
        return np.ones(len(places), np.bool_) if self._is_set is None else self._is_set[places]

    def at(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """The elements that stand at these places."""
        assert isinstance(self._inner, ArrayView)
        return _data_of(self.kind, self._inner.values[places])

    def element_of(self, lids: Lids, numbers: NDArray[Any]) -> Values:
        """The element of each row with this number; the last one where there are fewer; 0, false or the empty string
        where there are none."""
        starts, lengths = self.runs(lids)
        has = lengths > 0
        places = starts + np.minimum(numbers, lengths - 1)
        found = self.at(places[has])
        data = np.zeros(len(lids), found.dtype)
        data[has] = found
        return Values(self.kind, data, self.table)

    def _single(self, rows: Lids) -> NDArray[Any]:
        inner = self._inner
        if isinstance(inner, RawView):
            assert self._raw is not None
            return _raw_codes(inner, rows, self._raw)
        assert isinstance(inner, NumericView | StringView)
        return _data_of(self.kind, inner.values.take(rows))


def plain_column(view: ColumnView) -> tuple[Kind, NDArray[Any], Table | None] | None:
    """The kind, the numbers or codes by lid, and the table of a column with one string or integer a lid, as
    `AttributeColumn.single` has them; None: the column has other values, or several."""
    if type(view) is StringView:
        return Kind.STRING, view.values, StringTable(view.dictionary)
    if type(view) is NumericView and view.values.dtype.kind == "i" and view.data_type != BOOL:
        return Kind.LONG, view.values, None
    return None


class MissingAttribute(InvalidQuery):
    """A document type does not have an attribute."""


def column_of(name: str, scope: Scope) -> AttributeColumn:
    """The column of the attribute of this name. Errors: MissingAttribute; InvalidQuery for none to group by."""
    view = scope.columns.get(name)
    if view is None and name.endswith(Z_CURVE_SUFFIX):
        view = scope.columns.get(name.removesuffix(Z_CURVE_SUFFIX))
    if view is None:
        raise MissingAttribute(f"Failed locating attribute vector '{name}'")
    return AttributeColumn(name, view)


def offsets_of(lengths: NDArray[Any]) -> NDArray[np.uint32]:
    """Where the values of each row begin and end. Errors: InvalidQuery for more values than offsets can count."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(ends) and int(ends[-1]) > _MOST_VALUES:
        raise InvalidQuery(f"The hits have more than {_MOST_VALUES} values to group by")
    offsets = np.zeros(len(lengths) + 1, np.uint32)
    offsets[1:] = ends
    return offsets


def _kind_of(name: str, inner: ColumnView) -> Kind:
    match inner:
        case StringView():
            return Kind.STRING
        case ArrayView() if inner.dictionary is not None:
            return Kind.STRING
        case RawView():
            return Kind.RAW
        case NumericView() | ArrayView():
            if (inner.data_type if isinstance(inner, NumericView) else inner.element_type) == BOOL:
                return Kind.BOOL
            return Kind.DOUBLE if inner.values.dtype.kind == "f" else Kind.LONG
    raise InvalidQuery(f"Can not deduce correct resultclass for attribute vector '{name}' for attribute node")


def _data_of(kind: Kind, values: NDArray[Any]) -> NDArray[Any]:
    """Stored values, which are picked already, as `Values` has them."""
    if kind == Kind.BOOL:
        return values > 0
    if kind == Kind.STRING:
        return values
    return values.astype(np.float64 if kind == Kind.DOUBLE else np.int64, copy=False)


def _raw_codes(inner: RawView, rows: Lids, table: InternedTable) -> NDArray[np.uint32]:
    """The codes of raw values: those of one length at a time, as rows of a matrix of bytes."""
    starts, lengths = split(inner.rows[rows])
    codes = np.zeros(len(rows), np.uint32)
    for length in np.unique(lengths[lengths > 0]).tolist():
        which = np.flatnonzero(lengths == length)
        matrix = inner.content[starts[which][:, None] + np.arange(length)]
        found, places = np.unique(matrix.view(f"V{length}").reshape(-1), return_inverse=True)
        codes[which] = table.codes_of([value.tobytes() for value in found])[places.reshape(-1)]
    return codes
