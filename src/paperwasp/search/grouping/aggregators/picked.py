"""first, argmin and argmax: the value of one hit of each group, the best or the one with the extreme key.

The value is single, or all values of the hit where its expression has several. All three are states of the least key,
where of equal keys the first hit is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.aggregator import (
    Aggregator,
    Binder,
    Groups,
    Numbers,
    State,
    aggregates,
    argument,
    written_as,
)
from paperwasp.search.grouping.conversion import LEAST, MOST, TEXTS, as_numbers
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.request import Aggregation, Expression
from paperwasp.search.grouping.value_columns import arrays_of, ranks_of, unified, values_at, values_from
from paperwasp.search.grouping.values import (
    Kind,
    ListTable,
    Null,
    Values,
    check_offsets,
    lengths_of,
    offsets_of,
    parts_at,
)

_NO_ROW: Final = -1
_EMPTY: Final[Mapping[Kind, Any]] = {Kind.LONG: 0, Kind.DOUBLE: 0.0, Kind.BOOL: False, Kind.STRING: "", Kind.RAW: b""}


class PickedState(Struct, State, frozen=True, eq=False):
    """The picked hit of each group: group i has the values offsets[i]:offsets[i + 1]."""

    is_multi: bool
    """Whether a hit has a list of values, rather than one."""
    has: NDArray[np.bool_]
    """True for each group that has such a hit."""
    keys: NDArray[Any]
    """int64 or float64; 0 where there is no hit."""
    offsets: Numbers
    values: Values

    @property
    def group_count(self) -> int:
        return len(self.has)

    def selected(self, rows: Numbers) -> Self:
        offsets, places = parts_at(self.offsets, rows)
        return type(self)(self.is_multi, self.has[rows], self.keys[rows], offsets, values_at(self.values, places))

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        dtype = np.result_type(*(part.keys for part in parts))
        keys = np.concatenate([part.keys for part in parts]).astype(dtype, copy=False)
        groups = np.concatenate(list(places)).astype(np.uint32)
        rows = np.flatnonzero(np.concatenate([part.has for part in parts]))
        picked = picked_rows(keys[rows], groups[rows], count)
        has = picked != _NO_ROW
        chosen = rows[picked[has]]
        lengths = np.concatenate([lengths_of(part.offsets) for part in parts])
        _, taken = parts_at(offsets_of(lengths), chosen)
        values = values_at(unified([part.values for part in parts]), taken)
        return cls(any(part.is_multi for part in parts), has, *_filled(has, keys[chosen], lengths[chosen]), values)

    def shown(self) -> Sequence[Any]:
        """The value of each group, or the list of its values; where no hit was picked, what `nothing` says."""
        values = self.values
        found = values.data.tolist() if values.table is None else values.table.values_of(values.data)
        parts = (list(found[low:high]) for low, high in pairwise(self.offsets.tolist()))
        if self.is_multi:
            return [part if has else self.nothing() for part, has in zip(parts, self.has.tolist(), strict=True)]
        return [part[0] if part else self.nothing() for part in parts]

    def nothing(self) -> Any:
        """The value of a group without a picked hit."""
        return Null.NULL

    def order_values(self) -> Values:
        """Single values, with what is empty where there are none; of lists their places in their order: the shorter
        first, then by their values."""
        values = self.values
        if self.is_multi:
            return Values(Kind.LONG, self._list_ranks())
        if values.table is not None:
            empty = _EMPTY.get(values.kind)
            found = iter(values.table.values_of(values.data))
            texts = [next(found) if has else empty for has in self.has.tolist()]
            codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
            data = np.array([codes[text] for text in texts], np.uint32)
            return Values(values.kind, data, ListTable(list(codes)))
        numbers = np.zeros(len(self.has), values.data.dtype)
        numbers[self.has] = values.data
        return Values(values.kind, numbers)

    def _list_ranks(self) -> NDArray[np.int64]:
        ranks = ranks_of(self.values).tolist()
        lists = [(high - low, *ranks[low:high]) for low, high in pairwise(self.offsets.tolist())]
        places = {each: place for place, each in enumerate(sorted(set(lists)))}
        return np.array([places[each] for each in lists], np.int64)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        members = {"is_multi": np.array([self.is_multi], np.uint8), "has": self.has.astype(np.uint8)}
        return {**members, "keys": self.keys, "offsets": self.offsets, **arrays_of(self.values)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        types = {"is_multi": (np.uint8,), "has": (np.uint8,), "keys": (np.int64, np.float64), "offsets": (np.int64,)}
        for name, dtypes in types.items():
            if name not in arrays or arrays[name].dtype not in dtypes or arrays[name].ndim != 1:
                raise ValueError(f"a state of picked hits has no array '{name}' of its type")
        values = values_from({name: array for name, array in arrays.items() if name not in types})
        has, keys, offsets = arrays["has"] != 0, arrays["keys"], arrays["offsets"]
        count, is_multi = len(has), arrays["is_multi"]
        if len(is_multi) != 1 or len(keys) != count:
            raise ValueError("the arrays of a state of picked hits differ in length")
        check_offsets(offsets, count, len(values.data))
        lengths = lengths_of(offsets)
        if lengths[~has].any():
            raise ValueError("a state of picked hits has values where it has no hit")
        if not is_multi[0] and (lengths[has] != 1).any():
            raise ValueError("a state of picked hits has several values of one")
        return cls(bool(is_multi[0]), has, keys, offsets, values)


_P = TypeVar("_P", bound=PickedState)


def picked_rows(keys: NDArray[Any], groups: Groups, count: int) -> Numbers:
    """The first row of each of `count` groups with the least key of its group; -1 where it has no row.

    keys: int64, or float64 without NaN.
    """
    start = MOST if keys.dtype == np.int64 else np.inf
    least = _core.group_extremes(keys, groups, count, start, is_max=False)
    rows = np.flatnonzero(keys == least[groups])[::-1]
    found = np.full(count, _NO_ROW)
    found[groups[rows]] = rows
    return found


def picked_state(state: type[_P], node: ExpressionNode, rows: Rows, picked: Numbers, keys: NDArray[Any]) -> _P:
    """The state of the values of a node at the picked rows. picked: a row for each group, or -1; keys: of each row."""
    has = picked != _NO_ROW
    chosen = picked[has]
    values = node.values(rows.at(chosen))
    lengths = np.ones(len(chosen), np.int64) if values.offsets is None else lengths_of(values.offsets)
    whole = Values(values.kind, values.data, values.table)
    return state(node.is_multi, has, *_filled(has, keys[chosen], lengths), whole)


def _filled(has: NDArray[np.bool_], keys: NDArray[Any], lengths: Numbers) -> tuple[NDArray[Any], Numbers]:
    """The keys of all groups, and the offsets of their values, from those of the groups that have a hit."""
    all_keys, all_lengths = np.zeros(len(has), keys.dtype), np.zeros(len(has), np.int64)
    all_keys[has], all_lengths[has] = keys, lengths
    return all_keys, offsets_of(all_lengths)


def empty_of(kind: Kind) -> Any:
    """The empty value of a type; null for buckets."""
    return _EMPTY.get(kind, Null.NULL)


# `first(expression)`: the value of a group's best hit, by relevance; of several values the first.
#
# Of hits of equal relevance that of the lowest lid is taken; one that has no value is passed over. Where no hit has
# one, the value is what is empty in its type: 0, the empty string.
# Vespa: first_aggregation_result.cpp


@written_as("first")
class FirstState(PickedState, frozen=True, eq=False):
    """The value of the best hit of each group."""

    def nothing(self) -> Any:
        return empty_of(self.values.kind)


class _FirstValue(ExpressionNode):
    """The first value of rows that each have one."""

    def __init__(self, node: ExpressionNode) -> None:
        self.kind = node.kind
        self._node = node

    def values(self, rows: Rows) -> Values:
        values = self._node.values(rows)
        data = values.data if values.offsets is None else values.data[values.offsets[:-1]]
        return Values(values.kind, data, values.table)


class First(Aggregator):
    """Picks the values of best hits."""

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node
        self._value = _FirstValue(node)

    def collect(self, rows: Rows, groups: Groups, count: int) -> FirstState:
        keys = -rows.relevances
        usable = keys == keys
        if self._node.is_multi:
            offsets = self._node.values(rows).offsets
            usable &= True if offsets is None else lengths_of(offsets) > 0
        places = np.flatnonzero(usable)
        chosen = picked_rows(keys[places], groups[places], count)
        picked = np.where(chosen >= 0, places[chosen] if len(places) else -1, -1)
        return picked_state(FirstState, self._value, rows, picked, keys)


@aggregates("first")
def _first(aggregation: Aggregation, bind: Binder) -> First:
    return First(bind(argument(aggregation)))


# `argmin(key, value)`: the value of a group's hit that has the least key; `argmax` is that of the negated key.
#
# The key is a number; of several values of a hit the least counts. Hits without a key are passed over: those that
# have no value, NaN, or where an attribute of the key's expression is not set. Of equal keys the hit of the lowest
# lid is taken. A group without a key shows null.
# Vespa: argmax_aggregation_result.cpp


_NUMBERS = frozenset({Kind.BOOL, Kind.LONG, Kind.DOUBLE})
Mask = NDArray[np.bool_]


@written_as("argmin")
class ArgminState(PickedState, frozen=True, eq=False):
    """The value of the hit with the least key of each group."""


class Argmin(Aggregator):
    """Picks hits by a key. `attributes`: those that must be set."""

    def __init__(self, key: ExpressionNode, attributes: Sequence[ExpressionNode], value: ExpressionNode) -> None:
        self._key = key
        self._attributes = attributes
        self._value = value

    def collect(self, rows: Rows, groups: Groups, count: int) -> ArgminState:
        values = self._key.values(rows)
        numbers = as_numbers(values)
        is_known = np.ones(len(groups), np.bool_)
        for node in self._attributes:
            is_known &= _is_set(node, node.values(rows))
        owners = np.arange(len(groups))
        if values.offsets is not None:
            owners = np.repeat(owners, lengths_of(values.offsets))
        usable = is_known[owners] & (numbers == numbers)
        owners, numbers = owners[usable], numbers[usable]
        chosen = picked_rows(numbers, groups[owners], count)
        has = chosen >= 0
        picked = np.full(count, -1)
        picked[has] = owners[chosen[has]]
        keys = np.zeros(len(groups), numbers.dtype)
        keys[picked[has]] = numbers[chosen[has]]
        return picked_state(ArgminState, self._value, rows, picked, keys)


def _is_set(node: ExpressionNode, values: Values) -> Mask:
    """Mark the rows that have a value of an attribute."""
    if values.offsets is not None:
        return lengths_of(values.offsets) > 0
    data = values.data
    if values.kind is Kind.LONG:
        return ~np.isin(data, [LEAST >> 8 * (8 - node.size_bytes)])
    if values.kind in TEXTS and values.table is not None:
        codes, places = np.unique(data, return_inverse=True)
        is_text = np.array([len(text) > 0 for text in values.table.values_of(codes)], np.bool_)
        return is_text[places]
    return ~np.isnan(data) if values.kind is Kind.DOUBLE else np.ones(len(data), np.bool_)


def _attributes_of(expression: Expression) -> Iterator[Expression]:
    if expression.function == "attribute":
        yield expression
    for each in expression.arguments:
        if isinstance(each, Expression):
            yield from _attributes_of(each)


@aggregates("argmin")
def _argmin(aggregation: Aggregation, bind: Binder) -> Argmin:
    arguments = aggregation.expression.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Expression) or not isinstance(arguments[1], Expression):
        raise InvalidQuery("The aggregator 'argmin' needs a key and a value")
    key = bind(arguments[0])
    if key.kind not in _NUMBERS:
        raise InvalidQuery(f"The key of 'argmin' or 'argmax' must be a number, not {key.kind.value}")
    return Argmin(key, [bind(each) for each in dict.fromkeys(_attributes_of(arguments[0]))], bind(arguments[1]))
