"""Rows of batches: which there are for which hit, how many may be, rows by others, their labels as single numbers,
and which subspaces of two batches belong together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.core.clock import check_time
from paperwasp.core.rank.rank_program import OPCODES, OPERATION_WIDTH, OPERATIONS
from paperwasp.document.tensor.batch import LabelNumbers, TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.errors import TooLarge

# Large arrays piece by piece: between two pieces the clock is asked and other threads run, and what is computed on the
# way to the result stays as small as a piece.


PIECE_CELLS: Final = 1 << 16
"""Cells that are computed at a time: some 50 µs of adding, 1 ms of functions that take long."""


def pieces(shape: tuple[int, ...], most_cells: int = PIECE_CELLS) -> Iterator[tuple[slice, ...]]:
    """Indexes of pieces of an array of this shape, which cover it in its order. One piece where it is small.

    Errors: OutOfTime, before a piece.
    """
    axis, below = len(shape), 1
    while axis > 0 and below * shape[axis - 1] <= most_cells:
        axis -= 1
        below *= shape[axis]
    if axis == 0:
        yield ()
        return
    cut, outer = axis - 1, shape[: axis - 1]
    step = max(1, most_cells // max(1, below))
    for number in range(math.prod(outer)):
        place: list[slice] = []
        for length in reversed(outer):
            number, at = divmod(number, length)
            place.insert(0, slice(at, at + 1))
        for start in range(0, shape[cut], step):
            check_time()
            yield (*place, slice(start, min(shape[cut], start + step)))


Rows = NDArray[np.int64]


_MOST_AXES: Final = 31
"""The most dimensions of the arrays of NumPy, less one for the rows."""


_CELL_BYTES: Final = {name: np.dtype(dtype).itemsize for name, dtype in DTYPES.items()}
_LABEL_BYTES: Final = 8


def take_memory(count: int, what: str) -> None:
    """Counts bytes that are about to be allocated. Errors: TooLarge where the work may not have them."""
    try:
        budget.take(count)
    except OutOfMemory as error:
        raise TooLarge(f"{what} needs {error}") from None


def check_size(rows: int, type_: TensorType) -> None:
    """Counts the memory of this number of subspaces of this type, which are about to be made.

    Errors: TooLarge, labels counted as cells; OutOfTime when the time of the thread is over.
    """
    check_time()
    if len(type_.indexed) > _MOST_AXES:
        raise TooLarge(f"a tensor with {len(type_.indexed)} indexed dimensions is not worked: at most {_MOST_AXES} are")
    labels = len(type_.mapped) + 2 if type_.mapped else 0
    cells = rows * math.prod(type_.shape)
    if cells + rows * labels > limits.TENSOR_BATCH_CELLS:
        raise TooLarge(
            f"a result of type {type_} has {rows} subspaces for these hits together:"
            f" more than {limits.TENSOR_BATCH_CELLS} cells at a time are not worked"
        )
    if budget.most_bytes:
        size_bytes = cells * _CELL_BYTES[type_.cell_type] + rows * labels * _LABEL_BYTES
        take_memory(size_bytes, f"a result of type {type_}")


def bounds(counts: Rows) -> Rows:
    """(n + 1): where each of n lies that are below each other and have these lengths."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def ranges(starts: Rows, counts: Rows) -> Rows:
    """The numbers from each start on, as many as each count, below each other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Rows = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return numbers


def taken(batch: TensorBatch, hits: Rows) -> TensorBatch:
    """Takes the tensors of these hits (numbers of hits, in any order). One that is the same for all stays so."""
    if batch.is_single:
        return batch
    counts = batch.counts[hits]
    check_size(int(counts.sum()), batch.type)
    rows = ranges(batch.starts[:-1][hits], counts)
    return TensorBatch(batch.type, bounds(counts), batch.labels[rows], batch.cells[rows])


def repeated(batch: TensorBatch, times: int) -> TensorBatch:
    """Repeats the tensor of each hit this number of times. One that is the same for all stays so."""
    return taken(batch, np.repeat(np.arange(batch.hits), times))


def spread(batch: TensorBatch, hits: int) -> TensorBatch:
    """The same for this number of hits, each having its own."""
    if not batch.is_single:
        return batch
    own = TensorBatch(batch.type, batch.starts, batch.labels, batch.cells)
    return own if hits == 1 else taken(own, np.zeros(hits, np.int64))


def with_rows(batch: TensorBatch, kept: NDArray[np.bool_]) -> TensorBatch:
    """With some of the subspaces."""
    starts = bounds(kept.astype(np.int64))[batch.starts]
    return TensorBatch(batch.type, starts, batch.labels[kept], batch.cells[kept], batch.is_single)


# Rows of labels as single numbers, which can be sorted and looked up.
#
# Labels of one evaluation are mostly numbers side by side, so that the place of a label in the range of its column, and
# the places of several columns as digits of one number, are keys without any look at which labels there are.


_LARGEST_KEY: Final = 2**62
_TABLE_ROOM: Final = 1 << 16
"""Places of a table that may be empty however few rows there are."""


def ordered(keys: Rows) -> tuple[Rows, Rows]:
    """(the rows in the order of their keys, none of which is negative; the keys so). Equal ones stay in order."""
    count = len(keys)
    bits = count.bit_length()
    if count and int(keys.max()) < _LARGEST_KEY >> bits:
        both = np.sort(keys << bits | np.arange(count))
        return both & ((1 << bits) - 1), both >> bits
    order = np.argsort(keys, kind="stable")
    return order, keys[order]


def ordered_within(owners: Rows, values: Cells) -> Rows:
    """The places of the values, those of one owner side by side, rising, NaN last. Equal ones stay in order."""
    if not len(values):
        return np.zeros(0, np.int64)
    places = np.argsort(values)
    rising = values[places]
    is_more = rising[1:] > rising[:-1]
    is_more |= np.isnan(rising[1:]) & ~np.isnan(rising[:-1])
    ranks = np.zeros(len(values), np.int64)
    ranks[places[1:]] = np.cumsum(is_more)
    return ordered(owners * len(values) + ranks)[0]


def numbered(columns: Sequence[Rows]) -> Rows:
    """A number for each row of these columns: the same for rows that are the same, in the order of the columns."""
    return keys_of(columns, columns)[0]


def keys_of(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, int]:
    """(a key for each known row, the key of each asked row, how many keys there can be). -1: is as no known row."""
    if not len(known[0]):
        return np.zeros(0, np.int64), np.full(len(asked[0]), -1), 0
    lows = [int(column.min()) for column in known]
    sizes = [int(column.max()) - low + 1 for column, low in zip(known, lows, strict=True)]
    total = 1
    for size in sizes:
        total *= size
    if total >= _LARGEST_KEY:
        return _keys_by_rank(known, asked)
    known_keys = np.zeros(len(known[0]), np.int64)
    asked_keys = np.zeros(len(asked[0]), np.int64)
    is_known = np.ones(len(asked[0]), np.bool_)
    for known_column, asked_column, low, size in zip(known, asked, lows, sizes, strict=True):
        known_keys = known_keys * size + (known_column - low)
        if asked is not known:
            is_known &= (asked_column >= low) & (asked_column < low + size)
            asked_keys = asked_keys * size + (asked_column - low)
    return known_keys, np.where(is_known, asked_keys, -1), total


def _keys_by_rank(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, int]:
    """As `keys_of`, for labels far from each other: each column by the ranks of its labels."""
    known_keys = np.zeros(len(known[0]), np.int64)
    asked_keys = np.zeros(len(asked[0]), np.int64)
    total = 1
    for known_column, asked_column in zip(known, asked, strict=True):
        labels, ranks = np.unique(known_column, return_inverse=True)
        asked_ranks = np.minimum(np.searchsorted(labels, asked_column), len(labels) - 1)
        is_known = (labels[asked_ranks] == asked_column) & (asked_keys >= 0)
        wanted = np.where(is_known, asked_keys * len(labels) + asked_ranks, -1)
        distinct, known_keys = np.unique(known_keys * len(labels) + ranks.reshape(-1), return_inverse=True)
        known_keys = known_keys.reshape(-1)
        total = len(distinct)
        asked_keys = np.minimum(np.searchsorted(distinct, wanted), total - 1)
        asked_keys = np.where(distinct[asked_keys] == wanted, asked_keys, -1)
    return known_keys, asked_keys, total


def places(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, Rows]:
    """(an order of the known rows; for each asked row where those that are like it begin in that order; how many)."""
    known_keys, asked_keys, total = keys_of(known, asked)
    order, in_order = ordered(known_keys)
    if total <= _TABLE_ROOM + 8 * (len(known_keys) + len(asked_keys)):
        starts = np.zeros(total + 2, np.int64)
        np.cumsum(np.bincount(known_keys, minlength=total), out=starts[1:-1])
        starts[-1] = starts[-2]
        # a key of -1 is the last place of the table, which has no rows
        found = starts[:-1][asked_keys]
        return order, found, starts[1:][asked_keys] - found
    found = np.searchsorted(in_order, asked_keys, "left")
    return order, found, np.searchsorted(in_order, asked_keys, "right") - found


# Functions of cells, and cells as other cell types.
#
# Arithmetic on cells of float is done in float where Vespa does it so, and in double otherwise.


Cells = NDArray[Any]
CellFunction = Callable[..., Cells]
"""A function of arrays of one shape, each of float32 or float64 (they may be read-only); it gives an array of that
shape, or one that can be broadcast to it."""


def operand(cells: Cells) -> Cells:
    """Cells as what functions take: int8 as float32."""
    return cells.astype(np.float32) if cells.dtype == np.int8 else cells


def converted(values: Cells, cell_type: str) -> Cells:
    """Values as cells of this type, whatever they are: int8 drops what is behind the point and keeps the low byte."""
    if cell_type == "int8":
        return values if values.dtype == np.int8 else _low_bytes(values)
    with np.errstate(over="ignore"):
        cells = values.astype(DTYPES[cell_type], copy=False)
    if cell_type == "bfloat16":
        cells = (np.ascontiguousarray(cells).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return cells


def apply_function(function: CellFunction, shape: tuple[int, ...], cell_type: str, *operands: Cells) -> Cells:
    """The function of the operands, which have this shape, as cells of this type in an array of their own.

    Errors: OutOfTime where they are many.
    """
    with np.errstate(all="ignore"):
        if math.prod(shape) <= PIECE_CELLS:
            values = np.asarray(function(*map(operand, operands)))
            return np.ascontiguousarray(np.broadcast_to(converted(values, cell_type), shape))
        cells = np.empty(shape, DTYPES[cell_type])
        for piece in pieces(shape):
            values = np.asarray(function(*(operand(each[piece]) for each in operands)))
            cells[piece] = converted(values, cell_type)
        return cells


def _low_bytes(values: Cells) -> Cells:
    fits = np.abs(values) < 2.0**31
    return np.where(fits, values, 0).astype(np.int32).astype(np.int8)


def _by_kernel(name: str) -> CellFunction:
    """As a scalar program computes it."""
    arity = OPERATIONS[name]
    code = np.array([OPCODES[name], arity, *range(arity), *[0] * (OPERATION_WIDTH - 2 - arity)], np.int32)
    no_constants = np.zeros(0)

    def function(*operands: Cells) -> Cells:
        columns = [np.ascontiguousarray(values, np.float64).reshape(-1) for values in operands]
        out = np.empty(operands[0].size, np.float64)
        if len(out):
            _core.rank_program_evaluate(code, no_constants, columns, 1, arity, out)
        return out.reshape(operands[0].shape)

    return function


def _true(condition: Callable[..., NDArray[np.bool_]]) -> CellFunction:
    return lambda *operands: condition(*operands).astype(np.float32)


def _either(condition: NDArray[np.bool_], a: Any, b: Any) -> Cells:
    chosen: Cells = np.where(condition, a, b)
    return chosen


_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1).astype(np.float32)
"""Bits that are set in each byte."""


def _hamming(a: Cells, b: Cells) -> Cells:
    different: Cells = _ONES[(_low_bytes(a) ^ _low_bytes(b)).view(np.uint8)]
    return different


_OF_ANY_FLOAT: Final[Mapping[str, CellFunction]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}
"""Float of float, double of double: these round."""

_EXACT: Final[Mapping[str, CellFunction]] = {
    "negate": np.negative,
    "ceil": np.ceil,
    "floor": np.floor,
    "fabs": np.fabs,
    "relu": lambda a: _either(a < 0, a.dtype.type(0), a),
    "max": lambda a, b: _either(a < b, b, a),
    "min": lambda a, b: _either(b < a, b, a),
    "select": lambda a, b, c: _either(a != 0, b, c),
    "isNan": _true(np.isnan),
    "not": _true(lambda a: a == 0),
    "equal": _true(np.equal),
    "notEqual": _true(np.not_equal),
    "less": _true(np.less),
    "lessEqual": _true(np.less_equal),
    "greater": _true(np.greater),
    "greaterEqual": _true(np.greater_equal),
    "and": _true(lambda a, b: (a != 0) & (b != 0)),
    "or": _true(lambda a, b: (a != 0) | (b != 0)),
    "hamming": _hamming,
}
"""Functions that NumPy computes faster than the kernel, with the same result in float and in double."""

CELL_FUNCTIONS: Final[Mapping[str, CellFunction]] = {
    **{name: _by_kernel(name) for name in OPERATIONS},
    **_EXACT,
    **_OF_ANY_FLOAT,
}
"""The functions of ranking expressions by the names of `core.rank.rank_program.OPERATIONS`."""


# Which subspaces of two batches belong together: those of one hit with the same labels in the dimensions that both
# have. Matching is by sorted keys of (hit, labels), never row by row.


class Alignment(Struct, frozen=True, eq=False):
    """Rows of a result, each of one row of a batch `a` and one of a batch `b`."""

    a: Rows | None
    """None: all rows of `a` in order, or its only row for all."""
    b: Rows | None
    starts: Rows
    labels: LabelNumbers
    is_single: bool

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def batch(self, type_: TensorType, cells: Cells) -> TensorBatch:
        """The result of these cells."""
        return TensorBatch(type_, self.starts, self.labels, cells, self.is_single)


def picked(cells: Cells, rows: Rows | None, part: slice = slice(None)) -> Cells:
    """The cells of these rows, or of a part of them. Errors: TooLarge, as `take_memory`."""
    if rows is None:
        return cells[part]
    wanted = rows[part]
    take_memory(len(wanted) * (cells.nbytes // max(1, len(cells))), "putting cells beside others")
    return cells[wanted]


def beside(cells: Cells, type_: TensorType, result: TensorType) -> Cells:
    """Cells (rows, *type.shape) with an axis for each indexed dimension of the result: of length 1 for one it lacks."""
    sizes = {d.name: d.size or 0 for d in type_.indexed}
    return cells.reshape(len(cells), *(sizes.get(d.name, 1) for d in result.indexed))


def aligned(a: TensorBatch, b: TensorBatch, result: TensorType) -> Alignment:
    """The rows that are combined to a `result`, which has the mapped dimensions of both. Errors: `check_size`."""
    is_single = a.is_single and b.is_single
    hits = b.hits if a.is_single else a.hits
    if not a.is_single and not b.is_single and a.hits != b.hits:
        raise AssertionError(f"batches of {a.hits} and {b.hits} hits cannot be combined")
    if not b.type.mapped:
        return _with_dense(a, b, hits, result)
    if not a.type.mapped:
        return _swap_sides(_with_dense(b, a, hits, result))
    if a.labels is b.labels and a.starts is b.starts and a.type.mapped == b.type.mapped:
        check_size(len(a.labels), result)
        return Alignment(None, None, a.starts, a.labels, is_single)
    if a.is_single and not b.is_single:
        return _swap_sides(_match_rows(b, a, result))
    return _match_rows(a, b, result)


def crossed(a: TensorBatch, single: TensorBatch, result: TensorType) -> Alignment:
    """Each row of `a` with all rows of `single`, which has no mapped dimension of it; without their numbers."""
    count = len(single.labels)
    check_size(len(a.labels) * count, result)
    labels = np.empty((len(a.labels), count, len(result.mapped)), np.int64)
    names = [[d.name for d in side.type.mapped] for side in (a, single)]
    for column, dimension in enumerate(result.mapped):
        if dimension.name in names[0]:
            labels[:, :, column] = a.labels[:, names[0].index(dimension.name), None]
        else:
            labels[:, :, column] = single.labels[:, names[1].index(dimension.name)]
    rows = labels.reshape(len(a.labels) * count, len(result.mapped))
    return Alignment(None, None, a.starts * count, rows, a.is_single)


def _swap_sides(found: Alignment) -> Alignment:
    return Alignment(found.b, found.a, found.starts, found.labels, found.is_single)


def _with_dense(a: TensorBatch, b: TensorBatch, hits: int, result: TensorType) -> Alignment:
    """`b` has one row for each hit, or one for all."""
    if a.is_single and not b.is_single:
        each = len(a.labels)
        check_size(each * hits, result)
        starts = np.arange(hits + 1, dtype=np.int64) * each
        if not a.type.mapped:
            return Alignment(None, None, starts, b.labels, is_single=False)
        rows = np.tile(np.arange(each), hits)
        return Alignment(rows, np.repeat(np.arange(hits), each), starts, a.labels[rows], is_single=False)
    check_size(len(a.labels), result)
    of_hits = None if b.is_single or not a.type.mapped else a.owners
    return Alignment(None, of_hits, a.starts, a.labels, a.is_single)


def _match_rows(outer: TensorBatch, inner: TensorBatch, result: TensorType) -> Alignment:
    """Finds for each row of `outer` those of `inner` that it meets. The result is in the order of `outer`, which is
    single only if `inner` is too."""
    outer_names = [d.name for d in outer.type.mapped]
    inner_names = [d.name for d in inner.type.mapped]
    common = [name for name in outer_names if name in inner_names]
    if common:
        outer_columns = [outer.labels[:, outer_names.index(name)] for name in common]
        inner_columns = [inner.labels[:, inner_names.index(name)] for name in common]
        if not inner.is_single:
            outer_columns.insert(0, outer.owners)
            inner_columns.insert(0, inner.owners)
        order, starts, counts = places(inner_columns, outer_columns)
    else:
        order = np.arange(len(inner.labels))
        hits = np.zeros(len(outer.labels), np.int64) if inner.is_single else outer.owners
        starts, counts = inner.starts[:-1][hits], inner.counts[hits]
    row_starts = bounds(counts)
    check_size(int(row_starts[-1]), result)
    outer_rows = np.repeat(np.arange(len(outer.labels)), counts)
    inner_rows = order[ranges(starts, counts)]
    labels = np.empty((len(outer_rows), len(result.mapped)), np.int64)
    for column, dimension in enumerate(result.mapped):
        if dimension.name in outer_names:
            labels[:, column] = outer.labels[outer_rows, outer_names.index(dimension.name)]
        else:
            labels[:, column] = inner.labels[inner_rows, inner_names.index(dimension.name)]
    return Alignment(outer_rows, inner_rows, row_starts[outer.starts], labels, outer.is_single)
