"""The tree of a ranking expression. `str()` of any node is its canonical text, which parses to the same tree.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from paperwasp.base.records import PartlyCompared
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import quoted

LEVELS: Final[dict[str, int]] = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "~=": 3,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "in": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    "^": 6,
}
"""How tightly an operator binds, as the content nodes of Vespa parse. All but ^ are left-associative.

A - or ! before a value binds tighter than all of them: -a ^ 2 is (-a) ^ 2.
"""

_PREFIX_LEVEL: Final = 7
_VALUE_LEVEL: Final = 8


class RankNode(PartlyCompared, frozen=True, kw_only=True):
    """One node. `start` is the character offset of its first token; it takes no part in equality."""

    UNCOMPARED: ClassVar = frozenset({"start"})

    start: int = 0

    @property
    def level(self) -> int:
        return _VALUE_LEVEL

    def children(self) -> tuple[RankNode, ...]:
        return ()

    def walk(self) -> Iterator[RankNode]:
        """This node and all below it."""
        pending: list[RankNode] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.children()))


class Number(RankNode, frozen=True):
    """A constant, with the text it was written as. `true` is 1 and `false` is 0."""

    value: float
    text: str

    def __str__(self) -> str:
        return self.text


class String(RankNode, frozen=True):
    """A quoted text: an argument of a feature."""

    value: str

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'


class Reference(RankNode, frozen=True):
    """`name(arguments).output`: a rank feature, a function, a constant or a parameter."""

    name: str
    arguments: tuple[RankNode, ...] = ()
    output: str = ""

    def children(self) -> tuple[RankNode, ...]:
        return self.arguments

    def __str__(self) -> str:
        arguments = f"({','.join(map(str, self.arguments))})" if self.arguments else ""
        return f"{self.name}{arguments}{'.' + self.output if self.output else ''}"


class Named(RankNode, frozen=True):
    """`name: value` among the arguments of a feature."""

    name: str
    value: RankNode

    def children(self) -> tuple[RankNode, ...]:
        return (self.value,)

    def __str__(self) -> str:
        return f"{self.name}:{self.value}"


class Call(RankNode, frozen=True):
    """A built-in scalar function of the language."""

    function: str
    arguments: tuple[RankNode, ...]

    def children(self) -> tuple[RankNode, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({','.join(map(str, self.arguments))})"


class Prefix(RankNode, frozen=True):
    """`-value` or `!value`."""

    operator: str
    operand: RankNode

    @property
    def level(self) -> int:
        return _PREFIX_LEVEL

    def children(self) -> tuple[RankNode, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return self.operator + enclose(self.operand, _PREFIX_LEVEL)


class Operation(RankNode, frozen=True):
    """Operands with operators of one level between them, computed from the left; `^` has exactly two operands."""

    operands: tuple[RankNode, ...]
    operators: tuple[str, ...]

    @property
    def level(self) -> int:
        return LEVELS[self.operators[0]]

    def children(self) -> tuple[RankNode, ...]:
        return self.operands

    def __str__(self) -> str:
        first_level, other_level = (
            (self.level + 1, self.level) if self.level == LEVELS["^"] else (self.level, self.level + 1)
        )
        parts = [enclose(self.operands[0], first_level)]
        for operator, operand in zip(self.operators, self.operands[1:], strict=True):
            parts += [operator, enclose(operand, other_level)]
        return " ".join(parts)


class Membership(RankNode, frozen=True):
    """`value in [choice, …]`"""

    value: RankNode
    choices: tuple[RankNode, ...]

    @property
    def level(self) -> int:
        return LEVELS["in"]

    def children(self) -> tuple[RankNode, ...]:
        return (self.value, *self.choices)

    def __str__(self) -> str:
        return f"{enclose(self.value, self.level)} in [{', '.join(map(str, self.choices))}]"


class If(RankNode, frozen=True):
    """`if (condition, if_true, if_false, probability)`; the probability of the condition is a hint only."""

    condition: RankNode
    if_true: RankNode
    if_false: RankNode
    probability: Number | None = None

    def children(self) -> tuple[RankNode, ...]:
        return (self.condition, self.if_true, self.if_false)

    def __str__(self) -> str:
        probability = f", {self.probability}" if self.probability else ""
        return f"if ({self.condition}, {self.if_true}, {self.if_false}{probability})"


class Switch(RankNode, frozen=True):
    """`switch (discriminant) { case value: result, …, default: result }`"""

    discriminant: RankNode
    cases: tuple[tuple[RankNode, RankNode], ...]
    default: RankNode

    def children(self) -> tuple[RankNode, ...]:
        return (self.discriminant, *(node for case in self.cases for node in case), self.default)

    def __str__(self) -> str:
        cases = "".join(f"case {value}: {result}, " for value, result in self.cases)
        return f"switch ({self.discriminant}) {{ {cases}default: {self.default} }}"


def operation(operands: Sequence[RankNode], operators: Sequence[str], start: int) -> RankNode:
    """One Operation; a first operand of the same level is taken apart, since the text would be the same."""
    first = operands[0]
    if isinstance(first, Operation) and first.level == LEVELS[operators[0]] != LEVELS["^"]:
        return Operation((*first.operands, *operands[1:]), (*first.operators, *operators), start=start)
    return Operation(tuple(operands), tuple(operators), start=start)


_ESCAPES: Final = {"f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unquote(text: str) -> str:
    """The text within quotes, its escapes replaced."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


