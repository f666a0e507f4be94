"""What a map has for a key: map{"key"}, map{"key"}.part, and map{attribute(name)}, whose key an attribute says.

A key that a map does not have gives what is unset: the least integer of the type, NaN, the empty text. A bool is a long
here. Of a key twice the first counts. Where documents are streamed, a key that a map does not have gives no value.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#multivalue-attributes;
attribute_map_lookup_node.cpp, documentfieldnode.cpp
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.columns import AttributeColumn, Lengths, column_of
from paperwasp.search.grouping.conversion import LEAST, MOST, WHOLE, dtype_of, number_in, whole_in
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Lids, Node, Rows, Scope, inner_constant, register
from paperwasp.search.grouping.tables import distinct, encoded, values_of
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.elements import numbers_within
from paperwasp.storage.attributes.rows import spread

Mask = NDArray[np.bool_]


class Key(ABC):
    """What is looked for among the keys of a map."""

    @abstractmethod
    def equals(self, keys: NDArray[Any], lengths: Lengths, lids: Lids) -> Mask:
        """Whether each key, of which `lengths` say how many the map of each row has, is the wanted one."""


class WrittenKey(Key):
    """The same key for all rows, as the column has it; None: what is in no map."""

    def __init__(self, datum: Any) -> None:
        self._datum = datum

    def equals(self, keys: NDArray[Any], lengths: Lengths, lids: Lids) -> Mask:
        if self._datum is None:
            return np.zeros(len(keys), np.bool_)
        return np.asarray(keys == self._datum, np.bool_)


class SourceKey(Key):
    """The value of an attribute that has the type of the keys."""

    def __init__(self, source: AttributeColumn, column: AttributeColumn) -> None:
        self._source = source
        self._column = column

    def equals(self, keys: NDArray[Any], lengths: Lengths, lids: Lids) -> Mask:
        wanted = self._source.single(lids)
        if wanted.kind != Kind.STRING:
            return np.asarray(keys == np.repeat(wanted.data, lengths), np.bool_)
        codes, places = distinct(wanted.data)
        texts = values_of(wanted.table, codes)
        found = [-1 if (code := self._column.code_of(text)) is None else code for text in texts]
        return np.asarray(keys == np.repeat(np.array(found, np.int64)[places], lengths), np.bool_)


class MapLookup(Node):
    """What the element with the wanted key has."""

    def __init__(self, keys: AttributeColumn, column: AttributeColumn, key: Key, *, is_multi: bool) -> None:
        """`is_multi`: whether a row without the key has no value; else an unset one."""
        self.is_multi = is_multi
        self._keys = keys
        self._column = column
        self._key = key
        self._is_bool = column.kind == Kind.BOOL
        self.kind = Kind.LONG if self._is_bool else column.kind
        self.size_bytes = column.size_bytes

    def values(self, rows: Rows) -> Values:
        column = self._column
        found, numbers = self._places(rows.lids)
        starts, lengths = column.runs(rows.lids)
        has = numbers < lengths[found]
        found, numbers = found[has], numbers[has]
        places = starts[found] + numbers
        if self.is_multi:
            has = column.are_set(places)
            found, places = found[has], places[has]
        data = column.at(places)
        offsets = None
        if self.is_multi:
            offsets = np.searchsorted(found, np.arange(len(rows.lids) + 1)).astype(np.uint32)
        else:
            picked = data
            data = np.full(len(rows.lids), column.undefined, dtype_of(column.kind))
            data[found] = picked
        if self._is_bool:
            data = data.astype(np.int64)
        return Values(self.kind, data, column.table, offsets)

    def _places(self, lids: Lids) -> tuple[NDArray[np.intp], Lengths]:
        """Which rows have the key, and the number of its element in each."""
        starts, lengths = self._keys.runs(lids)
        places = np.flatnonzero(self._key.equals(self._keys.at(spread(starts, lengths)), lengths, lids))
        rows, first = np.unique(np.repeat(np.arange(len(lids)), lengths)[places], return_index=True)
        return rows, numbers_within(lengths)[places[first]]


@register("map", "map_source")
def _map(expression: Expression, scope: Scope) -> Node:
    prefix, given, suffix = (_text(expression, number) for number in range(3))
    keys = column_of(f"{prefix}.key", scope)
    column = column_of(f"{prefix}.value" + (f".{suffix.lstrip('.')}" if suffix else ""), scope)
    if not (keys.is_multi and column.is_multi):
        raise InvalidQuery(f"'{prefix}' is not a map")
    if expression.function == "map":
        return MapLookup(keys, column, WrittenKey(_datum_of(given, keys)), is_multi=scope.is_streamed)
    source = column_of(given, scope)
    if source.is_multi:
        raise InvalidQuery(
            f"Grouping request references key source attribute '{given}' which is not of single value type"
        )
    is_same = source.kind == keys.kind or {source.kind, keys.kind} <= WHOLE
    key = SourceKey(source, keys) if is_same else WrittenKey(None)
    return MapLookup(keys, column, key, is_multi=scope.is_streamed)


def _text(expression: Expression, number: int) -> str:
    text = inner_constant(expression, number)
    if not isinstance(text, str):
        raise InvalidQuery(f"Argument {number + 1} of function '{expression.function}' must be a text")
    return text


def _datum_of(key: str, keys: AttributeColumn) -> Any:
    """The key as the column has it; None: it has none such."""
    if keys.kind == Kind.STRING:
        return keys.code_of(key)
    if keys.kind == Kind.DOUBLE:
        return number_in(encoded(key))
    whole = whole_in(encoded(key))
    return None if whole is None or not LEAST <= whole <= MOST else whole
