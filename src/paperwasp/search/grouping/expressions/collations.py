"""uca(text, locale, strength): the key by which a text is sorted as people of some language expect it, as raw bytes.

Without a strength it is PRIMARY: letters count, and neither accents nor case. A text ends at its first NUL; one that is
not UTF-8 has the key of the empty text.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#uca; searchlib/uca/ucaconverter.cpp
"""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, as_texts
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Computed, Node, Scope, bind, inner_constant, inner_expression, register
from paperwasp.search.grouping.tables import InternedTable, TextTable, distinct, mapped
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.text.linguistics.collation import Collation


@register("uca")
def _uca(expression: Expression, scope: Scope) -> Node:
    argument = bind(inner_expression(expression, 0), scope)
    settings = [str(inner_constant(expression, number)) for number in range(1, len(expression.arguments))]
    if argument.kind in BUCKETS or not 1 <= len(settings) <= 2:
        raise InvalidQuery("Function 'uca' takes an expression that is no bucket, a locale and perhaps a strength")
    collation = Collation("uca", settings[0], settings[1].lower() if len(settings) > 1 else "primary")
    texts, made = TextTable(memory=scope.texts), InternedTable(memory=scope.texts)

    def key_of(text: bytes) -> bytes:
        return collation.key_of(_shown(text))

    def compute(values: Sequence[Values]) -> Values:
        codes, places = distinct(as_texts(values[0], texts))
        return Values(Kind.RAW, mapped(key_of, texts.bytes_of(codes), made)[places], made, values[0].offsets)

    return Computed(Kind.RAW, [argument], compute, is_multi=argument.is_multi)


def _shown(text: bytes) -> str:
    try:
        return text.partition(b"\0")[0].decode()
    except UnicodeDecodeError:
        return ""
