"""Properties of a selection that need no document, and selections made of others."""

from __future__ import annotations

from hashlib import md5

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection.tree import (
    And,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    IdPart,
    Literal,
    Node,
    Not,
    Or,
    Selection,
    TypeIs,
)
from paperwasp.document.selection.values import Operand
from paperwasp.errors import InvalidInput, LanguageError, Position


def negate(selection: Selection) -> Selection:
    """Negates a selection: it selects all documents that this one does not. It is invalid where this one is."""
    return _whole(Not(selection.root))


def conjunction(*selections: Selection) -> Selection:
    """The documents that all of these select; all documents where there are none. Errors: LanguageError for depth."""
    operands: list[ConditionNode] = []
    for selection in selections:
        if isinstance(selection.root, And):
            operands += selection.root.operands
        elif not is_everything(selection):
            operands.append(selection.root)
    if len(operands) < 2:
        return Selection(operands[0] if operands else Constant(True))
    return _whole(And(tuple(operands)))


def _whole(root: ConditionNode) -> Selection:
    if root.depth > limits.SELECTION_DEPTH:
        raise LanguageError(f"nested deeper than {limits.SELECTION_DEPTH} levels", Position("selection", 1, 1))
    return Selection(root)


def is_everything(selection: Selection) -> bool:
    """Whether it is plain to see that all documents are selected."""
    return _is_everything(selection.root)


def _is_everything(node: ConditionNode) -> bool:
    match node:
        case Constant():
            return node.value
        case And():
            return all(map(_is_everything, node.operands))
        case Or():
            return any(map(_is_everything, node.operands))
    return False


def fields_of(selection: Selection) -> frozenset[tuple[str, str]]:
    """Document type and name of every field that it reads; where there is none, the id alone decides."""
    return frozenset((node.document_type, node.name) for node in nodes_of(selection) if isinstance(node, FieldValue))


def nodes_of(selection: Selection) -> list[Node]:
    """All nodes, those above before those below."""
    found: list[Node] = [selection.root]
    for node in found:
        found += node.inner
    return found


def types_of(selection: Selection) -> frozenset[str] | None:
    """Only documents of these types, or of types that inherit one of them, can be selected; None: of any type."""
    return _types(selection.root, True)


def _types(node: ConditionNode, truth: bool) -> frozenset[str] | None:
    """The types of documents for which the node can be true, or false."""
    match node:
        case Constant(value=value):
            return None if value == truth else frozenset()
        case TypeIs(document_type=name):
            return frozenset((name,)) if truth else None
        case Comparison():
            return _types_of_comparison(node, truth)
        case Not():
            return _types(node.operand, not truth)
        case And() | Or():
            found = [_types(operand, truth) for operand in node.operands]
            return _all_of(found) if isinstance(node, And) == truth else _any_of(found)
    return None


def _types_of_comparison(node: Comparison, truth: bool) -> frozenset[str] | None:
    found: list[frozenset[str] | None] = []
    below: list[Node] = [node]
    for inner in below:
        below += inner.inner
        if isinstance(inner, FieldValue):
            # Of documents of other types, a field is invalid, and so is the comparison.
            found.append(frozenset((inner.document_type,)))
    demanded = _find_demanded(node, "type")
    if truth and isinstance(demanded, str):
        found.append(frozenset((demanded,)))
    return _all_of(found)


def _all_of(types: list[frozenset[str] | None]) -> frozenset[str] | None:
    """The smallest of the sets of types. One is enough, since types of different names may inherit one another."""
    known = [names for names in types if names is not None]
    return min(known, key=len) if known else None


def _any_of(types: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [names for names in types if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(types) else None


def location_of(selection: Selection) -> bytes | None:
    """The first 4 bytes of the global ids of all documents that can be selected, where these are the same: it demands
    a number, a group, or one id."""
    return _location(selection.root)


def _location(node: ConditionNode) -> bytes | None:
    match node:
        case And():
            return next((found for found in map(_location, node.operands) if found is not None), None)
        case Or():
            found = {_location(operand) for operand in node.operands}
            return found.pop() if len(found) == 1 else None
        case Comparison():
            return _location_of_comparison(node)
    return None


def _location_of_comparison(node: Comparison) -> bytes | None:
    number, group, id_ = (_find_demanded(node, part) for part in ("user", "group", ""))
    if isinstance(number, int):
        return (number & ((1 << 32) - 1)).to_bytes(4, "little")
    if isinstance(group, str):
        return md5(group.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()[:4]
    if isinstance(id_, str):
        try:
            return DocumentId.parse(id_).gid[:4]
        except InvalidInput:
            return None
    return None


def _find_demanded(node: Comparison, part: str) -> Operand:
    """The value that the comparison demands of a part of the id, or None."""
    sides = [node.left, node.right]
    if node.operator not in ("==", "="):
        return None
    for one, other in (sides, sides[::-1]):
        if one == IdPart(part) and isinstance(other, Literal) and not isinstance(other.value, bool):
            is_glob = node.operator == "=" and isinstance(other.value, str) and not {"*", "?"}.isdisjoint(other.value)
            return None if is_glob else other.value
    return None
