"""Selections as trees: conditions, which are true, false or invalid, over values.

Trees are immutable; `str` writes one as a text that parses to an equal tree, with no more parentheses than it needs.
"""

from __future__ import annotations

import math
import re
from hashlib import md5
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import PartlyCompared
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection.values import Operand
from paperwasp.document.updates import Index, Key, Member
from paperwasp.errors import InvalidInput, LanguageError, Position

CHARACTER_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_WRITTEN_OTHERWISE: Final = compile_later(r'[\x00-\x1f"\\\x7f]')
_BARE_KEY: Final = compile_later(r"[a-zA-Z_][a-zA-Z0-9_]*|[0-9]+")

LEVELS: Final = {
    **dict(zip(("or", "and", "not"), (1, 2, 3), strict=True)),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "=", "=~"), 4),
    **dict(zip("+-*/%", (5, 5, 6, 6, 7), strict=True)),
}
"""How strongly an operator binds."""
ATOM: Final = 8
ID_PARTS: Final = ("", "scheme", "namespace", "type", "specific", "user", "group", "bucket", "gid")


class SelectionNode(PartlyCompared, frozen=True, kw_only=True):
    """A part of a selection. `start` is where it begins in the text, in characters."""

    UNCOMPARED: ClassVar = frozenset({"depth", "start"})

    depth: int = 0
    """Levels of nodes below; 0 for a leaf."""
    start: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "depth", max((node.depth + 1 for node in self.inner), default=0))

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        """The nodes directly below."""
        return ()

    @property
    def level(self) -> int:
        return ATOM

    def within(self, level: int) -> str:
        """The text of this node as an operand of something that binds as strongly as `level`."""
        return f"({self})" if self.level < level else str(self)


class ValueNode(SelectionNode, frozen=True):
    """A node with a value: null, a number, a string, several of them, or an invalid one."""


class ConditionNode(SelectionNode, frozen=True):
    """A node that is true, false or invalid."""


class Literal(ValueNode, frozen=True):
    """null, true, false, a number or a string. As values, true and false are 1 and 0."""

    value: str | int | float | bool | None

    def __str__(self) -> str:
        match self.value:
            case None | bool():
                return str(self.value).lower().replace("none", "null")
            case str():
                return quote(self.value)
            case float() if math.isinf(self.value):
                return "1e999" if self.value > 0 else "-1e999"
        return repr(self.value)


class IdPart(ValueNode, frozen=True):
    """The document's id, or a part of it: one of `ID_PARTS`."""

    part: str

    def __str__(self) -> str:
        return f"id.{self.part}" if self.part else "id"


class Now(ValueNode, frozen=True):
    """The time, in seconds since 1970."""

    def __str__(self) -> str:
        return "now()"


class Variable(Struct, frozen=True):
    """A step into each element or entry in turn; `name` stands for its index or key."""

    name: str


Step = Member | Key | Index | Variable


class FieldValue(ValueNode, frozen=True):
    """The value of a field of documents of one type, or what a path of `steps` leads to in it."""

    document_type: str
    name: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return f"{self.document_type}.{self.name}" + "".join(step_text(step) for step in self.steps)

    @property
    def binds(self) -> bool:
        return any(isinstance(step, Variable) for step in self.steps)


class FunctionCall(ValueNode, frozen=True):
    """`operand.function()`."""

    function: str
    operand: ValueNode

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        is_number = isinstance(self.operand, Literal) and isinstance(self.operand.value, int | float)
        operand = f"({self.operand})" if is_number else self.operand.within(ATOM)
        return f"{operand}.{self.function}()"


class Arithmetic(ValueNode, frozen=True):
    """`left operator right`, one of `+ - * / %`."""

    operator: str
    left: ValueNode
    right: ValueNode

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        return self.left, self.right

    @property
    def level(self) -> int:
        return LEVELS[self.operator]

    def __str__(self) -> str:
        return f"{self.left.within(self.level)} {self.operator} {self.right.within(self.level + 1)}"


class Constant(ConditionNode, frozen=True):
    """true or false."""

    value: bool

    def __str__(self) -> str:
        return str(self.value).lower()


class TypeIs(ConditionNode, frozen=True):
    """The document's type is this one; types that inherit it are others."""

    document_type: str

    def __str__(self) -> str:
        return self.document_type


class Comparison(ConditionNode, frozen=True):
    """`left operator right`, one of `== != < <= > >= = =~`."""

    operator: str
    left: ValueNode
    right: ValueNode

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        return self.left, self.right

    @property
    def level(self) -> int:
        return LEVELS["=="]

    def __str__(self) -> str:
        return f"{self.left.within(self.level)} {self.operator} {self.right.within(self.level)}"


class Not(ConditionNode, frozen=True):
    """True where `operand` is false, and the other way round."""

    operand: ConditionNode

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        return (self.operand,)

    @property
    def level(self) -> int:
        return LEVELS["not"]

    def __str__(self) -> str:
        return f"not {self.operand.within(self.level)}"


class _Chain(ConditionNode, frozen=True):
    """Two or more conditions with one word between them."""

    operands: tuple[ConditionNode, ...]
    word: ClassVar[str]

    @property
    def inner(self) -> tuple[SelectionNode, ...]:
        return self.operands

    @property
    def level(self) -> int:
        return LEVELS[self.word]

    def __str__(self) -> str:
        return f" {self.word} ".join(operand.within(self.level + 1) for operand in self.operands)


class And(_Chain, frozen=True):
    """All of two or more conditions."""

    word = "and"


class Or(_Chain, frozen=True):
    """Any of two or more conditions."""

    word = "or"


class Selection(PartlyCompared, frozen=True):
    """A whole selection. Two are equal if they say the same in the same order. `source` names the text in errors."""

    UNCOMPARED: ClassVar = frozenset({"source", "text"})

    root: ConditionNode
    text: str = ""
    source: str = ""

    def __str__(self) -> str:
        return str(self.root)


def quote(text: str) -> str:
    """Quotes a text as a string of the language."""
    return '"' + _WRITTEN_OTHERWISE.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    return CHARACTER_ESCAPES.get(found[0]) or f"\\x{ord(found[0]):02x}"


def step_text(step: Step) -> str:
    """A step as a path has it."""
    match step:
        case Member(name):
            return f".{name}"
        case Index(index):
            return f"[{index}]"
        case Variable(name):
            return f"{{${name}}}"
        case Key(key):
            return f"{{{key if _BARE_KEY.fullmatch(key) else quote(key)}}}"


# Properties of a selection that need no document, and selections made of others.


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
    """Return whether it is plain to see that all documents are selected."""
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


def nodes_of(selection: Selection) -> list[SelectionNode]:
    """All nodes, those above before those below."""
    found: list[SelectionNode] = [selection.root]
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
            if isinstance(node, And) == truth:
                return _all_of(found)
            known = [names for names in found if names is not None]
            return frozenset[str]().union(*known) if len(known) == len(found) else None
    return None


def _types_of_comparison(node: Comparison, truth: bool) -> frozenset[str] | None:
    found: list[frozenset[str] | None] = []
    below: list[SelectionNode] = [node]
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
