"""What a selection says of a document, the slow and plain way: lists of (variables, truth), all pairs, no short cuts.

A twin of `paperwasp.document.selection.matcher` that shares nothing with it but the tree. Truths are True, False,
None.
"""

from __future__ import annotations

import re
import struct
from fractions import Fraction
from hashlib import md5
from typing import Any

from paperwasp.document.selection import PlainSubject
from paperwasp.document.selection.tree import (
    And,
    Arithmetic,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    FunctionCall,
    IdPart,
    Literal,
    Not,
    Now,
    Or,
    TypeIs,
    ValueNode,
    Variable,
)
from paperwasp.document.types import ArrayType, DataType, MapType, StructType, WeightedSetType
from paperwasp.document.updates import Index, Key, Member

Truth = bool | None
Variables = dict[str, object]
Results = list[tuple[Variables, Truth]]
NOTHING = object()
"""The invalid value."""


def verdict(node: ConditionNode, subject: PlainSubject, now_us: int) -> Truth:
    return merged(results(node, subject, now_us))


def merged(found: Results) -> Truth:
    truths = [truth for _, truth in found]
    if not truths:
        return False
    return True if True in truths else False if False in truths else None


def results(node: ConditionNode, subject: PlainSubject, now_us: int) -> Results:
    match node:
        case Constant():
            return [({}, node.value)]
        case TypeIs():
            return [({}, subject.id.document_type == node.document_type)]
        case Not():
            return [
                (found, None if truth is None else not truth) for found, truth in results(node.operand, subject, now_us)
            ]
        case And() | Or():
            found = results(node.operands[0], subject, now_us)
            for operand in node.operands[1:]:
                found = pairs(found, results(operand, subject, now_us), isinstance(node, And))
            return found
        case Comparison():
            left, right = value(node.left, subject, now_us), value(node.right, subject, now_us)
            if isinstance(node.left, IdPart) and node.right == Literal(None) and left is NOTHING:
                left = None
            if isinstance(node.right, IdPart) and node.left == Literal(None) and right is NOTHING:
                right = None
            return compared(node.operator, left, right)
    raise AssertionError(node)


def pairs(left: Results, right: Results, is_and: bool) -> Results:
    found: Results = []
    for one, truth in left:
        for other, second in right:
            if all(other.get(name, bound) == bound for name, bound in one.items()):
                both = [truth, second]
                decided = not is_and
                joint = (
                    decided if decided in [t for t in both if t is not None] else None if None in both else not decided
                )
                item = ({**one, **other}, joint)
                if item not in found:
                    found.append(item)
    return found


def compared(operator: str, left: Any, right: Any) -> Results:
    if not isinstance(left, list):
        return [({}, single(operator, left, right))]
    if not isinstance(right, list):
        return [(variables, single(operator, item, right)) for variables, item in left]
    if len(left) != len(right):
        return [
            (
                {},
                single(
                    operator.replace("=~", "=").replace("=", "==") if operator in "=~" else operator,
                    len(left),
                    len(right),
                ),
            )
        ]
    for (_, one), (_, other) in zip(left, right, strict=True):
        truth = single(operator, one, other)
        if truth is not True:
            return [({}, truth)]
    return [({}, True)]


def single(operator: str, left: Any, right: Any) -> Truth:
    texts = isinstance(left, str) and isinstance(right, str)
    if operator == "=~":
        return re.search(right.replace("$", r"\Z"), left) is not None if texts else None
    if operator == "=" and isinstance(right, str):
        return is_glob(right, left) if texts else None
    if operator in ("=", "=="):
        return equal(left, right)
    if operator == "!=":
        same = equal(left, right)
        return None if same is None else not same
    if not texts and not (is_number(left) and is_number(right)):
        return None
    if type(left) is not type(right):
        left, right = float(left), float(right)
    less, same = bool(left < right), bool(left == right)
    return {"<": less, "<=": less or same, ">": not (less or same), ">=": not less}[operator]