def enclose(node: RankNode, least_level: int) -> str:
    """The text of a node, in parentheses if it binds looser than `least_level`."""
    return str(node) if node.level >= least_level else f"({node})"


# Tensors: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor-functions


class Word(RankNode, frozen=True):
    """A word that stands for itself: a dimension, an aggregator, a cell type."""

    text: str

    def __str__(self) -> str:
        return self.text


class Words(RankNode, frozen=True):
    """Words in parentheses, as `rename` takes them; a single one stands without."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.words[0] if len(self.words) == 1 else f"({','.join(self.words)})"


class Lambda(RankNode, frozen=True):
    """`f(x,y)(body)`: a function without a name. It sees its parameters only."""

    parameters: tuple[str, ...]
    body: RankNode

    def children(self) -> tuple[RankNode, ...]:
        return (self.body,)

    def __str__(self) -> str:
        return f"f({','.join(self.parameters)})({self.body})"


class TensorCall(RankNode, frozen=True):
    """A function of `tensor_functions.FUNCTIONS`. Arguments are expressions, words and lambdas."""

    function: str
    arguments: tuple[RankNode, ...]

    def children(self) -> tuple[RankNode, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


class OfType(RankNode, frozen=True):
    """`range(x[10])`, `diag(x[2],y[2])`, `random(x[3])`: a dense tensor of a type, its cells given by the function."""

    function: str
    type: TensorType

    def __str__(self) -> str:
        return f"{self.function}({','.join(map(str, self.type.dimensions))})"


class Generate(RankNode, frozen=True):
    """`tensor(x[3])(expression)`: a dense tensor. The expression sees the dimensions, and all that is around it."""

    type: TensorType
    body: RankNode

    def children(self) -> tuple[RankNode, ...]:
        return (self.body,)

    def __str__(self) -> str:
        return f"{self.type}({self.body})"


class Cell(RankNode, frozen=True):
    """One cell of a literal: a label or index for each dimension of the type, and an expression."""

    address: tuple[str, ...]
    value: RankNode

    def children(self) -> tuple[RankNode, ...]:
        return (self.value,)

    def __str__(self) -> str:
        return f"{{{','.join(map(quoted, self.address))}}}:{self.value}"


class TensorLiteral(RankNode, frozen=True):
    """`tensor(x{}):{a:1, b:expression}` and the other forms, all as cells."""

    type: TensorType
    cells: tuple[Cell, ...]

    def children(self) -> tuple[RankNode, ...]:
        return self.cells

    def __str__(self) -> str:
        names = [dimension.name for dimension in self.type.dimensions]
        parts = []
        for cell in self.cells:
            address = ",".join(f"{name}:{quoted(label)}" for name, label in zip(names, cell.address, strict=True))
            parts.append(f"{{{address}}}:{cell.value}")
        return f"{self.type}:{{{', '.join(parts)}}}"


class SlicePlace(RankNode, frozen=True):
    """The cut of a slice through one dimension: at a label, or at the index (or label) that an expression gives.

    Without a dimension it is the only mapped one for a label, the only indexed one for an index.
    """

    dimension: str
    label: str | None = None
    index: RankNode | None = None

    def children(self) -> tuple[RankNode, ...]:
        return () if self.index is None else (self.index,)

    def __str__(self) -> str:
        value = f"({self.index})" if self.label is None else quoted(self.label)
        return f"{self.dimension}:{value}" if self.dimension else value


class Slice(RankNode, frozen=True):
    """`tensor{x:a, y:(expression)}`, `tensor{a}` and `tensor[expression]`."""

    tensor: RankNode
    places: tuple[SlicePlace, ...]

    def children(self) -> tuple[RankNode, ...]:
        return (self.tensor, *self.places)

    def __str__(self) -> str:
        tensor = enclose(self.tensor, self.level)
        [first, *others] = self.places
        if not others and not first.dimension and first.index is not None:
            return f"{tensor}[{first.index}]"
        return f"{tensor}{{{', '.join(map(str, self.places))}}}"
