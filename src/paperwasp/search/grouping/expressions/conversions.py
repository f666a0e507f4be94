"""tolong, todouble, tostring and toraw; strlen, the size of a text in bytes; normalizesubject, a subject without its
first Re: or Fwd:. Of several values the first counts.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#type-conversion-expressions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, first_doubles, first_longs, first_texts
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Computed, Node, Scope, bind_arguments, register
from paperwasp.search.grouping.tables import InternedTable, TextTable, distinct, mapped
from paperwasp.search.grouping.values import Kind, Table, Values

_ANSWER: Final = compile_later(rb"R[eE]: |F[wW]: |F[wW][dD]: ")
_RESULTS: Final = {
    "tolong": Kind.LONG,
    "todouble": Kind.DOUBLE,
    "tostring": Kind.STRING,
    "toraw": Kind.RAW,
    "strlen": Kind.LONG,
    "normalizesubject": Kind.STRING,
}


@register(*_RESULTS)
def _conversion(expression: Expression, scope: Scope) -> Node:
    function = expression.function
    (argument,) = bind_arguments(expression, scope, 1, 1)
    if argument.kind in BUCKETS:
        raise InvalidQuery(f"Function '{function}' does not take buckets")
    kind = _RESULTS[function]
    texts = TextTable(memory=scope.texts)
    made = (TextTable if kind == Kind.STRING else InternedTable)(memory=scope.texts)
    shown: Table = made

    def compute(values: Sequence[Values]) -> Values:
        if function == "tolong":
            return Values(kind, first_longs(values[0]))
        if function == "todouble":
            return Values(kind, first_doubles(values[0]))
        found, places = distinct(first_texts(values[0], texts))
        parts = texts.bytes_of(found)
        if function == "strlen":
            return Values(kind, np.array([len(text) for text in parts], np.int64)[places])
        make: Any = _without_answer if function == "normalizesubject" else bytes
        return Values(kind, mapped(make, parts, made)[places], shown)

    return Computed(kind, [argument], compute)


def _without_answer(subject: bytes) -> bytes:
    found = _ANSWER.match(subject)
    return subject if found is None else subject[found.end() :]
