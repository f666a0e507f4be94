"""Values as texts, numbers and bytes: strcat, cat, md5, tolong, tostring, strlen, uca and their like."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import (
    BUCKETS,
    TEXTS,
    as_texts,
    constant_bytes,
    double_text,
    first_doubles,
    first_longs,
    first_texts,
)
from paperwasp.search.grouping.expression_node import (
    Computed,
    ExpressionNode,
    Scope,
    bind,
    bind_arguments,
    inner_constant,
    inner_expression,
    register,
)
from paperwasp.search.grouping.memory import TextMemory
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.tables import (
    InternedTable,
    Places,
    TextTable,
    bytes_of,
    distinct,
    distinct_rows,
    in_pieces,
    mapped,
    values_of,
)
from paperwasp.search.grouping.values import Kind, Table, Values
from paperwasp.text.linguistics.collation import Collation

# strcat, which joins texts; cat, which joins binary forms; and md5 and xorbit of the binary form of one argument.
#
# All values of an argument with several are joined. The binary form of a number is big-endian and has the size of its
# attribute's type; a double has 8 bytes, a bool 1; a text is itself; a bucket is its limits. In strcat a double has six
# digits, a bool is 0 or 1, and a negative long is written as the positive one with the same bits.
# Vespa: searchlib/expression/functionnodes.cpp, strcatserializer.cpp, catserializer.cpp


_MOST_BITS: Final = 2**16
_MD5_BYTES: Final = 16
_FEW_COLUMNS: Final = 8
"""Up to this number are compared column by column; more as the bytes of whole rows."""
Form = Callable[[Any], bytes]


@register("strcat")
def _strcat(expression: Expression, scope: Scope) -> ExpressionNode:
    return _joined(bind_arguments(expression, scope), Kind.STRING, _text_form, scope, bytes)


@register("cat")
def _cat(expression: Expression, scope: Scope) -> ExpressionNode:
    return _joined(bind_arguments(expression, scope), Kind.RAW, _binary_form, scope, bytes)


@register("md5", "xorbit")
def _digest(expression: Expression, scope: Scope) -> ExpressionNode:
    bits = inner_constant(expression, 1)
    if isinstance(bits, bool) or not isinstance(bits, int) or not 0 < bits <= _MOST_BITS:
        raise InvalidQuery(f"The width of '{expression.function}' is a number of bits from 1 to {_MOST_BITS}")
    size = (bits + 7) // 8
    finish: Form = lambda form: hashlib.md5(form, usedforsecurity=False).digest()[: min(size, _MD5_BYTES)]  # noqa: E731
    if expression.function == "xorbit":
        finish = lambda form: _folded(form, size)  # noqa: E731
    argument = bind(inner_expression(expression, 0), scope)
    return _joined([argument], Kind.RAW, _binary_form, scope, finish)


def _folded(form: bytes, size: int) -> bytes:
    """The exclusive or of all whole pieces of `size` bytes; the rest takes the place of the first bytes."""
    whole = len(form) // size * size
    folded = np.bitwise_xor.reduce(np.frombuffer(form[:whole], np.uint8).reshape(-1, size), 0, initial=0)
    rest: bytes = folded.astype(np.uint8).tobytes()[len(form) - whole :]
    return form[whole:] + rest


def _joined(
    arguments: Sequence[ExpressionNode],
    kind: Kind,
    form_of: Callable[[ExpressionNode], Form],
    scope: Scope,
    finish: Form,
) -> ExpressionNode:
    """An expression that joins the forms of all values of all arguments, and applies `finish`."""
    forms = [form_of(each) for each in arguments]
    memory = scope.texts
    parts = InternedTable((b"",), memory)
    made = (TextTable if kind == Kind.STRING else InternedTable)(memory=memory)

    def compute(values: Sequence[Values]) -> Values:
        columns = [_codes(each, form, parts, memory) for each, form in zip(values, forms, strict=True)]
        first, places = distinct_rows(columns)
        texts = [parts.values_of(column[first]) for column in columns]
        memory.check(sum(sum(map(len, column)) for column in texts))
        found = made.codes_of([finish(b"".join(row)) for row in in_pieces(list(zip(*texts, strict=True)))])
        return Values(kind, found[places], made)

    return Computed(kind, arguments, compute)


def _codes(values: Values, form: Form, table: InternedTable, memory: TextMemory) -> NDArray[np.uint32]:
    """For each row the code in `table` of the joined forms of its values. Errors: OutOfTime."""
    check_time()
    if values.kind in TEXTS:
        found, places = distinct(values.data)
        given: Sequence[Any] = bytes_of(values.table, found)
    elif values.table is not None:
        found, places = distinct(values.data)
        given = values_of(values.table, found)
    else:
        numbers = values.data.view(np.int64) if values.kind == Kind.DOUBLE else values.data.astype(np.int64)
        found, places = distinct(numbers)
        given = found.tolist()
    pieces = [form(value) for value in in_pieces(given)]
    if values.offsets is None:
        return table.codes_of(pieces)[places]
    return _rows_joined(pieces, places, values.offsets.astype(np.int64), table, memory)


def _rows_joined(
    pieces: Sequence[bytes], places: Places, offsets: NDArray[np.int64], table: InternedTable, memory: TextMemory
) -> NDArray[np.uint32]:
    """The code of the joined pieces of each row, whose places are those from one offset to the next: of all rows with
    as many, each different one once."""
    lengths = offsets[1:] - offsets[:-1]
    codes = np.zeros(len(lengths), np.uint32)
    sizes = np.array([len(piece) for piece in pieces], np.int64)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        matrix = places[offsets[rows][:, None] + np.arange(length)].astype(np.uint32)
        if length <= _FEW_COLUMNS:
            first, numbers = distinct_rows(list(matrix.T))
        else:
            _, first, numbers = np.unique(
                matrix.view(f"V{4 * length}").reshape(-1), return_index=True, return_inverse=True
            )
        matrix = matrix[first]
        memory.check(int(sizes[matrix].sum()))
        texts = [b"".join([pieces[place] for place in row]) for row in in_pieces(matrix.tolist())]
        codes[rows] = table.codes_of(texts)[numbers.reshape(-1)]
    return codes


def _text_form(node: ExpressionNode) -> Form:
    if node.kind in BUCKETS:
        raise InvalidQuery("Function 'strcat' does not take buckets")
    if node.kind == Kind.DOUBLE:
        return lambda bits: double_text(struct.unpack("<d", struct.pack("<q", bits))[0])
    return bytes if node.kind in TEXTS else lambda number: b"%d" % (number & 0xFFFF_FFFF_FFFF_FFFF)


def _binary_form(node: ExpressionNode) -> Form:
    match node.kind:
        case Kind.STRING | Kind.RAW:
            return bytes
        case Kind.DOUBLE:
            return lambda bits: struct.pack(">q", bits)
        case Kind.LONG_BUCKET:
            return lambda limits: struct.pack(">qq", *(limits or (0, 0)))
        case Kind.DOUBLE_BUCKET:
            return lambda limits: struct.pack(">dd", *(limits or (0.0, 0.0)))
        case Kind.STRING_BUCKET | Kind.RAW_BUCKET:
            return lambda limits: b"".join(constant_bytes(limit) for limit in limits or ())
    size = 1 if node.kind == Kind.BOOL else node.size_bytes
    return lambda number: number.to_bytes(8, "big", signed=True)[8 - size :]


# tolong, todouble, tostring and toraw; strlen, the size of a text in bytes; normalizesubject, a subject without its
# first Re: or Fwd:. Of several values the first counts.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#type-conversion-expressions


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
def _conversion(expression: Expression, scope: Scope) -> ExpressionNode:
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


# uca(text, locale, strength): the key by which a text is sorted as people of some language expect it, as raw bytes.
#
# Without a strength it is PRIMARY: letters count, and neither accents nor case. A text ends at its first NUL; one
# that is not UTF-8 has the key of the empty text.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#uca; searchlib/uca/ucaconverter.cpp


@register("uca")
def _uca(expression: Expression, scope: Scope) -> ExpressionNode:
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
