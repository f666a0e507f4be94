"""Selections to functions: each node becomes a closure once, so that a document costs only what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paperwasp.document.ids import DocumentId
from paperwasp.document.selection.paths import operand_of
from paperwasp.document.selection.subject import Subject
from paperwasp.document.selection.tree import (
    And,
    Arithmetic,
    Call,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    IdPart,
    Literal,
    Node,
    Not,
    Now,
    Or,
    Selection,
    TypeIs,
    ValueNode,
)
from paperwasp.document.selection.truth import (
    AND,
    FALSE,
    INVALID,
    NOT,
    OR,
    TRUE,
    Results,
    Table,
    combine,
    join,
    negated_results,
)
from paperwasp.document.selection.values import FUNCTIONS, Operand, Special, arithmetic, comparison, wrap_to_int64

Matcher = Callable[[Subject, int], bool | None]
"""Document, time in microseconds since 1970 → whether it is selected; None where that is invalid."""

_Value = Callable[[Subject, int], Operand]
_Condition = Callable[[Subject, int], Results]

_VERDICTS: Final = {TRUE: True, FALSE: False, INVALID: None}
_MICROSECONDS: Final = 1_000_000
_BUCKET_BITS: Final = 58
_LOCATION_MASK: Final = (1 << 32) - 1


def matcher_of(selection: Selection) -> Matcher:
    """The function that decides. It is total, and depends on nothing but its arguments."""
    root = selection.root
    if isinstance(root, Constant):
        verdict = root.value
        return lambda subject, now_us: verdict
    condition = _condition(root)
    return lambda subject, now_us: _VERDICTS[combine(condition(subject, now_us))]


def _condition(node: ConditionNode) -> _Condition:
    match node:
        case Constant(value=value):
            truth = TRUE if value else FALSE
            return lambda subject, now_us: truth
        case TypeIs(document_type=name):
            return lambda subject, now_us: TRUE if subject.id.document_type == name else FALSE
        case Comparison():
            return _comparison(node)
        case Not(operand=operand):
            inner = _condition(operand)
            return lambda subject, now_us: negated_results(inner(subject, now_us))
        case And(operands=operands):
            return _branch(operands, AND, FALSE)
        case Or(operands=operands):
            return _branch(operands, OR, TRUE)
    raise AssertionError(node)


def _branch(operands: tuple[ConditionNode, ...], table: Table, decided: int) -> _Condition:
    """Combines the results of all operands by `table`, in order, until one of them has decided.

    Where there are variables all are evaluated: one whose bindings agree with no others' changes their results.
    """
    first, *others = [_condition(operand) for operand in operands]
    decided = 0 if any(map(_binds, operands)) else decided

    def evaluate(subject: Subject, now_us: int) -> Results:
        found = first(subject, now_us)
        for other in others:
            if found == decided:
                return found
            found = join(found, other(subject, now_us), table)
        return found

    return evaluate


def _binds(node: Node) -> bool:
    return node.binds if isinstance(node, FieldValue) else any(map(_binds, node.inner))


def _comparison(node: Comparison) -> _Condition:
    if IdPart("bucket") in (node.left, node.right):
        return _in_bucket(node)
    left, right = _value(node.left), _value(node.right)
    match node:
        case Comparison(left=IdPart() as part, right=Literal(value=None)):
            left = _id_or_null(part)
        case Comparison(left=Literal(value=None), right=IdPart() as part):
            right = _id_or_null(part)
    compare = comparison(node.operator)
    return lambda subject, now_us: compare(left(subject, now_us), right(subject, now_us))


def _literal(node: ValueNode) -> Operand:
    assert isinstance(node, Literal)
    return int(node.value) if isinstance(node.value, bool) else node.value


def _value(node: ValueNode) -> _Value:
    match node:
        case Literal():
            value = _literal(node)
            return lambda subject, now_us: value
        case Now():
            return lambda subject, now_us: now_us // _MICROSECONDS
        case IdPart(part=part):
            read = _ID_PARTS[part]
            return lambda subject, now_us: read(subject.id)
        case FieldValue():
            return _field(node)
        case Call(function=name, operand=operand):
            function, inner = FUNCTIONS[name], _value(operand)
            return lambda subject, now_us: function(inner(subject, now_us))
        case Arithmetic(operator=operator, left=left, right=right):
            calculate, one, other = arithmetic(operator), _value(left), _value(right)
            return lambda subject, now_us: calculate(one(subject, now_us), other(subject, now_us))
    raise AssertionError(node)


def _field(node: FieldValue) -> _Value:
    type_name, name, steps = node.document_type, node.name, node.steps

    def read(subject: Subject, now_us: int) -> Operand:
        if not subject.is_a(type_name):
            return Special.INVALID
        value = subject.field(name)
        kind = type(value)
        if not steps and (kind is str or kind is int or kind is float):
            return value
        return operand_of(value, subject.data_type(name) if kind is list or kind is dict else None, steps)

    return read


def _id_or_null(node: IdPart) -> _Value:
    """As Vespa's page says, an id without number is null where it is compared with null."""
    read = _ID_PARTS[node.part]

    def read_or_null(subject: Subject, now_us: int) -> Operand:
        found = read(subject.id)
        return None if found is Special.INVALID else found

    return read_or_null


_ID_PARTS: Final[dict[str, Callable[[DocumentId], Operand]]] = {
    "": lambda id_: id_.text,
    "scheme": lambda id_: "id",
    "namespace": lambda id_: id_.namespace,
    "type": lambda id_: id_.document_type,
    "specific": lambda id_: id_.user_specified,
    "user": lambda id_: Special.INVALID if id_.number is None else wrap_to_int64(id_.number),
    "group": lambda id_: Special.INVALID if id_.group is None else id_.group,
    "gid": lambda id_: f"gid(0x{id_.gid.hex()})",
    "bucket": lambda id_: Special.INVALID,
}
"""The bucket is compared by `_in_bucket` alone."""


def _in_bucket(node: Comparison) -> _Condition:
    """Whether the document is in a bucket: 6 bits say how many of the low bits of location and gid must be the same."""
    read = _value(node.right if node.left == IdPart("bucket") else node.left)
    if node.operator not in ("==", "!=", "="):
        return lambda subject, now_us: INVALID
    negates = node.operator == "!="

    def evaluate(subject: Subject, now_us: int) -> Results:
        bucket = read(subject, now_us)
        if not isinstance(bucket, int):
            return INVALID
        gid = subject.id.gid
        own = int.from_bytes(gid[:4], "little") | (int.from_bytes(gid[4:], "little") & ~_LOCATION_MASK)
        bits = (bucket >> _BUCKET_BITS) & 0x3F
        mask = (1 << bits) - 1
        inside = 0 < bits <= _BUCKET_BITS and (own & mask) == (bucket & mask)
        truth = TRUE if inside else FALSE
        return NOT[truth] if negates else truth

    return evaluate