def equal(left: Any, right: Any) -> Truth:
    if left is NOTHING or right is NOTHING:
        return None
    if left is None or right is None:
        return left is None and right is None
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if is_number(left) and is_number(right):
        return left == right if type(left) is type(right) else float(left) == float(right)
    return None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def is_glob(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return is_glob(pattern[1:], text) or (bool(text) and is_glob(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and is_glob(pattern[1:], text[1:])


def value(node: ValueNode, subject: PlainSubject, now_us: int) -> Any:
    match node:
        case Literal():
            return int(node.value) if isinstance(node.value, bool) else node.value
        case Now():
            return now_us // 1_000_000
        case IdPart():
            return id_part(node.part, subject)
        case FieldValue():
            return field_value(node, subject)
        case FunctionCall():
            return called(node.function, value(node.operand, subject, now_us))
        case Arithmetic():
            return calculated(node.operator, value(node.left, subject, now_us), value(node.right, subject, now_us))
    raise AssertionError(node)


def id_part(part: str, subject: PlainSubject) -> Any:
    scheme, namespace, type_, location, specific = subject.id.text.split(":", 4)
    if part == "user":
        return int(location[2:]) if location.startswith("n=") else NOTHING
    if part == "group":
        return location[2:] if location.startswith("g=") else NOTHING
    parts = {"scheme": scheme, "namespace": namespace, "type": type_, "specific": specific, "": subject.id.text}
    return parts[part]


def field_value(node: FieldValue, subject: PlainSubject) -> Any:
    assert subject.type is not None
    if node.document_type not in (subject.type.name, *subject.type.inherits):
        return NOTHING
    if node.name not in subject.fields:
        return None
    try:
        found = walked(subject.fields[node.name], subject.type.fields[node.name], list(node.steps), {})
    except LookupError:
        return NOTHING
    if not found:
        return None
    return found[0][1] if len(found) == 1 and not found[0][0] else found


def walked(item: Any, type_: DataType, steps: list[Any], variables: Variables) -> list[tuple[Variables, Any]]:
    if not steps:
        return [(variables, leaf) for leaf in leaves(item, type_)]
    step, rest = steps[0], steps[1:]
    if isinstance(type_, ArrayType):
        return array_walked(item, type_.element, steps, variables)
    if isinstance(type_, StructType):
        if not isinstance(step, Member):
            raise LookupError
        inner = dict(type_.fields)[step.name]
        return walked(item[step.name], inner, rest, variables) if step.name in item else []
    if not isinstance(type_, MapType | WeightedSetType):
        raise LookupError
    inner = type_.value if isinstance(type_, MapType) else DataType("int")
    if step in (Member("key"), Member("value")):
        chosen = item if step.name == "key" else item.values()
        inner = type_.key if step.name == "key" else inner
        return [found for one in chosen for found in walked(one, inner, rest, variables)]
    if isinstance(step, Key):
        return [found for key in item if str(key) == step.key for found in walked(item[key], inner, rest, variables)]
    if not isinstance(step, Variable):
        raise LookupError
    if isinstance(bound := variables.get(step.name), Fraction):
        raise LookupError
    entries = [(key, one) for key, one in item.items() if bound in (None, key)]
    return [found for key, one in entries for found in walked(one, inner, rest, {**variables, step.name: key})]


def array_walked(item: Any, type_: DataType, steps: list[Any], variables: Variables) -> list[tuple[Variables, Any]]:
    """An index that a variable stands for is a Fraction here, so that it equals no key."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, Index):
        return walked(item[step.index], type_, rest, variables) if step.index < len(item) else []
    if not isinstance(step, Variable):
        return [found for one in item for found in walked(one, type_, steps, variables)]
    bound = variables.get(step.name)
    if bound is not None and not isinstance(bound, Fraction):
        raise LookupError
    found: list[tuple[Variables, Any]] = []
    for index, one in enumerate(item):
        if bound in (None, index):
            found += walked(one, type_, rest, {**variables, step.name: _Place(index)})
    return found


class _Place(Fraction):
    def __eq__(self, other: object) -> bool:
        return Fraction.__eq__(self, other) is True and (isinstance(other, Fraction) or type(other) is int)

    __hash__ = Fraction.__hash__


def leaves(item: Any, type_: DataType) -> list[Any]:
    if isinstance(type_, ArrayType):
        return [leaf for one in item for leaf in leaves(one, type_.element)]
    if isinstance(type_, StructType):
        return [leaf for name, inner in item.items() for leaf in leaves(inner, dict(type_.fields)[name])]
    if isinstance(type_, MapType | WeightedSetType):
        return list(item)
    return [int(item) if isinstance(item, bool) else item]


def wrapped(number: int) -> int:
    return struct.unpack("<q", struct.pack("<Q", number % 2**64))[0]  # type: ignore[no-any-return]


def called(function: str, argument: Any) -> Any:
    if function == "lowercase":
        return argument.lower() if isinstance(argument, str) else NOTHING
    if function == "abs":
        if not is_number(argument):
            return NOTHING
        return wrapped(-argument if argument < 0 else argument) if isinstance(argument, int) else abs(argument)
    if isinstance(argument, str):
        return struct.unpack("<q", md5(argument.encode()).digest()[:8])[0]
    if is_number(argument):
        return struct.unpack(
            "<q", md5(struct.pack("<q" if isinstance(argument, int) else "<d", argument)).digest()[:8]
        )[0]
    return NOTHING


def calculated(operator: str, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str) and operator == "+":
        return left + right
    if not is_number(left) or not is_number(right) or (operator in "/%" and right == 0):
        return NOTHING
    if isinstance(left, int) and isinstance(right, int):
        towards_zero = int(Fraction(left, right)) if operator in "/%" else 0
        whole = {"+": left + right, "-": left - right, "*": left * right, "/": towards_zero}
        return wrapped(whole.get(operator, left - right * towards_zero))
    if operator == "%":
        return NOTHING
    left, right = float(left), float(right)
    if operator == "/":
        return left / right
    return {"+": left + right, "-": left - right, "*": left * right}[operator]
