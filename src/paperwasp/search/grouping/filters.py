"""The predicates of filter(…): which rows a level groups. Where it groups by the elements of an array, a row is about
one of them, and so is what the predicate reads of that array; of others a row fits if any of their values does.

A regular expression, of RE2's syntax and so in linear time, must match the whole text of a value.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#filtering-groups
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, as_doubles, as_texts
from paperwasp.search.grouping.node import Node, Rows, Scope, bind
from paperwasp.search.grouping.request import Filter
from paperwasp.search.grouping.tables import TextTable, distinct, encoded, in_pieces
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.patterns import compiled

Mask = NDArray[np.bool_]
BoundFilter = Callable[[Rows], Mask]


def bind_filter(predicate: Filter, scope: Scope) -> BoundFilter:
    """The predicate as a function of rows. Errors: InvalidQuery."""
    parts = [bind_filter(part, scope) for part in predicate.parts]
    match predicate.kind:
        case "not":
            return lambda rows: ~parts[0](rows)
        case "and":
            return lambda rows: reduce(np.logical_and, [part(rows) for part in parts])
        case "or":
            return lambda rows: reduce(np.logical_or, [part(rows) for part in parts])
    if predicate.expression is None:
        raise InvalidQuery(f"Filter '{predicate.kind}' takes an expression")
    node = bind(predicate.expression, scope)
    if predicate.kind == "istrue":
        if node.kind != Kind.BOOL or node.is_multi:
            raise InvalidQuery(f"istrue() requires input to be type bool, got {node.kind.value}")
        return lambda rows: np.asarray(node.values(rows).data, np.bool_)
    if node.kind in BUCKETS:
        raise InvalidQuery(f"Filter '{predicate.kind}' does not take buckets")
    return _of_values(node, _fitting(predicate))


def _of_values(node: Node, fits: Callable[[Values], Mask]) -> BoundFilter:
    """Rows of which any value fits."""

    def accept(rows: Rows) -> Mask:
        values = node.values(rows)
        found = fits(values)
        if values.offsets is None:
            return found
        ends = np.concatenate([[0], np.cumsum(found)])[values.offsets.astype(np.intp)]
        return np.asarray(ends[1:] > ends[:-1], np.bool_)

    return accept


def _fitting(predicate: Filter) -> Callable[[Values], Mask]:
    settings: tuple[Any, ...] = predicate.settings
    if predicate.kind == "range":
        low, high, has_low, has_high = settings
        return lambda values: _between(as_doubles(values), low, high, has_low, has_high)
    if predicate.kind == "in":
        wanted = {encoded(str(each)) for each in settings}
        return lambda values: _texts_that(values, wanted.__contains__)
    if predicate.kind == "regex":
        pattern = compiled(str(settings[0]), cased=True)
        return lambda values: _texts_that(values, lambda text: pattern.fullmatch(text) is not None)
    raise InvalidQuery(f"Unknown filter in grouping: '{predicate.kind}'")


def _between(numbers: NDArray[np.float64], low: float, high: float, has_low: bool, has_high: bool) -> Mask:
    above = numbers >= low if has_low else numbers > low
    return np.asarray(above & (numbers <= high if has_high else numbers < high), np.bool_)


def _texts_that(values: Values, fits: Callable[[bytes], bool]) -> Mask:
    """Which values have a text that fits: each distinct text is looked at once."""
    table = TextTable()
    codes, places = distinct(as_texts(values, table))
    return np.array([fits(text) for text in in_pieces(table.bytes_of(codes))], np.bool_)[places]
