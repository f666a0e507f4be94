"""The values of attributes: all, those of an element, a place or a key of a map; their size and order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.attribute_columns import Z_CURVE_SUFFIX, AttributeColumn, Lengths, column_of
from paperwasp.search.grouping.conversion import (
    BUCKETS,
    LEAST,
    MOST,
    TEXTS,
    WHOLE,
    as_doubles,
    dtype_of,
    first_doubles,
    first_longs,
    number_in,
    whole_in,
)
from paperwasp.search.grouping.expression_node import (
    Computed,
    ExpressionNode,
    Lids,
    Rows,
    Scope,
    bind,
    bind_arguments,
    inner_constant,
    inner_expression,
    register,
)
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.tables import distinct, encoded, values_of
from paperwasp.search.grouping.value_columns import ranks_of
from paperwasp.search.grouping.values import Kind, Values, lengths_of
from paperwasp.storage.attributes.elements import numbers_within
from paperwasp.storage.attributes.rows import spread

# attribute(name), or its name alone: the value or values of an attribute.
#
# In a level that groups by an array, a map or a weighted set, and in those below it, this is read of the element that
# the row is about: `group(persons.name) each(group(persons.age) …)`, `group(tags) filter(regex("a.*", tags))` and
# `group(numbers) each(output(sum(numbers)))`.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#multivalue-attributes;
# current_index_setup.cpp, attributenode.cpp (`onExecute`)


class Single(ExpressionNode):
    """A single-valued attribute."""

    def __init__(self, column: AttributeColumn) -> None:
        self._column = column
        self.kind = column.kind
        self.size_bytes = column.size_bytes

    def values(self, rows: Rows) -> Values:
        return self._column.single(rows.lids)


class AllElements(ExpressionNode):
    """An array or a weighted set: all its elements, or keys. `array`: the one of structs, or the map, that it is a part
    of, or its own name."""

    is_multi = True

    def __init__(self, column: AttributeColumn, array: str) -> None:
        self._column = column
        self.kind = column.kind
        self.size_bytes = column.size_bytes
        self.arrays = frozenset((array,))

    def values(self, rows: Rows) -> Values:
        return self._column.elements(rows.lids)

    def element_numbers(self, rows: Rows, offsets: NDArray[np.uint32]) -> NDArray[Any]:
        found = self._column.numbers_of_set(rows.lids)
        return super().element_numbers(rows, offsets) if found is None else found


class OneElement(ExpressionNode):
    """The element of `array` that a row is about, or its part."""

    def __init__(self, column: AttributeColumn, array: str) -> None:
        self._column = column
        self._array = array
        self.kind = column.kind
        self.size_bytes = column.size_bytes

    def values(self, rows: Rows) -> Values:
        return self._column.element_of(rows.lids, rows.elements[self._array])


@register("attribute")
def _attribute(expression: Expression, scope: Scope) -> ExpressionNode:
    return attribute_node(attribute_name(expression, 0), scope)


def attribute_name(expression: Expression, number: int) -> str:
    """The name that an argument is, or that it has as an attribute. Errors: InvalidQuery."""
    argument = expression.arguments[number] if number < len(expression.arguments) else None
    if isinstance(argument, Expression) and argument.function == "attribute":
        return attribute_name(argument, 0)
    name = inner_constant(expression, number)
    if not isinstance(name, str):
        raise InvalidQuery(f"Argument {number + 1} of function '{expression.function}' must be an attribute")
    return name


def attribute_node(name: str, scope: Scope) -> ExpressionNode:
    """The node of the attribute of this name. Errors: InvalidQuery."""
    column = column_of(name, scope)
    if not column.is_multi:
        return Single(column)
    array = name.rpartition(".")[0] or name.removesuffix(Z_CURVE_SUFFIX)
    return OneElement(column, array) if array in scope.bound_arrays else AllElements(column, array)


# array.at and interpolatedlookup, which look up one value among those of an attribute, for each row by an expression.
#
# array.at takes the element of a number, the first where it is below 0, the last where there are fewer. Where there
# is no element it gives 0, false or the empty text. interpolatedlookup says between which of the elements, which
# rise, a number lies, counted from 0: halfway between the fifth and the sixth it is 4.5; below the first, and of no
# elements, it is 0.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#accessor-expressions
# Differs: numbers of elements from 2^32 on take the last, as the page says; there they lose their higher bits.


Doubles = NDArray[np.float64]


class ElementAt(ExpressionNode):
    """The element of an array whose number another node says."""

    def __init__(self, column: AttributeColumn, number: ExpressionNode) -> None:
        self._column = column
        self._number = number
        self.kind = column.kind
        self.size_bytes = column.size_bytes
        self.arrays = number.arrays

    def values(self, rows: Rows) -> Values:
        numbers = first_longs(self._number.values(rows))
        return self._column.element_of(rows.lids, np.maximum(numbers, 0))


class Interpolated(ExpressionNode):
    """The place of a number among the rising elements of an array, interpolated: 3.25 for 5 in 0, 1, 2, 4, 8."""

    kind = Kind.DOUBLE

    def __init__(self, column: AttributeColumn, number: ExpressionNode) -> None:
        self._column = column
        self._number = number
        self.arrays = number.arrays

    def values(self, rows: Rows) -> Values:
        column = self._column
        wanted = first_doubles(self._number.values(rows))
        if not column.is_multi:
            return Values(self.kind, np.zeros(len(rows.lids)))
        starts, lengths = column.runs(rows.lids)
        elements = as_doubles(Values(column.kind, column.at(spread(starts, lengths))))
        return Values(self.kind, _positions(elements, lengths, wanted))


def _positions(elements: Doubles, lengths: Lengths, wanted: Doubles) -> Doubles:
    """By the first element of each row that is above what is wanted; where there is none, the last."""
    found = np.maximum(lengths - 1, 0).astype(np.float64)
    places = np.flatnonzero(np.repeat(wanted, lengths) < elements)
    rows = np.repeat(np.arange(len(lengths)), lengths)[places]
    rows, first = np.unique(rows, return_index=True)
    places = places[first]
    numbers = numbers_within(lengths)[places]
    found[rows] = 0.0
    inner = numbers > 0
    rows, places = rows[inner], places[inner]
    with np.errstate(all="ignore"):
        below = elements[places - 1]
        found[rows] = numbers[inner] - 1 + (wanted[rows] - below) / (elements[places] - below)
    return found


@register("array.at", "interpolatedlookup")
def _lookup(expression: Expression, scope: Scope) -> ExpressionNode:
    function = expression.function
    column = column_of(attribute_name(expression, 0), scope)
    number = bind(inner_expression(expression, 1), scope)
    if len(expression.arguments) != 2 or number.kind in BUCKETS:
        raise InvalidQuery(f"Function '{function}' takes an attribute and a number")
    if function == "array.at":
        if not column.is_multi:
            raise InvalidQuery(f"Function 'array.at' takes an array, and attribute '{column.name}' has one value")
        return ElementAt(column, number)
    if column.kind in TEXTS:
        raise InvalidQuery(f"Function 'interpolatedlookup' takes numbers, not the {column.kind.value} '{column.name}'")
    return Interpolated(column, number)


# The value of a map for a key: map{"key"}, map{"key"}.part, and map{attribute(name)}, whose key an attribute says.
#
# A key that a map does not have gives what is unset: the least integer of the type, NaN, the empty text. A bool is a
# long here. Of a key twice the first counts. Where documents are streamed, a key that a map does not have gives no
# value.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#multivalue-attributes;
# attribute_map_lookup_node.cpp, documentfieldnode.cpp


Mask = NDArray[np.bool_]


class Key(ABC):
    """A key that is looked up in a map."""

    @abstractmethod
    def equals(self, keys: NDArray[Any], lengths: Lengths, lids: Lids) -> Mask:
        """Mark the keys that are the wanted one; `lengths` say how many keys each row has."""


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


class MapLookup(ExpressionNode):
    """The value of the element with the wanted key."""

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
        """Return the rows that have the key, and the number of its element in each."""
        starts, lengths = self._keys.runs(lids)
        places = np.flatnonzero(self._key.equals(self._keys.at(spread(starts, lengths)), lengths, lids))
        rows, first = np.unique(np.repeat(np.arange(len(lids)), lengths)[places], return_index=True)
        return rows, numbers_within(lengths)[places[first]]


@register("map", "map_source")
def _map(expression: Expression, scope: Scope) -> ExpressionNode:
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


# size, sort and reverse of the values of a row; of one value alone the size is 1, and it stays as it is.
#
# Values are sorted in the order of group ids: numbers by size with NaN first, texts by their bytes, buckets by their
# limits.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#list-expressions


@register("size")
def _size(expression: Expression, scope: Scope) -> ExpressionNode:
    (argument,) = bind_arguments(expression, scope, 1, 1)

    def compute(values: Sequence[Values]) -> Values:
        offsets = values[0].offsets
        if offsets is None:
            return Values(Kind.LONG, np.ones(len(values[0].data), np.int64))
        return Values(Kind.LONG, lengths_of(offsets))

    return Computed(Kind.LONG, [argument], compute)


@register("sort", "reverse")
def _arranged(expression: Expression, scope: Scope) -> ExpressionNode:
    (argument,) = bind_arguments(expression, scope, 1, 1)
    if not argument.is_multi:
        return argument
    arrange = _sorted if expression.function == "sort" else _reversed

    def compute(values: Sequence[Values]) -> Values:
        return arrange(values[0])

    return Computed(argument.kind, [argument], compute, is_multi=True, size_bytes=argument.size_bytes)


def _sorted(values: Values) -> Values:
    assert values.offsets is not None
    rows = np.repeat(np.arange(len(values.offsets) - 1), lengths_of(values.offsets))
    order = np.lexsort((ranks_of(values), rows))
    return Values(values.kind, values.data[order], values.table, values.offsets)


def _reversed(values: Values) -> Values:
    assert values.offsets is not None
    bounds = values.offsets.astype(np.int64)
    places = np.repeat(bounds[:-1] + bounds[1:] - 1, np.diff(bounds)) - np.arange(len(values.data))
    return Values(values.kind, values.data[places], values.table, values.offsets)
